"""Dataflow: the values that an expression applied to a vector is computed from, body by body.

A value is a vector of a space, with one part for each body. Operators are linear, so an operator
that is applied to several values is applied once, to their sum. φ and ψ become recursions

    z = φx:   z = x + E_φ z                 E_φ y = Σ φ y over the children, from tip to base
    z = ψx:   z = x + E_φ (z − G H z)
    y = φ*x:  y = x + E_φ* y                E_φ* y = φ* y of the parent, from base to tip
    y = ψ*x:  y = x + (I − H* G*) E_φ* y

Values do not depend on a robot.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from phipsi.operators.algebra.expression import (
    Adjoint,
    Expression,
    IdentityOperator,
    Inverse,
    Leaf,
    LogDet,
    Sum,
    ZeroOperator,
    product,
)
from phipsi.operators.algebra.spaces import BODY_FORCES, SCALARS, Space
from phipsi.operators.algebra.symbols import SYMBOLS, H, I, M, phi
from phipsi.operators.lowering.recursions import RECURSION_OF

MOST = 2000
"""The most values that an expression may be computed from."""
ONE = Fraction(1)

Op = Literal[
    "input", "state", "unit", "one", "zero", "add", "times", "dot", "apply", "recur", "gather",
    "scatter", "place", "pick", "logdet", "solve", "load",
]  # fmt: skip
"""The operation of a value: a given vector; a vector that a recursion behind symbols computes; a
unit vector at frames; the number one; zero; a sum with numbers; a vector times a number; a product
of two vectors; a block-diagonal operator; a resolvent such as φ; a sum over the children; the value
of the parent; a force at frames on the bodies; a motion of bodies at frames; a log-determinant; the
solution of linear equations at frames; the forces that a motion needs."""


class LoweringError(ValueError):
    """An expression that no recursion computes, and why; `args` are texts and expressions."""

    def __str__(self) -> str:
        return "".join(map(str, self.args))


@dataclass(eq=False)
class Value:
    """A vector with a part for each body, or as a whole in the spaces of frames and of numbers."""

    op: Op
    space: Space
    args: tuple[Value, ...] = ()
    data: Any = None
    """A constant of the operation: an operator, a name, numbers, or frames."""
    number: int = 0
    whole: bool = False
    """Whether it belongs to no body: a vector at frames, or a number."""
    recursion: tuple[Value, ...] = field(default=())
    """Of a `recur`: the values whose sum it equals, which depend on itself."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values of the same body that it is computed from."""
        return () if self.op in ("gather", "scatter") else self.sources

    @property
    def sources(self) -> tuple[Value, ...]:
        """The values that it is computed from, of the same body or of its neighbours."""
        return self.recursion or self.args


