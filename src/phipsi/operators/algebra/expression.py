"""Expressions of operators: their classes, and the algebra that needs no identity.

The classes are a closed set: `Leaf` (a symbol), `Adjoint` of a symbol, `Inverse`, `Sum` (with
numbers), `Product`, `IdentityOperator`, `ZeroOperator`, `LogDet`. Expressions are hash-consed:
equal ones are the same object. They are built by `@`, `+`, `−`, numbers, `.T`, `.inv`, `** 0.5`;
the adjoint of a sum or product is expanded to adjoints of symbols.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from math import isfinite
from numbers import Integral, Rational, Real
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Self, TypeAlias, overload
from weakref import WeakValueDictionary

from phipsi.arguments import a_class
from phipsi.forks import held_at_forks
from phipsi.operators.algebra.notation import ASCII, LATEX, UNICODE, Notation
from phipsi.operators.algebra.spaces import SCALARS, Space, SpaceError, brief
from phipsi.operators.algebra.symbol import Symbol

if TYPE_CHECKING:
    import numpy as np

    from phipsi.model import Robot
    from phipsi.operators.algebra.derivation import Condition, Derivation
    from phipsi.operators.algebra.linear_operator import LinearOperator
    from phipsi.operators.algebra.services import Document, Language, Services
    from phipsi.programs import Program
    from phipsi.typing import (
        Array,
        ArrayLike,
        ConfigurationLike,
        ExternalForces,
        JointVectorLike,
        MaskLike,
    )

    Number: TypeAlias = float | Fraction | np.number[Any]

_LOCK = held_at_forks(RLock())

Terms = tuple[tuple[Fraction, "Expression"], ...]
"""A sum as pairs (number, term)."""

_LARGEST, _BITS = Fraction(sys.float_info.max), 10_000
"""The largest number in an expression, and the most bits of its numerator and denominator."""


class NumberTooLong(ValueError):
    """A number in an expression is too large, or has too many digits."""


class Expression:
    """An operator from `domain` to `codomain`; a vector is an operator on the space of one number.

    Expressions belong to no robot. They are written with the symbols of `phipsi.operators` and the
    operations `@`, `+`, `-`, `.T` (adjoint), `.inv`, `.logdet`, whole powers, and multiplication
    and division by numbers. `simplify` brings them to a normal form, `explain` describes the
    recursion that computes them, `on`, `evaluate` and `program` run it on a robot in O(N).

    >>> from phipsi.operators import H, K, psi
    >>> (H @ psi @ K).T is K.T @ psi.T @ H.T
    True
    """

    codomain: Space
    """The space of what it gives."""
    domain: Space
    """The space of what it takes."""
    _key: Any
    _adjoint: Expression | None
    size: int
    """The number of symbols and operations in it."""
    stars: int
    """The number of adjoint symbols in it."""
    _known: ClassVar[WeakValueDictionary[Hashable, Any]] = WeakValueDictionary()

    leaves: frozenset[Leaf]
    """The symbols in it."""

    __slots__ = (
        "__weakref__", "_adjoint", "_key", "codomain", "domain", "leaves", "size", "stars",
    )  # fmt: skip
    __array_ufunc__ = None  # NumPy leaves array @ expression to __rmatmul__

    @classmethod
    def _made(cls, key: Hashable, codomain: Space, domain: Space, **fields: object) -> Self:
        """The only expression of this class with this key; safe to call from several threads."""
        whole = (cls, key)
        found = cls._known.get(whole)
        if found is None:
            new = object.__new__(cls)
            new._key, new.codomain, new.domain, new._adjoint = key, codomain, domain, None
            for name, value in fields.items():
                setattr(new, name, value)
            new.size = 1 + sum(part.size for part in new.parts)
            new.stars = sum(part.stars for part in new.parts) + isinstance(new, Adjoint)
            own = {new} if isinstance(new, Leaf) else ()
            new.leaves = frozenset().union(own, *(part.leaves for part in new.parts))
            with _LOCK:
                found = cls._known.setdefault(whole, new)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def __deepcopy__(self, memo: dict[int, object]) -> Expression:
        return self

    # ---- algebra -------------------------------------------------------------------------------

    @property
    def T(self) -> Expression:
        """The adjoint: the transposed matrix."""
        if self._adjoint is None:
            self._adjoint = self._make_adjoint()
        return self._adjoint

    def _make_adjoint(self) -> Expression:
        raise NotImplementedError

    @property
    def inv(self) -> Expression:
        """The inverse; a `SpaceError` if domain and codomain differ in size."""
        return inverse(self)

    @property
    def logdet(self) -> Expression:
        """The logarithm of the determinant, a number."""
        return LogDet.of(self)

    def __matmul__(self, other: Expression) -> Expression:
        return product([self, _operand(self, other)])

    def __rmatmul__(self, other: object) -> NoReturn:
        raise TypeError(f"an array times {brief(self)}: {_HINT}")

    def __add__(self, other: Expression) -> Expression:
        return add([(Fraction(1), self), (Fraction(1), _operand(self, other))])

    def __sub__(self, other: Expression) -> Expression:
        return add([(Fraction(1), self), (Fraction(-1), _operand(self, other))])

    def __neg__(self) -> Expression:
        return add([(Fraction(-1), self)])

    def __mul__(self, number: Number) -> Expression:
        if isinstance(number, Expression):
            raise TypeError(
                f"{brief(self)} * {brief(number)}: products of operators are written with @"
            )
        return add([(_number(number), self)])

    __rmul__ = __mul__

    def __truediv__(self, number: Number) -> Expression:
        divisor = _number(number)
        if not divisor:
            raise ZeroDivisionError(f"{brief(self)} / 0")
        return add([(1 / divisor, self)])

    def __radd__(self, other: Expression | int) -> Expression:
        return _operand(self, other) + self if other != 0 else self

    def __rsub__(self, other: Expression) -> Expression:
        return _operand(self, other) - self

    def __pow__(self, power: Number) -> Expression:
        whole = int(power) if isinstance(power, Integral) else 0
        if whole:
            return product([self if whole > 0 else self.inv] * abs(whole))
        root = self.root if isinstance(self, Leaf) else None
        if root is None or power not in (0.5, -0.5):
            raise TypeError(
                f"{brief(self)} ** {power}: whole powers, and D ** 0.5 and D ** -0.5, exist"
            )
        return root if power == 0.5 else root.inv

    # ---- parts ---------------------------------------------------------------------------------

    @property
    def terms(self) -> Terms:
        """The expression as a sum: pairs (number, term)."""
        return ((Fraction(1), self),)

    @property
    def factors(self) -> tuple[Expression, ...]:
        """The expression as a product."""
        return (self,)

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The expressions that it is directly made of."""
        return ()

    def replaced(self, what: Mapping[Expression, Expression]) -> Expression:
        """The same expression with symbols, and their adjoints, replaced.

        Parameters
        ----------
        what
            {symbol: its replacement}, which has the same domain and codomain.

        Returns
        -------
        Expression
            The new expression.
        """
        raise NotImplementedError

    # ---- writing -------------------------------------------------------------------------------

    @property
    def ascii(self) -> str:
        """The text in Python's notation: H @ phi.T."""
        return written(self, ASCII)

    @property
    def latex(self) -> str:
        """The text in LaTeX."""
        return written(self, LATEX)

    def __str__(self) -> str:
        return written(self, UNICODE)

    def __repr__(self) -> str:
        return str(self)

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex}$"

    def as_whole(self, how: Notation) -> str:
        """The text of the expression by itself.

        Parameters
        ----------
        how
            The notation.

        Returns
        -------
        str
            The text, without brackets around it.
        """
        return how.times.join(factor.as_factor(how) for factor in self.factors)

    def as_factor(self, how: Notation) -> str:
        """The text of the expression as a factor of a product.

        A sum is written as the adjoint of a bracket where that leaves fewer stars.

        Parameters
        ----------
        how
            The notation.

        Returns
        -------
        str
            The text, with brackets where a factor needs them.
        """
        if self.has_more_stars:
            return how.bracketed(written(self.T, how)) + how.adjoint
        return how.bracketed(written(self, how))

    @property
    def has_more_stars(self) -> bool:
        """Whether it has more stars than its adjoint."""
        return self.stars > self.T.stars

    # ---- methods that the packages above the algebra implement ---------------------------------

    services: ClassVar[Services[Expression]]
    """The implementations; `phipsi.operators` sets them."""

    @overload
    def simplify(
        self, *, trace: Literal[False] = False, assume: Condition | Iterable[Condition] = ()
    ) -> Expression: ...
    @overload
    def simplify(
        self, *, trace: Literal[True], assume: Condition | Iterable[Condition] = ()
    ) -> Derivation[Expression]: ...
    def simplify(
        self, *, trace: bool = False, assume: Condition | Iterable[Condition] = ()
    ) -> Expression | Derivation[Expression]:
        """The normal form by the identities of the papers; with `trace` the whole derivation.

        A condition that was not assumed is used only to remove an inverse that would remain
        otherwise. It is then in `Derivation.needs`; without `trace`, a `ConditionWarning` tells it.

        Parameters
        ----------
        trace
            Return every step instead of the result alone.
        assume
            Conditions that may be taken for granted: "no armature", "serial", "free base", …
            (`algebra.derivation.CONDITIONS`).

        Returns
        -------
        Expression or Derivation
            The normal form, or with `trace` the steps that lead to it.

        Raises
        ------
        ValueError
            If a condition is not known.
        ZeroDivisionError
            If a part is zero, as the identities show, and its inverse is asked for.
        """
        derivation = self.services.derive(self, assume, warn=not trace)
        return derivation if trace else derivation.result

    def explain(
        self,
        robot: Robot | None = None,
        *,
        language: Language = "dynamics",
        active: MaskLike | None = None,
    ) -> Document:
        """The derivation, the recursion, the meaning of each symbol and the cost, as a text.

        Parameters
        ----------
        robot : optional
            A robot, for which the exact number of operations is added.
        language
            "dynamics", or "estimation", which reads the bodies as stations of a Kalman filter.
        active : (nv,) or names of hinges, optional
            Which joints of the robot are active, for operators of passive arms.

        Returns
        -------
        Document
            The explanation, as `text` (also `str`), `markdown` or `latex`.

        Raises
        ------
        ValueError
            If the language is not known, or `active` is given without a robot.
        """
        return self.services.explain(self, robot, language=language, active=active)

    def on(
        self,
        robot: Robot,
        q: ConfigurationLike,
        v: JointVectorLike | None = None,
        *,
        active: MaskLike | None = None,
        dense: bool = False,
    ) -> LinearOperator:
        """The operator of a robot at a configuration: `mass.on(robot, q) @ x`.

        Parameters
        ----------
        robot
            The robot.
        q : (…, nq)
            Configuration.
        v : (…, nv), optional
            Joint velocities [rad/s or m/s], for operators that depend on the motion.
        active : (nv,) or names of hinges, optional
            Which joints are active, for operators of passive arms.
        dense
            Form the matrix instead of running the recursion; this also inverts operators whose
            inverse no identity removes.

        Returns
        -------
        LinearOperator
            The operator, applied by its recursion in O(N) to arrays of any batch shape.

        Raises
        ------
        TypeError
            If the expression is a vector or a number: use `evaluate`.
        ModelError
            If the robot has not what the expression or the derivation of its inverse needs.
        """
        return self.services.on(self, robot, q, v, active=active, dense=dense)

    def program(
        self, *, given: Iterable[str] = (), active: Iterable[bool] | None = None
    ) -> Program[..., Array]:
        """The `Program` (robot, q[, v], vectors…) that computes it, to be called or compiled.

        An operator is applied to the last argument, x.

        Parameters
        ----------
        given
            Names of vectors that are passed although they have a definition.
        active : (nv,), optional
            Which joints are active: a truth value for each.

        Returns
        -------
        Program
            The program; its vectors are passed in the order of their names.
        """
        return self.services.program(self, given=given, active=active)

    def evaluate(
        self,
        robot: Robot,
        q: ConfigurationLike,
        v: JointVectorLike | None = None,
        *,
        active: MaskLike | None = None,
        external: ExternalForces | None = None,
        **vectors: ArrayLike,
    ) -> Array:
        """The value of a vector or a number: `(mass.inv @ T).evaluate(robot, q, T=tau)`.

        Parameters
        ----------
        robot
            The robot.
        q : (…, nq)
            Configuration.
        v : (…, nv), optional
            Joint velocities β [rad/s or m/s], if the value depends on the motion.
        active : (nv,) or names of hinges, optional
            Which joints are active, for operators of passive arms.
        external : (…, nb, 6) or {frame: (…, 6)}, optional
            Forces on the bodies, [moment; force] [N·m, N] in their own frames.
        **vectors : (…, n), of bodies (…, nb, 6)
            The other vectors in the expression, by the names of their symbols.

        Returns
        -------
        (…, n), of bodies (…, nb, 6), of a number (…)
            The value.

        Raises
        ------
        TypeError
            If the expression is an operator: use `on`; or if it does not use a given vector.
        ValueError
            If a vector, or the joint velocities, are missing.
        """
        return self.services.evaluate(
            self, robot, q, v, active=active, external=external, **vectors
        )


