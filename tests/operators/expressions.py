"""Random expressions that fit: what the laws of the algebra are tested on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from fractions import Fraction

from hypothesis import strategies as st

from phipsi.operators.algebra.expression import (
    Expression,
    IdentityOperator,
    Leaf,
    LogDet,
    ZeroOperator,
)
from phipsi.operators.algebra.spaces import SCALARS, Space
from phipsi.operators.algebra.symbols import SYMBOLS

FRAMES = (("tool",), ("left hand",), ("it's",), ("tool", "left hand"))
NUMBERS = (Fraction(1), Fraction(-1), Fraction(2), Fraction(-1, 2), Fraction(1, 3), Fraction(0.1))


def leaves_of(
    names: Iterable[str] = SYMBOLS, frames: Iterable[tuple[str, ...]] = FRAMES
) -> list[Leaf]:
    """The leaves of symbols, those that need frames once at each."""
    rows = [SYMBOLS[name] for name in names]
    plain = [Leaf.of(row) for row in rows if not row.framed]
    return plain + [Leaf.of(row, at) for row in rows if row.framed for at in frames]


def is_square(x: Expression) -> bool:
    """Could it have an inverse?"""
    return (x.domain.size, x.domain.frames) == (x.codomain.size, x.codomain.frames)


class _Grower:
    """Grows expressions from symbols, their adjoints and their inverses."""

    def __init__(self, draw: st.DrawFn, leaves: Iterable[Expression], inverses: bool, logdet: bool):
        self.draw, self.inverses, self.logdet = draw, inverses, logdet
        letters = dict.fromkeys(y for x in leaves for y in (x, x.T))
        if inverses:
            letters |= dict.fromkeys([x.inv for x in letters if is_square(x)])
        self.letters = list(letters)
        self.spaces = list(dict.fromkeys(x.domain for x in letters))

    def pick(self, choices: Sequence[Expression]) -> Expression:
        return self.draw(st.sampled_from(choices))

    def letter(self, domain: Space, codomain: Space | None) -> Expression:
        """One symbol, or the shortest product of symbols that leads there, or zero."""
        fitting = [x for x in self.letters if x.domain == domain]
        direct = [x for x in fitting if codomain in (None, x.codomain)]
        if codomain in (None, domain):
            direct.append(IdentityOperator.of(domain))
        if direct:
            return self.pick(direct)
        ways = deque(fitting)
        seen = {domain}
        while ways:
            way = ways.popleft()
            if way.codomain == codomain:
                return way
            if way.codomain not in seen:
                seen.add(way.codomain)
                ways.extend(x @ way for x in self.letters if x.domain == way.codomain)
        assert codomain is not None
        return ZeroOperator.of(codomain, domain)

    def grow(self, domain: Space, codomain: Space | None, leaves: int) -> Expression:
        """An expression from one space to another, or to any."""
        scalar = domain == SCALARS and codomain in (None, SCALARS)
        if self.logdet and scalar and self.draw(st.booleans()):
            space = self.draw(st.sampled_from(self.spaces))
            return LogDet.of(self.grow(space, space, leaves))
        if leaves < 2:
            return self.letter(domain, codomain)
        kinds = ["letter", "product", "product", "sum", "sum", "scaled"]
        if codomain is not None:
            kinds += ["adjoint"]
            sizes = (domain.size, domain.frames) == (codomain.size, codomain.frames)
            kinds += ["inverse"] * (self.inverses and sizes)
        share = leaves // 2
        match self.draw(st.sampled_from(kinds)):
            case "product":
                right = self.grow(domain, None, share)
                return self.grow(right.codomain, codomain, leaves - share) @ right
            case "sum":
                first = self.grow(domain, codomain, share)
                second = self.grow(domain, first.codomain, leaves - share)
                return first + self.draw(st.sampled_from(NUMBERS)) * second
            case "scaled":
                number = self.draw(st.sampled_from(NUMBERS))
                return number * self.grow(domain, codomain, leaves - 1)
            case "adjoint" if codomain is not None:
                return self.grow(codomain.dual, domain.dual, leaves).T
            case "inverse" if codomain is not None:
                x = self.grow(codomain, domain, leaves - 1)
                return self.letter(domain, codomain) if isinstance(x, ZeroOperator) else x.inv
        return self.letter(domain, codomain)


@st.composite
def expressions(
    draw: st.DrawFn,
    max_leaves: int = 8,
    *,
    leaves: Iterable[Expression] | None = None,
    domain: Space | None = None,
    codomain: Space | None = None,
    inverses: bool = True,
    logdet: bool = True,
) -> Expression:
    """Expressions of about so many symbols, from a space to a space if these are given.

    `leaves` are all that it may be made of, with their adjoints and (with `inverses`) inverses;
    where nothing of them leads from `domain` to `codomain`, the expression has a zero.
    """
    grower = _Grower(draw, leaves_of() if leaves is None else leaves, inverses, logdet)
    start = domain or draw(st.sampled_from(grower.spaces))
    return grower.grow(start, codomain, draw(st.integers(1, max_leaves)))


@st.composite
def factors(draw: st.DrawFn, max_leaves: int = 8) -> tuple[Expression, Expression]:
    """Two expressions of which the first can be applied to what the second gives."""
    right = draw(expressions(max_leaves))
    return draw(expressions(max_leaves, domain=right.codomain)), right
