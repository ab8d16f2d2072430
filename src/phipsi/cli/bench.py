"""`phipsi bench`: times of the functions on a robot, beside those of Pinocchio and MuJoCo."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, TypedDict

import numpy as np

import phipsi as pp
from phipsi.cli.choices import Base
from phipsi.cli.errors import INTERRUPTED, BadUsage
from phipsi.cli.lookup import find_program, find_robot
from phipsi.cli.peers import LOOPED, Contestant, Peer, peers
from phipsi.typing import Array

FUNCTIONS = (
    "forward_dynamics",
    "inverse_dynamics",
    "mass_matrix",
    "mass_matrix_inverse",
    "bias_force",
    "kinetic_energy",
    "poses",
    "jacobian",
)
"""The functions that are timed by default."""
ROUNDS, SPAN = 15, 0.01
"""How many rounds there are, in each of which all contestants run in turn, and how long each runs
at least in a round [s]."""
MEMORY = 4_000_000_000
"""The most memory that the results of a batch may take [bytes]."""
WIDTH = 110
"""The least width of the table, in characters."""


class PeerTimes(TypedDict):
    """The times of a function in another library [ns], and their ratios to ours; a batch is timed
    by single calls where the library has no function for it."""

    single_ns: float
    batch_ns: float
    single_ratio: float
    batch_ratio: float


@dataclass(frozen=True)
class Row:
    """The times of a function on one core [ns per evaluation]."""

    function: str
    operations: int
    single_ns: float
    """Called for one state."""
    batch_ns: float
    """Called for a batch."""
    peers: dict[str, PeerTimes] = field(default_factory=dict[str, PeerTimes])
    """The times of other libraries, by name."""


def run(name: str, base: Base | None, batch: int, functions: str | None, as_json: bool) -> int:
    """Print the table, or JSON, and return 0; after Ctrl-C print what there is and return 130."""
    robot = find_robot(name, base)
    if not robot.nv:
        raise BadUsage(f"robot {robot.name!r} does not move: there is nothing to time")
    names = FUNCTIONS if functions is None else [x.strip() for x in functions.split(",")]
    programs = {name: find_program(name) for name in names}
    rows: list[Row] = []
    others: list[Peer] = []
    code = 0
    try:
        with _progress(2 * len(programs) + 1) as step:
            for function, program in programs.items():
                step(f"compile {function}")
                _check(function, program, robot, batch)
            step("states")
            states = random_states(robot, max(batch, LOOPED))
            others = peers(robot, states)
            for function, program in programs.items():
                step(f"time {function}")
                rows.append(measured(function, program, robot, states, batch, others))
    except KeyboardInterrupt:
        code = INTERRUPTED
    if as_json:
        print(json.dumps(_summary(robot, batch, rows, others, code), indent=2))
    elif rows:
        _show(robot, batch, rows, others)
    return code


def random_states(robot: pp.Robot, count: int) -> dict[str, Array]:
    """Random states: q within limits; v, a and tau standard normal."""
    rng = np.random.default_rng(0)
    q, v = robot.random_state(rng, (count,))
    return {"q": q, "v": v} | {x: rng.standard_normal((count, robot.nv)) for x in ("a", "tau")}


def _check(function: str, program: pp.Program[..., Any], robot: pp.Robot, batch: int) -> None:
    """Refuse a function that random numbers cannot be made for, or whose results are too large."""
    for name, p in program.parameters.items():
        if p.required and name != "frame" and p.shape is None:
            raise BadUsage(f"{function} needs {name}, which bench cannot make up; leave it out")
    try:
        shapes = program.compile(robot, **_options(program, robot)).results.leaves
    except pp.ModelError:
        raise
    except (TypeError, ValueError) as error:
        raise BadUsage(f"{function} cannot be timed: {str(error).partition(chr(10))[0]}") from None
    size = 8 * batch * sum(int(np.prod(leaf.shape)) for leaf in shapes)
    if size > MEMORY:
        raise BadUsage(
            f"the results of {function} would take {size / 1e9:,.0f} GB; choose a smaller --batch"
        )


def _options(program: pp.Program[..., Any], robot: pp.Robot) -> dict[str, Any]:
    """The options without default of a program: the frame is that of the last body."""
    return {"frame": robot.bodies[-1].name} if "frame" in program.options else {}


def measured(
    function: str,
    program: pp.Program[..., Any],
    robot: pp.Robot,
    states: Mapping[str, Array],
    batch: int,
    others: Sequence[Peer],
) -> Row:
    """The times of a function and of its peers."""
    kernel = program.compile(robot, threads=1, **_options(program, robot))
    rng = np.random.default_rng(1)
    arrays: list[Array] = []
    for name, leaf in kernel.parameters:
        shape: tuple[int, ...] = (len(states["q"]), *getattr(leaf, "shape", ()))
        arrays.append(states[name] if name in states else rng.standard_normal(shape))
    each = list(zip(*(list(x[:LOOPED]) for x in arrays), strict=True))
    many = [x[:batch] for x in arrays]

    def one_by_one() -> None:
        for state in each:
            kernel(*state)

    contestants = {
        "single": Contestant(one_by_one, len(each)),
        "batch": Contestant(lambda: kernel(*many), batch),
    }
    for peer in others:
        for way, found in (("single", peer.single), ("batch", peer.batch)):
            if function in found:
                contestants[f"{peer.name} {way}"] = found[function]
    times = race(contestants)
    row = Row(function, kernel.code.operations, times["single"], times["batch"])
    for peer in others:
        if function in peer.single:
            single = times[f"{peer.name} single"]
            many_ns = min(single, times.get(f"{peer.name} batch", single))
            row.peers[peer.name] = {
                "single_ns": single,
                "batch_ns": many_ns,
                "single_ratio": single / row.single_ns,
                "batch_ratio": many_ns / row.batch_ns,
            }
    return row


def race(contestants: Mapping[str, Contestant]) -> dict[str, float]:
    """Nanoseconds per evaluation of each contestant, the least of rounds that all run in turn."""
    once = {name: min(_seconds(c, 1) for _ in range(2)) for name, c in contestants.items()}
    calls = {name: max(1, round(SPAN / max(t, 1e-9))) for name, t in once.items()}
    rounds = max(3, min(ROUNDS, round(ROUNDS * SPAN / max(once.values()))))
    best = dict(once)
    gc.disable()
    try:
        for _ in range(rounds):
            for name, contestant in contestants.items():
                best[name] = min(best[name], _seconds(contestant, calls[name]))
    finally:
        gc.enable()
    return {name: 1e9 * best[name] / c.evaluations for name, c in contestants.items()}


def _seconds(contestant: Contestant, calls: int) -> float:
    """The mean time of a call [s]."""
    call = contestant.call
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


@contextmanager
def _progress(count: int) -> Generator[Callable[[str], None], None, None]:
    """A progress bar on stderr, if that is a terminal; yields a function that names each step."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=count, completed=-1)

        def step(name: str) -> None:
            bar.update(task, advance=1, description=name)

        yield step


