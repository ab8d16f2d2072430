"""The verifier: the invariants of graphs, and their check.

With PHIPSI_VERIFY=1, as in the tests, every graph is checked when it is traced and after each pass,
so that a pass that breaks an invariant is found at once, and not by wrong numbers of a backend.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from phipsi.compile.graph import Case, Graph, LoopNode, MemoryPlace
from phipsi.compile.ops import OPS, Op
from phipsi.typing import Array


class InvalidGraph(Exception):
    """A graph that breaks an invariant: a bug of the compiler, not a mistake of its user."""


def switched_on() -> bool:
    """Whether PHIPSI_VERIFY is set."""
    return os.environ.get("PHIPSI_VERIFY", "0") not in ("", "0")


def verified(graph: Graph, stage: str) -> Graph:
    """The graph that the pass `stage` made, after a check if checks are switched on."""
    if switched_on():
        verify(graph, stage)
    return graph


def verify(graph: Graph, stage: str) -> None:
    """Raise InvalidGraph if a graph breaks a rule; the error names the `stage` that made it."""
    for k, (name, size) in enumerate(graph.inputs):
        if not isinstance(name, str) or not _is_index(size):
            raise InvalidGraph(f"{stage}: input {k}: it must have a name and a size")
    view = View(graph)
    arrays: set[int] = set()
    for i, (op, args, value) in enumerate(graph.nodes):
        if value is None and ARITY.get(op) == len(args) and (not arrays or arrays.isdisjoint(args)):
            if min(args) >= 0 and max(args) < i:  # the rules of ARITHMETIC, which most nodes keep
                view.elements.append(None)
                continue
        view.op, view.args, view.value, view.index = op, args, value, i
        for rule in NODES.get(op, UNKNOWN):
            if not rule.holds(view):
                raise InvalidGraph(f"{stage}: node {i} ({op}): {rule.text}")
        view.elements.append(_elements(view, f"{stage}: node {i} (loop)"))
        if view.elements[-1] is not None:
            arrays.add(i)
    for name, nodes in graph.outputs:
        if not all(_is_index(n) and n < len(graph.nodes) for n in nodes):
            raise InvalidGraph(f"{stage}: output {name!r}: it must be made of nodes of the graph")
        if not view.scalars(nodes):
            raise InvalidGraph(f"{stage}: output {name!r}: it must be made of scalars")


@dataclass
class View:
    """A node in its graph, as the rules see it. `elements` has a mask for every earlier node that
    is an array: which of its elements have a value; and None for a scalar."""

    graph: Graph
    elements: list[Array | None] = field(default_factory=list[Array | None])
    op: str = ""
    args: tuple[int, ...] = ()
    value: Any = None
    index: int = 0

    def scalars(self, nodes: Sequence[int]) -> bool:
        """Whether all of the nodes are scalars."""
        return all([self.elements[n] is None for n in nodes])

    def arrays(self, nodes: Sequence[int]) -> list[Array]:
        """The masks of those nodes that are arrays."""
        return [e for e in map(self.elements.__getitem__, nodes) if e is not None]

    @property
    def split(self) -> int:
        """The number of operands of a loop that are arrays; they come first."""
        return len(self.args) - len(self.value.start)


class Rounds(NamedTuple):
    """The rounds of one case of a loop, as the rules see them. `arrays` has for each array that
    places can name, by its number, the first round after which each of its elements has a value."""

    loop: LoopNode
    case: Case
    rounds: Array
    arrays: Mapping[int, Array]

    @property
    def places(self) -> tuple[MemoryPlace, ...]:
        """The places that are read, then those that are written."""
        return (*self.case.reads, *self.case.writes)

    def addresses(self, place: MemoryPlace) -> Array:
        """The address of a place in each of the rounds."""
        return self.loop.indices[place.rows, self.rounds] + place.column


Seen = TypeVar("Seen")


@dataclass(frozen=True)
class Rule(Generic[Seen]):
    """An invariant of nodes, loops or rounds, with its sentence in errors."""

    text: str
    holds: Callable[[Seen], bool]


# ---- nodes ---------------------------------------------------------------------------------------


def _arity(op: Op) -> int:
    """The number of operands of an operation, counted in its C text."""
    names = {name for _, name, _, _ in Formatter().parse(op.c) if name}
    return 2 if op.infix else len(names & {"0", "1", "2"})


def _is_index(x: object) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and x >= 0


def _is_element(view: View) -> bool:
    """Whether the value of a node is an element of an input: (input, element)."""
    inputs = view.graph.inputs
    match view.value:
        case (int() as number, int() as element) if isinstance(view.value, tuple):
            known = _is_index(number) and _is_index(element) and number < len(inputs)
            return known and element < inputs[number][1]
        case _:
            return False


ARITY = {name: _arity(op) for name, op in OPS.items()}
"""The number of operands of each operation."""

UNKNOWN: tuple[Rule[View], ...] = (Rule("it must be an operation that there is", lambda v: False),)
EARLIER = Rule[View](
    "its operands must be earlier nodes",
    lambda v: not v.args or (min(v.args) >= 0 and max(v.args) < v.index),
)
NO_OPERANDS = Rule[View]("it must have no operands", lambda v: not v.args)
SCALARS = Rule[View]("its operands must be scalars", lambda v: v.scalars(v.args))
NO_VALUE = Rule[View]("it must have no value", lambda v: v.value is None)
ARITHMETIC: tuple[Rule[View], ...] = (
    EARLIER,
    Rule(
        "it must have as many operands as its operation takes",
        lambda v: len(v.args) == ARITY[v.op],
    ),
    SCALARS,
    NO_VALUE,
)
NODES: Mapping[str, tuple[Rule[View], ...]] = {
    **dict.fromkeys(OPS, ARITHMETIC),
    "const": (
        NO_OPERANDS,
        Rule("its value must be a Python float", lambda v: type(v.value) is float),
    ),
    "input": (
        NO_OPERANDS,
        Rule("its value must be (input, element), and within the input", _is_element),
    ),
    "array": (
        NO_OPERANDS,
        Rule(
            "its value must be the number of an input",
            lambda v: _is_index(v.value) and v.value < len(v.graph.inputs),
        ),
    ),
    "pack": (EARLIER, SCALARS, NO_VALUE),
    "pick": (
        EARLIER,
        Rule(
            "its one operand must be an array", lambda v: len(v.args) == len(v.arrays(v.args)) == 1
        ),
        Rule(
            "its value must be an element of the array",
            lambda v: _is_index(v.value) and v.value < len(v.arrays(v.args)[0]),
        ),
        Rule(
            "what it picks must have a value",
            lambda v: bool(v.arrays(v.args)[0][v.value]),
        ),
    ),
    "loop": (
        EARLIER,
        Rule("its value must be a LoopNode", lambda v: isinstance(v.value, LoopNode)),
        Rule(
            "its operands must be arrays, and then a scalar for each place of `start`",
            lambda v: (
                v.split >= 0
                and len(v.arrays(v.args[: v.split])) == v.split
                and v.scalars(v.args[v.split :])
            ),
        ),
    ),
}
"""The rules of every kind of node; a rule may rely on those before it."""


def _elements(view: View, where: str) -> Array | None:
    """A mask of the elements of a node that have a value; None for a scalar."""
    match view.op:
        case "array":
            number: int = view.value
            return np.ones(view.graph.inputs[number][1], bool)
        case "pack":
            return np.ones(len(view.args), bool)
        case "loop":
            return _after(view.value, view.arrays(view.args[: view.split]), where)
        case _:
            return None


# ---- loops ---------------------------------------------------------------------------------------

LOOPS: tuple[Rule[LoopNode], ...] = (
    Rule(
        "`choice` must name a case for each round",
        lambda x: (
            x.choice.shape == (x.count,)
            and x.choice.dtype.kind == "i"
            and bool(((x.choice >= 0) & (x.choice < len(x.cases))).all())
        ),
    ),
    Rule(
        "`indices` must be rows of whole numbers, one for each round",
        lambda x: x.indices.ndim == 2 and x.indices.shape[1] == x.count and x.indices.dtype == "i8",
    ),
    Rule(
        "`table` must be one row of numbers", lambda x: x.table.ndim == 1 and x.table.dtype == "f8"
    ),
    Rule(
        "`start` must be places of the memory, none of them twice",
        lambda x: len(set(x.start)) == len(x.start) and all(0 <= at < x.size for at in x.start),
    ),
    Rule(
        "`cleared` must be a range of the memory",
        lambda x: 0 <= x.cleared[0] <= x.cleared[1] <= x.size,
    ),
)
"""The rules of a loop by itself."""


def _is_apart(x: Rounds) -> bool:
    """Whether places with different columns are different elements in each round."""
    places = [p for p in x.places if p.array == 0]
    if not places:
        return True
    addresses = np.array([x.addresses(p) for p in places])
    columns = np.array([p.column for p in places])
    order = addresses.argsort(0, kind="stable")
    addresses, columns = np.take_along_axis(addresses, order, 0), columns[order]
    return not ((np.diff(addresses, axis=0) == 0) & (np.diff(columns, axis=0) != 0)).any()


def _is_within(x: Rounds, place: MemoryPlace) -> bool:
    """Whether all addresses of a place are within its array."""
    at, size = x.addresses(place), len(x.arrays[place.array])
    return not at.size or bool(at.min() >= 0 and at.max() < size)


def _is_known(x: Rounds) -> bool:
    """Whether every element that a round reads or adds to has a value before the round."""
    read = (*x.case.reads, *(p for p in x.case.writes if p.add))
    return all(bool((x.arrays[p.array][x.addresses(p)] < x.rounds).all()) for p in read)


ROUNDS: tuple[Rule[Rounds], ...] = (
    Rule(
        "its body must take what is read and give what is written",
        lambda x: (
            [size for _, size in x.case.body.inputs] == [len(x.case.reads)]
            and [len(nodes) for _, nodes in x.case.body.outputs] == [len(x.case.writes)]
        ),
    ),
    Rule(
        "what it reads must be in the memory, an operand or the table, and not be added to",
        lambda x: all(p.array in x.arrays and not p.add for p in x.case.reads),
    ),
    Rule(
        "what it writes must be in the memory", lambda x: all(p.array == 0 for p in x.case.writes)
    ),
    Rule(
        "its places must have a row of `indices`",
        lambda x: all(0 <= p.rows < len(x.loop.indices) for p in x.places),
    ),
    Rule(
        "its places must be within their arrays",
        lambda x: all(_is_within(x, p) for p in x.places),
    ),
    Rule("places with different columns must not meet in a round", _is_apart),
)
"""The rules of the places of one case of a loop; a rule may rely on those before it."""

KNOWN = Rule("what it reads, or adds to, must have a value before the round", _is_known)
"""The rule of the elements that have no value: it needs the places of all cases of a loop."""


def _after(loop: LoopNode, operands: list[Array], where: str) -> Array:
    """Check a loop. Returns a mask of the elements of its memory that have a value afterwards,
    given such masks of the arrays it reads."""
    for rule in LOOPS:
        if not rule.holds(loop):
            raise InvalidGraph(f"{where}: {rule.text}")
    never, always = loop.count, -1
    memory = np.full(loop.size, never)
    memory[slice(*loop.cleared)] = always
    memory[list(loop.start)] = always
    arrays = {k: np.where(known, always, never) for k, known in enumerate(operands, 1)}
    arrays |= {0: memory, -1: np.full(len(loop.table), always)}
    rounds = [np.flatnonzero(loop.choice == c) for c in range(len(loop.cases))]
    cases = [Rounds(loop, x, r, arrays) for x, r in zip(loop.cases, rounds, strict=True)]
    for c, x in enumerate(cases):
        for rule in ROUNDS:
            if not rule.holds(x):
                raise InvalidGraph(f"{where}, case {c}: {rule.text}")
        for place in x.case.writes:
            if not place.add:
                np.minimum.at(memory, x.addresses(place), x.rounds)
    for c, x in enumerate(cases):
        if not KNOWN.holds(x):
            raise InvalidGraph(f"{where}, case {c}: {KNOWN.text}")
        verify(x.case.body, f"{where}, case {c}")
    return memory < never
