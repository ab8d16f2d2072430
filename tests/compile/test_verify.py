"""The verifier refuses a graph for each of its rules, and passes every graph that the compiler
makes (it is switched on in all tests)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from phipsi.compile import Case, Graph, Instruction, LoopNode, MemoryPlace, verify
from phipsi.compile.schedule import Item, itemized, verify_order
from phipsi.compile.verify import InvalidGraph, verified

I = Instruction
X, Y = I("input", (), (0, 0)), I("input", (), (0, 1))


def graph(*nodes: Instruction, outputs: Any = ()) -> Graph:
    """A graph of an input x of two elements, and of these nodes."""
    return Graph((("x", 2),), nodes, outputs)


SQUARED = Graph((("read", 2),), (X, Y, I("mul", (0, 1))), (("written", (2,)),))
READS, WRITES = (MemoryPlace(0, 0, 0), MemoryPlace(-1, 1, 0)), (MemoryPlace(0, 2, 1),)
LOOP = LoopNode(
    count=2,
    cases=(Case(SQUARED, READS, WRITES),),
    choice=np.zeros(2, np.int64),
    indices=np.array([[0, 2], [0, 1], [1, 3]]),
    table=np.array([3.0, 4.0]),
    size=5,
    start=(0,),
    cleared=(1, 3),
)
"""Memory: 0 is given, 1 and 2 are cleared; round 0 writes 2 of 0, round 1 writes 4 of 2."""


def looped(**changes: Any) -> Graph:
    """A graph of that loop, changed, in which the last element is picked."""
    nodes = (X, I("loop", (0,), replace(LOOP, **changes)), I("pick", (1,), 4))
    return graph(*nodes, outputs=(("y", (2,)),))


def case(**changes: Any) -> Graph:
    """The same with its case changed."""
    return looped(cases=(replace(LOOP.cases[0], **changes),))


ARRAY = I("array", (), 0)
BROKEN: list[tuple[Graph, str]] = [
    (graph(I("double", ())), "node 0 (double): it must be an operation that there is"),
    (graph(X, I("neg", (1,))), "node 1 (neg): its operands must be earlier nodes"),
    (graph(X, I("neg", (-1,))), "node 1 (neg): its operands must be earlier nodes"),
    (
        graph(X, I("add", (0,))),
        "node 1 (add): it must have as many operands as its operation takes",
    ),
    (
        graph(X, I("where", (0, 0))),
        "node 1 (where): it must have as many operands as its operation takes",
    ),
    (graph(ARRAY, I("sin", (0,))), "node 1 (sin): its operands must be scalars"),
    (graph(X, I("sin", (0,), 1.0)), "node 1 (sin): it must have no value"),
    (graph(X, I("const", (0,), 1.0)), "node 1 (const): it must have no operands"),
    (graph(I("const", (), np.float64(1.0))), "node 0 (const): its value must be a Python float"),
    (graph(I("const", (), 1)), "node 0 (const): its value must be a Python float"),
    *(
        (
            graph(I("input", (), value)),
            "node 0 (input): its value must be (input, element), and within the input",
        )
        for value in ((1, 0), (0, 2), (0, -1), 0)
    ),
    (graph(I("array", (), 1)), "node 0 (array): its value must be the number of an input"),
    (graph(ARRAY, I("pack", (0,))), "node 1 (pack): its operands must be scalars"),
    (graph(X, I("pick", (0,), 0)), "node 1 (pick): its one operand must be an array"),
    (graph(ARRAY, I("pick", (0,), 2)), "node 1 (pick): its value must be an element of the array"),
    (
        looped(cleared=(1, 1), indices=LOOP.indices[:, ::-1]),
        "node 1 (loop), case 0: what it reads, or adds to, must have a value before the round",
    ),
    (
        graph(X, I("loop", (0,), replace(LOOP, size=6)), I("pick", (1,), 5)),
        "node 2 (pick): what it picks must have a value",
    ),
    (graph(X, I("loop", (0,), 2)), "node 1 (loop): its value must be a LoopNode"),
    (
        graph(X, I("loop", (0, 0), LOOP)),
        "node 1 (loop): its operands must be arrays, and then a scalar for each place of `start`",
    ),
    (looped(choice=np.zeros(3, int)), "`choice` must name a case for each round"),
    (looped(choice=np.ones(2, int)), "`choice` must name a case for each round"),
    (
        looped(indices=np.zeros((3, 1), np.int64)),
        "`indices` must be rows of whole numbers, one for each round",
    ),
    (looped(indices=1.0 * LOOP.indices), "`indices` must be rows of whole numbers"),
    (looped(table=np.zeros((2, 1))), "`table` must be one row of numbers"),
    (looped(start=(5,)), "`start` must be places of the memory, none of them twice"),
    (looped(cleared=(3, 9)), "`cleared` must be a range of the memory"),
    (
        case(writes=(*WRITES, MemoryPlace(0, 2, 0))),
        "case 0: its body must take what is read and give what is written",
    ),
    (case(reads=READS[:1]), "case 0: its body must take what is read and give what is written"),
    (
        case(reads=(READS[0], MemoryPlace(1, 0, 0))),
        "case 0: what it reads must be in the memory, an operand or the table, and not be added to",
    ),
    (
        case(reads=(READS[0]._replace(add=True), READS[1])),
        "case 0: what it reads must be in the memory, an operand or the table, and not be added to",
    ),
    (case(writes=(MemoryPlace(-1, 0, 0),)), "case 0: what it writes must be in the memory"),
    (case(writes=(MemoryPlace(0, 3, 0),)), "case 0: its places must have a row of `indices`"),
    (case(writes=(MemoryPlace(0, 2, 2),)), "case 0: its places must be within their arrays"),
    (
        case(reads=(READS[0], MemoryPlace(-1, 2, 0))),
        "case 0: its places must be within their arrays",
    ),
    (
        case(
            writes=(MemoryPlace(0, 0, 0), MemoryPlace(0, 2, -1)),
            body=replace(SQUARED, outputs=(("w", (2, 2)),)),
        ),
        "case 0: places with different columns must not meet in a round",
    ),
    (
        case(writes=(MemoryPlace(0, 2, 1, add=True),)),
        "case 0: what it reads, or adds to, must have a value before the round",
    ),
    (
        case(body=replace(SQUARED, nodes=(X, Y, I("mul", (0, 2))))),
        "node 1 (loop), case 0: node 2 (mul): its operands must be earlier nodes",
    ),
    (graph(X, outputs=(("y", (1,)),)), "output 'y': it must be made of nodes of the graph"),
    (graph(ARRAY, outputs=(("y", (0,)),)), "output 'y': it must be made of scalars"),
    (Graph((("x", -1),), (), ()), "input 0: it must have a name and a size"),
]


@pytest.mark.parametrize(("broken", "says"), BROKEN)
def test_a_broken_graph_is_refused(broken: Graph, says: str) -> None:
    with pytest.raises(InvalidGraph, match="^hand: .*" + re.escape(says)):
        verify.verify(broken, "hand")


def test_every_rule_is_tested() -> None:
    nodes = (verify.UNKNOWN, *verify.NODES.values())
    rules = {rule.text for row in (*nodes, verify.LOOPS, verify.ROUNDS) for rule in row}
    assert all(any(text[:40] in says for _, says in BROKEN) for text in {*rules, verify.KNOWN.text})


def test_a_sound_graph_passes() -> None:
    sound = looped()
    assert verified(sound, "hand") is sound


def test_a_schedule_reads_what_is_defined_before() -> None:
    sums = graph(X, Y, I("add", (0, 1)), I("mul", (2, 2)), outputs=(("y", (3,)),))
    items = list(itemized(sums, {}))
    verify_order(sums, items)
    with pytest.raises(InvalidGraph, match=r"item 0 \(op\): node 2, which it reads, must be"):
        verify_order(sums, items[::-1])
    with pytest.raises(InvalidGraph, match=r"item 1 \(op\): node 2 must be defined once"):
        verify_order(sums, [items[0], Item("op", (2,), (0, 1))])


def test_it_is_switched_on_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = BROKEN[0][0]
    for value in ("", "0"):
        monkeypatch.setenv("PHIPSI_VERIFY", value)
        assert verified(broken, "hand") is broken
    monkeypatch.setenv("PHIPSI_VERIFY", "1")
    with pytest.raises(InvalidGraph):
        verified(broken, "hand")