@lru_cache(maxsize=1024)  # sums order their terms by text: without a cache this is exponential
def written(x: Expression, how: Notation) -> str:
    """The text of an expression in a notation."""
    return x.as_whole(how)


_HINT = "an expression belongs to no robot; give it one first, expression.on(robot, q) @ array"


def _operand(left: Expression, other: object) -> Expression:
    """The other operand, or a `TypeError` that says what to write if it is no expression."""
    if isinstance(other, Expression):
        return other
    hints = {"str": "text is read by phipsi.operators.parse", "ndarray": _HINT, "list": _HINT}
    hint = hints.get(type(other).__name__, "it goes with expressions alone; a number is 2 * I")
    raise TypeError(f"{brief(left)} with {a_class(other)}: {hint}")


def _number(x: object) -> Fraction:
    """A number as a fraction: of a float, the shortest decimal that is written for it."""
    if not isinstance(x, Rational) and not (isinstance(x, Real) and isfinite(x)):
        what = x if isinstance(x, Real) else a_class(x)
        raise TypeError(f"an operator can be scaled by a finite number, not by {what}")
    return Fraction(x) if isinstance(x, Rational) else Fraction(repr(float(x)))


SYMBOLS: dict[str, Symbol[Expression, Any]] = {}
"""The table of symbols, by name; `algebra.symbols` fills it."""


