"""Expressions on a robot: linear operators, and the values of vectors."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from phipsi.compile import Kernel
from phipsi.model import Robot
from phipsi.operators.checks import as_mask, check_conditions, check_frames
from phipsi.operators.dense import matrix
from phipsi.operators.expressions import Expression
from phipsi.operators.lower import lower
from phipsi.operators.spaces import SCALARS, Space
from phipsi.operators.symbols import SYMBOLS, D
from phipsi.operators.systems import system
from phipsi.operators.traced import as_program, rows
from phipsi.sweeps import Program


class LinearOperator:
    """An operator of a robot at a configuration q (…, nq), applied by its recursion in O(N).

    `op @ x` takes vectors (…, n), of bodies (…, nb, 6), with any batch shape that goes with that
    of q; `op.T` is the adjoint, `op.inv` the inverse, `op.matrix()` the dense matrix (…, m, n),
    `op.compile(...)` the kernel. At one configuration SciPy's solvers take it for a
    `LinearOperator` (`shape`, `dtype`, `matvec`, `rmatvec`, `matmat`, on flat vectors).

    `active` says which joints are, for operators of passive arms; `dense=True` forms the matrix,
    inverting what no identity inverts.
    """

    dtype = np.dtype(float)

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
        _check(expression, robot, q)
        self.expression, self.robot, self.q, self.v = expression, robot, np.asarray(q), v
        self.active = as_mask(expression, robot, active)
        self.dense = dense
        self._given: dict[str, Any] = {"active": active, "dense": dense}
        if not dense:
            check_conditions(expression, lower(expression).derivation, robot)

    @cached_property
    def program(self) -> Program[Any, Any]:
        """The program (robot, q, x) behind it."""
        return as_program(self.expression, active=self.active)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return self._size(self.expression.codomain), self._size(self.expression.domain)

    @property
    def T(self) -> LinearOperator:
        """The adjoint."""
        return LinearOperator(self.expression.T, self.robot, self.q, self.v, **self._given)

    H = T

    @property
    def inv(self) -> LinearOperator:
        """The inverse."""
        return LinearOperator(self.expression.inv, self.robot, self.q, self.v, **self._given)

    def compile(self, **how: Any) -> Kernel:
        """The kernel (q, x) of the recursion; keywords as in `Program.compile`."""
        return self.program.compile(self.robot, **how)

    def matrix(self) -> np.ndarray:
        """The dense matrix (…, m, n), column by column."""
        if self.dense:
            return self._formed
        rows, columns = self.shape
        units = np.eye(columns).reshape(columns, *self._core(self.expression.domain))
        batch = self.q.shape[:-1]
        found = self._applied(self.q[..., None, :], units)
        return np.swapaxes(found.reshape(*batch, columns, rows), -1, -2)

    def __matmul__(self, x: Any) -> Any:
        x = np.asarray(x)
        core = self._core(self.expression.domain)
        if x.shape[x.ndim - len(core) :] != core:
            raise ValueError(
                f"{self.expression} on {self.robot.name!r} takes {self.expression.domain} of shape "
                f"(…, {', '.join(map(str, core))}), got {x.shape}"
            )
        if not self.dense:
            return self._applied(self.q, x)
        flat = x.reshape(*x.shape[: x.ndim - len(core)], -1)
        found = np.einsum("...ij,...j->...i", self._formed, flat)
        return found.reshape(*found.shape[:-1], *self._core(self.expression.codomain))

    def _applied(self, q: Any, x: Any) -> Any:
        arguments = (q, self.v, x) if "v" in self.program.parameters else (q, x)
        return _finite(self, self.program(self.robot, *arguments))

    @cached_property
    def _formed(self) -> np.ndarray:
        flat = self.q.reshape(-1, self.q.shape[-1])
        each = [matrix(self.expression, system(self.robot, q, self.v,
                active=self.active)) for q in flat]  # fmt: skip
        return np.reshape(each, (*self.q.shape[:-1], *self.shape))

    # ---- as SciPy has it -----------------------------------------------------------------------

    def matvec(self, x: Any) -> Any:
        """The product with a flat vector (n,) or column (n, 1)."""
        self._single()
        x = np.asarray(x)
        flat = self @ x.reshape(self._core(self.expression.domain))
        return flat.reshape(-1) if x.ndim == 1 else flat.reshape(-1, 1)

    def rmatvec(self, x: Any) -> Any:
        """The product of the adjoint with a flat vector."""
        return self.T.matvec(x)

    def matmat(self, X: Any) -> Any:
        """The product with the columns of a matrix (n, k)."""
        self._single()
        X = np.asarray(X)
        columns = X.T.reshape(X.shape[1], *self._core(self.expression.domain))
        return (self @ columns).reshape(X.shape[1], -1).T

    def rmatmat(self, X: Any) -> Any:
        """The product of the adjoint with the columns of a matrix."""
        return self.T.matmat(X)

    def __repr__(self) -> str:
        m, n = self.shape
        return f"<{m}×{n} operator {self.expression} of {self.robot.name!r}>"

    def _single(self) -> None:
        if self.q.ndim > 1:
            raise ValueError(
                f"{self!r} is a batch of {self.q.shape[:-1]} operators; solvers take one at a time"
            )

    def _core(self, space: Space) -> tuple[int, ...]:
        if space.size == "body":
            return (self.robot.nb, 6)
        return (self._size(space),)

    def _size(self, space: Space) -> int:
        sizes = {"body": 6 * self.robot.nb, "frame": 6 * len(space.frames), "one": 1}
        if space.size in ("active", "passive"):
            return len(rows(space, self.active))
        return sizes.get(space.size, self.robot.nv)


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
    _check(x, robot, q)
    unknown = [name for name in vectors if name not in SYMBOLS]
    if unknown:
        raise TypeError(f"{x}: {unknown[0]!r} is no symbol of a vector; there are T, beta_dot, …")
    mask = as_mask(x, robot, active)
    lowered = lower(x, tuple(sorted(vectors)))
    check_conditions(x, lowered.derivation, robot)
    missing = [name for name in lowered.plan.inputs if name not in vectors and name != "beta"]
    if missing:
        meaning = SYMBOLS[missing[0]].meaning
        raise ValueError(f"{x} needs {missing[0]} ({meaning}): pass {missing[0]}=…")
    program = as_program(x, tuple(sorted(vectors)), mask)
    if "v" in program.parameters and v is None:
        raise ValueError(f"{x} depends on the motion: pass the joint rates v, (robot, q, v)")
    arrays = {"v": v, **vectors}
    used = {name: arrays[name] for name in program.parameters if arrays.get(name) is not None}
    if external is not None and "external" in program.parameters:
        used["external"] = external
    return program(robot, q, **used)


def _check(x: Expression, robot: Any, q: Any) -> None:
    if not isinstance(robot, Robot):
        raise TypeError(f"{x} needs a Robot first, got {type(robot).__name__}")
    if np.shape(q)[-1:] != (robot.nq,):
        raise ValueError(
            f"{x}: q has shape {np.shape(q)}, robot {robot.name!r} has nq = {robot.nq}"
        )
    check_frames(x, robot)


def _finite(op: LinearOperator, found: Any) -> Any:
    """The result, or why it is infinite."""
    if np.isfinite(found).all():
        return found
    hinge = _singular(op)
    why = (
        f"D of hinge {hinge!r} is zero: nothing that it moves has inertia along it; give a body "
        "outboard of it mass or the joint armature"
        if hinge
        else "it is singular there, or what it is applied to is not finite"
    )
    raise np.linalg.LinAlgError(f"{op.expression} on robot {op.robot.name!r}: {why}")


def _singular(op: LinearOperator) -> str | None:
    """The outermost hinge whose D is not positive, at some configuration."""
    if op.expression is D:
        return None
    blocks = LinearOperator(D, op.robot, op.q).matrix().reshape(-1, op.robot.nv, op.robot.nv)
    for h in reversed(op.robot.hinges):
        own = blocks[:, h.v, h.v]
        usual = own[np.isfinite(own).all((1, 2))]
        if h.kind.nv and len(usual) and np.linalg.eigvalsh(usual).min() <= 0.0:
            return h.name
    return None
