"""Figures: what they show, and that they are the same every time."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import phipsi as pp
from phipsi.view import base_motion, conservation, figure_png, picture, save_figure, tip_error
from phipsi.view import still as still_module
from phipsi.view.figures import figure_svg
from phipsi.view.geometry import sides
from phipsi.view.scene import Shape, Solid
from phipsi.view.still import _met, _normal
from tests.view.motions import hostile, swing


@pytest.fixture(scope="module")
def motions() -> dict:
    robot = pp.robots.space_arm()
    return {"one": swing(robot, 0.5), "other": swing(robot, 0.2)}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(still_module, "PIXELS", 120)


def test_base_motion_shows_angle_and_distance(motions: dict) -> None:
    turn, shift = base_motion(motions).axes
    X = motions["one"].frame("base")
    moved = np.linalg.norm(X[:, :3, 3] - X[0, :3, 3], axis=1)
    y = np.asarray(shift.lines[0].get_ydata(), float)
    assert "[m]" in shift.get_title(loc="left") and np.allclose(y, moved)
    angles = np.asarray(turn.lines[0].get_ydata(), float)
    assert angles[0] == 0 and angles.max() == pytest.approx(np.degrees(0.5 * np.sqrt(3)), rel=1e-2)


def test_base_motion_needs_a_base() -> None:
    with pytest.raises(ValueError, match="no body on a free hinge"):
        base_motion({"x": swing(pp.robots.puma560())})


def test_tip_error_is_the_distance(motions: dict) -> None:
    X = motions["one"].frame("tool")
    far, turned = tip_error(motions, "tool", X[-1]).axes
    y = np.asarray(far.lines[0].get_ydata(), float)
    assert far.get_yscale() == "log" and turned.get_yscale() == "log"
    assert y[0] == pytest.approx(np.linalg.norm(X[0, :3, 3] - X[-1, :3, 3]), abs=1e-9) or np.isnan(
        y[0]
    )
    assert len(tip_error(motions, "tool", X[:, :3, 3]).axes) == 1
    with pytest.raises(ValueError, match="target has shape"):
        tip_error(motions, "tool", [1.0, 2.0])


def test_conservation_shows_drifts(motions: dict) -> None:
    axes = conservation(motions).axes
    assert [ax.get_title(loc="left") for ax in axes] == [
        "drift of angular momentum [N·m·s]",
        "drift of linear momentum [N·s]",
        "drift of energy [J]",
    ]
    one = motions["one"].energy
    y = np.asarray(axes[2].lines[0].get_ydata(), float)
    assert np.nanmax(y) == pytest.approx(np.abs(one - one[0]).max())
    relative = conservation(motions, relative=True).axes[2].lines[0].get_ydata()
    assert np.nanmax(np.asarray(relative, float)) <= 2


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_same_motions_give_the_same_bytes(kind: str, motions: dict, tmp_path: Path) -> None:
    makers = (
        lambda: base_motion(motions),
        lambda: picture(motions, frames=["tool"], targets={"t": [1.0, 0.0, 1.0]}, count=2),
    )
    for make in makers:
        first = save_figure(make(), tmp_path / f"a.{kind}").read_bytes()
        again = save_figure(make(), tmp_path / f"b.{kind}").read_bytes()
        assert first == again
        assert b"Date" not in first and b"Matplotlib" not in first


def test_the_suffix_says_the_format(motions: dict, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must end in \.png or \.svg"):
        save_figure(base_motion(motions), tmp_path / "x.pdf")
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("small")
def test_names_are_shown_as_they_are() -> None:
    motion = swing(hostile())
    (frame,) = motion.robot.frames
    for figure in (
        tip_error({frame: motion, "$": motion}, frame, [0.0, 0.0, 0.0]),
        picture({frame: motion, "$": motion}, frames=[frame], targets={frame: [0.0, 0.0, 0.0]}),
    ):
        texts = [node.text or "" for node in ElementTree.fromstring(figure_svg(figure)).iter()]
        assert any(frame in text for text in texts)
        assert "<script" not in figure_svg(figure, inline=True)
        assert figure_png(figure).startswith(b"\x89PNG")


def test_the_users_settings_stay_and_do_not_matter(motions: dict) -> None:
    import matplotlib

    plain = figure_svg(base_motion(motions))
    with matplotlib.rc_context({"font.size": 30.0, "axes.facecolor": "black"}):
        assert figure_svg(base_motion(motions)) == plain
        assert matplotlib.rcParams["font.size"] == 30.0


def test_no_pyplot_is_touched() -> None:
    code = (
        "import sys, phipsi as pp; from tests.view.motions import swing\n"
        "from phipsi.view import base_motion, figure_png\n"
        "figure_png(base_motion({'x': swing(pp.robots.space_arm(), n=3)}))\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


def test_without_matplotlib_one_sentence(monkeypatch: pytest.MonkeyPatch, motions: dict) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "phipsi\[plot\]"'):
        base_motion(motions)
    with pytest.raises(ImportError, match=r'pip install "phipsi\[plot\]"'):
        picture(motions)


@pytest.mark.parametrize(
    ("shape", "size", "volume"),
    [
        ("box", [0.4, 0.6, 0.8], 0.4 * 0.6 * 0.8),
        ("ellipsoid", [0.2, 0.3, 0.4], 4 / 3 * np.pi * 0.2 * 0.3 * 0.4),
        ("cylinder", [0.3, 0.8], np.pi * 0.09 * 0.8),
        ("capsule", [0.3, 0.8], np.pi * 0.09 * 0.8 + 4 / 3 * np.pi * 0.027),
    ],
)
@pytest.mark.parametrize("D", [[0, 0, 1], [0, 1, 0], [0.6, 0.0, 0.8], [0.48, 0.6, 0.64]])
def test_rays_measure_the_volume(
    shape: Shape, size: list[float], volume: float, D: list[float]
) -> None:
    """The length of each ray inside, from both sides, summed over rays, is the volume."""
    solid = Solid(body=0, shape=shape, role="link", size=size, pose=[0, 0, 0, 1, 0, 0, 0])
    towards = np.array(D, np.float32)
    right = np.cross(towards, [1.0, 0.0, 0.0] if abs(D[0]) < 0.9 else [0.0, 1.0, 0.0])
    right /= np.linalg.norm(right)
    u = (np.arange(400) + 0.5) / 400 * 2 - 1
    a, b = np.meshgrid(u, u)
    O = np.multiply.outer(right, a) + np.multiply.outer(np.cross(towards, right), b)
    O = O.astype(np.float32)
    out, back = _met(solid, O, towards), -_met(solid, O, -towards)
    hit = np.isfinite(out)
    assert (np.isfinite(back) == hit).all()
    assert (out - back)[hit].sum() * (2 / 400) ** 2 == pytest.approx(volume, rel=5e-3)
    P = O[:, hit] + out[hit] * towards[:, None]
    assert (np.abs(P) <= sides(solid)[:, None] / 2 + 1e-4).all()
    normal = _normal(solid, P)
    assert np.allclose(np.linalg.norm(normal, axis=0), 1, atol=1e-4)
    assert (towards @ normal > -1e-2).mean() > 0.999