class Leaf(Expression):
    """A symbol as an expression; B, J and the like at their frames."""

    __slots__ = ("frames", "symbol")
    symbol: Symbol[Expression, Any]
    """Its row in the table of symbols."""
    frames: tuple[str, ...]
    """The names of its frames, if it needs some."""

    @classmethod
    def of(cls, symbol: Symbol[Expression, Any], frames: tuple[str, ...] = ()) -> Leaf:
        """The expression of a symbol, at frames if it needs them."""
        spaces = symbol.spaces(frames)
        return cls._made((symbol.name, frames), *spaces, symbol=symbol, frames=frames)

    def __reduce__(self) -> tuple[Any, ...]:
        return _leaf, (self.symbol.name, self.frames)

    def _make_adjoint(self) -> Expression:
        return self if self.symbol.symmetric else Adjoint.of(self)

    @property
    def definition(self) -> Expression:
        """The definition of the symbol in simpler ones."""
        return self.symbol.defined(self.frames)

    @property
    def meaning(self) -> str:
        """The meaning of the symbol in words."""
        return self.symbol.meaning

    @property
    def root(self) -> Leaf | None:
        """The symbol that is its square root (D has one), or None."""
        roots = (Leaf.of(row) for row in SYMBOLS.values() if row.root_of is self)
        return next(roots, None)

    def replaced(self, what: Mapping[Expression, Expression]) -> Expression:
        """Its replacement, or itself."""
        return what.get(self, self)

    def as_factor(self, how: Notation) -> str:
        """The symbol, with its frames."""
        return how.at_frames(getattr(self.symbol, how.symbol), self.frames)


