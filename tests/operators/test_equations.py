"""Equations: typed, solved, proved, read back."""

from __future__ import annotations

import pytest

from phipsi.operators import *
from phipsi.operators import Equation, ParseError, SpaceError


def test_the_equations_of_motion() -> None:
    motion = Equation(T, mass @ beta_dot + C)
    assert motion.solved(beta_dot) == Equation(beta_dot, mass.inv @ (T - C))
    assert motion.solved(T) == Equation(T, mass @ beta_dot + C)
    assert motion.solved(C) == Equation(C, T - mass @ beta_dot)
    assert Equation.parse(str(motion)) == motion == Equation.parse(motion.ascii)
    assert Equation.parse(motion.latex) == motion
    assert motion._repr_latex_().startswith("$\\displaystyle T = ")


def test_newton_and_euler_are_lagrange() -> None:
    """T = Hf + Aβ̇ with f = φ(Mα + b), α = φ*(H*β̇ + a) is T = 𝓜β̇ + C."""
    written_out = Equation(T, H @ f + A @ beta_dot)
    assert Equation(written_out.right, mass @ beta_dot + C).proved()
    long = Equation(T, H @ phi @ (M @ phi.T @ (H.T @ beta_dot + a) + b) + A @ beta_dot)
    assert Equation(long.solved(beta_dot).right, mass.inv @ (T - C)).proved()


def test_what_cannot_be() -> None:
    with pytest.raises(SpaceError, match="β̇"):
        Equation(T, beta_dot)
    with pytest.raises(ValueError, match="is not linear in β, so it cannot be solved for it"):
        Equation(T, C).solved(beta)
    with pytest.raises(ValueError, match="is not linear in β"):
        Equation(beta.T @ mass @ beta, nu.T @ nu).solved(beta)
    with pytest.raises(ParseError, match="is no equation: write left = right"):
        Equation.parse("T - C")


def test_equations_that_are_not_linear() -> None:
    for right in (
        mass @ beta_dot + C @ (beta_dot.T @ T),
        mass @ beta_dot + T @ (beta_dot.T @ mass @ beta_dot),
    ):
        with pytest.raises(ValueError, match="is not linear in β̇"):
            Equation(T, right).solved(beta_dot)
    hidden = Equation(T, H @ phi @ (M @ alpha + b) + A @ beta_dot).solved(beta_dot)
    assert Equation(hidden.right, mass.inv @ (T - C)).proved()
