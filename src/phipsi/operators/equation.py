"""Equations between expressions: solved for a vector, proved by the identities."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from phipsi.arguments import a_class
from phipsi.operators.algebra.derivation import Condition
from phipsi.operators.algebra.expression import Expression, Leaf, ZeroOperator, inverse
from phipsi.operators.algebra.polynomial import Polynomial
from phipsi.operators.algebra.simplify import derive
from phipsi.operators.algebra.symbols import *
from phipsi.operators.writing.parser import ParseError, parse


def _depends(definition: Expression, x: Expression) -> bool:
    """Whether x occurs in a definition, or in the definitions of vectors in it."""
    known = {y: z for one in DEFINED for y, z in one.items()}
    return x in definition.leaves or any(
        _depends(known[y], x) for y in definition.leaves if y in known
    )


RICCATI: dict[Expression, Expression] = {M: P - E_phi @ P @ E_phi.T + K @ D @ K.T}
DEFINED: list[dict[Expression, Expression]] = [
    {x: x.definition} for x in (f, alpha, V, xi, nu, kappa, eps)
]
"""Vectors that are replaced by their definitions, one after the other."""
RICCATI_OF_PASSIVE: dict[Expression, Expression] = {M: RICCATI[M].replaced(PASSIVE)}


@dataclass(frozen=True)
class Equation:
    """An equation left = right between expressions.

    >>> from phipsi.operators import C, Equation, T, beta_dot, mass
    >>> motion = Equation(T, mass @ beta_dot + C)
    >>> print(motion.solved(beta_dot))
    β̇ = 𝓜⁻¹(T − C)
    """

    left: Expression
    right: Expression

    def __post_init__(self) -> None:
        if not isinstance(self.left, Expression) or not isinstance(self.right, Expression):
            raise TypeError(
                "an equation has expressions on both sides; read text by Equation.parse"
            )
        _ = self.left - self.right  # raises a SpaceError if their spaces differ

    @classmethod
    def parse(cls, text: str) -> Equation:
        """The equation that a text describes: "T = mass @ beta_dot + C".

        Parameters
        ----------
        text
            Two expressions in any notation of `parse`, with an equals sign between them.

        Returns
        -------
        Equation
            The equation.

        Raises
        ------
        ParseError
            If the text is no equation.
        """
        left, equals, right = text.partition("=")
        if not equals:
            raise ParseError(f"{text!r} is no equation: write left = right")
        return cls(parse(left), parse(right))

    def solved(self, x: Leaf) -> Equation:
        """The equation solved for a vector in which it is linear.

        Vectors whose definitions contain x are replaced by these.

        Parameters
        ----------
        x
            The symbol of the vector.

        Returns
        -------
        Equation
            x = …

        Raises
        ------
        ValueError
            If the equation is not linear in x, or the factor of x is not square.
        """
        if not isinstance(x, Expression):
            raise TypeError(f"{self} is solved for a symbol, not for {a_class(x)}")
        whole = self.right - self.left
        for known in DEFINED:
            ((y, definition),) = known.items()
            whole = whole.replaced(known) if x is not y and _depends(definition, x) else whole
        words = Polynomial.of(whole).words
        own = {word[:-1]: c for word, c in words.items() if word[-1:] == (x,)}
        rest = {word: -c for word, c in words.items() if word[-1:] != (x,)}
        left = [letter for word in (*own, *rest) for letter in word]
        square = x.codomain.size == self.left.codomain.size
        if not own or not square or any(x in letter.leaves for letter in left):
            raise ValueError(f"{self} is not linear in {x}, so it cannot be solved for it")
        codomain = self.left.codomain
        factor = Polynomial(own, codomain, x.codomain).factored
        return Equation(x, inverse(factor) @ Polynomial(rest, codomain, x.domain).factored)

    def proved(self, assume: Condition | Iterable[Condition] = ()) -> bool:
        """Whether the identities of the algebra prove the equation.

        True is a proof. False does not prove the contrary: the vectors a and b, rates and the dual
        set have relations that the algebra does not know.

        Parameters
        ----------
        assume
            Conditions that may be taken for granted, as in `Expression.simplify`.

        Returns
        -------
        bool
            Whether a proof was found.
        """
        difference = self.left - self.right
        for known in DEFINED:
            difference = difference.replaced(known)
        for riccati in ({}, RICCATI, RICCATI_OF_PASSIVE):
            found = derive(difference.replaced(riccati), assume, strict=True)
            if isinstance(found.result, ZeroOperator):
                return True
        return False

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"

    def __repr__(self) -> str:
        return str(self)

    @property
    def ascii(self) -> str:
        """The text in Python's notation."""
        return f"{self.left.ascii} = {self.right.ascii}"

    @property
    def latex(self) -> str:
        """The text in LaTeX."""
        return f"{self.left.latex} = {self.right.latex}"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex}$"
