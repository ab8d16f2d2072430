"""Trajectories: parts, interpolation, what follows from the states, files, tables and figures."""

import csv
import errno
import io
import os
import pickle
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import phipsi as pp
from phipsi.model import KINDS
from phipsi.simulation import columns, files
from phipsi.simulation.trajectory import Trajectory
from phipsi.simulation.trajectory_data import TrajectoryError
from tests.simulation.machines import STEP
from tests.zoo import close, random_forest, random_inertia


def of_every_kind() -> pp.Robot:
    rng = np.random.default_rng(0)
    builder = pp.Builder("every kind")
    for k, kind in enumerate(KINDS):
        builder.body(f"b{k}", **random_inertia(rng))
        axes = rng.normal(size=(KINDS[kind].axes, 3)) if KINDS[kind].axes else None
        builder.hinge(
            f'odd, "{kind}"; =1+1', kind, f"b{k - 1}" if k else "world", f"b{k}", axis=axes,
            stiffness=rng.uniform(0, 1, KINDS[kind].nv), backlash=0.1,
        )  # fmt: skip
    return builder.frame("tool.x [m]", "b3").build()


ROBOTS = [pp.robots.double_pendulum(), pp.robots.space_arm(), of_every_kind()]
BATCHES = st.sampled_from([(), (3,), (2, 1)])


def motion(
    robot: pp.Robot, n: int = 5, batch: tuple[int, ...] = (), seed: int = 0, **more: Any
) -> Trajectory:
    rng = np.random.default_rng(seed)
    q, v = robot.random_state(rng, (*batch, n))
    names = list(robot.frames)[-1:]
    signals = {"on": rng.random((*batch, n)) < 0.5, "force": rng.normal(size=(*batch, n, 3))}
    return Trajectory(
        robot, np.cumsum(rng.random(n)), q, v, rng.normal(size=v.shape),
        frames={name: np.asarray(pp.frame_pose(robot, q, name)) for name in names},
        signals=signals, units={"force": "N"}, events=((0.5, "It broke."),), method="rk4", dt=0.1,
        **more,
    )  # fmt: skip


def assert_same(a: Any, b: Any) -> None:
    """The numbers of two trajectories or samples, bit for bit."""
    for name in ("t", "q", "v", "tau"):
        x, y = (np.asarray(getattr(one, name)) for one in (a, b))
        assert x.shape == y.shape and x.tobytes() == y.tobytes(), name
    for what in ("frames", "signals"):
        x, y = getattr(a, what), getattr(b, what)
        assert list(x) == list(y)
        for name in x:
            assert x[name].shape == y[name].shape and x[name].tobytes() == y[name].tobytes(), name


# ---- states and parts --------------------------------------------------------------------------


def test_energies_and_momentum_are_those_of_the_algorithms():
    robot = pp.robots.space_arm().with_gravity((0.0, 1.0, -9.81))
    x = motion(robot, batch=(2,))
    close(x.kinetic_energy, pp.kinetic_energy(robot, x.q, x.v), 0)
    close(x.potential_energy, pp.potential_energy(robot, x.q), 0)
    close(x.energy, x.kinetic_energy + x.potential_energy, 0)
    close(x.momentum, pp.momentum(robot, x.q, x.v), 0)
    close(x.center_of_mass, pp.center_of_mass(robot, x.q), 0)
    close(x.frame("tool"), x.frames["tool"], 0)
    body = robot.bodies[3].name
    close(x.frame(body), pp.frame_pose(robot, x.q, body), 0)


def test_the_rate_of_the_potential_is_the_power_of_gravity_and_springs():
    kinds = ("revolute", "prismatic", "helical", "cylindrical", "universal", "planar")
    robot = random_forest(5, 6, kinds=kinds, massless=False)
    q, v = robot.random_state(1)
    dt = 1e-4
    path = np.array([robot.integrate(q, s * dt * v) for s in (-1, 0, 1)])
    x = Trajectory(robot, dt * np.arange(3), path, np.tile(v, (3, 1)), np.zeros((3, robot.nv)))
    springs = pp.passive_forces(robot, q, np.zeros(robot.nv))
    power = v @ (pp.gravity_force(robot, q) - springs)
    close((x.potential_energy[2] - x.potential_energy[0]) / (2 * dt), power, 1e-6)
    loose = Trajectory(robot, x.t, x.q, x.v, x.tau, passive=False)
    close(loose.potential_energy, pp.potential_energy(robot, path), 0)


