"""The outputs of a graph as formulas: simplified (rational.py), written out in full, or with names
for values that are used more than once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from phipsi.compile.graph import Graph
from phipsi.compile.rational import Unfit, simplified
from phipsi.compile.to_sympy import Shared, entered, meanings, sympy, walk

OPERATIONS = 300_000
"""Most operations of a graph, its loops unrolled, of which formulas are made."""

SIMPLIFIED, WRITTEN = 20_000, 100_000
"""Most symbols and operations of formulas that are simplified by default, and that are written out
in full."""


def formulas(
    name: str,
    graph: Graph,
    inputs: Sequence[Sequence[Any]],
    leading: Sequence[Any] = (),
    simplify: bool | None = None,
    shared: bool = False,
) -> tuple[list[tuple[Any, Any]], list[list[Any]]]:
    """The definitions of names (none unless `shared`), and every output of a graph, as SymPy
    expressions. Simplified sums are grouped by products of the symbols in `leading`; `simplify`
    None means: if the formulas are short."""
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
    """The number of symbols, numbers and operations of the outputs with every definition
    substituted."""
    lengths: dict[Any, int] = {}

    def length(expression: Any) -> int:
        return sum(lengths.get(part, 1) for part in sympy().preorder_traversal(expression))

    for symbol, expression in definitions:
        lengths[symbol] = length(expression)
    return sum(length(x) for values in outputs for x in values)


def arranged(shape: tuple[int, ...], values: Sequence[Any]) -> Any:
    """Expressions in the shape of a result: a single one, a matrix (a column for one axis), or an
    array of more axes."""
    s = sympy()
    if not shape:
        return values[0]
    rows, *columns = shape
    if len(columns) <= 1:
        return s.Matrix(rows, columns[0] if columns else 1, list(values))
    return s.ImmutableDenseNDimArray(list(values), shape)