def _summary(
    robot: pp.Robot, batch: int, rows: list[Row], others: list[Peer], code: int
) -> dict[str, Any]:
    """The data that `phipsi bench --json` prints."""
    return {
        "robot": robot.name,
        "nv": robot.nv,
        "batch": batch,
        "threads": 1,
        "complete": code == 0,
        "absent": {peer.name: peer.absent for peer in others if peer.absent},
        "functions": [asdict(row) for row in rows],
    }


def _show(robot: pp.Robot, batch: int, rows: list[Row], others: list[Peer]) -> None:
    """Print the table."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    there = [peer for peer in others if any(peer.name in row.peers for row in rows)]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("function", no_wrap=True)
    heads = ["one\ncall", f"batch\n{batch:,}"]
    for peer in there:
        heads += [f"{peer.name}\ncall", "ratio\ncall", "ratio\nbatch"]
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        cells = [_number(row.single_ns), _number(row.batch_ns)]
        for peer in there:
            found = row.peers.get(peer.name)
            cells += ["", "", ""] if found is None else [
                _number(found["single_ns"]),
                f"{found['single_ratio']:.1f}×",
                f"{found['batch_ratio']:.1f}×",
            ]  # fmt: skip
        table.add_row(row.function, *cells)
    console = Console(highlight=False)
    console.width = max(console.width, WIDTH)
    bodies = f"{robot.nb} {'body' if robot.nb == 1 else 'bodies'}, nv = {robot.nv}"
    console.print(f"{robot.name}: {bodies}; ns per evaluation on one core", markup=False)
    console.print(table)
    for peer in others:
        if peer.absent:
            console.print(f"No {peer.name} beside it: {peer.absent}.", soft_wrap=True, markup=False)
    if there:
        console.print(
            "Ratios are their time over phipsi's. What has no form for batches there is called "
            "state by state.", style="dim", soft_wrap=True,
        )  # fmt: skip


def _number(ns: float) -> str:
    return f"{ns:,.1f}" if ns < 100 else f"{ns:,.0f}"
