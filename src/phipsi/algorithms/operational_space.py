"""Operational space: Υ = J𝓜⁻¹J*, its inverse Λ, and the effects of tip forces and impulses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from phipsi.algorithms.base_invariant import operational
from phipsi.algorithms.cut import Whitened
from phipsi.compile import where
from phipsi.model import Robot
from phipsi.operators import B, C, H, J, T, a, mass, phi
from phipsi.operators.lowering.compute import compute
from phipsi.operators.lowering.steps import riccati, upsilon
from phipsi.programs import program
from phipsi.spatial import Compliance, Pivot, SemiPivot, SingularError
from phipsi.sweeps import forest, inward, outward, stack
from phipsi.typing import (
    Array,
    ConfigurationLike,
    ExternalForces,
    JointVector,
    JointVectorLike,
    ScalarLike,
)


@program(joint_space=True)
def tip_force_accelerations(
    robot: Robot, q: ConfigurationLike, forces: ExternalForces
) -> JointVector:
    """The change of joint accelerations by forces that the robot exerts: −𝓜⁻¹J*f ([SOA] (5.3)).

    −𝓜⁻¹J*f = −(I − HψK)*D⁻¹HψBf ([SOA] Application 1). f is the f(0) of the papers, the force of
    the robot on its surroundings: the opposite of an external force. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    forces : (…, nb, 6) or {frame: (…, 6)}
        Forces of the bodies or of named frames on the surroundings, [moment; force] [N·m, N] in
        their own axes, at their origins.

    Returns
    -------
    (…, nv)
        Changes of the joint accelerations [rad/s² or m/s²].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, f = [0.3, -0.5], np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    >>> a = pp.tip_force_accelerations(robot, q, {"tool": f})
    >>> torque = pp.jacobian(robot, q, "tool").T @ f
    >>> np.allclose(a, -pp.mass_matrix_solve(robot, q, torque))
    True
    """
    if not isinstance(forces, Mapping):
        return compute(-(mass.inv @ H @ phi), robot, q, x=forces)
    if not forces:
        return np.zeros(robot.nv)
    x = np.concatenate([np.asanyarray(forces[name]) for name in forces])
    return compute(-(mass.inv @ J(*forces).T), robot, q, x=x)


@program(static=("frames",), joint_space=True)
def operational_inertia_inverse(
    robot: Robot, q: ConfigurationLike, frames: str | Sequence[str] | None = None
) -> Array:
    """The compliance Υ = J𝓜⁻¹J*: the acceleration of bodies by forces on them ([SOA] (5.8)).

    Without `frames`: of every body, Υ = τ̄*Υ⁺τ̄ + H*D⁻¹H from base to tip ([BI] (34)). With
    `frames`: between all of them, as e*D⁻¹e of the innovations e = HψB of their forces, so that the
    coupling of frames on different branches, and of several on one branch, is included. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    frames
        Name of a frame or body, or a list of n names. Default: every body by itself.

    Returns
    -------
    (…, nb, 6, 6) or (…, 6n, 6n)
        Υ of every body in its own frame; or Υ of the named frames, in their own axes at their
        origins. Symmetric, positive semidefinite.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q = [0.3, -0.5]
    >>> J = pp.jacobian(robot, q, "tool")
    >>> Upsilon = pp.operational_inertia_inverse(robot, q, "tool")
    >>> np.allclose(Upsilon, J @ pp.mass_matrix_inverse(robot, q) @ J.T)
    True
    """
    if frames is None:
        x = inward(riccati, forest(robot, q))
        return stack(outward(upsilon, x, Upsilon=Compliance.zero()), "Upsilon", (6, 6))
    return _upsilon(robot, q, frame_names(frames))


def _upsilon(
    robot: Robot, q: ConfigurationLike, names: tuple[str, ...]
) -> Annotated[Array, "6n 6n"]:
    """Υ of the named frames."""
    return Whitened(robot, q, names, np.eye(6 * len(names)).astype(object)).gram


def frame_names(frames: str | Sequence[str]) -> tuple[str, ...]:
    """The names of frames that are given as one name or as a list of names."""
    names: Sequence[str] = (frames,) if isinstance(frames, str) else frames
    if (
        not isinstance(names, (list, tuple))
        or not names
        or not all(isinstance(name, str) for name in names)
    ):
        raise TypeError(f"frames is {frames!r}, needs the name of a frame or a list of names")
    return tuple(names)


def inverse(
    Upsilon: Annotated[Array, "6n 6n"], damping: ScalarLike | None
) -> Annotated[Array, "6n 6n"]:
    """Υ⁻¹, NaN where Υ is singular; with damping μ, (Υ + μ²I)⁻¹. Symmetric."""
    n = len(Upsilon)
    if damping is not None:
        mu = np.asanyarray(damping)
        return inverse_block(Pivot(Upsilon + mu * mu * np.eye(n)), n)
    pivot = SemiPivot(Upsilon)
    return where(pivot.regular, inverse_block(pivot, n), np.nan)


def inverse_block(pivot: Pivot, n: int) -> Annotated[Array, "n n"]:
    """The last n rows and columns of the inverse of a factored matrix, symmetric."""
    units = np.eye(len(pivot.d)).astype(object)[-n:]
    out = np.stack([pivot.solve(unit)[-n:] for unit in units], axis=1)
    return np.where(np.tri(n) > 0, out, out.T)


Verify = Callable[[Array, tuple[Any, ...], dict[str, Any]], Array]


def exists(core: int, sentence: str) -> Verify:
    """A `verify` for programs whose result is NaN where it does not exist.

    A single state, for which the result has `core` axes, is refused with the sentence if the result
    has NaN although the arguments are finite. In a batch such rows stay NaN.
    """

    def verify(result: Array, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Array:
        if np.ndim(result) == core and np.isnan(result).any():
            arrays = (np.asarray(x) for x in (*args[1:], *kwargs.values()))
            if all(np.isfinite(x).all() for x in arrays if x.dtype.kind == "f"):
                raise SingularError(sentence)
        return result

    return verify


NO_LAMBDA = (
    "Λ does not exist at this configuration: the frames cannot accelerate in every direction (too "
    "few joints, or singular); pass damping=, or use Υ, operational_inertia_inverse, which always "
    "exists"
)


@program(static=("frames",), joint_space=True, verify=exists(2, NO_LAMBDA))
def operational_inertia(
    robot: Robot,
    q: ConfigurationLike,
    frames: str | Sequence[str] | None = None,
    *,
    damping: ScalarLike | None = None,
) -> Array:
    """Λ = (J𝓜⁻¹J*)⁻¹: the inertia that is felt at frames ([SOA] 5.2, [BI] Lemma 4.1, Alg 4.1).

    With `frames`: of the named frames together; Λ does not exist where they cannot accelerate in
    every direction. Without: of every body by itself; in trees with a free base Λ = P + S, without
    an inversion. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    frames
        Name of a frame or body, or a list of n names. Default: every body by itself.
    damping : (…), optional
        μ of the damped inverse (Υ + μ²I)⁻¹, which always exists; needs `frames`.

    Returns
    -------
    (…, nb, 6, 6) or (…, 6n, 6n)
        Λ of every body in its own frame; or Λ of the named frames, in their own axes at their
        origins [kg, kg·m, kg·m²]. Without `frames` and in a batch, NaN where it does not exist.

    Raises
    ------
    SingularError
        If Λ of named frames at a single state does not exist and there is no damping.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.puma560()
    >>> q = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    >>> Lambda = pp.operational_inertia(robot, q, "tool")
    >>> np.allclose(Lambda @ pp.operational_inertia_inverse(robot, q, "tool"), np.eye(6))
    True
    """
    if frames is not None:
        return inverse(_upsilon(robot, q, frame_names(frames)), damping)
    if damping is not None:
        raise TypeError("operational_inertia: damping= needs frames=; Λ = P + S of bodies has none")
    return operational(robot, q).rows(lambda x: stack(x, "Lambda", (6, 6)))


@program(static=("frames",), joint_space=True, verify=exists(1, NO_LAMBDA))
def operational_bias(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    frames: str | Sequence[str],
    *,
    tau: JointVectorLike | None = None,
    external: ExternalForces | None = None,
    damping: ScalarLike | None = None,
) -> Annotated[Array, "6n"]:
    """The bias μ of the operational-space dynamics Λα + μ = F, F a force on the frames ([SOA] 5.2).

    μ = −Λα_f, where α_f = J𝓜⁻¹(T − C) + B*φ*a is the spatial acceleration of the frames without F.
    It includes velocity terms, gravity, external forces and `tau`. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    frames
        Name of a frame or body, or a list of n names.
    tau : (…, nv), optional
        Joint forces T [N·m or N]. Default: none.
    external : (…, nb, 6) or {frame: (…, 6)}, optional
        Forces on the bodies, [moment; force] [N·m, N] in their own frames, at the origins of these.
    damping : (…), optional
        Damping of Λ, as in `operational_inertia`.

    Returns
    -------
    (…, 6n)
        [moment; force] of each frame [N·m, N], in its own axes at its origin. In a batch, NaN in
        the rows where Λ does not exist.

    Raises
    ------
    SingularError
        If Λ of a single state does not exist and there is no damping.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.puma560()
    >>> q, v = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], np.ones(6)
    >>> mu = pp.operational_bias(robot, q, v, "tool")
    >>> a = pp.forward_dynamics(robot, q, v, np.zeros(6), external={"tool": mu})
    >>> np.allclose(pp.frame_acceleration(robot, q, v, a, "tool"), 0.0)  # F = μ gives α = 0
    True
    """
    names = frame_names(frames)
    free = J(*names) @ mass.inv @ (T - C) + B(*names).T @ phi.T @ a
    tau = np.zeros(robot.nv) if tau is None else tau
    alpha = compute(free, robot, q, v, T=tau, external=external)
    return -(inverse(_upsilon(robot, q, names), damping) @ alpha)


@program(joint_space=True)
def impact(robot: Robot, q: ConfigurationLike, impulses: ExternalForces) -> JointVector:
    """The jump of the joint velocities by impulses on the robot: Δβ = 𝓜⁻¹J*p ([SOA] 5.1).

    For bodies that catch or hit each other see `capture`. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    impulses : (…, nb, 6) or {frame: (…, 6)}
        Impulses p on the bodies or on named frames, [moment; force]·s [N·m·s, N·s] in their own
        axes, at their origins.

    Returns
    -------
    (…, nv)
        Jumps Δβ of the joint velocities [rad/s or m/s].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, p = [0.3, -0.5], np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    >>> jump = pp.impact(robot, q, {"tool": p})
    >>> np.allclose(pp.mass_matrix_product(robot, q, jump), pp.jacobian(robot, q, "tool").T @ p)
    True
    """
    return -tip_force_accelerations(robot, q, impulses)
