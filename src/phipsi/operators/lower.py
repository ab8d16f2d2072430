"""Lowering: an expression applied to a vector becomes sweeps over the bodies.

Values are vectors of a space, one part for each body. Operators are linear, so those that are
applied to several values are applied to their sum; φ and ψ become recursions

    z = φx:   z = x + E_φ z                 E_φ y = Σ φ y over the children, from tip to base
    z = ψx:   z = x + E_φ (z − G H z)
    y = φ*x:  y = x + E_φ* y                E_φ* y = φ* y of the parent, from base to tip
    y = ψ*x:  y = x + (I − H* G*) E_φ* y

and all that runs in the same direction is one sweep. Values, recursions and their order know no
robot: a `Plan` is made once for an expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

from phipsi.operators.expressions import (
    Adjoint,
    Expression,
    Identity,
    Inverse,
    Leaf,
    LogDet,
    Sum,
    Zero,
    product,
)
from phipsi.operators.simplify import Derivation, derive
from phipsi.operators.spaces import BODY_FORCES, SCALARS, Space
from phipsi.operators.symbols import *

INWARD, OUTWARD = "inward", "outward"


class LoweringError(ValueError):
    """An expression that no recursion computes, and why."""


@dataclass(eq=False)
class Value:
    """A vector, part by part, or (in the space of frames and of numbers) as a whole."""

    op: str
    space: Space
    args: tuple[Value, ...] = ()
    data: Any = None
    number: int = 0
    whole: bool = False
    """Of no body: a vector at frames, or a number."""
    recursion: tuple[Value, ...] = field(default=())
    """Of a `recur`: what it is equal to, in terms of itself."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values of the same body that it is computed from."""
        return () if self.op in ("gather", "scatter") else self.sources

    @property
    def sources(self) -> tuple[Value, ...]:
        """The values that it is computed from, of the same body or of its neighbours."""
        return self.recursion or self.args


LOCAL = {
    x.symbol.name
    for x in (H, M, A, P, P_plus, D, D_half, G, Upsilon, H_a, H_p, A_a, A_p, P_p, P_p_plus, D_p,
              G_p, S, G_s, Lambda)
}  # fmt: skip
"""Symbols that act on each body by itself."""

STATE = {
    "P": "riccati", "P_plus": "riccati", "D": "riccati", "D_half": "riccati", "G": "riccati",
    "H_p": "passive", "P_p": "passive", "P_p_plus": "passive", "D_p": "passive",
    "G_p": "passive", "H_a": "active", "A_a": "active", "A_p": "active",
    "Upsilon": "upsilon", "S": "dual", "G_s": "dual", "Lambda": "dual",
}  # fmt: skip
"""The recursion that a symbol comes from."""

EXPANDED = (
    tau, tau_bar, E_psi, tau_bar_p, E_psi_p, Omega, Omega_p, mass, mass_aa, mass_ap, mass_pp, m,
    tau_bar_s,
)  # fmt: skip
"""Symbols that are applied as their definition."""