class Dataflow:
    """The values that an expression is computed from; equal values are the same object."""

    def __init__(self, given: Iterable[str]) -> None:
        self.given = frozenset(given)
        self.known: dict[Hashable, Value] = {}
        self.values: list[Value] = []
        self.applied: dict[tuple[Expression, Value], Value] = {}

    def make(
        self, op: Op, space: Space, args: tuple[Value, ...] = (), data: Hashable = None
    ) -> Value:
        """The value with this operation and these arguments."""
        key = (op, space, data, *map(id, args))
        if key not in self.known:
            if len(self.values) > MOST:
                raise LoweringError(f"the expression takes more than {MOST} values: simplify it")
            whole = space.size in ("frame", "one")
            new = Value(op, space, args, data, len(self.values), whole)
            self.known[key] = new
            self.values.append(new)
        return self.known[key]

    # ---- sums ----------------------------------------------------------------------------------

    def add(
        self, terms: Iterable[tuple[Fraction, Value]], space: Space, *, sent: bool = False
    ) -> Value:
        """Σ number · value, where the arguments of one operator are added before it is applied.

        Recursions with the same operator are combined too, except in values that a recursion has
        `sent` to a neighbour, as these contain the recursion itself."""
        flat: dict[Value, Fraction] = {}
        for c, x in terms:
            for d, y in _terms(x):
                flat[y] = flat.get(y, Fraction(0)) + c * d
        flat = {x: c for x, c in flat.items() if c and x.op != "zero"}
        groups: dict[Hashable, list[tuple[Fraction, Value]]] = {}
        for x, c in flat.items():
            linear = x.op in ("apply", "gather", "scatter") or (x.op == "recur" and not sent)
            groups.setdefault((x.op, x.data) if linear else x, []).append((c, x))
        terms = [self._together(group, sent) for group in groups.values()]
        if len(terms) < len(flat):
            return self.add(terms, space, sent=sent)
        return self._loaded({x: c for c, x in terms}, space)

    def _together(self, group: list[tuple[Fraction, Value]], sent: bool) -> tuple[Fraction, Value]:
        """c L x + d L y as L (c x + d y)."""
        if len(group) == 1:
            return group[0]
        like = group[0][1]
        inner = self.add([(c, x.args[0]) for c, x in group], like.args[0].space, sent=sent)
        if like.op == "recur":
            return ONE, self.recur(like.data, inner)
        return ONE, self.make(like.op, like.space, (inner,), like.data)

    def _loaded(self, terms: dict[Value, Fraction], space: Space) -> Value:
        """The sum; terms M φ*(H* y + a) + b become the load of the motion with accelerations y."""
        own = self.known.get(("state", BODY_FORCES, "b"))
        if own in terms:
            for x in list(terms):
                y = self._acceleration(x)
                if y is not None and terms[x] == terms[own]:
                    load = self.make("load", BODY_FORCES, y)
                    terms = {z: c for z, c in terms.items() if z not in (x, own)} | {load: terms[x]}
                    break
        if not terms:
            return self.make("zero", space)
        if len(terms) == 1 and ONE in terms.values():
            return next(iter(terms))
        ordered = sorted(terms, key=lambda x: (terms[x] < 0, x.number))
        return self.make("add", space, tuple(ordered), tuple(terms[x] for x in ordered))

    def _acceleration(self, x: Value) -> tuple[Value, ...] | None:
        """(y,) if x is M φ*(H* y + a), () if it is M φ*a, else None."""
        if not (x.op == "apply" and x.data is M and x.args[0].op == "recur"
                and x.args[0].data is phi.T):  # fmt: skip
            return None
        source = x.args[0].args[0]
        if source.op == "state" and source.data == "a":
            return ()
        if source.op != "add" or len(source.args) != 2 or set(source.data) != {ONE}:
            return None
        rest = [y for y in source.args if not (y.op == "state" and y.data == "a")]
        if len(rest) == 1 and rest[0].op == "apply" and rest[0].data is H.T:
            return rest[0].args
        return None

    # ---- operators -----------------------------------------------------------------------------

    def apply(self, x: Expression, y: Value) -> Value:
        """The value of x @ y."""
        if (x, y) not in self.applied:
            self.applied[x, y] = self._apply(x, y)
        return self.applied[x, y]

    def _apply(self, x: Expression, y: Value) -> Value:
        if y.op == "zero" or isinstance(x, ZeroOperator):
            return self.make("zero", x.codomain)
        if isinstance(x, IdentityOperator):
            return y
        if isinstance(x, Sum):
            return self.add([(c, self.apply(term, y)) for c, term in x.terms], x.codomain)
        for factor in reversed(x.factors[1:]):
            y = self.apply(factor, y)
        head = x.factors[0]
        if head is not x:
            return self.apply(head, y)
        return self._letter(x, y)

    def _letter(self, x: Expression, y: Value) -> Value:
        if isinstance(x, Inverse):
            return self._inverse(x, y)
        if isinstance(x, LogDet):
            return self.make("times", SCALARS, (self.vector(x), y))
        leaf = x.leaf if isinstance(x, Adjoint) else x
        assert isinstance(leaf, Leaf)
        if leaf.domain == SCALARS:
            value = self.vector(leaf)
            if x is leaf:
                return self.make("times", x.codomain, (value, y))
            return self.make("dot", SCALARS, (value, y))
        row = leaf.symbol
        if row.action is not None:
            return self.make("apply", x.codomain, (y,), x)
        if row.transfer is not None:
            return self.transfer(x, y)
        if x in RESOLVENTS:
            return self.recur(x, y)
        if row.definition is not None:
            return self.apply(leaf.definition if x is leaf else leaf.definition.T, y)
        raise LoweringError(leaf, f" ({leaf.meaning}) has no recursion in this version")

    def transfer(self, x: Expression, y: Value) -> Value:
        """A value between neighbours or frames: E_φ y or E_φs* y, gathered from the children;
        E_φ* y or E_φs y, scattered to them; B y, placed at the bodies of frames; B* y, picked
        there."""
        op = transfer_of(x)
        data = next(iter(x.leaves)).frames or x
        return y if y.op == "zero" else self.make(op, x.codomain, (y,), data)

    def recur(self, x: Expression, source: Value) -> Value:
        """A resolvent (φ, ψ or one of their adjoints) applied to a source."""
        if source.op == "zero":
            return source
        known = ("recur", x.codomain, x, id(source)) in self.known
        z = self.make("recur", x.codomain, (source,), x)
        if not known:
            terms = _terms(source)
            transfer, through = RESOLVENTS[x]
            merge = through is I or x in INWARDS
            near = [(c, y) for c, y in terms if merge and y.data is transfer]
            start = self.add([(ONE, source), *((-c, y) for c, y in near)], x.codomain)
            sent = [(c, y.args[0]) for c, y in near]
            z.recursion = self._equation(x, z, start, sent)
        return z

    def _equation(
        self, x: Expression, z: Value, start: Value, sent: list[tuple[Fraction, Value]]
    ) -> tuple[Value, ...]:
        """The values whose sum z is: inward, the part that passes each hinge is gathered; outward,
        the value of the parent passes the hinge."""
        transfer, through = RESOLVENTS[x]
        if x in INWARDS:
            own = self.apply(through, z)
            passed = self.add([(ONE, own), *sent], own.space, sent=True)
            return start, self.transfer(transfer, passed)
        plus = self.transfer(transfer, self.add([(ONE, z), *sent], z.space, sent=True))
        whole = [(ONE, start), (ONE, self.apply(through, plus))]
        return (self.add(whole, x.codomain, sent=True),)

    def _inverse(self, x: Inverse, y: Value) -> Value:
        """The inverse applied to y: block by block, or by solving equations at frames."""
        inner = x.inner
        if _acts_inverted(inner) or _inertias(inner):
            return self.make("apply", x.codomain, (y,), x)
        if x.domain.size == "frame" and inner.T is inner:
            units = [self.make("unit", x.codomain, (), (x.codomain.frames, i))
                     for i in range(6 * len(x.domain.frames))]  # fmt: skip
            columns = tuple(self.apply(inner, unit) for unit in units)
            return self.make("solve", x.codomain, (y, *columns))
        raise LoweringError(
            "no identity removes the inverse of ",
            inner,
            "" if inner.T is inner else ", which is not its own adjoint",
            "; ask for the dense one with dense=True",
        )

    # ---- vectors -------------------------------------------------------------------------------

    def vector(self, x: Expression) -> Value:
        """The value of a vector or number."""
        if isinstance(x, Sum):
            return self.add([(c, self.vector(term)) for c, term in x.terms], x.codomain)
        *operators, last = x.factors
        if operators:
            if last.domain != SCALARS:
                raise LoweringError(x, " is no vector")
            return self.apply(product(operators), self.vector(last))
        if isinstance(x, LogDet):
            if not (isinstance(x.inner, Leaf) and (act := x.inner.symbol.action) and act.logdet):
                raise LoweringError("no identity takes the determinant of ", x.inner, " apart")
            return self.make("logdet", SCALARS, (), x.inner)
        if isinstance(x, ZeroOperator):
            return self.make("zero", x.codomain)
        if isinstance(x, Leaf):
            return self._symbol(x)
        return self.apply(x, self.make("one", SCALARS))

    def _symbol(self, x: Leaf) -> Value:
        row, name = x.symbol, x.symbol.name
        if name in self.given or row.given:
            return self.make("input", x.codomain, (), name)
        if name in RECURSION_OF:
            return self.make("state", x.codomain, (), name)
        if row.definition is not None:
            return self.vector(x.definition)
        raise LoweringError(
            x,
            f" ({x.meaning}) has no recursion in this version; its value can be given, {name}=…",
        )


