"""Operational space: Υ = J𝓜⁻¹J*, its inverse Λ, what tip forces and impulses do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


@program(shapes={"forces": ("nb", 6)}, joint_space=True)
def tip_force_accelerations(robot: Robot, q: Any, forces: Any) -> Any:
    """What forces that the robot exerts on its surroundings change in its joint accelerations:
    −𝓜⁻¹J*f = −(I − HψK)*D⁻¹HψBf ([SOA] Application 1, (5.3)).

    `forces` is {frame: [moment; force]}, in the frame's axes at its origin, or (…, nb, 6); f is the
    papers' f(0), the opposite of an external force. Returns (…, nv) [rad/s² or m/s²]. Cost O(N).
    """
    if not isinstance(forces, Mapping):
        return compute(-(mass.inv @ H @ phi), robot, q, x=forces)
    if not forces:
        return np.zeros(robot.nv)
    x = np.concatenate([forces[name] for name in forces])
    return compute(-(mass.inv @ J(*forces).T), robot, q, x=x)


@program(static=("frames",), joint_space=True)
def operational_inertia_inverse(robot: Robot, q: Any, frames: Any = None) -> Any:
    """Υ = J𝓜⁻¹J*: the acceleration of bodies by forces on them ([SOA] (5.8), [BI] (34)).

    Of every body in its own frame, Υ = τ̄*Υ⁺τ̄ + H*D⁻¹H from base to tip: (…, nb, 6, 6). Or between
    the named `frames` (one name or several), in their axes at their origins: (…, 6n, 6n), with the
    innovations e = HψB of their forces as e*D⁻¹e, so that frames on different branches, or several
    on one, are coupled as they are. Symmetric, positive semidefinite. Cost O(N).
    """
    if frames is None:
        x = inward(riccati, forest(robot, q))
        return stack(outward(upsilon, x, Upsilon=Compliance.zero()), "Upsilon", (6, 6))
    return _upsilon(robot, q, as_names(frames))


def _upsilon(robot: Robot, q: Any, names: tuple[str, ...]) -> Any:
    return Whitened(robot, q, names, np.eye(6 * len(names)).astype(object)).gram


def as_names(frames: Any) -> tuple[str, ...]:
    """One name of a frame, or several, as several."""
    names = (frames,) if isinstance(frames, str) else frames
    if (
        not isinstance(names, (list, tuple))
        or not names
        or not all(isinstance(name, str) for name in names)
    ):
        raise TypeError(f"frames is {frames!r}, needs the name of a frame or a list of names")
    return tuple(names)


def inverse(Upsilon: Any, damping: Any) -> Any:
    """Υ⁻¹, NaN where it does not exist, or (Υ + μ²I)⁻¹; symmetric."""
    n = len(Upsilon)
    if damping is not None:
        return inverse_block(Pivot(Upsilon + damping * damping * np.eye(n)), n)
    pivot = SemiPivot(Upsilon)
    return where(pivot.regular, inverse_block(pivot, n), np.nan)


def inverse_block(pivot: Pivot, n: int) -> Any:
    """The last n rows and columns of the inverse of a factored matrix, symmetric."""
    units = np.eye(len(pivot.d)).astype(object)[-n:]
    out = np.stack([pivot.solve(unit)[-n:] for unit in units], axis=1)
    return np.where(np.tri(n) > 0, out, out.T)


def exists(core: int, sentence: str) -> Any:
    """What refuses a single state, of which the result has `core` axes, where it does not exist:
    is NaN though the arguments are numbers. In a batch such rows are NaN."""

    def verify(result: Any, args: Any, kwargs: Any) -> Any:
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


@program(static=("frames",), shapes={"damping": ()}, joint_space=True, verify=exists(2, NO_LAMBDA))
def operational_inertia(robot: Robot, q: Any, frames: Any = None, *, damping: Any = None) -> Any:
    """Λ = (J𝓜⁻¹J*)⁻¹: the inertia that is felt at frames ([SOA] 5.2, [BI] Lemma 4.1, Alg 4.1).

    Of the named `frames` (one name or several): (…, 6n, 6n); NaN where they cannot accelerate in
    every direction (a single state raises), or damped, (Υ + μ²I)⁻¹. Of every
    body of a free-flyer, Λ = P + S, without an inversion: (…, nb, 6, 6) [kg, kg·m, kg·m²].
    Cost O(N).
    """
    if frames is not None:
        return inverse(_upsilon(robot, q, as_names(frames)), damping)
    if damping is not None:
        raise TypeError("operational_inertia: damping= needs frames=; Λ = P + S of bodies has none")
    return stack(operational(robot, q), "Lambda", (6, 6))


@program(static=("frames",), shapes={"damping": ()}, joint_space=True, verify=exists(1, NO_LAMBDA))
def operational_bias(
    robot: Robot,
    q: Any,
    v: Any,
    frames: Any,
    *,
    tau: Any = None,
    external: Any = None,
    damping: Any = None,
) -> Any:
    """μ of the operational-space dynamics Λα + μ = F, F a force on the frames ([SOA] 5.2).

    μ = −Λα_f with α_f = J𝓜⁻¹(T − C) + B*φ*a the spatial acceleration of the frames without F:
    velocity terms, gravity, external forces and `tau` (default none) are in it. Returns (…, 6n)
    [N·m, N] in the frames' axes; NaN or damped as `operational_inertia`. Cost O(N).
    """
    names = as_names(frames)
    free = J(*names) @ mass.inv @ (T - C) + B(*names).T @ phi.T @ a
    tau = np.zeros(robot.nv) if tau is None else tau
    alpha = compute(free, robot, q, v, T=tau, external=external)
    return -(inverse(_upsilon(robot, q, names), damping) @ alpha)


@program(shapes={"impulses": ("nb", 6)}, joint_space=True)
def impact(robot: Robot, q: Any, impulses: Any) -> Any:
    """The jump of the joint velocities by impulses on the robot: Δβ = 𝓜⁻¹J*p ([SOA] 5.1).

    `impulses` is {frame: [moment; force]·s}, in the frame's axes at its origin, or (…, nb, 6). For
    bodies that catch or hit each other see `capture`. Returns (…, nv) [rad/s or m/s]. Cost O(N).
    """
    return -tip_force_accelerations(robot, q, impulses)
