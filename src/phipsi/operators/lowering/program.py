"""Expressions as programs, and as parts of programs."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from phipsi.model import Robot
from phipsi.operators.algebra.expression import Expression
from phipsi.operators.algebra.polynomial import MEANING, Polynomial, TooLong, Word
from phipsi.operators.algebra.spaces import SCALARS, Space
from phipsi.operators.algebra.symbols import SHIPPED, SYMBOLS, C, H, M, a, b, phi
from phipsi.operators.checks import Mask, as_mask, check_robot, check_split
from phipsi.operators.lowering.execute import Execution
from phipsi.operators.lowering.plan import Lowered, Plan, lower
from phipsi.programs import ROBOT, Parameter, Program
from phipsi.programs.parameters import STANDARD
from phipsi.typing import (
    Array,
    ArrayLike,
    ConfigurationLike,
    ExternalForces,
    JointVectorLike,
    MaskLike,
    Shape,
)


def traced(
    expression: Expression,
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike | None,
    active: MaskLike | None,
    external: ExternalForces | None,
    vectors: Mapping[str, ArrayLike],
) -> Array:
    """The value of an expression as a part of a traced program; see `compute`."""
    given = tuple(sorted(name for name in vectors if name in SYMBOLS))
    lowered = lower(expression, given)
    mask = as_mask(expression, robot, active)
    check_vectors(expression, lowered.plan, v, vectors)
    check_robot(expression, robot, lowered.derivation.needs)
    return _run(lowered, robot, q, v, mask, external, vectors)


def check_vectors(
    x: Expression, plan: Plan, v: JointVectorLike | None, vectors: Mapping[str, object]
) -> None:
    """Raise an error if a call lacks a vector, or gives one that the expression does not use."""
    for name in plan.inputs:
        if name != "beta" and name not in vectors:
            meaning = f" ({SYMBOLS[name].meaning})" if name in SYMBOLS else ""
            raise ValueError(f"{x} needs {name}{meaning}: pass {name}=…")
    for name in vectors:
        if name == "beta":
            raise TypeError(f"{x}: the joint rates β are v: pass them after q")
        if name not in plan.inputs and name != "x":
            wanted = ", ".join(n for n in plan.inputs if n != "beta") or "no vector"
            raise TypeError(f"{x} does not use {name}=; it takes {wanted}")
    if v is None and (plan.moving or "beta" in plan.inputs):
        raise ValueError(f"{x} depends on the motion: pass the joint rates v, (robot, q, v)")


def _run(
    lowered: Lowered,
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike | None,
    active: Mask | None,
    external: ExternalForces | None,
    vectors: Mapping[str, ArrayLike],
) -> Array:
    """The result of a lowered expression on a robot, from checked arguments."""
    plan = lowered.plan
    full = {name: _padded(robot, plan.inputs[name], x, active) for name, x in vectors.items()
            if name in plan.inputs}  # fmt: skip
    more: dict[str, JointVectorLike] = {} if v is None else {"v": v}
    if active is not None:
        more["passive"] = 1.0 - np.array(active, float)
    if "beta" in plan.inputs and v is not None:
        full["beta"] = v
    result = Execution(plan, robot, q, full, external, **more).result()
    return _picked(plan.result.space, result, active)


def _padded(robot: Robot, space: Space, x: ArrayLike, active: Mask | None) -> ArrayLike:
    """A vector of active or passive joints with zeros for the other joints; others as they are."""
    if space.size not in ("active", "passive"):
        return x
    out = np.full(robot.nv, 0.0, object)
    out[rows(space, active)] = np.asarray(x)
    return out


def _picked(space: Space, x: Array, active: Mask | None) -> Array:
    """The entries of the active or passive joints, in such a space; others as they are."""
    return x[rows(space, active)] if space.size in ("active", "passive") else x


def rows(space: Space, active: Mask | None) -> Array:
    """The numbers of the freedoms that a vector of active or passive joints has."""
    mask = np.array(active, bool)
    return np.flatnonzero(mask if space.size == "active" else ~mask)


# ---- programs -----------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def as_program(
    x: Expression, given: tuple[str, ...] = (), active: Mask | None = None
) -> Program[..., Array]:
    """The program (robot, q[, v], vectors…) that computes an expression; an operator is applied to
    its last argument, `x`."""
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

    def function(robot: Robot, *arrays: ArrayLike, external: ExternalForces | None = None) -> Any:
        check_robot(x, robot, lowered.derivation.needs)
        if active is not None and len(active) != robot.nv:
            raise ValueError(f"{x}: active has {len(active)} truth values, needs {robot.nv}")
        values = dict(zip(names[1:], arrays, strict=True))
        q, v = values.pop("q"), values.pop("v", None)
        return _run(lowered, robot, q, v, active, external, values)

    shapes = {**STANDARD, **{name: _shape(space, active) for name, space in spaces.items()}}
    shipped = all(leaf.symbol.name in SHIPPED for leaf in x.leaves)
    external = Parameter("external", STANDARD["external"], default=None, keyword_only=True)
    return Program(
        function,
        [
            ROBOT,
            *(Parameter(name, shapes[name]) for name in names[1:]),
            *([external] if moving else []),
        ],
        name=x.ascii,
        doc=f"{x} = {plan.expression}",
        joint_space=_joint_space(lowered),
        content_key=f"{x.ascii} given {given} active {active}" if shipped else None,
        made_by=(as_program, (x, given, active)),
    )


def _shape(space: Space, active: Mask | None) -> Shape:
    """The shape of a vector of a space, without the batch."""
    match space.size:
        case "body":
            return ("nb", 6)
        case "frame":
            return (6 * len(space.frames),)
        case "active" | "passive":
            return (len(rows(space, active)),)
        case "joint" | "one" | "any":
            return ("nv",)


def _joint_space(lowered: Lowered) -> bool:
    """Whether one of its forms has only symbols that depend on the joint-space dynamics alone."""

    def known(form: Expression) -> bool:
        try:
            words = _with_bias(Polynomial.of(form).words)
        except TooLong:
            return False
        leaves = {leaf for word in words for letter in word for leaf in letter.leaves}
        return all(leaf.symbol.joint_space or leaf in MEANING for leaf in leaves)

    x = lowered.plan.expression
    return "body" not in (x.domain.size, x.codomain.size) and any(
        map(known, lowered.derivation.forms)
    )


def _with_bias(words: Mapping[Word, Fraction]) -> set[Word]:
    """The words, with C in place of each pair Hφb + HφMφ*a."""
    found = set(words)
    for word, c in words.items():
        other = (*word[:-1], M, phi.T, a)
        if word[-3:] == (H, phi, b) and words.get(other) == c:
            found = found - {word, other} | {(*word[:-3], C)}
    return found