@pytest.mark.parametrize("robot", ROBOTS, ids=lambda robot: robot.name)
@settings(max_examples=30)
@given(n=st.integers(1, 6), batch=BATCHES, data=st.data())
def test_parts_are_parts_of_every_array(robot: pp.Robot, n: int, batch: Any, data: Any):
    x = motion(robot, n, batch)
    index = data.draw(st.slices(n) | st.lists(st.integers(-n, n - 1)).map(sorted))
    where = np.arange(n)[index]
    if (np.diff(where) < 0).any():
        with pytest.raises(TrajectoryError, match="none earlier"):
            _ = x[index]
        return
    part = x[index]
    assert len(part) == len(where) and part.batch == x.batch and part.method == x.method
    for k, i in enumerate(where):
        assert_same(part[k], x[int(i)])
    assert all(part.t[0] <= time <= part.t[-1] for time, _ in part.events)
    rows = [part.row(*row) for row in np.ndindex(batch)]
    assert all(np.array_equal(r.q, part.q[k]) for r, k in zip(rows, np.ndindex(batch), strict=True))
    assert [sample.t for sample in x] == x.t.tolist()


@pytest.mark.parametrize("robot", ROBOTS, ids=lambda robot: robot.name)
@settings(max_examples=20)
@given(n=st.integers(1, 5), batch=BATCHES, seed=st.integers(0, 99), s=st.floats(0, 1))
def test_at_is_exact_at_samples_and_on_the_manifold_between(
    robot: pp.Robot, n: int, batch: Any, seed: int, s: float
):
    x = motion(robot, n, batch, seed)
    assert_same(x.at(x.t), x)
    assert_same(x.at(x.t[n - 1]), x[n - 1])
    i = seed % n
    j = min(i + 1, n - 1)
    t = min(max(x.t[i] + s * (x.t[j] - x.t[i]), x.t[i]), x.t[j])
    between = x.at(t)
    assert_same(x.at([t])[0], between)
    for h in robot.hinges:
        if h.kind.quaternion is not None:
            quaternion = between.q[..., h.q][..., h.kind.quaternion :]
            close(np.linalg.norm(quaternion, axis=-1), np.ones(batch), 1e-14)
    if i < j:
        s = (t - x.t[i]) / (x.t[j] - x.t[i])
        whole = robot.difference(x[i].q, x[j].q)
        close(robot.integrate(x[i].q, s * whole), between.q, 1e-12)
        close(between.v, x[i].v + s * (x[j].v - x[i].v), 1e-12)
    for name, pose in between.frames.items():
        close(pose, pp.frame_pose(robot, between.q, name), 1e-12)


def test_at_a_double_sample_is_the_later():
    robot = pp.robots.double_pendulum()
    zero = np.zeros((4, 2))
    x = Trajectory(robot, np.array([0.0, 1, 1, 2]), zero, np.arange(8.0).reshape(4, 2), zero)
    assert x.at(1.0).v.tolist() == [4, 5] and x.at(np.nextafter(1, 0)).v[0] < 2.0 + 1e-12


def test_what_follows_is_read_only_and_the_callers_arrays_are_theirs():
    x = motion(ROBOTS[0])
    q = x.q.copy()
    y = Trajectory(x.robot, x.t, q, x.v, x.tau)
    q[0] = 7.0
    with pytest.raises(ValueError, match="read-only"):
        y.q[0] = 1.0
    with pytest.raises(TypeError):
        x.signals["more"] = x.t  # pyright: ignore[reportIndexIssue]
    assert_same(pickle.loads(pickle.dumps(x)), x)


