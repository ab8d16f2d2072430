"""The targets that read trajectories: `.npz` and `.csv`."""

from __future__ import annotations

import csv
import io
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

import phipsi as pp
from phipsi.simulation import Trajectory, TrajectoryError
from tests.fuzz import trees
from tests.fuzz.hostile import changed_number, havoc, name, number, text
from tests.fuzz.target import Target, Wrong, cut

Members = list[tuple[str, bytes]]


@cache
def recorded() -> tuple[Trajectory, ...]:
    """Small trajectories: plain, in a batch, with frames, signals, springs and events."""
    robot = pp.robots.double_pendulum()
    t, rng = np.arange(4.0), np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 2, 4, 2))
    signals = {"error": rng.normal(size=4), "force": rng.normal(size=(4, 3))}
    frame = robot.bodies[-1].name
    poses = {frame: np.asarray(pp.frame_pose(robot, q[0], frame))}
    return (
        Trajectory(robot, t, q[0], v[0], tau[0]),
        Trajectory(robot, t, q, v, tau, dt=0.5),
        Trajectory(
            robot,
            t,
            q[0],
            v[0],
            tau[0],
            frames=poses,
            signals=signals,
            units={"error": "rad"},
            events=((1.0, "a hinge fails"),),
            method="rk4",
            dt=0.1,
        ),
    )


def _written(x: Trajectory, suffix: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder, f"seed{suffix}")
        x.save(path)
        return path.read_bytes()


def _read(content: bytes, called: str, robot: pp.Robot | None, deep: bool) -> None:
    """Read a file; what was read is written and read again as the same."""
    with TemporaryDirectory() as folder:
        path = Path(folder, called)
        path.write_bytes(content)
        _read_again(path, robot, deep)


def _read_again(path: Path, robot: pp.Robot | None, deep: bool) -> None:
    x = Trajectory.load(path, robot)
    repr(x)
    if deep and len(x) < 100:
        x.save(path)
        again = Trajectory.load(path, robot)
        for part in ("t", "q", "v", "tau"):
            if not np.array_equal(getattr(x, part), getattr(again, part), equal_nan=True):
                raise Wrong(f"{part} is another one when it is written and read again")
        if _words(x) != _words(again):
            raise Wrong("events, units or names are others when they are written and read again")


def _words(x: Trajectory) -> tuple[object, ...]:
    return x.events, dict(x.units), [*x.signals], [*x.frames], x.method, x.passive


# ---- npz -----------------------------------------------------------------------------------------


def read_npz(content: bytes, deep: bool) -> None:
    _read(content, "input.npz", None, deep)