class Adjoint(Expression):
    """The adjoint of a symbol that is not symmetric."""

    __slots__ = ("leaf",)
    leaf: Leaf

    @classmethod
    def of(cls, leaf: Leaf) -> Adjoint:
        """leaf*."""
        return cls._made(leaf, leaf.domain.dual, leaf.codomain.dual, leaf=leaf)

    def __reduce__(self) -> tuple[Any, ...]:
        return Adjoint.of, (self.leaf,)

    def _make_adjoint(self) -> Expression:
        return self.leaf

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The symbol."""
        return (self.leaf,)

    def replaced(self, what: Mapping[Expression, Expression]) -> Expression:
        """The adjoint of the symbol's replacement."""
        return self.leaf.replaced(what).T

    def as_factor(self, how: Notation) -> str:
        """The symbol with a star."""
        return how.raised(self.leaf.as_factor(how), how.adjoint)


class Inverse(Expression):
    """The inverse of a symbol, its adjoint, a sum or a product."""

    __slots__ = ("inner",)
    inner: Expression

    @classmethod
    def of(cls, inner: Expression) -> Inverse:
        """inner⁻¹."""
        return cls._made(inner, inner.domain, inner.codomain, inner=inner)

    def __reduce__(self) -> tuple[Any, ...]:
        return Inverse.of, (self.inner,)

    def _make_adjoint(self) -> Expression:
        return inverse(self.inner.T)

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The inverted expression."""
        return (self.inner,)

    def replaced(self, what: Mapping[Expression, Expression]) -> Expression:
        """The inverse with symbols replaced."""
        return inverse(self.inner.replaced(what))

    def as_factor(self, how: Notation) -> str:
        """The inverted expression, with an exponent."""
        inner = self.inner
        if isinstance(inner, Adjoint):
            return how.raised(inner.leaf.as_factor(how), how.inverse_adjoint)
        if inner.has_more_stars:
            return how.bracketed(written(inner.T, how)) + how.inverse_adjoint
        return how.raised(inner.as_factor(how), how.inverse)


class LogDet(Expression):
    """log det of a square operator."""

    __slots__ = ("inner",)
    inner: Expression

    @classmethod
    def of(cls, inner: Expression) -> LogDet:
        """log det inner."""
        _check_square(inner, "determinant")
        return cls._made(inner, SCALARS, SCALARS, inner=inner)

    def __reduce__(self) -> tuple[Any, ...]:
        return LogDet.of, (self.inner,)

    def _make_adjoint(self) -> Expression:
        return self

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The operator."""
        return (self.inner,)

    def replaced(self, what: Mapping[Expression, Expression]) -> Expression:
        """The log-determinant with symbols replaced."""
        return LogDet.of(self.inner.replaced(what))

    def as_factor(self, how: Notation) -> str:
        """The text of the log-determinant."""
        return how.logdet(written(self.inner, how), self.inner.as_factor(how))


