"""Trajectories in files: `.npz`, which holds everything, and `.csv` for other programs.

An `.npz` is a zip of plain arrays, uncompressed: t, q, v, tau, dt, event_times, `frame.NAME`,
`signal.NAME`, and as UTF-8 bytes `robot`, in phipsi's own JSON, and `about`, JSON with names,
units, method, springs and the sentences of events.
"""

from __future__ import annotations

import json
import os
import re
import stat
import zipfile
from collections.abc import Mapping
from dataclasses import astuple
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from phipsi.arguments import a_class
from phipsi.model import ModelError, Robot, Spring
from phipsi.model.files import atomic
from phipsi.model.json import to_json
from phipsi.model.robot import from_json
from phipsi.model.untrusted import quoted
from phipsi.simulation import csv
from phipsi.simulation.trajectory_data import T, TrajectoryData, TrajectoryError
from phipsi.typing import Array

VERSION = 1
"""The version of the `.npz` files that this library writes and reads."""
MAX_TEXT = 64_000_000
"""The longest text [bytes] that is read from an `.npz`."""
MAX_MEMBERS = 10_000
"""The most arrays that an `.npz` may have."""
MAGIC = b"\x93NUMPY\x01\x00"
"""How an array begins (NumPy's format 1.0); the length of the header follows, two bytes."""
HEADER = re.compile(
    rb"\{'descr': '(?P<dtype><f8|\|u1)', 'fortran_order': (?P<fortran>True|False), "
    rb"'shape': \((?P<shape>(?:[0-9]{1,18}, ?)*(?:[0-9]{1,18})?)\), \}\s*"
)
"""The header of an array, as NumPy writes it: it is read as text and never evaluated."""
SUFFIXES = (".npz", ".csv")


def save(trajectory: TrajectoryData, path: str | os.PathLike[str]) -> None:
    """Write a trajectory in the format that the suffix names."""
    write = _write_npz if _suffix(path) == ".npz" else csv.write
    with atomic(path) as file:
        write(trajectory, file)


def load(path: str | os.PathLike[str], robot: Robot | None, make: type[T]) -> T:
    """Read a trajectory in the format that the suffix names, as an object of the class `make`."""
    suffix, shown = _suffix(path), quoted(str(path), 200)
    if suffix == ".csv" and robot is None:
        raise TrajectoryError(f"{shown} is CSV, which holds no robot; give it, robot=...")
    _check_regular(path, shown)
    try:
        with open(path, "rb") as file:
            return (
                _read_npz(file, robot, make)
                if robot is None or suffix == ".npz"
                else csv.read(file, robot, make)
            )
    except (TrajectoryError, ModelError) as error:
        raise TrajectoryError(f"{shown}: {error}") from None
    except OSError as error:
        raise TrajectoryError(f"{shown} cannot be read: {error.strerror or error}") from None


def _suffix(path: str | os.PathLike[str]) -> str:
    try:
        suffix = Path(path).suffix.lower()
    except TypeError:
        raise TypeError(f"path is {a_class(path)}, needs a text or a Path") from None
    if suffix not in SUFFIXES:
        raise TrajectoryError(
            f"{quoted(str(path), 200)} ends with {quoted(suffix)}; a trajectory is a file "
            f"{' or '.join(SUFFIXES)}"
        )
    return suffix


def _check_regular(path: str | os.PathLike[str], shown: str) -> None:
    """Refuse a path that is no regular file."""
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {shown}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TrajectoryError(f"{shown} cannot be read: {reason}") from None
    if not stat.S_ISREG(mode):
        what = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
        raise TrajectoryError(f"{shown} is {what}; give a file that a trajectory was saved in")


# ---- npz ---------------------------------------------------------------------------------------


def _write_npz(x: TrajectoryData, file: BinaryIO) -> None:
    about = {
        "phipsi_trajectory": VERSION,
        "method": x.method,
        "passive": x.passive,
        "springs": [astuple(spring) for spring in x.springs],
        "frames": list(x.frames),
        "signals": list(x.signals),
        "units": dict(x.units),
        "events": [text for _, text in x.events],
    }
    arrays: dict[str, Any] = {"t": x.t, "q": x.q, "v": x.v, "tau": x.tau, "dt": np.float64(x.dt)}
    arrays["event_times"] = np.array([time for time, _ in x.events], float)
    arrays |= {f"frame.{name}": value for name, value in x.frames.items()}
    arrays |= {f"signal.{name}": value for name, value in x.signals.items()}
    for name, text in (("robot", to_json(x.robot)), ("about", json.dumps(about))):
        arrays[name] = np.frombuffer(text.encode(), np.uint8)
    np.savez(file, **arrays)


