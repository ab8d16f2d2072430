"""Equations between expressions: solved for a vector, proved by the identities."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from phipsi.operators.expressions import Expression, Leaf, Zero, inverse
from phipsi.operators.simplify import derive
from phipsi.operators.symbols import *
from phipsi.operators.words import Polynomial, Word


RICCATI = {M: P - E_phi @ P @ E_phi.T + K @ D @ K.T}
RICCATI_OF_PASSIVE = {M: RICCATI[M].replaced(PASSIVE)}


@dataclass(frozen=True)
class Equation:
    """left = right.

    >>> from phipsi.operators import C, Equation, T, beta_dot, mass
    >>> motion = Equation(T, mass @ beta_dot + C)
    >>> print(motion.solved(beta_dot))
    β̇ = 𝓜⁻¹(T − C)
    """

    left: Expression
    right: Expression

    def __post_init__(self) -> None:
        _ = self.left - self.right  # a SpaceError where they do not fit

    def solved(self, x: Leaf) -> Equation:
        """The equation solved for a vector that it is linear in."""
        words = Polynomial.of(self.right - self.left).words
        own = {word[:-1]: c for word, c in words.items() if word[-1:] == (x,)}
        rest = {word: -c for word, c in words.items() if x not in word}
        if len(own) + len(rest) < len(words) or not own:
            raise ValueError(f"{self} is not linear in {x}, so it cannot be solved for it")
        factor = _expression(own, self.left, x)
        return Equation(x, inverse(factor) @ _expression(rest, self.left, self.left))

    def proved(self, assume: Iterable[str] = ()) -> bool:
        """Do the identities of the algebra prove it?

        True is a proof. False is none of the contrary: the vectors a and b, rates and the dual set
        have relations that the algebra does not know.
        """
        difference = (self.left - self.right).replaced(
            {x: x.definition for x in (V, alpha, f, xi, nu, kappa, eps)}
        )
        assumed = tuple(assume)
        for riccati in ({}, RICCATI, RICCATI_OF_PASSIVE):
            if isinstance(derive(difference.replaced(riccati), assumed).result, Zero):
                return True
        return False

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"

    def __repr__(self) -> str:
        return str(self)

    @property
    def ascii(self) -> str:
        """As Python writes its sides."""
        return f"{self.left.ascii} = {self.right.ascii}"

    @property
    def latex(self) -> str:
        """As LaTeX writes it."""
        return f"{self.left.latex} = {self.right.latex}"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex}$"


def _expression(words: dict[Word, Fraction], like: Expression, x: Expression) -> Expression:
    """What the words add up to, as an operator on x or (x = like) a vector."""
    domain = like.domain if x is like else x.codomain
    return Polynomial(words, like.codomain, domain).factored