def test_it_shows_itself():
    x = motion(ROBOTS[1], n=3, batch=(4,))
    assert repr(x).startswith("<Trajectory of 'space_arm': batch (4,), 3 samples from 0.")
    assert "rk4, dt = 0.1 s" in repr(x)
    shown = str(x)
    assert "energy" in shown and "signals: on, force" in shown and "0.5 s: It broke." in shown
    assert "0 samples" in str(x[:0]) and "1 sample from" in repr(x[:1])


# ---- wrong arguments ---------------------------------------------------------------------------

N2 = np.zeros((3, 2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"t": [0, 2, 1]}, "none earlier"),
        ({"t": [0, np.nan, 1]}, "finite"),
        ({"t": np.zeros((3, 1))}, "needs \\(N,\\)"),
        ({"q": np.zeros((3, 3))}, "q has shape \\(3, 3\\), needs \\(3, 2\\)"),
        ({"q": np.zeros(2)}, "q has shape \\(2,\\), needs \\(3, 2\\)"),
        ({"v": np.zeros((2, 2))}, "v has shape"),
        ({"tau": "abc"}, "tau has dtype <U3, needs real numbers"),
        ({"tau": [[1, 2], [3]]}, "tau is a ragged sequence"),
        ({"frames": {"tool": np.zeros((3, 4, 3))}}, "frame 'tool' has shape"),
        ({"frames": {"tol": np.zeros((3, 4, 4))}}, "did you mean 'tool'"),
        ({"signals": {"x": np.zeros(2)}}, "signal 'x' has shape"),
        ({"signals": {"x": np.zeros((3, 2, 2))}}, "signal 'x' has shape"),
        ({"signals": {"": np.zeros(3)}}, "printable name"),
        ({"signals": {"a\n": np.zeros(3)}}, "printable name"),
        ({"signals": {"a" * 1001: np.zeros(3)}}, r"'a{56}\.\.\.; it needs a printable name"),
        ({"units": {"a" * 100_000: "m"}}, r"units has 'a{56}\.\.\., which is none of the signals"),
        ({"units": {"x": "N"}}, "none of the signals"),
        ({"events": ((np.nan, "It broke."),)}, "events has a time that is not finite"),
    ],
)
def test_wrong_arrays_are_refused_in_one_sentence(change: dict[str, Any], message: str):
    given: dict[str, Any] = {"t": np.arange(3.0), "q": N2, "v": N2, "tau": N2} | change
    with pytest.raises(ValueError, match=message):
        Trajectory(pp.robots.double_pendulum(), **given)


def test_wrong_times_and_places_are_refused():
    x = motion(ROBOTS[0], n=4, batch=(2,))
    for t in (-1.0, x.t[-1] + 1e-9, np.nan, [[x.t[0]]], [x.t[0], 99.0]):
        with pytest.raises(TrajectoryError, match="within the times"):
            x.at(t)  # pyright: ignore[reportArgumentType, reportCallIssue]
    with pytest.raises(TrajectoryError, match="within the times"):
        x[:0].at(0.0)
    for index in (4, -5, (0, 1)):
        with pytest.raises(IndexError):
            _ = x[index]  # pyright: ignore[reportArgumentType, reportCallIssue]
    with pytest.raises(IndexError, match="1 axes of a batch, not 2"):
        x.row(0, 0)
    with pytest.raises(IndexError, match="has no row"):
        x.row(2)
    with pytest.raises(ValueError, match="no frame 'tol'"):
        x.frame("tol")


# ---- files -------------------------------------------------------------------------------------

NUMBERS = st.floats(allow_nan=False, width=64)


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
@pytest.mark.parametrize("robot", ROBOTS, ids=lambda robot: robot.name)
@settings(max_examples=8)
@given(n=st.integers(1, 4), batch=BATCHES, data=st.data())
def test_what_is_saved_is_loaded_bit_for_bit(
    robot: pp.Robot, suffix: str, n: int, batch: Any, data: Any, tmp_path_factory: Any
):
    path = tmp_path_factory.mktemp("files") / f"x{suffix}"
    x = motion(robot, n, batch)
    tau = data.draw(hnp.arrays(float, x.tau.shape, elements=NUMBERS))
    signals = {"a [m].b": tau[..., :1] * 0.5, "=c": tau[..., 0], **x.signals}
    x = Trajectory(robot, x.t, x.q, x.v, tau, x.frames, signals, {"=c": "m/s²"})
    x.save(path)
    y = Trajectory.load(path, None if suffix == ".npz" else robot)
    assert_same(x, y)
    assert y.units == {"=c": "m/s²"} and y.robot == robot


