"""Expressions on a robot: linear operators, and the values of vectors."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from phipsi.compile import Kernel
from phipsi.model import Robot
from phipsi.operators.algebra.expression import Expression
from phipsi.operators.algebra.linear_operator import LinearOperator
from phipsi.operators.algebra.spaces import SCALARS, Space
from phipsi.operators.algebra.symbols import SYMBOLS, D
from phipsi.operators.checks import as_mask, check_robot
from phipsi.operators.dense import matrix, system
from phipsi.operators.lowering.plan import lower
from phipsi.operators.lowering.program import as_program, check_vectors, rows
from phipsi.programs import Program


class RobotOperator(LinearOperator):
    """An operator of a robot at a configuration q (…, nq), applied by its recursion in O(N).

    `op @ x` takes vectors (…, n), of bodies (…, nb, 6), with any batch shape that goes with that
    of q; `op.T` is the adjoint, `op.inv` the inverse, `op.matrix()` the dense matrix (…, m, n),
    `op.compile(...)` the kernel; see `LinearOperator`.

    `active` says which joints are, for operators of passive arms; `dense=True` forms the matrix,
    inverting what no identity inverts.
    """

    def __init__(
        self,
        expression: Expression,
        robot: Robot,
        q: Any,
        v: Any = None,
        *,
        active: Any = None,
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
    def program(self) -> Program[Any, Any]:
        """The program (robot, q, x) behind it."""
        return as_program(self.expression, active=self.active)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of what it takes, without the batch."""
        return self._core(self.expression.domain)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of what it gives, without the batch."""
        return self._core(self.expression.codomain)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The batch of configurations, () for one."""
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

    def __reduce__(self) -> Any:
        given = (self.expression, self.robot, self.q, self.v, self.active, self.dense)
        return _rebuilt, given

    def compile(self, **how: Any) -> Kernel:
        """The kernel (q, x) of the recursion; keywords as in `Program.compile`."""
        return self.program.compile(self.robot, **how)

    def matrix(self) -> np.ndarray:
        """The dense matrix (…, m, n), column by column."""
        if self.dense:
            return self._formed.copy()
        rows, columns = self.shape
        units = np.eye(columns).reshape(columns, *self.input_shape)
        batch = self.batch_shape
        found = self._applied(units, column=True)
        return np.swapaxes(found.reshape(*batch, columns, rows), -1, -2)

    def __matmul__(self, x: Any) -> Any:
        x = np.asarray(x)
        core = self.input_shape
        if x.shape[x.ndim - len(core) :] != core:
            raise ValueError(
                f"{self.expression} on {self.robot.name!r} takes {self.expression.domain} of shape "
                f"(…, {', '.join(map(str, core))}), got {x.shape}"
            )
        if not self.dense:
            return self._applied(x)
        flat = x.reshape(*x.shape[: x.ndim - len(core)], -1)
        found = np.einsum("...ij,...j->...i", self._formed, flat)
        return found.reshape(*found.shape[:-1], *self.output_shape)

    def _applied(self, x: Any, *, column: bool = False) -> Any:
        state = [y[..., None, :] if column else y for y in (self.q, self.v) if y is not None]
        state = state if "v" in self.program.parameters else state[:1]
        try:
            found = self.program(self.robot, *state, x)
        except ZeroDivisionError:
            found = np.array(np.nan)
        return _finite(self, found, x)

    @cached_property
    def _formed(self) -> np.ndarray:
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
        match space.size:
            case "body":
                return (self.robot.nb, 6)
            case "frame":
                return (6 * len(space.frames),)
            case "one":
                return (1,)
            case "active" | "passive":
                return (len(rows(space, self.active)),)
        return (self.robot.nv,)


def _rebuilt(x: Any, robot: Any, q: Any, v: Any, active: Any, dense: bool) -> RobotOperator:
    return RobotOperator(x, robot, q, v, active=active, dense=dense)


def evaluate(
    x: Expression,
    robot: Robot,
    q: Any,
    v: Any = None,
    *,
    active: Any = None,
    external: Any = None,
    **vectors: Any,
) -> Any:
    """The value of a vector or number on a robot at q (…, nq), with joint rates v where it needs
    them, and vectors by the names of their symbols: `(mass.inv @ (T - C)).evaluate(robot, q, v,
    T=tau)`."""
    if x.domain != SCALARS:
        raise TypeError(f"{x} is an operator, not a vector: use on(robot, q) @ vector")
    check_robot(x, robot)
    q, v = _state(x, robot, q, v)
    mask = as_mask(x, robot, active)
    given = tuple(sorted(name for name in vectors if name in SYMBOLS))
    lowered = lower(x, given)
    check_vectors(x, lowered.plan, v, vectors)
    program = as_program(x, given, mask)
    arrays = {"v": v, **vectors}
    used = {name: arrays[name] for name in program.parameters if name in arrays}
    if external is not None:
        if "external" not in program.parameters:
            raise TypeError(f"{x} does not depend on the motion, so not on external forces")
        used["external"] = external
    return program(robot, q, **used)


def _state(x: Expression, robot: Robot, q: Any, v: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """q and v as arrays of their own."""
    if np.shape(q)[-1:] != (robot.nq,):
        raise ValueError(
            f"{x}: q has shape {np.shape(q)}, robot {robot.name!r} has nq = {robot.nq}"
        )
    if v is not None and np.shape(v)[-1:] != (robot.nv,):
        raise ValueError(
            f"{x}: v has shape {np.shape(v)}, robot {robot.name!r} has nv = {robot.nv}"
        )
    return np.array(q), None if v is None else np.array(v)


def _finite(op: RobotOperator, found: Any, x: Any) -> Any:
    """The result, or why it is infinite though nothing that went in was."""
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
    """The outermost hinge whose D is not positive, at some configuration."""
    nv = op.robot.nv
    blocks = as_program(D)(op.robot, op.q[..., None, :], np.eye(nv)).reshape(-1, nv, nv)
    for h in reversed(op.robot.hinges):
        own = blocks[:, h.v, h.v]
        usual = own[np.isfinite(own).all((1, 2))]
        if h.kind.nv and len(usual) and np.linalg.eigvalsh(usual).min() <= 0.0:
            return h.name
    return None
