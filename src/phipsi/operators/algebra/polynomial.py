"""Expressions multiplied out: polynomials whose monomials are words of letters that do not commute.

A letter is a symbol, its adjoint, its inverse, or an expression that is not expanded (the inverse
of a sum). The two factors of the mass matrix, I − HψK and I + HφK, are letters of their own here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import product as product_of

from phipsi.operators.algebra.expression import (
    IDENTITY,
    Adjoint,
    Expression,
    Inverse,
    Leaf,
    Sum,
    Unit,
    ZeroOperator,
    add,
    product,
)
from phipsi.operators.algebra.spaces import JOINT_FORCES, PASSIVE_FORCES, Space
from phipsi.operators.algebra.symbol import Symbol
from phipsi.operators.algebra.symbols import *

__all__ = [
    "MEANING", "OPEN", "F", "F_p", "Polynomial", "TooLong", "W", "W_p", "Word", "letter", "weight",
]  # fmt: skip

Word = tuple[Expression, ...]
"""A product of letters; () is the identity."""

LIMIT = 200
"""The most words that an expression may have when it is multiplied out."""
NESTED = 20
"""The most nested sums that common factors may leave; `parse` reads 30 nested brackets."""


class TooLong(ValueError):
    """The expression has too many terms, or too many nested sums, when it is multiplied out."""


def _check_length(words: int) -> None:
    if words > LIMIT:
        raise TooLong(f"more than {LIMIT} terms when multiplied out")


def _letter(name: str, space: Space) -> Leaf:
    return Leaf.of(Symbol(name, name, name, space, space, ""))


W, W_p = _letter("W", JOINT_FORCES), _letter("W_p", PASSIVE_FORCES)
F, F_p = _letter("F", JOINT_FORCES), _letter("F_p", PASSIVE_FORCES)

MEANING: Mapping[Expression, Expression] = {
    W: I - H @ psi @ K,
    F: I + H @ phi @ K,
    W_p: I - H_p @ psi_p @ K_p,
    F_p: I + H_p @ phi @ K_p,
}
_LETTERS = {
    meaning: letter
    for own, whole in MEANING.items()
    for meaning, letter in ((whole, own), (whole.T, own.T))
}


def letter(x: Expression) -> Expression:
    """The letter for an expression: W or F for a factor of the mass matrix, else itself."""
    if isinstance(x, Inverse) and x.inner in _LETTERS:
        return Inverse.of(_LETTERS[x.inner])
    return _LETTERS.get(x, x)


class Polynomial:
    """A sum Σ number · word, between two spaces."""

    __slots__ = ("codomain", "domain", "words")

    def __init__(self, words: Mapping[Word, Fraction], codomain: Space, domain: Space) -> None:
        self.words = {w: c for w, c in words.items() if c}
        self.codomain, self.domain = codomain, domain
        _check_length(len(self.words))

    @classmethod
    def of(cls, x: Expression) -> Polynomial:
        """An expression, multiplied out."""
        if x in _LETTERS:
            return cls.one(letter(x))
        words: dict[Word, Fraction] = defaultdict(Fraction)
        for c, term in x.terms:
            for word, d in _product(term.factors).items():
                words[word] += c * d
        return cls(words, x.codomain, x.domain)

    @classmethod
    def one(cls, x: Expression) -> Polynomial:
        """The polynomial of one letter."""
        return cls({(x,): Fraction(1)}, x.codomain, x.domain)

    def replaced(self, letters: Word, by: Polynomial) -> Polynomial:
        """The polynomial with every occurrence of the given letters replaced; occurrences that the
        replacement makes are kept."""
        words: dict[Word, Fraction] = defaultdict(Fraction)
        for word, c in self.words.items():
            for new, d in _replaced(word, letters, by.words).items():
                words[new] += c * d
            _check_length(len(words))
        return Polynomial(words, self.codomain, self.domain)

    @property
    def opened(self) -> Polynomial:
        """The same polynomial with the letters for the factors of the mass matrix expanded."""
        p = self
        for own, (sign, word) in OPEN.items():
            by = Polynomial({(): Fraction(1), word: sign}, own.codomain, own.domain)
            p = p.replaced((own,), by).replaced((own.T,), by.adjoint)
        return p

    def has(self, letters: Word) -> bool:
        """Whether the letters occur in a word, one after the other."""
        return any(find(letters, word) >= 0 for word in self.words)

    @property
    def adjoint(self) -> Polynomial:
        """The adjoint."""
        words = {tuple(x.T for x in reversed(word)): c for word, c in self.words.items()}
        return Polynomial(words, self.domain.dual, self.codomain.dual)

    @property
    def letters(self) -> dict[Expression, None]:
        """All its letters, in the order in which they occur."""
        return dict.fromkeys(letter for word in self.words for letter in word)

    @property
    def factored(self) -> Expression:
        """An expression for it with common factors taken out."""
        if not self.words:
            return ZeroOperator.of(self.codomain, self.domain)
        short: dict[Word, Fraction] = defaultdict(Fraction)
        for word, c in self.words.items():
            short[_abbreviated(word)] += c
        forms = (_sum([(c, word) for word, c in words.items()]) for words in (short, self.words))
        found = min((x.replaced(MEANING) for x in forms), key=weight)
        return add(
            [(Fraction(1), found), (Fraction(1), ZeroOperator.of(self.codomain, self.domain))]
        )


ABBREVIATIONS: Mapping[Word, Expression] = {
    (psi.T, H.T, D.inv, H, psi): Omega,
    (psi_p.T, H_p.T, D_p.inv, H_p, psi_p): Omega_p,
    (F, D_half): m,
    (D_half.T, F.T): m.T,
    (D_half.inv, W): l,
    (W.T, D_half.inv.T): l.T,
}


def _abbreviated(word: Word) -> Word:
    """A word with the symbols Ω, J, m and ℓ in place of their definitions."""
    for letters, short in ABBREVIATIONS.items():
        while (i := find(letters, word)) >= 0:
            word = (*word[:i], short, *word[i + len(letters) :])
    for own, at in ((x, i) for i, x in enumerate(word) if _is_frame(x)):
        jacobian = J(*next(iter(own.leaves)).frames)
        if word[at : at + 3] == (own, phi.T, H.T):
            return _abbreviated((*word[:at], jacobian, *word[at + 3 :]))
        if at >= 2 and word[at - 2 : at + 1] == (H, phi, own):
            return _abbreviated((*word[: at - 2], jacobian.T, *word[at + 1 :]))
    return word


def _is_frame(x: Expression) -> bool:
    return isinstance(x, (Leaf, Adjoint)) and next(iter(x.leaves)).symbol.name == "B"


def _replaced(word: Word, letters: Word, by: Mapping[Word, Fraction]) -> dict[Word, Fraction]:
    done: dict[Word, Fraction] = {(): Fraction(1)}
    while (i := find(letters, word)) >= 0:
        _check_length(len(done) * len(by))
        head, word = word[:i], word[i + len(letters) :]
        longer: dict[Word, Fraction] = defaultdict(Fraction)
        for (w, c), (x, d) in product_of(done.items(), by.items()):
            longer[w + head + x] += c * d
        done = longer
    return {w + word: c for w, c in done.items()}


def find(letters: Word, word: Word) -> int:
    """The position of letters in a word, or −1."""
    n = len(letters)
    return next((i for i in range(len(word) - n + 1) if word[i : i + n] == letters), -1)


def _product(factors: Iterable[Expression]) -> dict[Word, Fraction]:
    words: dict[Word, Fraction] = {(): Fraction(1)}
    for x in factors:
        if isinstance(x, ZeroOperator):
            return {}
        if isinstance(x, Unit):
            continue
        own = Polynomial.of(x).words if isinstance(x, Sum) else {(letter(x),): Fraction(1)}
        _check_length(len(words) * len(own))
        longer: dict[Word, Fraction] = defaultdict(Fraction)
        for (left, c), (right, d) in product_of(words.items(), own.items()):
            longer[left + right] += c * d
        words = longer
    return words


# ---- factoring ----------------------------------------------------------------------------------

Term = tuple[Fraction, Word]

OPEN: Mapping[Expression, Term] = {
    W: (Fraction(-1), (H, psi, K)),
    F: (Fraction(1), (H, phi, K)),
    W_p: (Fraction(-1), (H_p, psi_p, K_p)),
    F_p: (Fraction(1), (H_p, phi, K_p)),
}
"""The factors of the mass matrix without the identity, as (sign, word)."""

_SUMS: tuple[tuple[Expression, Mapping[Word, int]], ...] = (
    (phi_tilde, {(phi,): 1, (): -1}),
    (psi_tilde, {(psi,): 1, (): -1}),
    (psi_p_tilde, {(psi_p,): 1, (): -1}),
    (E_psi, {(E_phi,): 1, (K, H): -1}),
    (E_psi_p, {(E_phi,): 1, (K_p, H_p): -1}),
    (tau_bar, {(): 1, (G, H): -1}),
    (tau_bar_p, {(): 1, (G_p, H_p): -1}),
)
FOLDS = [
    *_SUMS,
    *((x.T, {tuple(y.T for y in reversed(w)): c for w, c in p.items()}) for x, p in _SUMS),
]
"""Symbols that are a short sum, and their adjoints, with the words and numbers of the sum."""


def weight(x: Expression) -> int:
    """A measure of the length of an expression; symbols that take a sweep count most."""
    if isinstance(x, Leaf):
        return x.symbol.weight
    return sum(map(weight, x.parts)) + len(x.parts)


def _sum(terms: list[Term], nested: int = 0) -> Expression:
    """The sum with common factors taken out, first those that shorten it most; `nested` is how many
    sums are around it."""
    if nested > NESTED:
        raise TooLong(f"more than {NESTED} nested sums")
    terms = _folded(_opened([term for term in terms if term[0]]))
    while len(terms) > 1:
        groups = list(_groups(terms))
        if not groups:
            break
        taken, at_front = max(groups, key=_saved)
        words = {word for _, word in taken}
        terms = [t for t in terms if t[1] not in words]
        terms.append(_grouped(taken, at_front, nested))
    return add([(c, product(word) if word else IDENTITY) for c, word in terms if c])


def _groups(terms: list[Term]) -> Iterator[tuple[list[Term], bool]]:
    """Groups of terms that begin with the same letter (True), or end with it (False)."""
    for at_front, end in ((True, 0), (False, -1)):
        by_letter: dict[Expression, list[Term]] = defaultdict(list)
        for term in terms:
            if term[1]:
                by_letter[term[1][end]].append(term)
        yield from ((group, at_front) for group in by_letter.values() if len(group) > 1)


def _saved(group: tuple[list[Term], bool]) -> int:
    """The weight that taking out the common factor of a group saves."""
    terms, at_front = group
    shared = _shared([w if at_front else w[::-1] for _, w in terms])
    return (len(terms) - 1) * sum(map(weight, shared))


def _grouped(terms: list[Term], at_front: bool, nested: int) -> Term:
    """Terms with common first (or last) letters as one term, these letters taken out."""
    turn = 1 if at_front else -1
    shared = _shared([w[::turn] for _, w in terms])
    rest = _sum([(c, w[::turn][len(shared) :][::turn]) for c, w in terms], nested + 1)
    down = all(d < 0 for d, _ in rest.terms)
    c, own = (Fraction(-1), (-rest,)) if down else (Fraction(1), (rest,))
    if len(rest.terms) == 1:
        ((c, inner),) = rest.terms
        if isinstance(inner, ZeroOperator):
            return Fraction(0), ()
        own = () if isinstance(inner, Unit) else inner.factors
    return c, (*shared, *own) if at_front else (*own, *shared[::-1])


def _shared(words: list[Word]) -> Word:
    """The letters with which all words begin."""
    columns = zip(*words, strict=False)
    length = next((i for i, column in enumerate(columns) if len(set(column)) > 1), None)
    return words[0][: min(map(len, words)) if length is None else length]


def _opened(terms: list[Term]) -> list[Term]:
    """Terms in which (I − HψK)x beside Hψy is expanded to x − HψKx, so that both share one sweep;
    adjoints likewise."""
    for letter, (sign, inner) in OPEN.items():
        if any(word[:2] == inner[:2] for _, word in terms):
            terms = _expanded(terms, lambda w, x=letter: w[:1] == (x,), 0, sign, inner)
        star = tuple(x.T for x in reversed(inner))
        if any(word[-2:] == star[-2:] for _, word in terms):
            terms = _expanded(terms, lambda w, x=letter.T: w[-1:] == (x,), -1, sign, star)
    return terms


def _expanded(
    terms: list[Term], chosen: Callable[[Word], bool], at: int, sign: Fraction, inner: Word
) -> list[Term]:
    """Terms in which the first (at = 0) or last letter of the chosen words is I + sign · inner."""
    out: dict[Word, Fraction] = defaultdict(Fraction)
    for c, word in terms:
        rest = word[1:] if at == 0 else word[:-1]
        if chosen(word):
            out[rest] += c
            out[inner + rest if at == 0 else rest + inner] += c * sign
        else:
            out[word] += c
    return [(c, word) for word, c in out.items() if c]


def _folded(terms: list[Term]) -> list[Term]:
    """Terms with φ̃ for φ − I, E_ψ for E_φ − KH, τ̄ for I − GH; adjoints likewise."""
    found = {word: c for c, word in terms}
    for x, pattern in FOLDS:
        if all(word in found for word in pattern):
            numbers = {found[word] / d for word, d in pattern.items()}
            if len(numbers) == 1:
                found = {word: d for word, d in found.items() if word not in pattern}
                found[x,] = found.get((x,), Fraction(0)) + numbers.pop()
    return [(c, word) for word, c in found.items() if c]