def test_npz_holds_all_the_rest(tmp_path: Path):
    x = motion(ROBOTS[1], batch=(2,), passive=False)
    x.save(tmp_path / "x.npz")
    y = Trajectory.load(tmp_path / "x.npz")
    assert (y.events, y.method, y.dt, y.passive) == (x.events, x.method, x.dt, False)
    assert y.robot == x.robot
    with np.load(tmp_path / "x.npz", allow_pickle=False) as arrays:
        assert np.array_equal(arrays["signal.force"], x.signals["force"])
    none = x[:0]
    none.save(tmp_path / "none.NPZ")
    assert Trajectory.load(str(tmp_path / "none.NPZ")).q.shape == (2, 0, 14)


def test_csv_is_read_by_others(tmp_path: Path):
    import pandas as pd

    x = motion(ROBOTS[1], n=4)
    x.save(tmp_path / "x.csv")
    content = (tmp_path / "x.csv").read_bytes()
    assert content.count(b"\r\n") == 5 and b"\n" not in content.replace(b"\r\n", b"")
    table = pd.read_csv(tmp_path / "x.csv", dtype=str).astype(float)
    assert np.array_equal(
        table["q.elbow_pitch [rad]"], x.q[:, x.robot.hinge("elbow_pitch").q][:, 0]
    )
    for name in ("t [s]", "q.base.x [m]", "q.base.qw", "v.base.wx [rad/s]", "tau.base.mx [N·m]",
                 "tau.wrist_roll [N·m]", "frame.tool.x [m]", "signal.force.2 [N]",
                 "kinetic_energy [J]", "momentum.lx [N·m·s]", "momentum.pz [N·s]"):  # fmt: skip
        assert name in table, name
    assert np.array_equal(table["energy [J]"], x.energy)
    (tmp_path / "y.csv").write_bytes(b"\xef\xbb\xbf" + content.replace(b"\r\n", b"\n"))
    assert_same(Trajectory.load(tmp_path / "y.csv", x.robot), x)


def test_no_cell_of_a_csv_is_a_formula(tmp_path: Path):
    x = motion(ROBOTS[2], n=2)
    x.save(tmp_path / "x.csv")
    text = (tmp_path / "x.csv").read_text(encoding="utf-8")
    header = next(csv.reader(io.StringIO(text)))
    assert not [name for name in header if name[0] in "=+-@\t\r"]
    assert text.startswith('"t [s]","q.')


def test_names_that_csv_cannot_hold_are_refused_and_nothing_is_written(tmp_path: Path):
    x = motion(ROBOTS[0], n=2)
    for signals in ({"a.0": x.t}, {"a [b]": x.t}, {"a": np.zeros((2, 0))}):
        odd = Trajectory(x.robot, x.t, x.q, x.v, x.tau, signals=signals)
        with pytest.raises(TrajectoryError, match=r"save it as \.npz"):
            odd.save(tmp_path / "x.csv")
    with pytest.raises(TrajectoryError, match=r"save it as \.npz"):
        motion(ROBOTS[0], batch=(0,)).save(tmp_path / "x.csv")
    assert list(tmp_path.iterdir()) == []


