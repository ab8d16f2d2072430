"""Trajectory files that are damaged or made to harm: a `TrajectoryError` in one sentence."""

from __future__ import annotations

import io
import json
import random
import struct
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import phipsi as pp

ROBOT = pp.robots.double_pendulum()
JUNK = (
    b"\xff\xfe", b"\x00", b"[", b"{", b"NaN", b"1e999", b"null", b"-1", b"9" * 30, b"\xed\xa0\x80",
    b"''", b"()", b"\\ud800", b'"', b"(((((", b"1," * 50, b">f8", b"1j", b"lambda: 0", b"9" * 5000,
)  # fmt: skip
HEADERS = (
    b"(" * 5000, b"{" * 3000, b"-" * 3000 + b"1", b"[]", b"{}", b"\xff" * 9,
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (10**9,), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (" + b"9" * 500 + b"), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (" + b"1, " * 70 + b"), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (" + b"1" * 900 + b"x), }",
    b"{'descr': 'O', 'fortran_order': False, 'shape': (), }",
    b"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (), }",
    b"{'descr': {}, 'fortran_order': False, 'shape': (), }",
    b"{1: 2, 'descr': '<f8', 'fortran_order': False, 'shape': (), }",
    b"{b'descr': '<f8', 'fortran_order': False, 'shape': (), }",
)  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The members of an `.npz`, and a `.csv`."""
    folder = tmp_path_factory.mktemp("trajectories")
    motion = pp.simulate(ROBOT, [0.1, 0.2], duration=0.01, dt=5e-3)
    for name in ("x.npz", "x.csv"):
        motion.save(folder / name)
    with zipfile.ZipFile(folder / "x.npz") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return {**members, "csv": (folder / "x.csv").read_bytes()}


def archived(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def refused(path: Path, data: bytes) -> str | None:
    """The sentence that refuses the file, None if it is read; another error fails the test."""
    path.write_bytes(data)
    start = time.process_time()
    try:
        pp.Trajectory.load(path, robot=ROBOT if path.suffix == ".csv" else None)
    except pp.TrajectoryError as error:
        assert str(error) and "\n" not in str(error) and len(str(error)) < 2000
        return str(error)
    finally:
        assert time.process_time() - start < 10.0
    return None


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Some bytes replaced, removed, doubled or inserted."""
    new = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(new) + 1)
        length = rng.choice((0, 1, 4, 100))
        new[at : at + length] = rng.choice((*JUNK, b"", bytes(new[:at][-20:]), rng.randbytes(2)))
    return bytes(new)


def test_mutated_files_are_read_or_refused(whole: dict[str, bytes], tmp_path: Path) -> None:
    rng = random.Random(20)
    arrays = {name: data for name, data in whole.items() if name != "csv"}
    for number in range(250):
        victim = rng.choice([*arrays, "about.npy", "robot.npy"])
        refused(tmp_path / "x.npz", archived({**arrays, victim: mutated(arrays[victim], rng)}))
        if number % 3 == 0:
            refused(tmp_path / "x.npz", mutated(archived(arrays), rng))
            refused(tmp_path / "x.csv", mutated(whole["csv"], rng))


@pytest.mark.parametrize("header", HEADERS, ids=lambda header: header[:60].decode("latin-1"))
def test_headers_are_not_evaluated(header: bytes, whole: dict[str, bytes], tmp_path: Path) -> None:
    whole = {name: data for name, data in whole.items() if name != "csv"}
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(8)
    assert refused(tmp_path / "x.npz", archived({**whole, "t.npy": array}))


@pytest.mark.parametrize("name", ["about", "robot"])
def test_texts_that_are_no_utf8_are_refused(
    name: str, whole: dict[str, bytes], tmp_path: Path
) -> None:
    out = io.BytesIO()
    np.save(out, np.frombuffer(b'{"a": "\xff"}', np.uint8))
    members = {n: data for n, data in whole.items() if n != "csv"} | {f"{name}.npy": out.getvalue()}
    assert "is not UTF-8" in (refused(tmp_path / "x.npz", archived(members)) or "")


def test_two_arrays_of_one_name_are_refused(whole: dict[str, bytes], tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        for name in [n for n in whole if n != "csv"] + ["t.npy"]:
            archive.writestr(name, whole[name])
    assert "two arrays of the same name" in (refused(tmp_path / "x.npz", out.getvalue()) or "")


def test_arrays_of_every_layout_are_read(whole: dict[str, bytes], tmp_path: Path) -> None:
    """NumPy writes arrays in the order of Fortran too, and of no axes."""
    motion = pp.simulate(ROBOT, [0.1, 0.2], duration=0.01, dt=5e-3)
    members = {n: data for n, data in whole.items() if n != "csv"}
    out = io.BytesIO()
    np.save(out, np.asfortranarray(motion.q))
    (tmp_path / "x.npz").write_bytes(archived({**members, "q.npy": out.getvalue()}))
    again = pp.Trajectory.load(tmp_path / "x.npz")
    np.testing.assert_array_equal(again.q, motion.q)
    assert json.loads(members["about.npy"][128:])["phipsi_trajectory"] == 1