def members(content: bytes) -> Members:
    """The names and bytes of a zip's members."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [(x.filename, archive.read(x)) for x in archive.infolist()]


def zipped(files: Members, method: int = zipfile.ZIP_STORED) -> bytes:
    """A zip of these members, names repeated if they are."""
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", method) as archive:
        warnings.simplefilter("ignore")
        for called, content in files:
            info = zipfile.ZipInfo(called.encode("utf-8", "replace").decode()[:20_000])
            info.compress_type = method
            archive.writestr(info, content)
    return out.getvalue()


def _array(content: bytes) -> tuple[str, bytes]:
    """The header of a `.npy` and its data."""
    size = int.from_bytes(content[8:10], "little")
    return content[10 : 10 + size].decode("latin-1"), content[10 + size :]


def _npy(header: str, data: bytes, version: bytes = b"\x01\x00") -> bytes:
    encoded = header.encode("latin-1", "replace")
    return b"\x93NUMPY" + version + len(encoded).to_bytes(4, "little")[:2] + encoded + data


DTYPES = """<f8 >f8 <f4 <i8 |u1 |b1 |O <U8 |S8 <c16 <M8[s] <f16 |V8 <f8,<f8 <f0 |u0 <f99""".split()
SHAPES = """() (0,) (-1,) (4,2) (2,4) (4,2,1) (4,) (8,) 4 [4,2] (1e1,) (4,-2)
(18446744073709551616,) (0,18446744073709551616) (4,2L) (True,) (4,0) None (None,) (0,)*9""".split()
SHAPES += [f"({'1,' * axes})" for axes in (33, 64, 65)]
DICT = "{'descr': %s, 'fortran_order': %s, 'shape': (4,)}"
HEADERS = [
    *(
        DICT % parts
        for parts in (("'<f8'", "2"), ("[('x', '<f8')]", "0"), ("{'names': ['a']}", "0"))
    ),
    *(
        "{}",
        "",
        "[]",
        "None",
        "{'descr': '<f8'}",
        "\0",
        "0x",
        "{1: 2}",
        "{[]: 1}",
        "b'x'",
        "f'{1}'",
    ),
    *("(" * 500, "{" * 100, "1" * 9_000, "-" * 5_000, "1 if 1 else 2"),
]


def _with_header(rng: Random, content: bytes) -> bytes:
    """An array whose header says something else."""
    header, data = _array(content)
    match rng.randrange(7):
        case 0:
            header = re.sub(r"'descr': '[^']*'", f"'descr': {rng.choice(DTYPES)!r}", header)
        case 1:
            header = re.sub(r"'shape': \([^)]*\)", f"'shape': {rng.choice(SHAPES)}", header)
        case 2:
            header = header.replace("False", rng.choice(("True", "1", "None", "''")))
        case 3:
            header = rng.choice(HEADERS)
        case 4:
            return _npy(header, data, rng.choice((b"\2\0", b"\3\0", b"\0\0", b"\xff\1", b"\1\1")))
        case 5:
            header = havoc(rng, header.encode(), [header.encode()]).decode("latin-1")
        case _:
            return content[: rng.randrange(len(content))]
    return _npy(header, data)


def _with_data(rng: Random, content: bytes) -> bytes:
    """An array with other numbers, or more or fewer of them."""
    header, data = _array(content)
    numbers = np.frombuffer(data[: len(data) // 8 * 8], "<f8").copy()
    if not numbers.size:
        return _npy(header, data + bytes(8))
    odd = (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0, 0.0, 1e100, -1.0)
    for _ in range(rng.randint(1, 3)):
        numbers[rng.randrange(numbers.size)] = rng.choice(odd)
    data = numbers.tobytes()
    if rng.random() < 0.3:
        data = data[: rng.randrange(len(data))] if rng.random() < 0.5 else data * 2
    return _npy(header, data)


def _with_text(rng: Random, content: bytes) -> bytes:
    """A text member with its JSON mutated, its shape made right."""
    _, data = _array(content)
    tree = trees.of_json(data.decode())
    changed = trees.to_json(trees.mutated(rng, [tree])).encode("utf-8", "replace")
    changed = havoc(rng, changed, [data]) if rng.random() < 0.2 else changed
    return _text_array(changed)


def _text_array(content: bytes) -> bytes:
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({len(content)},), }}\n"
    return _npy(header, content)


def mutate_npz(rng: Random, seeds: list[bytes]) -> bytes:
    """A zip whose members, or whose own records, are mutated."""
    content = rng.choice(seeds)
    if (files := _members(content)) is None or rng.random() < 0.1:
        return havoc(rng, content, seeds)
    files, method = list(files), zipfile.ZIP_STORED
    for _ in range(1 + int(rng.expovariate(0.8))):
        k = rng.randrange(len(files))
        called, array = files[k]
        try:
            match rng.randrange(10):
                case 0 if len(files) > 1:
                    del files[k]
                case 1:
                    files[k] = (
                        rng.choice((name(rng) + ".npy", rng.choice(files)[0], called[:-4])),
                        array,
                    )
                case 2:
                    files.append((called, rng.choice(files)[1]))
                case 3:
                    files[k] = called, rng.choice(files)[1]
                case 4 if rng.random() < 0.3:
                    method = rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
                case 5 | 6:
                    files[k] = called, _with_header(rng, array)
                case 7:
                    files[k] = called, _with_data(rng, array)
                case _:
                    at = rng.choice([j for j, x in enumerate(files) if x[0] in TEXTS] or [k])
                    files[at] = files[at][0], _with_text(rng, files[at][1])
        except (ValueError, IndexError, RecursionError):
            continue  # a member that is damaged already
    made = zipped(files, method)
    return _patched(rng, made) if rng.random() < 0.2 else made


TEXTS = ("about.npy", "robot.npy")


@cache
def _members(content: bytes) -> Members | None:
    try:
        return members(content)
    except Exception:
        return None


def _patched(rng: Random, content: bytes) -> bytes:
    """A zip with other bytes in one of its records: sizes, offsets, flags, methods, versions."""
    records = [x.start() for x in re.finditer(rb"PK(?:\x01\x02|\x03\x04|\x05\x06)", content)]
    data, at = bytearray(content), rng.choice(records) + rng.randrange(4, 30)
    chunk = rng.choice(
        (b"\0", b"\xff", b"\xff\xff\xff\xff", b"\x7f", b"\1\0", bytes([rng.randrange(256)]))
    )
    data[at : at + len(chunk)] = chunk
    return bytes(data)


def smaller_npz(content: bytes) -> Iterator[bytes]:
    """The zip without a member, or with fewer bytes in one."""
    files = _members(content) or []
    for k, (called, array) in enumerate(files):
        yield zipped([*files[:k], *files[k + 1 :]])
        if called in TEXTS:
            try:
                tree = trees.of_json(_array(array)[1].decode())
            except ValueError:
                continue
            for other in trees.smaller(tree):
                data = trees.to_json(other).encode("utf-8", "replace")
                made = zipped([*files[:k], (called, _text_array(data)), *files[k + 1 :]])
                if len(made) < len(content):
                    yield made
    if not files:
        yield from cut(content)


# ---- csv -----------------------------------------------------------------------------------------


def read_csv(content: bytes, deep: bool) -> None:
    _read(content, "input.csv", recorded()[0].robot, deep)


def mutate_csv(rng: Random, seeds: list[bytes]) -> bytes:
    """A table with its cells, rows or columns mutated, and then perhaps its bytes."""
    content = rng.choice(seeds)
    rows = [row for row in csv.reader(io.StringIO(content.decode("utf-8", "replace"))) if row]
    for _ in range(1 + int(rng.expovariate(0.8))):
        if rows:
            rng.choice(CSV)(rng, rows)
    ends, dialect = (
        rng.choice(("\r\n", "\r\n", "\n", "\r")),
        rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)),
    )
    out = io.StringIO()
    csv.writer(out, quoting=dialect, lineterminator=ends).writerows(rows)
    made = out.getvalue().encode("utf-8", "replace")
    return havoc(rng, made, seeds) if rng.random() < 0.15 else made


def _cell(rng: Random, rows: list[list[str]]) -> None:
    row = rng.choice(rows)
    if row:
        row[k] = changed_number(rng, row[k := rng.randrange(len(row))])


def _header(rng: Random, rows: list[list[str]]) -> None:
    if rows[0]:
        k = rng.randrange(len(rows[0]))
        own = rows[0][k]
        ours = f"signal.{name(rng)}", f"signal.x.{number(rng)}", "row0", "row", "frame.link2.x [m]"
        near = own + number(rng), own.partition(" ")[0], rng.choice(rows[0])
        rows[0][k] = rng.choice((name(rng), text(rng), *ours, *near))


def _row(rng: Random, rows: list[list[str]]) -> None:
    k = rng.randrange(len(rows))
    if rng.random() < 0.5:
        del rows[k]
    else:
        rows.insert(rng.randrange(len(rows)), list(rows[k]))


def _shorter(rng: Random, rows: list[list[str]]) -> None:
    row = rng.choice(rows)
    if row:
        del row[rng.randrange(len(row))]


def _column(rng: Random, rows: list[list[str]]) -> None:
    k, j, kind = rng.randrange(len(rows[0]) + 1), rng.randrange(len(rows[0]) + 1), rng.randrange(3)
    for row in rows:
        cell = row[k : k + 1]
        if kind:
            del row[k : k + 1]
        if kind < 2:
            row[j:j] = cell


CSV: tuple[Callable[[Random, list[list[str]]], None], ...] = (
    _cell, _cell, _header, _row, _shorter, _column,
)  # fmt: skip


def npz_seeds() -> list[bytes]:
    return [_written(x, ".npz") for x in recorded()]


def csv_seeds() -> list[bytes]:
    return [_written(x, ".csv") for x in recorded()]


TARGETS = (
    Target("npz", "trajectories as .npz", ".npz", npz_seeds, mutate_npz, read_npz,
           (TrajectoryError,), smaller_npz),
    Target("csv", "trajectories as .csv", ".csv", csv_seeds, mutate_csv, read_csv,
           (TrajectoryError,), cut),
)  # fmt: skip
