"""Expressions on a robot: linear operators, and the values of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from phipsi.cached import cached_property
from phipsi.compile import Kernel, as_operand
from phipsi.model import Robot
from phipsi.operators.algebra.expression import Expression
from phipsi.operators.algebra.linear_operator import LinearOperator
from phipsi.operators.algebra.spaces import SCALARS, Space
from phipsi.operators.algebra.symbols import SYMBOLS, D
from phipsi.operators.checks import Mask, as_mask, check_robot
from phipsi.operators.dense import matrix, system
from phipsi.operators.lowering.plan import lower
from phipsi.operators.lowering.program import as_program, check_vectors, rows
from phipsi.programs import Program
from phipsi.typing import (
    Array,
    ArrayLike,
    Configuration,
    ConfigurationLike,
    ExternalForces,
    JointVector,
    JointVectorLike,
    MaskLike,
)


class RobotOperator(LinearOperator):
    """An operator of a robot at a configuration q (…, nq), applied by its recursion in O(N).

    `op @ x` takes vectors (…, n), of bodies (…, nb, 6), whose batch shape is broadcast with that of
    q; `op.T` is the adjoint, `op.inv` the inverse, `op.matrix()` the dense matrix (…, m, n),
    `op.compile(...)` the kernel; see `LinearOperator`. `Expression.on` makes one, and describes the
    parameters.
    """

    def __init__(
        self,
        expression: Expression,
        robot: Robot,
        q: ConfigurationLike,
        v: JointVectorLike | None = None,
        *,
        active: MaskLike | None = None,
        dense: bool = False,
    ) -> None:
        if expression.domain == SCALARS:
            raise TypeError(
                f"{expression} is a vector or a number, not an operator: "
                "use evaluate(robot, q, v, T=..., …)"
            )
        check_robot(expression, robot)
        self.expression, self.robot, self.dense = expression, robot, dense
        self.q, self.v = _state(expression, robot, q, v)
        self.active = as_mask(expression, robot, active)
        if not dense:
            lowered = lower(expression)
            free = [name for name in lowered.plan.inputs if name not in ("x", "beta")]
            if free:
                raise TypeError(
                    f"{expression} has the vector {free[0]} in it, which an operator of a robot "
                    "cannot be given: use evaluate"
                )
            check_vectors(expression, lowered.plan, self.v, {"x": None})
            check_robot(expression, robot, lowered.derivation.needs)

    @cached_property
    def program(self) -> Program[..., Array]:
        """The program (robot, q[, v], x) that applies it."""
        return as_program(self.expression, active=self.active)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of the vectors that it takes, without the batch."""
        return self._core(self.expression.domain)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of the vectors that it gives, without the batch."""
        return self._core(self.expression.codomain)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The batch shape of the configurations, () for one."""
        own = () if self.v is None else self.v.shape[:-1]
        return np.broadcast_shapes(self.q.shape[:-1], own)

    @property
    def T(self) -> RobotOperator:
        """The adjoint."""
        return self._other(self.expression.T)

    @property
    def inv(self) -> RobotOperator:
        """The inverse."""
        return self._other(self.expression.inv)

    def _other(self, x: Expression) -> RobotOperator:
        return RobotOperator(x, self.robot, self.q, self.v, active=self.active, dense=self.dense)

    def __reduce__(self) -> tuple[Callable[..., RobotOperator], tuple[object, ...]]:
        given = (self.expression, self.robot, self.q, self.v, self.active, self.dense)
        return _rebuilt, given

    def compile(self, **how: Any) -> Kernel[Array]:
        """The kernel (q[, v], x) of the recursion; keywords as in `Program.compile`."""
        return self.program.compile(self.robot, **how)

    def matrix(self) -> Array:
        """The dense matrix (…, m, n), column by column."""
        if self.dense:
            return self._formed.copy()
        rows, columns = self.shape
        units = np.eye(columns).reshape(columns, *self.input_shape)
        batch = self.batch_shape
        found = self._applied(units, column=True)
        return np.swapaxes(found.reshape(*batch, columns, rows), -1, -2)

    def __matmul__(self, x: ArrayLike) -> Array:
        vector = np.asarray(as_operand(f"{self.expression}: x", x))
        core = self.input_shape
        batch = vector.shape[: vector.ndim - len(core)]
        if vector.shape[vector.ndim - len(core) :] != core:
            raise ValueError(
                f"{self.expression} on {self.robot.name!r} takes {self.expression.domain} of shape "
                f"(…, {', '.join(map(str, core))}), got {vector.shape}"
            )
        if not self.dense:
            return self._applied(vector)
        flat = vector.reshape(*batch, -1)
        found: Array = np.einsum("...ij,...j->...i", self._formed, flat)
        return found.reshape(*found.shape[:-1], *self.output_shape)

    def _applied(self, x: Array, *, column: bool = False) -> Array:
        """The recursion applied to vectors; with `column` to all of them at each configuration."""
        state = [y[..., None, :] if column else y for y in (self.q, self.v) if y is not None]
        state = state if "v" in self.program.parameters else state[:1]
        try:
            found = self.program(self.robot, *state, x)
        except ZeroDivisionError:
            found = np.array(np.nan)
        return _finite(self, found, x)

    @cached_property
    def _formed(self) -> Array:
        """The dense matrix of each configuration."""
        batch, nq, nv = self.batch_shape, self.robot.nq, self.robot.nv
        q = np.broadcast_to(self.q, (*batch, nq)).reshape(-1, nq)
        still = [None] * len(q)
        own = self.v
        v = still if own is None else np.broadcast_to(own, (*batch, nv)).reshape(-1, nv)
        states = zip(q, v, strict=True)
        each = [
            matrix(self.expression, system(self.robot, a, b, active=self.active)) for a, b in states
        ]
        return np.reshape(each, (*batch, *self.shape))

    def __repr__(self) -> str:
        m, n = self.shape
        return f"<{m}×{n} operator {self.expression} of {self.robot.name!r}>"

    def _core(self, space: Space) -> tuple[int, ...]:
        """The shape of a vector of a space, without the batch."""
        match space.size:
            case "body":
                return (self.robot.nb, 6)
            case "frame":
                return (6 * len(space.frames),)
            case "one":
                return (1,)
            case "active" | "passive":
                return (len(rows(space, self.active)),)
            case "joint" | "any":
                return (self.robot.nv,)