class Unit(Expression):
    """The identity or zero: of named spaces, or of `ANY`, which fits every space."""

    __slots__ = ()

    def replaced(self, what: Mapping[Expression, Expression]) -> Expression:
        """Itself."""
        return self


ANY = Space("any space", "any space", "any")


class IdentityOperator(Unit):
    """I."""

    __slots__ = ()

    @classmethod
    def of(cls, space: Space) -> IdentityOperator:
        """The identity of a space."""
        return cls._made(space, space, space)

    def __reduce__(self) -> tuple[Any, ...]:
        return IdentityOperator.of, (self.domain,)

    def _make_adjoint(self) -> Expression:
        return IdentityOperator.of(self.domain.dual)

    def as_factor(self, how: Notation) -> str:
        """I, with its space if it has one."""
        return "I" if self.domain == ANY else how.of_spaces("I", str(self.domain))


class ZeroOperator(Unit):
    """Zero."""

    __slots__ = ()

    @classmethod
    def of(cls, codomain: Space, domain: Space) -> ZeroOperator:
        """The zero between two spaces."""
        return cls._made((codomain, domain), codomain, domain)

    def __reduce__(self) -> tuple[Any, ...]:
        return ZeroOperator.of, (self.codomain, self.domain)

    def _make_adjoint(self) -> Expression:
        return ZeroOperator.of(self.domain.dual, self.codomain.dual)

    def as_factor(self, how: Notation) -> str:
        """0, with its spaces if it has them."""
        if ANY in (self.domain, self.codomain):
            return how.zero
        return how.of_spaces(how.zero, f"{self.codomain}, {self.domain}")


