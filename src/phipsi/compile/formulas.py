"""The results of a graph as formulas: simplified (rational.py), written out, or with names for what
is used more than once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from phipsi.compile.graph import Graph
from phipsi.compile.rational import Unfit, simplified
from phipsi.compile.to_sympy import Shared, entered, meanings, sympy, walk

OPERATIONS = 300_000
"""Operations of a graph, its loops unrolled, up to which it is written at all."""

SIMPLIFIED, WRITTEN = 20_000, 100_000
"""Symbols and operations up to which formulas are simplified unasked, and written out at all."""


def formulas(
    name: str,
    graph: Graph,
    inputs: Sequence[Sequence[Any]],
    leading: Sequence[Any] = (),
    simplify: bool | None = None,
    shared: bool = False,
) -> tuple[list[tuple[Any, Any]], list[list[Any]]]:
    """The definitions (none unless `shared`) and every output of a graph as SymPy expressions.
    Sums are grouped by products of the symbols in `leading`."""
    if graph.operations > OPERATIONS:
        raise ValueError(
            f"{name} has {graph.operations} operations, loops unrolled, and formulas are made of "
            f"up to {OPERATIONS}; take a smaller robot or fewer rounds"
        )
    algebra = Shared(x.name for values in inputs for e in values for x in e.free_symbols)
    number = meanings()["number"]
    outputs = [[number(x) for x in entered(values)] for values in walk(graph, inputs, algebra)]
    definitions = algebra.definitions
    if shared:
        return definitions, outputs
    length = _length(definitions, outputs)
    if simplify or (simplify is None and length <= SIMPLIFIED):
        with suppress(Unfit):
            return [], simplified(graph, inputs, leading, limited=simplify is None)
    if length > WRITTEN:
        raise ValueError(
            f"{name} written out has {length:.1e} symbols, and is up to {WRITTEN:.0e}; ask for "
            "shared=True, which names what is used more than once"
        )
    known: dict[Any, Any] = {}
    for symbol, expression in definitions:
        known[symbol] = expression.xreplace(known)
    return [], [[x.xreplace(known) for x in values] for values in outputs]


def _length(definitions: Sequence[tuple[Any, Any]], outputs: list[list[Any]]) -> int:
    """How many symbols, numbers and operations the outputs have, every definition put in."""
    lengths: dict[Any, int] = {}

    def length(expression: Any) -> int:
        return sum(lengths.get(part, 1) for part in sympy().preorder_traversal(expression))

    for symbol, expression in definitions:
        lengths[symbol] = length(expression)
    return sum(length(x) for values in outputs for x in values)


def arranged(shape: tuple[int, ...], values: Sequence[Any]) -> Any:
    """Expressions in the shape of a result: one alone, a matrix (a column for one axis), or an
    N-dimensional array."""
    s = sympy()
    if not shape:
        return values[0]
    rows, *columns = shape
    if len(columns) <= 1:
        return s.Matrix(rows, columns[0] if columns else 1, list(values))
    return s.ImmutableDenseNDimArray(list(values), shape)
