"""Rates of change of expressions, by the product rule ([DL] Table 4).

    d/dt (X Y) = Ẋ Y + X Ẏ        d/dt X⁻¹ = −X⁻¹ Ẋ X⁻¹        d/dt X* = Ẋ*

In the axes of the bodies, which is the first column of the table; the second column has the rates
that an observer at rest sees.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import NoReturn

from phipsi.operators.algebra.expression import (
    Adjoint,
    Expression,
    Inverse,
    Leaf,
    LogDet,
    Sum,
    Unit,
    ZeroOperator,
    add,
    product,
)
from phipsi.operators.algebra.spaces import BODY_FORCES, BODY_MOTIONS, Space
from phipsi.operators.algebra.symbols import *


def rate(x: Expression, *, inertial: bool = False) -> Expression:
    """The rate of change of an expression along a motion, in the axes of the bodies ([DL] Table 4).

    Parameters
    ----------
    x
        The expression.
    inertial
        Return the rate that is seen in axes at rest instead, Ẋ + ω̃X − Xω̃; its components are still
        those in the axes of the bodies. The spaces of frames, which B and J take and give, keep the
        axes of their frames in both cases.

    Returns
    -------
    Expression
        The rate, from the same domain to the same codomain.

    Raises
    ------
    ValueError
        If no expression is known for the rate: of log-determinants, of symbols of passive arms, and
        of most rates.

    Examples
    --------
    >>> from phipsi.operators import H, M, phi, rate
    >>> print(rate(phi), "   ", rate(H @ phi @ M), "   ", rate(M, inertial=True))
    φ̇     Hφ̇M + ḢφM     ω̃M + Mω̃*
    """
    if not isinstance(x, Expression):
        raise TypeError(f"rate needs an expression, got {type(x).__name__}")
    own = _rate(x)
    if inertial and x.codomain in TURNING:
        own = own + TURNING[x.codomain] @ x
    if inertial and x.domain in TURNING:
        own = own - x @ TURNING[x.domain]
    return own


TURNING: dict[Space, Expression] = {BODY_FORCES: spin, BODY_MOTIONS: -spin.T}
"""The cross product with the angular velocity, of forces and of motions; ω̃ is skew."""


@lru_cache(maxsize=512)
def _rate(x: Expression) -> Expression:
    match x:
        case Leaf():
            return _symbol(x)
        case Adjoint():
            return _rate(x.leaf).T
        case Inverse():
            return -(x @ _rate(x.inner) @ x)
        case Unit():
            return ZeroOperator.of(x.codomain, x.domain)
        case Sum():
            return add((c, _rate(term)) for c, term in x.terms)
        case LogDet():
            raise ValueError(
                f"the rate of {x} is the trace of X⁻¹Ẋ, which no expression of operators is"
            )
        case _:
            return add((Fraction(1), _in_turn(x.factors, i)) for i in range(len(x.factors)))


def _in_turn(factors: tuple[Expression, ...], i: int) -> Expression:
    """The product with the i-th factor replaced by its rate."""
    return product([*factors[:i], _rate(factors[i]), *factors[i + 1 :]])


def _symbol(x: Leaf) -> Expression:
    """The rate of a symbol: zero, a symbol, or the rate of its definition."""
    row = x.symbol
    if row.constant:
        return ZeroOperator.of(x.codomain, x.domain)
    if x is beta:
        return beta_dot
    if x in DOTTED:
        return DOTTED[x]
    if row.split:
        _refuse(x, "rates are those of robots with all hinges free")
    if row.rate_of is not None or row.definition is None:
        _refuse(x, "no symbol stands for it")
    return _rate(x.definition)


def _refuse(x: Leaf, why: str) -> NoReturn:
    raise ValueError(f"the rate of {x} ({x.meaning}) is not known: {why}")