class Lowering:
    """Values in the making, the same ones never made twice."""

    def __init__(self, given: Iterable[str]) -> None:
        self.given = frozenset(given)
        self.known: dict[Any, Value] = {}
        self.values: list[Value] = []

    def make(self, op: str, space: Space, args: tuple[Value, ...] = (), data: Any = None) -> Value:
        """The value with this operation and these arguments."""
        key = (op, space, data, *map(id, args))
        if key not in self.known:
            whole = space.size in ("frame", "one")
            new = Value(op, space, args, data, len(self.values), whole)
            self.known[key] = new
            self.values.append(new)
        return self.known[key]

    # ---- sums ----------------------------------------------------------------------------------

    def add(self, terms: Iterable[tuple[Fraction, Value]], space: Space) -> Value:
        """Σ number · value; what one operator is applied to is added first."""
        flat: dict[Value, Fraction] = {}
        for c, x in terms:
            parts = zip(x.data, x.args, strict=True) if x.op == "add" else ((Fraction(1), x),)
            for d, y in parts:
                flat[y] = flat.get(y, Fraction(0)) + c * d
        flat = {x: c for x, c in flat.items() if c and x.op != "zero"}
        groups: dict[Any, list[tuple[Fraction, Value]]] = {}
        for x, c in flat.items():
            linear = x.op in ("apply", "gather", "scatter", "recur")
            groups.setdefault((x.op, x.data) if linear else x, []).append((c, x))
        terms = [self._together(group) for group in groups.values()]
        if len(terms) < len(flat):
            return self.add(terms, space)
        return self._loaded(dict((x, c) for c, x in terms), space)

    def _together(self, group: list[tuple[Fraction, Value]]) -> tuple[Fraction, Value]:
        """c L x + d L y as L (c x + d y)."""
        if len(group) == 1:
            return group[0]
        like = group[0][1]
        inner = self.add([(c, x.args[0]) for c, x in group], like.args[0].space)
        if like.op == "recur":
            return Fraction(1), self.recur(like.data, inner)
        return Fraction(1), self.make(like.op, like.space, (inner,), like.data)

    def _loaded(self, terms: dict[Value, Fraction], space: Space) -> Value:
        """The sum, with M φ*(H* y + a) + b as the load of the motion with accelerations y."""
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
        if len(terms) == 1 and Fraction(1) in terms.values():
            return next(iter(terms))
        ordered = sorted(terms, key=lambda x: (terms[x] < 0, x.number))
        return self.make("add", space, tuple(ordered), tuple(terms[x] for x in ordered))

    def _acceleration(self, x: Value) -> tuple[Value, ...] | None:
        """The y of M φ*(H* y + a), () for none, None where x is something else."""
        if not (x.op == "apply" and x.data is M and x.args[0].op == "recur"
                and x.args[0].data is phi.T):  # fmt: skip
            return None
        source = x.args[0].args[0]
        if source.op == "state" and source.data == "a":
            return ()
        if source.op != "add" or len(source.args) != 2 or set(source.data) != {Fraction(1)}:
            return None
        rest = [y for y in source.args if not (y.op == "state" and y.data == "a")]
        if len(rest) == 1 and rest[0].op == "apply" and rest[0].data is H.T:
            return rest[0].args
        return None

    # ---- operators -----------------------------------------------------------------------------

    def apply(self, x: Expression, y: Value) -> Value:
        """The value of x @ y."""
        if y.op == "zero" or isinstance(x, Zero):
            return self.make("zero", x.codomain)
        if isinstance(x, Identity):
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
        leaf = x.leaf if isinstance(x, Adjoint) else x
        assert isinstance(leaf, Leaf)
        if leaf.domain == SCALARS:
            value = self.vector(leaf)
            if x is leaf:
                return self.make("times", x.codomain, (value, y))
            return self.make("dot", SCALARS, (value, y))
        if leaf.symbol.framed:
            return self._framed(x, leaf, y)
        if leaf in EXPANDED:
            definition = leaf.definition
            return self.apply(definition if x is leaf else definition.T, y)
        if x in RESOLVENTS:
            return self.recur(x, y)
        if leaf in TILDES:
            return self._tilde(TILDES[leaf], x is leaf, y)
        if leaf is l:
            whole = D_half.inv @ (I - H @ psi @ K)
            return self.apply(whole if x is leaf else whole.T, y)
        if leaf in (K, K_p):
            gain = G if leaf is K else G_p
            if x is leaf:
                return self.gather(self.apply(gain, y))
            return self.apply(gain.T, self.scatter(y))
        if leaf is E_phi:
            return self.gather(y) if x is leaf else self.scatter(y)
        if leaf.symbol.name in LOCAL:
            return self.make("apply", x.codomain, (y,), x)
        raise LoweringError(f"{leaf} ({leaf.meaning}) has no recursion in this version")

    def gather(self, y: Value) -> Value:
        """E_φ y."""
        return self.make("gather", BODY_FORCES, (y,)) if y.op != "zero" else y

    def scatter(self, y: Value) -> Value:
        """E_φ* y."""
        return self.make("scatter", BODY_FORCES.dual, (y,)) if y.op != "zero" else y

    def recur(self, x: Expression, source: Value) -> Value:
        """φ, ψ or an adjoint of them, applied to a source."""
        if source.op == "zero":
            return source
        known = ("recur", x.codomain, x, id(source)) in self.known
        z = self.make("recur", x.codomain, (source,), x)
        if not known:
            terms = (
                zip(source.data, source.args, strict=True)
                if source.op == "add"
                else [(Fraction(1), source)]
            )
            shift = "gather" if x.codomain == BODY_FORCES else "scatter"
            plain = x in (phi, phi.T) or shift == "gather"
            near = [(c, y) for c, y in terms if y.op == shift] if plain else []
            start = self.add([(Fraction(1), source), *((-c, y) for c, y in near)], x.codomain)
            passing = [(Fraction(1), z), *((c, y.args[0]) for c, y in near)]
            z.recursion = self._equation(x, z, start, passing)
        return z

    def _equation(self, x: Expression, z: Value, start: Value, passing: Any) -> tuple[Value, ...]:
        """What z is the sum of."""
        if x is phi or x is phi.T:
            total = self.add(passing, x.codomain)
            return start, self.gather(total) if x is phi else self.scatter(total)
        hinge, gain = (H, G) if x in (psi, psi.T) else (H_p, G_p)
        if x.codomain == BODY_FORCES:
            held = self.apply(gain, self.apply(hinge, z))
            return start, self.gather(self.add([*passing, (Fraction(-1), held)], x.codomain))
        plus = self.scatter(z)
        held = self.apply(hinge.T, self.apply(gain.T, plus))
        whole = self.add([(Fraction(1), start), (Fraction(1), plus), (Fraction(-1), held)],
                         x.codomain)  # fmt: skip
        return (whole,)

    def _tilde(self, own: Expression, forward: bool, y: Value) -> Value:
        """φ̃ = E_φ φ and ψ̃ = E_ψ ψ, or their adjoints."""
        passing = {phi: I, psi: I - G @ H, psi_p: I - G_p @ H_p}
        through = next(x for z, x in passing.items() if z is own)
        if forward:
            return self.gather(self.apply(through, self.recur(own, y)))
        return self.apply(through.T, self.scatter(self.recur(own.T, y)))

    def _framed(self, x: Expression, leaf: Leaf, y: Value) -> Value:
        if leaf.symbol.name == "J":
            return self.apply(leaf.definition if x is leaf else leaf.definition.T, y)
        if leaf.symbol.name != "B":
            raise LoweringError(f"{leaf} ({leaf.meaning}) has no recursion in this version")
        op = "place" if x is leaf else "pick"
        return self.make(op, x.codomain, (y,), leaf.frames)

    def _inverse(self, x: Inverse, y: Value) -> Value:
        inner = x.inner
        leaf = inner.leaf if isinstance(inner, Adjoint) else inner
        if leaf in (D, D_p, D_half, M, P, Upsilon, P_p):
            return self.make("apply", x.codomain, (y,), x)
        if x.domain.size == "frame" and inner.T is inner:
            units = [self.make("unit", x.codomain, (), (x.codomain.frames, i))
                     for i in range(6 * len(x.domain.frames))]  # fmt: skip
            columns = tuple(self.apply(inner, unit) for unit in units)
            return self.make("solve", x.codomain, (y, *columns))
        raise LoweringError(
            f"no identity removes the inverse of {inner}"
            + ("" if inner.T is inner else ", which is not its own adjoint")
            + "; ask for the dense one with dense=True"
        )

    # ---- vectors -------------------------------------------------------------------------------

    def vector(self, x: Expression) -> Value:
        """The value of a vector or number."""
        if isinstance(x, Sum):
            return self.add([(c, self.vector(term)) for c, term in x.terms], x.codomain)
        *operators, last = x.factors
        if operators:
            if last.domain != SCALARS:
                raise LoweringError(f"{x} is no vector")
            return self.apply(product(operators), self.vector(last))
        if isinstance(x, LogDet):
            if x.inner not in (D, D_p):
                raise LoweringError(f"no identity takes the determinant of {x.inner} apart")
            return self.make("logdet", SCALARS, (), x.inner)
        if isinstance(x, Zero):
            return self.make("zero", x.codomain)
        if isinstance(x, (Adjoint, Inverse, Identity)) or not isinstance(x, Leaf):
            return self.make("one", SCALARS)
        return self._symbol(x)

    def _symbol(self, x: Leaf) -> Value:
        name = x.symbol.name
        if name in self.given or name in FREE:
            return self.make("input", x.codomain, (), name)
        if x in (V, a, b):
            return self.make("state", x.codomain, (), name)
        if name in DEFINITIONS:
            return self.vector(x.definition)
        raise LoweringError(f"{x} ({x.meaning}) is not known: give it, {name}=...")