def _rebuilt(
    x: Expression,
    robot: Robot,
    q: Configuration,
    v: JointVector | None,
    active: Mask | None,
    dense: bool,
) -> RobotOperator:
    """The operator from its parts; pickles call this."""
    return RobotOperator(x, robot, q, v, active=active, dense=dense)


def evaluate(
    x: Expression,
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike | None = None,
    *,
    active: MaskLike | None = None,
    external: ExternalForces | None = None,
    **vectors: ArrayLike,
) -> Array:
    """The value of a vector or number on a robot at q (…, nq), with joint rates v if it depends on
    them, and vectors by the names of their symbols: `(mass.inv @ (T - C)).evaluate(robot, q, v,
    T=tau)`; see `Expression.evaluate`."""
    if x.domain != SCALARS:
        raise TypeError(f"{x} is an operator, not a vector: use on(robot, q) @ vector")
    check_robot(x, robot)
    q, v = _state(x, robot, q, v)
    mask = as_mask(x, robot, active)
    given = tuple(sorted(name for name in vectors if name in SYMBOLS))
    lowered = lower(x, given)
    check_vectors(x, lowered.plan, v, vectors)
    program = as_program(x, given, mask)
    arrays: dict[str, Any] = {"v": v, **vectors}
    used = {name: arrays[name] for name in program.parameters if name in arrays}
    if external is not None:
        if "external" not in program.parameters:
            raise TypeError(f"{x} does not depend on the motion, so not on external forces")
        used["external"] = external
    return program(robot, q, **used)


def _state(
    x: Expression, robot: Robot, q: ConfigurationLike, v: JointVectorLike | None
) -> tuple[Configuration, JointVector | None]:
    """Copies of q and v as arrays, or a `ValueError` if their last axes do not fit the robot."""
    given = {"q": q, "v": v}
    own, rates = (
        None if y is None else np.array(as_operand(f"{x}: {name}", y)) for name, y in given.items()
    )
    if own is None:
        raise TypeError(f"{x}: q is None, needs a configuration")
    if own.shape[-1:] != (robot.nq,):
        raise ValueError(f"{x}: q has shape {own.shape}, robot {robot.name!r} has nq = {robot.nq}")
    if rates is not None and rates.shape[-1:] != (robot.nv,):
        raise ValueError(
            f"{x}: v has shape {rates.shape}, robot {robot.name!r} has nv = {robot.nv}"
        )
    return own, rates


def _finite(op: RobotOperator, found: Array, x: Array) -> Array:
    """The result, or a `LinAlgError` that says why it is not finite though all arguments are."""
    went_in = (y for y in (op.q, op.v, x) if y is not None)
    if np.isfinite(found).all() or not all(np.isfinite(y).all() for y in went_in):
        return found
    hinge = _singular(op)
    why = (
        f"D of hinge {hinge!r} is zero: nothing that it moves has inertia along it; give a body "
        "outboard of it mass or the joint armature"
        if hinge
        else "what it inverts is singular there"
    )
    raise np.linalg.LinAlgError(f"{op.expression} on robot {op.robot.name!r}: {why}")


def _singular(op: RobotOperator) -> str | None:
    """The outermost hinge whose D is not positive at some configuration; None if there is none."""
    nv = op.robot.nv
    blocks = as_program(D)(op.robot, op.q[..., None, :], np.eye(nv)).reshape(-1, nv, nv)
    for h in reversed(op.robot.hinges):
        own = blocks[:, h.v, h.v]
        usual = own[np.isfinite(own).all((1, 2))]
        if h.kind.nv and len(usual) and np.linalg.eigvalsh(usual).min() <= 0.0:
            return h.name
    return None