def _terms(x: Value) -> list[tuple[Fraction, Value]]:
    """A value as a sum: pairs (number, value)."""
    return list(zip(x.data, x.args, strict=True)) if x.op == "add" else [(ONE, x)]


def _acts_inverted(x: Expression) -> bool:
    """Whether the inverse of a symbol can be applied block by block."""
    leaf = x.leaf if isinstance(x, Adjoint) else x
    action = leaf.symbol.action if isinstance(leaf, Leaf) else None
    if action is None:
        return False
    return (action.inverse if x is leaf else action.inverse_adjoint) is not None


def _inertias(x: Expression) -> bool:
    """Whether an expression is a sum of inertias of bodies."""
    return isinstance(x, Sum) and all(
        c == 1 and isinstance(term, Leaf) and term.symbol.inertia for c, term in x.terms
    )


OPPOSITE: dict[str, Op] = {"gather": "scatter", "scatter": "gather", "place": "pick"}
"""The operation of the adjoint."""


def transfer_of(x: Expression) -> Op:
    """The operation of a symbol, or of its adjoint, that transfers between neighbours or frames."""
    (leaf,) = x.leaves
    assert leaf.symbol.transfer is not None
    return leaf.symbol.transfer if x is leaf else OPPOSITE[leaf.symbol.transfer]


def _resolvents() -> Iterator[tuple[Expression, tuple[Expression, Expression]]]:
    for row in SYMBOLS.values():
        if row.resolvent is not None:
            transfer, through, *_ = row.resolvent
            yield Leaf.of(row), (transfer, through)
            yield Leaf.of(row).T, (transfer.T, through.T)


RESOLVENTS = dict(_resolvents())
"""Symbols that are resolvents, and their adjoints: (transfer, the operator through a hinge)."""
INWARDS = {x for x, (transfer, _) in RESOLVENTS.items() if transfer_of(transfer) == "gather"}
"""The resolvents that run from tip to base."""
