"""Inverses and determinants of polynomials: of products, of known sums, by the inversion lemma."""

from __future__ import annotations

from fractions import Fraction

from phipsi.operators.algebra.expression import (
    Adjoint,
    Expression,
    Inverse,
    Leaf,
    LogDet,
    add,
    inverse,
    product,
)
from phipsi.operators.algebra.polynomial import *
from phipsi.operators.algebra.symbols import *

ONE = Fraction(1)

PAIRS: dict[Expression, Expression] = {W: F, F: W, W_p: F_p, F_p: W_p}
"""Letters that are the inverse of each other."""

RESOLVENTS = [Leaf.of(row) for row in SYMBOLS.values() if row.resolvent]
UNIT = {x for own in (*RESOLVENTS, W, F, W_p, F_p) for x in (own, own.T)}
"""Letters that are block triangular with identities on the diagonal."""

KNOWN: dict[frozenset[tuple[Word, Fraction]], Expression] = {
    frozenset(Polynomial.of(y).words.items()): z
    for x, sums in {
        phi: (psi.inv - K @ H, psi_p.inv - K_p @ H_p, I - E_phi),
        psi: (phi.inv + K @ H, I - E_psi, I - E_phi + K @ H),
        psi_p: (phi.inv + K_p @ H_p, I - E_psi_p, I - E_phi + K_p @ H_p),
    }.items()
    for whole in sums
    for y, z in ((whole, x), (whole.T, x.T))
}
"""Sums, as their words, whose inverse is a symbol."""
I4 = ("I4", "[SOA] Lemma A.1")

Found = list[tuple[Polynomial, str, str]]
"""An inverse in steps: (polynomial, name of the step, source); empty if none is known."""


def known_inverse(q: Polynomial, x: Inverse) -> Found:
    """x = q⁻¹ as a symbol, or by the matrix inversion lemma (I + UXV)⁻¹ = I − U(X⁻¹ + VU)⁻¹V."""
    q = q.opened
    known = KNOWN.get(frozenset(q.words.items()))
    if known:
        return [(Polynomial.of(known), *I4)]
    others = [(w, c) for w, c in q.words.items() if w]
    if q.words.get(()) != 1 or len(others) != 1:
        return []
    ((word, c),) = others
    for i, middle in enumerate(word):
        left, right = word[:i], word[i + 1 :]
        words = {(inverse(middle),): ONE, right + left: c} if middle in UNIT else {}
        new = KNOWN.get(frozenset(words.items()))
        if new:
            part = inverse(Polynomial(words, middle.domain, middle.codomain).factored)
            shown, found = (add([(ONE, I), (-c, product([*left, y, *right]))]) for y in (part, new))
            lemma = (Polynomial.one(shown), "matrix inversion lemma", "")
            return [lemma, (Polynomial.of(found), *I4)]
    return []


def of_product(q: Polynomial, x: Inverse) -> Found:
    """x = q⁻¹ if q is one product of square factors."""
    if len(q.words) != 1:
        return []
    ((word, c),) = q.words.items()
    whole = all(map(square, word))
    inverses = tuple(letter(inverse(y)) for y in reversed(word)) if whole else ()
    by = Polynomial({inverses: 1 / c}, x.codomain, x.domain)
    return [(by, "inverse of a product", "")] if whole else []


def determinant(x: Expression) -> tuple[Expression, Fraction]:
    """log det of a letter as (log det of a symbol, number), whose product it is."""
    if isinstance(x, Inverse):
        part, sign = determinant(x.inner)
        return part, -sign
    if isinstance(x, Adjoint):
        return determinant(x.leaf)
    if x is D_half:
        return D.logdet, Fraction(1, 2)
    return x.logdet, ONE


def composite(x: Expression) -> bool:
    """Whether the inverse of x is found by inverting its parts or its definition."""
    if isinstance(x, Adjoint):
        return composite(x.leaf)
    if isinstance(x, Leaf):
        return x in MEANING or x.symbol.inverted_by_definition
    return not isinstance(x, (Inverse, LogDet))


def square(x: Expression) -> bool:
    """Whether domain and codomain have the same size."""
    return (x.domain.size, x.domain.frames) == (x.codomain.size, x.codomain.frames)


def opposite(x: Expression) -> Expression | None:
    """The letter that is the inverse of a letter; None if it is not square."""
    if x in PAIRS or x.T in PAIRS:
        return PAIRS[x] if x in PAIRS else PAIRS[x.T].T
    return letter(inverse(x)) if square(x) else None
