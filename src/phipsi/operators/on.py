"""Expressions on a robot: linear operators, values of vectors, parts of programs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np

from phipsi.compile import Kernel
from phipsi.model import Hinge, ModelError, Robot
from phipsi.operators import dense as dense_algebra
from phipsi.operators.expressions import Expression
from phipsi.operators.identities import CONDITIONS, Condition
from phipsi.operators.lower import Lowered, lower
from phipsi.operators.run import Run
from phipsi.operators.spaces import SCALARS, Space
from phipsi.operators.symbols import *
from phipsi.operators.systems import system
from phipsi.operators.words import MEANING, Polynomial, TooLong, Word
from phipsi.sweeps import Program

Mask = tuple[bool, ...]

DUAL = {S, S_plus, G_s, psi_s, Lambda, tau_bar_s}
JOINT_SPACE = {A, C, D, D_half, T, beta, beta_dot, l, m, mass, *MEANING}
"""Symbols that every robot with the same joint-space dynamics has in common."""


def compute(
    expression: Expression,
    robot: Robot,
    q: Any,
    v: Any = None,
    /,
    *,
    active: Mask | None = None,
    external: Any = None,
    **vectors: Any,
) -> Any:
    """The value of an expression as a part of a traced program: the sweeps of its cheapest form.

    An operator is applied to the vector `x=`; other vectors are given by the names of their
    symbols, `T=tau`.
    """
    given = tuple(name for name in vectors if name in SYMBOLS)
    lowered = lower(expression, given)
    check_conditions(expression, lowered, robot)
    return _run(lowered, robot, q, v, active, external, vectors)


def _run(
    lowered: Lowered, robot: Robot, q: Any, v: Any, active: Mask | None, external: Any,
    vectors: Mapping[str, Any],
) -> Any:  # fmt: skip
    plan = lowered.plan
    full = {name: _padded(robot, plan.inputs[name], x, active) for name, x in vectors.items()
            if name in plan.inputs}  # fmt: skip
    more: dict[str, Any] = {} if v is None else {"v": v}
    if active is not None:
        more["passive"] = 1.0 - np.array(active, float)
    if "beta" in plan.inputs:
        full["beta"] = v
    result = Run(plan, robot, q, full, external=external, **more).result
    return _picked(robot, plan.result.space, result, active)


def _padded(robot: Robot, space: Space, x: Any, active: Mask | None) -> Any:
    """A vector of active or passive joints in the length of all."""
    if space.size not in ("active", "passive"):
        return x
    out = np.full(robot.nv, 0.0, object)
    out[_rows(space, active)] = np.asarray(x)
    return out


def _picked(robot: Robot, space: Space, x: Any, active: Mask | None) -> Any:
    return x[_rows(space, active)] if space.size in ("active", "passive") else x


def _rows(space: Space, active: Mask | None) -> np.ndarray:
    mask = np.array(active, bool)
    return np.flatnonzero(mask if space.size == "active" else ~mask)


# ---- programs -----------------------------------------------------------------------------------


@cache
def as_program(
    x: Expression, given: tuple[str, ...] = (), active: Mask | None = None
) -> Program[Any, Any]:
    """The program (robot, q[, v], vectors…) that computes an expression; an operator is applied to
    its last argument, `x`."""
    lowered = lower(x, given)
    plan = lowered.plan
    moving = plan.moving or "beta" in plan.inputs
    spaces = {} if x.domain == SCALARS else {"x": x.domain}
    spaces |= {name: space for name, space in plan.inputs.items() if name != "beta"}
    names = ["robot", "q", *(["v"] if moving else []), *sorted(spaces)]

    def function(robot: Robot, *arrays: Any, external: Any = None) -> Any:
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
            return (len(_rows(space, active)),)
    return ("nv",)


def _joint_space(lowered: Lowered) -> bool:
    """Is a form of it made of what depends on the joint-space dynamics alone?"""

    def known(form: Expression) -> bool:
        try:
            words = _with_bias(Polynomial.of(form).words)
        except TooLong:
            return False
        leaves = {leaf for word in words for letter in word for leaf in letter.leaves}
        return all(leaf in JOINT_SPACE or leaf.symbol.name == "J" for leaf in leaves)

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


# ---- what a robot must be ------------------------------------------------------------------------


def check_conditions(x: Expression, lowered: Lowered, robot: Robot) -> None:
    """Refuse a robot for which the derivation does not hold."""
    for name in lowered.derivation.needs:
        found = _against(name, robot)
        if found:
            raise ModelError(
                f"{x} on robot {robot.name!r}: its inverse is known only if {CONDITIONS[name]}, "
                f"but {found}; 𝓜 (mass) has the armature in it, so mass.inv always works, "
                "and dense=True inverts anything"
            )


def _against(condition: Condition, robot: Robot) -> str:
    """Why a condition does not hold, if so."""
    match condition:
        case "no armature":
            held = [h for h in robot.hinges if _armed(h)]
            return f"joint {held[0].name!r} has some" if held else ""
        case "free base":
            roots = [h for h, p in zip(robot.hinges, robot.parents, strict=True) if p < 0]
            held = [h for h in roots if h.kind.name != "free" or _armed(h)]
            return f"root joint {held[0].name!r} is not free" if held else ""
    return ""


def _armed(h: Hinge) -> bool:
    return not all(isinstance(a, float) and a == 0.0 for a in h.armature)


def check_frames(x: Expression, robot: Robot) -> None:
    """Refuse frames that the robot does not have, and the dual set without a free base."""
    dual = sorted((leaf for leaf in x.leaves if leaf in DUAL), key=str)
    found = _against("free base", robot) if dual else ""
    if found:
        raise ModelError(f"{x}: {dual[0]} is known only on a free base, but {found}")
    for frame in sorted({name for leaf in x.leaves for name in leaf.frames}):
        robot.frame(frame)


def as_mask(x: Expression, robot: Robot, active: Any) -> Mask | None:
    """Which joint rates are active, as constants."""
    if active is None:
        split = [leaf for leaf in x.leaves
                 if {leaf.domain.size, leaf.codomain.size} & {"active", "passive"}
                 or leaf.symbol.name.split("_")[-1] == "p"]  # fmt: skip
        if split:
            raise ValueError(
                f"{x}: {split[0]} needs to know which joints are active; "
                f"pass active=, {robot.nv} truth values or the names of hinges"
            )
        return None
    if all(isinstance(name, str) for name in active):
        chosen = np.zeros(robot.nv, bool)
        for name in active:
            chosen[robot.hinge(name).v] = True
        return tuple(chosen.tolist())
    mask = np.asarray(active)
    if mask.shape != (robot.nv,) or mask.dtype != bool:
        raise ValueError(
            f"active has shape {mask.shape} of {mask.dtype}, needs {robot.nv} truth values "
            "or the names of hinges"
        )
    return tuple(mask.tolist())


# ---- on arrays -----------------------------------------------------------------------------------


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
            check_conditions(expression, lower(expression), robot)

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
        each = [dense_algebra.matrix(self.expression, system(self.robot, q, self.v,
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
            return len(_rows(space, self.active))
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
    check_conditions(x, lowered, robot)
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
