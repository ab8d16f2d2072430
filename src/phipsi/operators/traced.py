"""Expressions as programs, and as parts of programs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from phipsi.model import Robot
from phipsi.operators.checks import Mask, as_mask, check_robot, check_split, check_vectors
from phipsi.operators.expressions import Expression
from phipsi.operators.spaces import SCALARS, Space
from phipsi.operators.symbols import *
from phipsi.sweeps import Program

if TYPE_CHECKING:
    from phipsi.operators.lower import Lowered
    from phipsi.operators.words import Word

JOINT_SPACE = {
    A, C, C_nu, C_xi, D, D_dot, D_half, D_half_dot, T, beta, beta_dot, l, m, m_dot, mass, mass_dot,
}  # fmt: skip
"""Symbols that every robot with the same joint-space dynamics has in common."""


def compute(
    expression: Expression,
    robot: Robot,
    q: Any,
    v: Any = None,
    /,
    *,
    active: Any = None,
    external: Any = None,
    **vectors: Any,
) -> Any:
    """The value of an expression as a part of a traced program: the sweeps of its cheapest form.

    An operator is applied to the vector `x=`; other vectors are given by the names of their
    symbols, `T=tau`.
    """
    from phipsi.operators.lower import lower

    given = tuple(sorted(name for name in vectors if name in SYMBOLS))
    lowered = lower(expression, given)
    mask = as_mask(expression, robot, active)
    check_vectors(expression, lowered.plan, v, vectors)
    check_robot(expression, robot, lowered)
    return _run(lowered, robot, q, v, mask, external, vectors)


def _run(
    lowered: Lowered, robot: Robot, q: Any, v: Any, active: Mask | None, external: Any,
    vectors: Mapping[str, Any],
) -> Any:  # fmt: skip
    from phipsi.operators.run import Run

    plan = lowered.plan
    full = {name: _padded(robot, plan.inputs[name], x, active) for name, x in vectors.items()
            if name in plan.inputs}  # fmt: skip
    more: dict[str, Any] = {} if v is None else {"v": v}
    if active is not None:
        more["passive"] = 1.0 - np.array(active, float)
    if "beta" in plan.inputs:
        full["beta"] = v
    result = Run(plan, robot, q, full, external=external, **more).result()
    return _picked(robot, plan.result.space, result, active)


def _padded(robot: Robot, space: Space, x: Any, active: Mask | None) -> Any:
    """A vector of active or passive joints in the length of all."""
    if space.size not in ("active", "passive"):
        return x
    out = np.full(robot.nv, 0.0, object)
    out[rows(space, active)] = np.asarray(x)
    return out


def _picked(robot: Robot, space: Space, x: Any, active: Mask | None) -> Any:
    return x[rows(space, active)] if space.size in ("active", "passive") else x


def rows(space: Space, active: Mask | None) -> np.ndarray:
    """The joints that a vector of active or passive ones is of."""
    mask = np.array(active, bool)
    return np.flatnonzero(mask if space.size == "active" else ~mask)


# ---- programs -----------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def as_program(
    x: Expression, given: tuple[str, ...] = (), active: Mask | None = None
) -> Program[Any, Any]:
    """The program (robot, q[, v], vectors…) that computes an expression; an operator is applied to
    its last argument, `x`."""
    from phipsi.operators.lower import lower

    if active is None:
        check_split(x, "pass active=, a truth value for each")
    lowered = lower(x, given)
    plan = lowered.plan
    moving = plan.moving or "beta" in plan.inputs
    spaces = {} if x.domain == SCALARS else {"x": x.domain}
    spaces |= {name: space for name, space in plan.inputs.items() if name != "beta"}
    names = [
        "robot",
        "q",
        *(["v"] if moving else []),
        *sorted(spaces, key=lambda name: (name == "x", name)),
    ]

    def function(robot: Robot, *arrays: Any, external: Any = None) -> Any:
        check_robot(x, robot, lowered)
        if active is not None and len(active) != robot.nv:
            raise ValueError(f"{x}: active has {len(active)} truth values, needs {robot.nv}")
        values = dict(zip(names[1:], arrays, strict=True))
        q, v = values.pop("q"), values.pop("v", None)
        return _run(lowered, robot, q, v, active, external, values)

    kinds = inspect.Parameter
    parameters = [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in names]
    if moving:
        parameters.append(kinds("external", kinds.KEYWORD_ONLY, default=None))
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__name__ = x.ascii
    function.__qualname__ = f"{x.ascii} given {given} active {active}"
    vars(function)["named_by_content"] = function
    function.__doc__ = f"{x} = {plan.expression}"
    shapes = {name: _shape(space, active) for name, space in spaces.items()}
    return Program(function, shapes, joint_space=_joint_space(lowered))


def _shape(space: Space, active: Mask | None) -> tuple[int | str, ...]:
    match space.size:
        case "body":
            return ("nb", 6)
        case "frame":
            return (6 * len(space.frames),)
        case "active" | "passive":
            return (len(rows(space, active)),)
    return ("nv",)


def _joint_space(lowered: Lowered) -> bool:
    """Is a form of it made of what depends on the joint-space dynamics alone?"""
    from phipsi.operators.words import MEANING, Polynomial, TooLong

    def known(form: Expression) -> bool:
        try:
            words = _with_bias(Polynomial.of(form).words)
        except TooLong:
            return False
        leaves = {leaf for word in words for letter in word for leaf in letter.leaves}
        return all(
            leaf in JOINT_SPACE or leaf in MEANING or leaf.symbol.name == "J" for leaf in leaves
        )

    x = lowered.plan.expression
    return "body" not in (x.domain.size, x.codomain.size) and any(
        map(known, lowered.derivation.forms)
    )


def _with_bias(words: Mapping[Word, Fraction]) -> set[Word]:
    """Words in which C stands for Hφb + HφMφ*a."""
    found = set(words)
    for word, c in words.items():
        other = (*word[:-1], M, phi.T, a)
        if word[-3:] == (H, phi, b) and words.get(other) == c:
            found = found - {word, other} | {(*word[:-3], C)}
    return found