RESOLVENTS = {y for x in (phi, psi, psi_p) for y in (x, x.T)}
TILDES: dict[Expression, Expression] = {phi_tilde: phi, psi_tilde: psi, psi_p_tilde: psi_p}
FREE = {"T", "beta", "beta_dot", "x"}
"""Vectors that only a caller can give."""


# ---- plans --------------------------------------------------------------------------------------

RECURSIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "riccati": (INWARD, ()),
    "passive": (INWARD, ()),
    "motion": (OUTWARD, ()),
    "gyroscopic": (OUTWARD, ("motion",)),
    "upsilon": (OUTWARD, ("riccati",)),
}
"""Recursions behind symbols: their direction, and those they follow."""

COSTS = {
    "riccati": 170, "passive": 170, "motion": 50, "gyroscopic": 60, "upsilon": 170, "load": 70,
    "gather": 24, "scatter": 24, "add": 6, "place": 1, "dot": 6,
    **dict.fromkeys(("M", "P", "P_p", "P_plus", "P_p_plus", "Upsilon"), 33),
    **dict.fromkeys(("G", "G_p"), 6),
}  # fmt: skip
"""Operations for a hinge with one freedom, roughly: to choose among equal expressions."""


@dataclass(frozen=True)
class Sweep:
    """One pass over the bodies: recursions behind symbols, then values, in order."""

    direction: str
    recursions: tuple[str, ...]
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Plan:
    """The sweeps that compute an expression."""

    expression: Expression
    result: Value
    sweeps: tuple[Sweep, ...]
    values: tuple[Value, ...]
    """All values, in the order in which they can be computed."""

    @property
    def cost(self) -> int:
        """Operations per body, roughly."""
        states = sum(COSTS[name] for sweep in self.sweeps for name in sweep.recursions)
        return states + sum(_cost(x) for x in self.values)

    @property
    def inputs(self) -> dict[str, Space]:
        """The vectors that are given, by name."""
        return {x.data: x.space for x in self.values if x.op == "input"}

    @property
    def moving(self) -> bool:
        """Does it depend on the velocity?"""
        states = {name for sweep in self.sweeps for name in sweep.recursions}
        return bool(states & {"motion", "gyroscopic"}) or any(x.op == "load" for x in self.values)