def _read_npz(file: BinaryIO, robot: Robot | None, make: type[T]) -> T:
    arrays = _arrays(file)
    about = _about(arrays)
    for name in ("t", "q", "v", "tau", "dt", "event_times", "robot"):
        if name not in arrays:
            raise TrajectoryError(f"the file lacks the array {name!r}; it is no trajectory")
    names = {what: _words(about, what) for what in ("frames", "signals", "events")}
    given = {
        what: {name: _taken(arrays, f"{what[:-1]}.{name}") for name in names[what]}
        for what in ("frames", "signals")
    }
    times, dt, units = arrays["event_times"], arrays["dt"], about.get("units")
    if times.shape != (len(names["events"]),) or dt.shape or not isinstance(units, dict):
        raise TrajectoryError("events, dt or units are damaged")
    texts = cast("dict[object, object]", units)
    return make(
        from_json(_text(arrays, "robot")) if robot is None else robot,
        *(arrays[name] for name in ("t", "q", "v", "tau")),
        frames=given["frames"],
        signals=given["signals"],
        units={str(name): str(unit) for name, unit in texts.items()},
        events=tuple(zip(times.tolist(), names["events"], strict=True)),
        method=str(about.get("method")),
        dt=float(dt),
        passive=bool(about.get("passive")),
        springs=_springs(about.get("springs", [])),
    )


def _arrays(file: BinaryIO) -> dict[str, Array]:
    """The arrays in the zip. Compressed ones are refused, so none can be larger than the file."""
    size = os.fstat(file.fileno()).st_size
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if any(m.compress_type != zipfile.ZIP_STORED or m.flag_bits & 1 for m in members):
                raise TrajectoryError("its arrays are compressed; phipsi writes them plain")
            promised = sum(max(m.file_size, m.compress_size) for m in members)
            if len(members) > MAX_MEMBERS or promised > size:
                raise TrajectoryError("it promises more data than it has")
            names = [m.filename.removesuffix(".npy") for m in members]
            if len(set(names)) < len(names):
                raise TrajectoryError("it has two arrays of the same name")
            return {name: _array(archive, m) for name, m in zip(names, members, strict=True)}
    except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError) as error:
        if isinstance(error, TrajectoryError):
            raise
        said = quoted(str(error) or "it ends too early")
        raise TrajectoryError(f"it is damaged, or no .npz file: {said}") from None


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    shown = quoted(member.filename)
    with archive.open(member) as file:
        start = file.read(len(MAGIC) + 2)
        header = file.read(int.from_bytes(start[-2:], "little"))
        data = file.read()
    found = HEADER.fullmatch(header)
    if start[:-2] != MAGIC or found is None:
        raise TrajectoryError(
            f"the array {shown} begins with {quoted(start[:-2] + header)}, which is not what a "
            "trajectory holds (float64 or bytes)"
        )
    dtype = np.dtype(found["dtype"].decode())
    shape = tuple(map(int, found["shape"].replace(b",", b" ").split()))
    if prod(shape) * dtype.itemsize != len(data):
        raise TrajectoryError(f"the array {shown} of shape {shape} has {len(data)} bytes: cut off?")
    order = "F" if found["fortran"] == b"True" else "C"
    return np.frombuffer(data, dtype).reshape(shape, order=order)


def _about(arrays: dict[str, Array]) -> dict[str, Any]:
    try:
        about: Any = json.loads(_text(arrays, "about"))
    except (ValueError, RecursionError) as error:
        if isinstance(error, TrajectoryError):
            raise
        raise TrajectoryError(f"the words in it are no JSON: {quoted(str(error))}") from None
    found = cast("dict[str, Any]", about) if isinstance(about, dict) else {}
    version = found.get("phipsi_trajectory")
    if version != VERSION:
        raise TrajectoryError(
            f"it has format version {quoted(version)}, but this library reads version {VERSION}"
        )
    return found


def _words(about: Mapping[str, Any], key: str) -> list[str]:
    """A list of texts in the JSON of a file."""
    words: Any = about.get(key)
    listed: list[Any] = [*words] if isinstance(words, list) else [None]
    texts = [word for word in listed if isinstance(word, str)]
    if len(texts) < len(listed):
        raise TrajectoryError(f"its list of {key} is {quoted(about.get(key))}, needs texts")
    return texts


def _springs(rows: object) -> tuple[Spring, ...]:
    """The springs in the JSON of a file."""
    try:
        return tuple(Spring(*row) for row in cast("list[Any]", rows))
    except (TypeError, ModelError):
        raise TrajectoryError(f"its springs are {quoted(rows)}, which are none") from None


def _text(arrays: dict[str, Array], name: str) -> str:
    array = _taken(arrays, name)
    if array.dtype != np.uint8 or array.size > MAX_TEXT:
        raise TrajectoryError(f"the array {name!r} is no text of at most {MAX_TEXT:,} bytes")
    try:
        return array.tobytes().decode()
    except UnicodeDecodeError as error:
        raise TrajectoryError(f"the array {name!r} is not UTF-8 (byte {error.start})") from None


def _taken(arrays: dict[str, Array], name: str) -> Array:
    try:
        return arrays[name]
    except KeyError:
        raise TrajectoryError(f"it has no array {quoted(name)}; it is no trajectory") from None