IDENTITY = IdentityOperator.of(ANY)
ZERO = ZeroOperator.of(ANY, ANY)


class Product(Expression):
    """A product of factors, none of which is a product, a unit or scaled by a number."""

    __slots__ = ()

    @classmethod
    def of(cls, factors: tuple[Expression, ...], codomain: Space, domain: Space) -> Product:
        """The product of such factors; `product` makes it of any."""
        return cls._made(factors, codomain, domain)

    def __reduce__(self) -> tuple[Any, ...]:
        return product, (self._key,)

    def _make_adjoint(self) -> Expression:
        return product([factor.T for factor in reversed(self._key)])

    @property
    def factors(self) -> tuple[Expression, ...]:
        """The factors."""
        return self._key

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The factors."""
        return self._key

    def replaced(self, what: Mapping[Expression, Expression]) -> Expression:
        """The product with symbols replaced."""
        return product([factor.replaced(what) for factor in self._key])


class Sum(Expression):
    """A sum of pairs (number, term), where no term is a sum; a single pair is a scaled term."""

    __slots__ = ()

    @classmethod
    def of(cls, terms: Terms, codomain: Space, domain: Space) -> Sum:
        """The sum of such pairs; `add` makes it of any."""
        for c, _ in terms:
            if abs(c) > _LARGEST or c.numerator.bit_length() + c.denominator.bit_length() > _BITS:
                raise NumberTooLong(
                    f"a number in an expression is at most 1.8e308, and has at most {_BITS} bits"
                )
        return cls._made(terms, codomain, domain)

    def __reduce__(self) -> tuple[Any, ...]:
        return add, (self._key,)

    def _make_adjoint(self) -> Expression:
        return add([(c, term.T) for c, term in self._key])

    @property
    def terms(self) -> Terms:
        """The terms, as pairs (number, term)."""
        return self._key

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The terms without their numbers."""
        return tuple(term for _, term in self._key)

    def replaced(self, what: Mapping[Expression, Expression]) -> Expression:
        """The sum with symbols replaced; its identity may become that of another space."""
        one = IDENTITY if len(self._key) > 1 else self._key[0][1]
        return add(
            [
                (c, one if isinstance(x, IdentityOperator) else x.replaced(what))
                for c, x in self._key
            ]
        )

    def as_whole(self, how: Notation) -> str:
        """The text of the sum; an identity beside other terms is written without its space."""
        alone = len(self._key) == 1
        return how.sum(
            (c, written(x, how) if alone or not isinstance(x, IdentityOperator) else "I")
            for c, x in self._key
        )


def product(factors: Iterable[Expression]) -> Expression:
    """The product of operators, or a `SpaceError` that names the two spaces that differ."""
    number, flat = Fraction(1), list[Expression]()
    before: Expression = IDENTITY
    for factor in factors:
        if len(factor.terms) == 1:
            ((c, factor),) = factor.terms
            number *= c
        if not _meet(before.domain, factor.codomain):
            left, right = brief(before), brief(factor)
            raise SpaceError(
                f"{left} @ {right}: {left} takes {brief(before.domain)}, "
                f"{right} gives {brief(factor.codomain)}"
            )
        flat.extend(factor.factors)
        before = before if factor.domain == ANY else flat[-1]
    codomain = next((x.codomain for x in flat if x.codomain != ANY), ANY)
    domain = next((x.domain for x in reversed(flat) if x.domain != ANY), ANY)
    if any(isinstance(x, ZeroOperator) for x in flat):
        return ZeroOperator.of(codomain, domain)
    kept = [x for x in flat if not isinstance(x, IdentityOperator)]
    if len(kept) > 1:
        return _scaled(number, Product.of(tuple(kept), codomain, domain))
    return _scaled(number, kept[0] if kept else IdentityOperator.of(codomain))