def _cost(x: Value) -> int:
    if x.op == "apply":
        return COSTS.get(next(iter(x.data.leaves)).symbol.name, 1)
    return COSTS.get(x.op, 0)


def needed(x: Value) -> tuple[str, ...]:
    """The recursions behind the symbols of a value."""
    if x.op == "state":
        return ("gyroscopic",) if x.data == "b" else ("motion",)
    if x.op == "logdet":
        return (STATE[x.data.symbol.name],)
    if x.op != "apply":
        return ()
    own = STATE.get(next(iter(x.data.leaves)).symbol.name)
    return (own,) if own in RECURSIONS else ()


def planned(x: Expression, given: Iterable[str] = ()) -> Plan:
    """The plan of one form of an expression, or a `LoweringError`."""
    lowering = Lowering(given)
    if x.domain == SCALARS:
        result = lowering.vector(x)
    else:
        result = lowering.apply(x, lowering.make("input", x.domain, (), "x"))
    values = tuple(_ordered(result))
    plans = [_passes(x, result, values, first) for first in (INWARD, OUTWARD)]
    return min(plans, key=lambda plan: len(plan.sweeps))


def _ordered(result: Value) -> Iterator[Value]:
    """The values behind a result, each after those of the same body that it is made of."""
    done: set[Value] = set()
    waiting = [(result, False)]
    while waiting:
        x, ready = waiting.pop()
        if ready:
            yield x
        elif x not in done:
            done.add(x)
            waiting.append((x, True))
            waiting.extend((y, False) for y in x.inputs)
            if not x.inputs:  # what neighbours send comes in its own time
                waiting[:0] = [(y, False) for y in x.args]


