"""Reports: structure, escaping, sizes, determinism."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.simulation.trajectory import Trajectory
from phipsi.view import Report, base_motion
from phipsi.view.recorded_motion import FRAMES_PER_SECOND, MAX_FRAMES, MAX_NUMBERS, sampled, thinned
from tests.view.motions import HOSTILE, hostile, swing

ASSETS = resources.files("phipsi.view") / "assets"
VOID = {"meta", "link", "input", "img", "br", "path", "use", "rect"}


class Reader(HTMLParser):
    """What a browser would see: elements, attributes, and the text of scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.scripts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)


def data_of(page: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


def floats(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), "<f4")


@pytest.fixture(scope="module")
def arm() -> Trajectory:
    return swing(pp.robots.space_arm(), 0.3)


def test_a_page_is_well_formed(arm: Trajectory) -> None:
    report = Report("Title", "Subtitle").heading("One").heading("Part", level=3).paragraph("Text")
    report.table(["what", "how much"], [["a", 1.5], ["b", 2]], caption="Numbers")
    report.figure(base_motion({"x": arm}), alt="base", caption="c").animation({"x": arm})
    reader = Reader(report.html())
    assert not reader.open
    assert reader.tags.count("h1") == 1 and {"h2", "h3", "table", "svg", "canvas"} <= set(
        reader.tags
    )
    names = [value for name, value in reader.attributes if name == "id"]
    assert len(names) == len(set(names))