def test_unknown_suffixes_name_the_known_ones(tmp_path: Path):
    x = motion(ROBOTS[0])
    for name in ("x.txt", "x", ".npz", "x.npz.gz"):
        with pytest.raises(TrajectoryError, match=r"\.npz or \.csv"):
            x.save(tmp_path / name)
        with pytest.raises(TrajectoryError, match=r"\.npz or \.csv"):
            Trajectory.load(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stop", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_what_is_interrupted_leaves_the_old_file(
    stop: BaseException, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / f"x{suffix}"
    path.write_text("old")

    def fail(*_: Any) -> None:
        raise stop

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(type(stop)) as caught:
        motion(ROBOTS[0]).save(path)
    if isinstance(stop, OSError):
        assert "x" in str(caught.value) and "cannot be written: No space left" in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == [path.name] and path.read_text() == "old"


@pytest.mark.skipif(sys.platform == "win32", reason="links and permissions of POSIX")
def test_links_are_followed_and_odd_places_are_told(tmp_path: Path):
    x = motion(ROBOTS[0])
    (tmp_path / "there").mkdir()
    (tmp_path / "link.npz").symlink_to(tmp_path / "there" / "x.npz")
    x.save(tmp_path / "link.npz")
    assert (tmp_path / "link.npz").is_symlink() and (tmp_path / "there" / "x.npz").is_file()
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(OSError, match="is a directory; give the name of a file"):
        x.save(tmp_path / "folder.npz")
    with pytest.raises(OSError, match="cannot be written: No such file"):
        x.save(tmp_path / "nowhere" / "x.npz")
    with pytest.raises(OSError, match="is no path"):
        x.save("a\0.npz")
    with pytest.raises(TrajectoryError, match="is a directory"):
        Trajectory.load(tmp_path / "folder.npz")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        Trajectory.load(tmp_path / "missing.npz")
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(TrajectoryError, match="not a regular file"):
        Trajectory.load(tmp_path / "pipe.npz")
    with pytest.raises(TrajectoryError, match="cannot be read"):
        Trajectory.load("a\0.npz")
    with pytest.raises(TrajectoryError, match="holds no robot"):
        Trajectory.load(tmp_path / "x.csv")


def test_damaged_files_are_refused_in_one_sentence(tmp_path: Path):
    """Cut anywhere, or with any byte changed: the same trajectory, or a sentence."""
    x = motion(ROBOTS[1], n=2)
    rng = np.random.default_rng(3)
    for suffix in (".npz", ".csv"):
        path = tmp_path / f"x{suffix}"
        x.save(path)
        whole = path.read_bytes()
        for _ in range(120):
            at = int(rng.integers(len(whole)))
            cut = rng.random() < 0.5
            change = bytes([whole[at] ^ (1 << int(rng.integers(8)))])
            path.write_bytes(whole[:at] if cut else whole[:at] + change + whole[at + 1 :])
            try:
                Trajectory.load(path, x.robot)
            except ValueError as error:
                assert isinstance(error, TrajectoryError)
                assert "\n" not in str(error) and str(path) in str(error)


def rewritten(path: Path, **changes: Any) -> Path:
    """The npz with other arrays: None removes one."""
    with np.load(path) as old:
        arrays = {name: old[name] for name in old.files}
    arrays = {name: x for name, x in (arrays | changes).items() if x is not None}
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q": None}, "lacks the array 'q'"),
        ({"about": None}, "no array 'about'"),
        ({"signal.on": None}, "no array 'signal.on'"),
        ({"q": np.zeros((3, 14))}, "q has shape"),
        ({"q": np.zeros((2, 14), np.float32)}, "<f4.*not what a trajectory holds"),
        ({"q": np.array(["x"])}, "not what a trajectory holds"),
        ({"t": np.array([1.0, np.nan])}, "finite"),
        ({"dt": np.zeros(2)}, "damaged"),
        ({"event_times": np.zeros(5)}, "damaged"),
        ({"robot": np.frombuffer(b"{}", np.uint8)}, "format version"),
        ({"robot": np.zeros(3)}, "no text"),
        ({"about": np.frombuffer(b"[" * 100_000, np.uint8)}, "no JSON"),
        ({"about": np.frombuffer(b"\xff", np.uint8)}, "is not UTF-8"),
        ({"about": np.frombuffer(b"[]", np.uint8)}, "format version None"),
        ({"about": np.frombuffer(b'{"phipsi_trajectory": 1}', np.uint8)}, "list of frames"),
    ],
)
def test_foreign_arrays_are_refused(changes: dict[str, Any], message: str, tmp_path: Path):
    path = tmp_path / "x.npz"
    motion(ROBOTS[1], n=2).save(path)
    with pytest.raises(TrajectoryError, match=message):
        Trajectory.load(rewritten(path, **changes))


