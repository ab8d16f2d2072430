"""Controllers of the base of a free-flyer: thrusters with a dead band, reaction wheels.

Each returns joint forces and the freedoms that it leaves to others (`active`), so that it can
assist a controller of the arm: see `assisted`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from phipsi.algorithms import frame_pose
from phipsi.algorithms.under_actuated import as_mask
from phipsi.compile import linalg, where
from phipsi.control.gains import Gain, controller
from phipsi.control.tasks import pose_error
from phipsi.model import ModelError, Robot

MEMORY = 8
"""How much thrusters remember: −1, 0 or 1 of six axes, impulses [N·m·s, N·s]."""
JETS = {
    "moment": Gain(3),
    "force": Gain(3, zero=True),
    "attitude_band": Gain(),
    "position_band": Gain(),
    "lead": Gain(zero=True),
    "release": Gain(zero=True, most=1.0),
}


def _hinge(what: str, robot: Robot, base: str) -> Any:
    hinge = robot.hinge(base)
    if hinge.kind.name != "free":
        raise ModelError(f"{what}: hinge {base!r} of robot {robot.name!r} is not free to float")
    return hinge


@controller(
    gains=JETS,
    shapes={"dt": (), "memory": (MEMORY,), "base_pose": (4, 4), "active": ("nv",)},
    masks=("active",),
)
def thrusters(
    robot: Robot,
    dt: Any,
    q: Any,
    v: Any,
    active: Any,
    memory: Any,
    *,
    base_pose: Any = None,
    base: str = "base",
    moment: Any = 5.0,
    force: Any = 20.0,
    attitude_band: Any = 0.02,
    position_band: Any = 0.05,
    lead: Any = 2.0,
    release: Any = 0.2,
) -> dict[str, Any]:
    """Thrusters of the base: off within a dead band, full on beyond it, with hysteresis.

    Along each of six axes of the base, σ = e − T ė with the error e to `base_pose` (None: the
    world's axes and origin), in its own axes, and the `lead` time T [s]: fires towards it where
    |σ| exceeds `attitude_band` [rad] or `position_band` [m], until it falls below `release` times
    that. `moment` [N·m] and `force` [N] are their strength, a number or one per axis (force 0: none
    that push). `memory` (8,), zeros at first, holds what fires and the impulses spent; what it
    says fires is what acts for the step `dt` [s], so that all stages of a step agree and
    decisions take effect one step later.

    Returns tau (nv,), memory, `firing` (6,) (−1, 0, 1), `impulse` (2,) [N·m·s, N·s] spent so far,
    and `active` as given.
    """
    hinge = _hinge("thrusters", robot, base)
    pose = frame_pose(robot, q, hinge.child)
    e = pose_error(pose, np.eye(4) if base_pose is None else base_pose)
    R = pose[:3, :3]
    sigma = np.concatenate([R.T @ e[:3], R.T @ e[3:]]) - lead * v[hinge.v]
    ones = np.ones(3)
    band = np.concatenate([attitude_band * ones, position_band * ones])
    strength = np.concatenate([moment * ones, force * ones])
    now, impulse = memory[:6], memory[6:]
    kept = where(now * sigma > release * band, now, 0.0)
    after = where(sigma > band, 1.0, where(sigma < -band, -1.0, kept))
    push = strength * now
    spent = dt * np.sum(np.abs(push).reshape(2, 3), axis=1)
    tau = np.full(robot.nv, 0.0, object)
    tau[hinge.v] = push
    return {
        "tau": tau,
        "memory": np.concatenate([after, impulse + spent]),
        "firing": now,
        "impulse": impulse,
        "active": where(as_mask(robot, active), 1.0, 0.0),
    }


@controller(
    gains={"wheel_stiffness": Gain(), "wheel_damping": Gain()},
    shapes={"base_pose": (4, 4), "active": ("nv",)},
    static=("wheels",),
    masks=("active",),
)
def wheel_attitude_hold(
    robot: Robot,
    q: Any,
    v: Any,
    active: Any,
    *,
    base_pose: Any = None,
    base: str = "base",
    wheels: Any = ("wheel_x", "wheel_y", "wheel_z"),
    wheel_stiffness: Any = 2.0,
    wheel_damping: Any = 20.0,
) -> dict[str, Any]:
    """T_w = −U⁺(k R*log(R_dR*) − b ω): reaction wheels with axes U (3, n) hold the attitude of the
    base they turn in.

    `wheel_stiffness` k [N·m/rad], `wheel_damping` b [N·m·s/rad]; `wheels` are the names of their
    hinges, revolute or continuous, at least three whose axes are not in one plane; more of them
    share the moment by least squares. Returns tau (nv,), base_attitude_error [rad], and `active`
    less those that turn wheels.
    """
    hinge = _hinge("wheel_attitude_hold", robot, base)
    spinning, U = _wheels(robot, hinge.child, wheels)
    pose = frame_pose(robot, q, hinge.child)
    e = pose_error(pose, np.eye(4) if base_pose is None else base_pose)
    omega = v[hinge.v][:3]
    moment = wheel_stiffness * (pose[:3, :3].T @ e[:3]) - wheel_damping * omega
    tau = np.full(robot.nv, 0.0, object)
    tau[spinning] = -linalg.least_squares(U, moment)
    left = np.where(np.isin(np.arange(robot.nv), spinning), 0.0, 1.0)
    return {
        "tau": tau,
        "base_attitude_error": np.linalg.norm(e[:3]),
        "active": left * where(as_mask(robot, active), 1.0, 0.0),
    }


def _wheels(robot: Robot, body: str, names: Any) -> tuple[np.ndarray, np.ndarray]:
    """The freedoms of wheels, and their axes in the base (3, n)."""
    hinges = [robot.hinge(name) for name in ((names,) if isinstance(names, str) else names)]
    for h in hinges:
        if h.kind.nv != 1 or h.parent != body or h.kind.name not in ("revolute", "continuous"):
            raise ModelError(
                f"wheel_attitude_hold: hinge {h.name!r} of robot {robot.name!r} is no wheel that "
                f"turns in {body!r}"
            )
    axes = [np.asarray(h.placement.rotation @ h.axes[0], float) for h in hinges]
    U = np.array(axes).reshape(-1, 3).T
    if np.linalg.matrix_rank(U) < 3:
        raise ModelError(
            f"wheel_attitude_hold: the axes of {len(hinges)} wheels of robot {robot.name!r} do not "
            "span all directions; it takes three that are not in one plane"
        )
    return np.array([h.v.start for h in hinges]), U