def _passes(x: Expression, result: Value, values: tuple[Value, ...], first: str) -> Plan:
    """Values and recursions by the number of the sweep they are computed in; sweeps alternate."""
    level: dict[Any, int] = dict.fromkeys(values, 0)
    states = {name for value in values for name in _closure(needed(value))}
    level.update(dict.fromkeys(states, 0))

    def at(number: int, direction: str | None) -> int:
        turned = (number % 2 == 0) == (direction == first)
        return number if direction is None or turned else number + 1

    changed = True
    while changed:
        changed = False
        for item in level:
            if isinstance(item, str):
                direction, after = RECURSIONS[item]
                least = max((level[name] for name in after), default=0)
            else:
                direction = {"gather": INWARD, "scatter": OUTWARD, "load": OUTWARD}.get(item.op)
                least = max(
                    [level[y] + (y.whole and not item.whole) for y in item.sources]
                    + [level[name] for name in needed(item)],
                    default=0,
                )
            new = at(least, direction)
            if new > level[item]:
                level[item], changed = new, True
    return Plan(x, result, tuple(_swept(level, values, first)), values)


def _closure(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield from _closure(RECURSIONS[name][1])
        yield name


def _swept(level: dict[Any, int], values: tuple[Value, ...], first: str) -> Iterator[Sweep]:
    second = OUTWARD if first == INWARD else INWARD
    carried: list[Value] = []
    last = max(level.values(), default=0)
    for number in range(last + 1):
        own = [x for x in values if level[x] == number]
        states = [name for name in RECURSIONS if level.get(name) == number]
        swept = states or any(x.op in ("gather", "scatter", "load") for x in own)
        carried += own
        whole = any(x.whole for x in own)
        if swept or number == last or whole:
            direction = (first if number % 2 == 0 else second) if swept else "local"
            yield Sweep(direction, tuple(states), tuple(carried))
            carried = []


@dataclass(frozen=True)
class Lowered:
    """An expression, how it was simplified, and the plan of its cheapest form."""

    derivation: Derivation
    plan: Plan


@cache
def lower(x: Expression, given: tuple[str, ...] = ()) -> Lowered:
    """The cheapest plan among the forms of an expression that its derivation passes through.

    `given` names vectors that are given though they have a definition.
    """
    derivation = derive(x)
    plans: list[Plan] = []
    reasons: list[LoweringError] = []
    for form in derivation.forms:
        try:
            plans.append(planned(form, given))
        except LoweringError as error:
            reasons.append(error)
    if not plans:
        raise reasons[-1]
    return Lowered(derivation, min(plans, key=lambda plan: plan.cost))