def test_bombs_and_pickles_are_refused(tmp_path: Path):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, t=np.zeros(10**7))
    with pytest.raises(TrajectoryError, match="compressed"):
        Trajectory.load(path)
    np.savez(path, t=np.array([{}], object))
    with pytest.raises(TrajectoryError, match=r"\|O.*not what a trajectory holds"):
        Trajectory.load(path)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("t.npy", header.getvalue() + b"12345678")
    with pytest.raises(TrajectoryError, match="cut off"):
        Trajectory.load(path)
    np.savez(path, t=np.zeros(1))
    content = bytearray(path.read_bytes())
    entry = content.index(b"PK\x01\x02")
    content[entry + 20 : entry + 24] = b"\xff" * 4  # the size in the file, of which memory is asked
    path.write_bytes(content)
    with pytest.raises(TrajectoryError, match="promises more data than it has"):
        Trajectory.load(path)
    path.write_text("hello")
    with pytest.raises(TrajectoryError, match=r"no \.npz file"):
        Trajectory.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.replace("q.", "p.", 1), "column 2 is 'p."),
        (lambda s: "", "column 1 is missing"),
        (lambda s: s[:40], "no CSV text"),
        (lambda s: s + "1,2\r\n", "row 4 has 2 cells"),
        (lambda s: s.replace("0.", "O.", 1), "row 2: .*could not convert"),
        (lambda s: s.replace("energy [J]", "enrgy [J]", 1), "is unknown; remove it"),
        (lambda s: s.replace("frame.tool.y", "frame.tool.w"), "the rest of a pose is missing"),
        (lambda s: s.replace("signal.force.1", "signal.force.7"), "twice, or out of order"),
        (lambda s: s.replace('"t [s]"', '"t [s]'), "CSV text|column"),
    ],
)
def test_foreign_csv_is_refused(change: Any, message: str, tmp_path: Path):
    path = tmp_path / "x.csv"
    x = motion(ROBOTS[1], n=2)
    x.save(path)
    text = path.read_bytes().decode()
    path.write_bytes(change(text).encode())
    with pytest.raises(TrajectoryError, match=message):
        Trajectory.load(path, x.robot)
    with pytest.raises(TrajectoryError, match="column"):
        x.save(path)
        Trajectory.load(path, ROBOTS[0])


def test_batches_in_csv_must_be_whole(tmp_path: Path):
    path = tmp_path / "x.csv"
    x = motion(ROBOTS[0], n=3, batch=(2, 2))
    x.save(path)
    lines = path.read_bytes().split(b"\r\n")
    for wrong in (
        lines[:-2],
        lines[:1],
        [lines[0], *lines[2:]],
        [*lines[:-2], b"9" + lines[-2][1:]],
    ):
        path.write_bytes(b"\r\n".join(wrong) + b"\r\n" * (wrong[-1] != b""))
        with pytest.raises(TrajectoryError, match="rows of the batch"):
            Trajectory.load(path, x.robot)


def test_atomic_is_for_any_file(tmp_path: Path):
    with files.atomic(tmp_path / "x.png") as file:
        file.write(b"abc")
        assert not (tmp_path / "x.png").exists()
    assert (tmp_path / "x.png").read_bytes() == b"abc" and len(list(tmp_path.iterdir())) == 1


def test_csv_keeps_whether_springs_acted(tmp_path: Any):
    robot = pp.robots.flexible_joint_arm()
    q = np.full(robot.nq, 0.1)
    for passive in (True, False):
        motion = pp.simulate(robot, q, **STEP, passive=passive, method="implicit")
        motion.save(tmp_path / "motion.csv")
        again = pp.Trajectory.load(tmp_path / "motion.csv", robot)
        assert again.passive == passive and np.array_equal(again.energy, motion.energy)
        q_last = np.append(motion.q[:-1], np.full((1, robot.nq), np.nan), axis=0)
        diverged = Trajectory(robot, motion.t, q_last, motion.v, motion.tau, passive=passive)
        diverged.save(tmp_path / "diverged.csv")
        assert Trajectory.load(tmp_path / "diverged.csv", robot).passive == passive