def add(terms: Iterable[tuple[Fraction, Expression]]) -> Expression:
    """The sum of scaled operators, or a `SpaceError` that names two terms of different spaces."""
    flat = [(c * d, x) for c, term in terms for d, x in term.terms]
    known = next((x for _, x in flat if ANY not in (x.codomain, x.domain)), None)
    codomain, domain = (ANY, ANY) if known is None else (known.codomain, known.domain)
    found: dict[Expression, Fraction] = {}
    for c, x in flat:
        if not (_meet(x.codomain, codomain) and _meet(x.domain, domain)):
            left, right = brief(known), brief(x)
            raise SpaceError(
                f"{left} + {right}: {left} takes {brief(domain)} and gives {brief(codomain)}, "
                f"{right} takes {brief(x.domain)} and gives {brief(x.codomain)}"
            )
        if isinstance(x, IdentityOperator):
            if codomain != domain:
                raise SpaceError(
                    f"{brief(known)} + I: the identity gives what it takes, "
                    f"{brief(known)} takes {brief(domain)} and gives {brief(codomain)}"
                )
            x = IdentityOperator.of(codomain)
        if not isinstance(x, ZeroOperator):
            found[x] = found.get(x, Fraction(0)) + c
    pairs = [(c, x) for x, c in found.items() if c]
    if not pairs:
        return ZeroOperator.of(codomain, domain)
    if len(pairs) == 1:
        return _scaled(*pairs[0])
    return Sum.of(tuple(sorted(pairs, key=_order)), codomain, domain)


def inverse(x: Expression) -> Expression:
    """The inverse, or a `SpaceError` if domain and codomain differ in size."""
    if isinstance(x, Inverse):
        return x.inner
    if isinstance(x, IdentityOperator):
        return x
    _check_square(x, "inverse")
    if isinstance(x, ZeroOperator):
        raise ZeroDivisionError("zero has no inverse")
    if isinstance(x, Sum) and len(x.terms) == 1:
        ((c, term),) = x.terms
        return _scaled(1 / c, inverse(term))
    return Inverse.of(x)


def _leaf(name: str, frames: tuple[str, ...]) -> Leaf:
    """The leaf of a symbol by name; pickles call this."""
    return Leaf.of(SYMBOLS[name], frames)


def walk(x: Expression) -> Iterator[Expression]:
    """An expression and all parts of it, directly or indirectly, each once."""
    waiting, seen = [x], {x}
    while waiting:
        part = waiting.pop()
        yield part
        new = [y for y in dict.fromkeys(part.parts) if y not in seen]
        seen.update(new)
        waiting.extend(new)


def _scaled(c: Fraction, x: Expression) -> Expression:
    if not c:
        return ZeroOperator.of(x.codomain, x.domain)
    if c == 1 or isinstance(x, ZeroOperator):
        return x
    return add([(c, x)]) if isinstance(x, Sum) else Sum.of(((c, x),), x.codomain, x.domain)


def _meet(a: Space, b: Space) -> bool:
    """Whether two spaces are the same, or one of them is not determined yet."""
    return ANY in (a, b) or a == b


def _check_square(x: Expression, what: str) -> None:
    if (x.domain.size, x.domain.frames) != (x.codomain.size, x.codomain.frames):
        raise SpaceError(
            f"{brief(x)} has no {what}: it takes {brief(x.domain)} and gives {brief(x.codomain)}, "
            "which differ in size"
        )


def _order(pair: tuple[Fraction, Expression]) -> tuple[bool, bool, int, str]:
    """A sort key: positive terms first, those with armature last, short ones before long ones."""
    c, x = pair
    last = any(leaf.symbol.written_last for leaf in x.leaves)
    return (c < 0, last, 0 if isinstance(x, IdentityOperator) else x.size, x.ascii)