def test_nothing_is_asked_of_a_network(arm: Trajectory) -> None:
    page = Report("x").figure(base_motion({"x": arm}), alt="").animation({"x": arm}).html()
    for name, value in Reader(page).attributes:
        if name in ("src", "href", "xlink:href", "action", "data", "srcset"):
            assert (value or "").startswith(("data:", "#")), (name, value)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    (script,) = [s for s in Reader(page).scripts if not s.startswith("{")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in policy and "unsafe-inline'; img" in policy
    assert "@import" not in page and "url(http" not in page


def test_every_text_is_escaped() -> None:
    motion = swing(hostile())
    (frame,) = motion.robot.frames
    report = Report(HOSTILE, HOSTILE, language=HOSTILE).heading(HOSTILE).paragraph(HOSTILE)
    report.table([HOSTILE], [[HOSTILE]], caption=HOSTILE)
    report.figure(base_motion({HOSTILE: motion}, frame), alt=HOSTILE, caption=HOSTILE)
    report.animation(
        {HOSTILE: motion, "b": motion}, frames=[frame], targets={HOSTILE: [1, 0, 0]},
        side_by_side=True, caption=HOSTILE,
    )  # fmt: skip
    page = report.html()
    reader = Reader(page)
    assert "img" not in reader.tags and reader.tags.count("script") == 2
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    assert data_of(page)["robots"][0]["robot"] == HOSTILE
    assert data_of(page)["targets"][0]["label"] == HOSTILE


def test_names_that_are_no_text_are_written(tmp_path: Path) -> None:
    Report("half a \ud800 character").save(tmp_path / "x.html")
    assert "half a ? character" in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_an_animation_holds_the_poses(arm: Trajectory) -> None:
    target = arm.frame("tool")[-1]
    motions = {"a": arm, "b": swing(arm.robot, 0.1, duration=1.0)}
    page = Report("x").animation(motions, frames=["tool"], targets={"t": target}).html()
    data = data_of(page)
    assert len(data["robots"]) == 1 and [t["ghost"] for t in data["tracks"]] == [False, True]
    assert data["duration"] == 2.0 and data["panes"] == [""]
    times, poses = floats(data["tracks"][0]["times"]), floats(data["tracks"][0]["poses"])
    poses = poses.reshape(len(times), arm.robot.nb, 7)
    assert times[-1] == 2.0
    X = pp.poses(arm.robot, arm.q)
    assert np.allclose(poses[-1, :, :3], X[-1, :, :3, 3], atol=1e-6)
    path = floats(data["tracks"][0]["paths"][0]).reshape(-1, 3)
    assert np.allclose(path[-1], target[:3, 3], atol=1e-6)
    assert "ends 0 mm from t" in page or re.search(r"ends [\d.e-]+ mm from t", page)
    assert "moves for 2 s" in page


def test_side_by_side(arm: Trajectory) -> None:
    data = data_of(Report("x").animation({"a": arm, "b": arm}, side_by_side=True).html())
    assert data["panes"] == ["a", "b"] and [t["pane"] for t in data["tracks"]] == [0, 1]
    assert not any(t["ghost"] for t in data["tracks"])


@pytest.mark.parametrize(("duration", "n"), [(10.0, 100_001), (1e4, 50_001), (0.001, 11)])
def test_few_frames_are_kept(duration: float, n: int) -> None:
    robot = pp.robots.double_pendulum()
    s = sampled(swing(robot, duration=duration, n=n), "x")
    assert len(s.t) <= min(MAX_FRAMES, n, max(n if n < 20 else 0, duration * FRAMES_PER_SECOND + 1))
    assert s.t[0] == 0 and s.t[-1] == pytest.approx(duration)
    assert s.poses.size <= MAX_NUMBERS


def test_thinning_keeps_the_ends_and_repeated_times() -> None:
    t = np.array([0.0, 0.0, 0.001, 0.5, 0.5, 1.0])
    kept = thinned(t, 4)
    assert kept[0] == 0 and kept[-1] == 5 and (np.diff(kept) > 0).all()
    assert thinned(np.zeros(3), 10).tolist() in ([0, 1, 2], [0, 2])


def test_a_motion_that_breaks_is_drawn_until_then() -> None:
    whole = swing(pp.robots.double_pendulum())
    q = whole.q.copy()
    q[60:] = np.nan
    broken = Trajectory(whole.robot, whole.t, q, whole.v, whole.tau)
    page = Report("x").animation({"x": broken}).html()
    assert data_of(page)["duration"] == pytest.approx(whole.t[59])
    assert "stops being finite" in page
    q[:] = np.nan
    with pytest.raises(ValueError, match="begins with a number that is not finite"):
        Report("x").animation({"x": Trajectory(whole.robot, whole.t, q, whole.v, whole.tau)})


def test_a_single_instant_is_drawn() -> None:
    motion = swing(pp.robots.double_pendulum())[:1]
    data = data_of(Report("x").animation({"x": motion}, frames=["tool"]).html())
    assert data["duration"] == 0


def test_wrong_input_gets_one_sentence(arm: Trajectory) -> None:
    report = Report("x")
    batch = Trajectory(arm.robot, arm.t, arm.q[None], arm.v[None], arm.tau[None])
    for fails, message in (
        (lambda: report.animation({}), "needs a motion"),
        (lambda: report.animation({"x": batch}), r"choose one row"),
        (lambda: report.animation({"x": arm}, frames=["tol"]), "did you mean 'tool'"),
        (lambda: report.animation({"x": arm}, ghosts=["y"]), "ghosts names 'y'"),
        (lambda: report.animation({"x": arm}, targets={"t": [1, 2]}), "target 't' must be"),
        (lambda: report.animation({"x": arm}, targets={"t": [1, 2, np.nan]}), "finite"),
        (lambda: report.table(["a"], [[1, 2]]), "2 cells, not 1"),
        (lambda: report.figure(b"GIF89a", alt=""), "must be a PNG"),
    ):
        with pytest.raises(ValueError, match=message):
            fails()
    assert "<figure" not in report.html() and "<table" not in report.html()


def test_the_same_report_is_the_same_bytes(arm: Trajectory, tmp_path: Path) -> None:
    def page(name: str) -> bytes:
        report = Report("x").figure(base_motion({"x": arm}), alt="").animation({"x": arm})
        return report.save(tmp_path / name).read_bytes()

    assert page("a.html") == page("b.html")


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device; nothing was written"):
        Report("x").save(tmp_path / "x.html")
    assert not list(tmp_path.iterdir())


def test_a_report_without_figures_needs_no_matplotlib(
    arm: Trajectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    assert "<canvas" in Report("x").animation({"x": arm}).html()


def test_the_bundle_is_of_this_source() -> None:
    source = hashlib.sha256((ASSETS / "scene.src.js").read_bytes()).hexdigest()
    bundle = (ASSETS / "scene.js").read_text(encoding="utf-8")
    assert source in bundle[:200], "make assets/scene.js again, as assets/README.md says"
    assert (ASSETS / "three.LICENSE").read_text(encoding="utf-8").strip() in bundle
    assert "</script" not in bundle.lower() and "<!--" not in bundle