# ---- tables and figures ------------------------------------------------------------------------


@pytest.mark.parametrize("robot", ROBOTS, ids=lambda robot: robot.name)
def test_every_number_has_a_name_of_its_own_and_a_unit(robot: pp.Robot):
    for make, size in ((columns.coordinates, robot.nq), (columns.freedoms, robot.nv),
                       (columns.forces, robot.nv)):  # fmt: skip
        labels = make(robot)
        assert len(labels) == size == len({label.name for label in labels})
    units = [label.unit for label in columns.freedoms(robot)]
    forces = [label.unit for label in columns.forces(robot)]
    assert [u == "rad/s" for u in units] == [u == "N·m" for u in forces]


def test_units_follow_the_freedoms():
    by_kind = {h.kind.name: h for h in ROBOTS[2].hinges}
    units = [label.unit for label in columns.freedoms(ROBOTS[2])]
    for kind, wanted in {
        "prismatic": ["m/s"],
        "helical": ["rad/s"],
        "cylindrical": ["rad/s", "m/s"],
        "planar": ["rad/s", "m/s", "m/s"],
    }.items():
        assert units[by_kind[kind].v] == wanted


def test_dataframe():
    x = motion(ROBOTS[1], n=4)
    table = x.to_dataframe()
    assert table.index.name == "t" and np.array_equal(table.index, x.t)
    assert np.array_equal(table["v.base.vz"], x.v[:, 5])
    assert table.attrs["units"]["v.base.vz"] == "m/s"
    assert np.array_equal(table["momentum.px"], x.momentum[:, 3])
    many = motion(ROBOTS[1], n=4, batch=(3,)).to_dataframe()
    assert many.index.names == ["row", "t"] and len(many) == 12
    assert len(x[:0].to_dataframe()) == 0


def test_plots_have_named_lines_and_units():
    x = motion(ROBOTS[1], n=6)
    drawn = x.plot(("q", "v", "tau", "energy", "momentum", "center_of_mass", "tool", "force", "on"))
    axes = drawn.axes
    labels = [ax.get_ylabel() for ax in axes]
    assert labels[:3] == ["q [m]", "q", "q [rad]"] and "force [N]" in labels and "on" in labels
    assert axes[-1].get_xlabel() == "t [s]"
    texts = [name for ax in axes if ax.get_legend() for name in ax.get_legend_handles_labels()[1]]
    assert {"q.elbow_pitch", "v.base.wx", "tau.wrist_roll", "frame.tool.z"} <= set(texts)
    wide = next(ax for ax in axes if ax.get_ylabel() == "v [rad/s]")
    looks = {(line.get_color(), line.get_linestyle()) for line in wide.get_lines()[:10]}
    assert len(looks) == 10
    drawn.savefig(io.BytesIO(), format="png")


def test_plots_take_axes_and_leave_pyplot_alone():
    from matplotlib.figure import Figure

    x = motion(ROBOTS[0])
    mine = Figure()
    assert x.plot("q", axes=mine.subplots()) is mine
    assert x.plot(["q", "v"], axes=Figure().subplots(2)).axes[1].get_ylabel() == "v [rad/s]"
    assert (
        "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
    )
    with pytest.raises(TrajectoryError, match="axes has 1, but 2 are drawn"):
        x.plot(["q", "v"], axes=Figure().subplots())
    with pytest.raises(TrajectoryError, match="did you mean 'energy'"):
        x.plot("enrgy")
    with pytest.raises(TrajectoryError, match="nothing to plot"):
        x.plot([])
    with pytest.raises(TrajectoryError, match=r"row\(0\)"):
        motion(ROBOTS[0], batch=(2,)).plot()


@pytest.mark.parametrize(
    ("module", "use"), [("pandas", "to_dataframe"), ("matplotlib.figure", "plot")]
)
def test_missing_extras_are_named(module: str, use: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"pip install 'phipsi\["):
        getattr(motion(ROBOTS[0]), use)()
