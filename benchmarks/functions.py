"""Any function in a batch, beside one evaluation of Pinocchio's articulated body algorithm."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

import phipsi as pp
from benchmarks.measure import Contestant, Effort, race, timed
from benchmarks.robots import Case, case, columns, pin
from benchmarks.tables import Aim, Column, at_least

SIZE, NUMBERS = 1024, 400
"""States in a batch, 64 where there are more numbers in a result than these, which would not stay
in the caches."""
AIM = 10.0

Entry = tuple[str, Any, tuple[Any, ...], dict[str, Any]]
"""Name, program, arguments and options of a function."""


@dataclass(frozen=True)
class Function:
    """Nanoseconds per evaluation."""

    robot: Annotated[str, Column("robot")]
    function: Annotated[str, Column("function")]
    states: Annotated[int, Column("states")]
    phipsi: Annotated[float, Column("phipsi [ns]", "{:.1f}")]
    batch: Annotated[float, Column("abaInParallel [ns]", "{:.0f}")]
    ratio: Annotated[float, Column("ratio", "{:.1f}×")]
    aim: Annotated[Aim | None, Column("aim")]
    numbers: Annotated[int, Column("results")]
    fill: Annotated[float, Column("fill [ns]", "{:.1f}")]
    operations: Annotated[int, Column("operations")]
    compiled: Annotated[float, Column("compile [s]", "{:.2f}")]


def measured(
    one: Case, entries: Iterable[Entry], effort: Effort, aim: float | None = AIM
) -> list[Function]:
    """A row for every function on one robot."""
    aba, found = _aba(one), []
    for name, program, arguments, options in entries:
        effort.say(f"{one.name}, {name}")
        kernel, compiled = timed(lambda p=program, c=one, o=options: p.compile(
            c.robot, backend="llvm", threads=1, **o
        ))  # fmt: skip
        numbers = sum(int(np.prod(leaf.shape)) for leaf in kernel.results.leaves)
        size = SIZE if numbers <= NUMBERS else 64
        arguments = [x if isinstance(x, dict) else x[:size] for x in arguments]
        out = [_aligned((size, *leaf.shape)) for leaf in kernel.results.leaves]
        where = {"out": out[0]} if len(out) == 1 else {}
        filled = [np.empty_like(y) for y in out]
        times = race({
            "phipsi": Contestant(lambda k=kernel, x=arguments, y=where: k(*x, **y), size),
            "batch": aba,
            "fill": Contestant(lambda y=filled: [a.fill(1.0) for a in y], size),
        }, effort)  # fmt: skip
        ratio = times["batch"] / times["phipsi"]
        found.append(Function(
            one.name, name, size, times["phipsi"], times["batch"], ratio,
            None if aim is None else at_least(ratio, aim), numbers, times["fill"],
            kernel.graph.operations, compiled,
        ))  # fmt: skip
    return found


def _aligned(shape: tuple[int, ...]) -> np.ndarray:
    """An array that begins with a cache line, where NumPy's own begin 16 bytes after one."""
    size = 8 * int(np.prod(shape))
    room = np.empty(size + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + size].view(float).reshape(shape)


def _aba(one: Case) -> Contestant:
    pool, wide = pin.ModelPool(one.model, 1), columns(one.theirs())
    q, v, _, tau = wide
    result = np.empty((one.robot.nv, SIZE), order="F")
    return Contestant(lambda: pin.abaInParallel(1, pool, q, v, tau, result), SIZE)


def space() -> Case:
    """A free-flyer with a seven-axis arm."""
    robot = pp.robots.space_arm()
    return case("space_arm*", robot, pp.interop.to_pinocchio_model(robot), SIZE)
