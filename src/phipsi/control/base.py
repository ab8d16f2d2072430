"""Controllers of the base of a free-flyer: thrusters with a dead band, and reaction wheels.

Each returns joint forces and `active`, the freedoms that it leaves to other controllers, so that it
can assist a controller of the arm: see `assisted`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple, TypedDict

import numpy as np

from phipsi.algorithms import frame_pose
from phipsi.algorithms.under_actuated import as_mask
from phipsi.compile import linalg, where
from phipsi.control.gains import Gain, controller
from phipsi.control.tasks import arrays, length, pose_error
from phipsi.model import Hinge, ModelError, Robot
from phipsi.typing import (
    Array,
    ArrayLike,
    ConfigurationLike,
    JointVector,
    JointVectorLike,
    MaskLike,
    PoseLike,
    Scalar,
    ScalarLike,
    SpatialVector,
)

MEMORY = 8
"""Length of the memory of thrusters: −1, 0 or 1 for six axes, two impulses [N·m·s, N·s]."""
JETS = {
    "moment": Gain(3),
    "force": Gain(3, zero=True),
    "attitude_band": Gain(),
    "position_band": Gain(),
    "lead": Gain(zero=True),
    "release": Gain(zero=True, most=1.0),
}
WHEELS = {"wheel_stiffness": Gain(), "wheel_damping": Gain()}


def _hinge(what: str, robot: Robot, base: str) -> Hinge:
    """The free hinge of a base; `what` is the controller in the error."""
    hinge = robot.hinge(base)
    if hinge.kind.name != "free":
        raise ModelError(f"{what}: hinge {base!r} of robot {robot.name!r} is not free to float")
    return hinge


class ThrusterControl(TypedDict):
    """Result of `thrusters`."""

    tau: JointVector
    """(…, nv) [N·m or N]."""
    memory: Annotated[Array, "8"]
    """(…, 8), to be passed to the next step."""
    firing: SpatialVector
    """(…, 6): −1, 0 or 1 for each axis [moment; force]."""
    impulse: Annotated[Array, "2"]
    """(…, 2) angular and linear impulse spent so far [N·m·s, N·s]."""
    active: JointVector
    """(…, nv) the given `active` as numbers 1 and 0."""


@controller(gains=JETS)
def thrusters(
    robot: Robot,
    dt: ScalarLike,
    q: ConfigurationLike,
    v: JointVectorLike,
    active: MaskLike,
    memory: Annotated[ArrayLike, "8"],
    *,
    base_pose: PoseLike | None = None,
    base: str = "base",
    moment: ArrayLike = 5.0,
    force: ArrayLike = 20.0,
    attitude_band: ScalarLike = 0.02,
    position_band: ScalarLike = 0.05,
    lead: ScalarLike = 2.0,
    release: ScalarLike = 0.2,
) -> ThrusterControl:
    """Thrusters of the base: off within a dead band, full on beyond it, with hysteresis.

    Along each of the six axes of the base, σ = e − T ė, with the error e to `base_pose` in the
    axes of the base and the `lead` time T. A thruster starts to fire towards the target where |σ|
    exceeds the band of its axis, and stops where |σ| falls below `release` times the band. The
    memory says which thrusters fire during the step `dt`: all stages of a step agree, and a
    decision takes effect one step later.

    Parameters
    ----------
    robot
        The robot.
    dt : (…)
        Time step [s].
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    active : (…, nv) bool or names of hinges
        Freedoms that other controllers drive; returned unchanged, as numbers.
    memory : (…, 8)
        Which thrusters fire (6) and the impulses spent (2); zeros at the start, later the `memory`
        of the last result.
    base_pose : (…, 4, 4), optional
        Desired pose of the base; by default the axes and origin of the world.
    base
        Name of the free hinge of the base.
    moment : number or (3,)
        Strength of thrusters that turn [N·m], one number or one per axis of the base.
    force : number or (3,)
        Strength of thrusters that push [N]; 0: there are none.
    attitude_band : ()
        Half the width of the dead band of σ about each axis [rad].
    position_band : ()
        Half the width of the dead band of σ along each axis [m].
    lead : ()
        Lead time T ≥ 0 [s].
    release : ()
        Part of the band below which a thruster stops, between 0 and 1.

    Returns
    -------
    ThrusterControl
        Dictionary of `tau` (…, nv) [N·m or N], `memory` (…, 8), `firing` (…, 6) with −1, 0 or 1,
        `impulse` (…, 2) [N·m·s, N·s] spent so far, and `active` (…, nv).

    Raises
    ------
    ModelError
        If the hinge `base` is not free.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> from phipsi.control import thrusters
    >>> robot = pp.robots.space_arm()
    >>> q, v = robot.neutral(), np.zeros(robot.nv)
    >>> q[0] = 0.2  # the base is 0.2 m away from the origin, along x
    >>> out = thrusters(robot, 0.1, q, v, robot.driven, memory=np.zeros(8))
    >>> out = thrusters(robot, 0.1, q, v, robot.driven, memory=out["memory"])
    >>> out["tau"][:6] + 0.0
    array([  0.,   0.,   0., -20.,   0.,   0.])
    """
    memory, v, moment, force = arrays(memory, v, moment, force)
    attitude_band, position_band, release = arrays(attitude_band, position_band, release)
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


class WheelControl(TypedDict):
    """Result of `wheel_attitude_hold`."""

    tau: JointVector
    """(…, nv) [N·m or N]."""
    base_attitude_error: Scalar
    """Length of the rotation vector of the error [rad]."""
    active: JointVector
    """(…, nv) the given `active` as numbers 1 and 0, with 0 for the wheels."""


@controller(gains=WHEELS, static=("wheels",))
def wheel_attitude_hold(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    active: MaskLike,
    *,
    base_pose: PoseLike | None = None,
    base: str = "base",
    wheels: str | Sequence[str] = ("wheel_x", "wheel_y", "wheel_z"),
    wheel_stiffness: ScalarLike = 2.0,
    wheel_damping: ScalarLike = 20.0,
) -> WheelControl:
    """Reaction wheels that hold the attitude of the base: T_w = −U⁺(k R*log(R_dR*) − b ω).

    U (3, n) are the axes of the wheels in the base; more than three wheels share the moment by
    least squares.

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    active : (…, nv) bool or names of hinges
        Freedoms that may be driven; those of the wheels are taken out of the result.
    base_pose : (…, 4, 4), optional
        Pose whose attitude R_d the base shall keep; by default the axes of the world.
    base
        Name of the free hinge of the base.
    wheels
        Names of the hinges of the wheels, revolute or continuous, at least three whose axes are
        not in one plane.
    wheel_stiffness : ()
        k, positive [N·m/rad].
    wheel_damping : ()
        b, positive [N·m·s/rad].

    Returns
    -------
    WheelControl
        Dictionary of `tau` (…, nv) [N·m or N], zero for all but wheels, `base_attitude_error` (…)
        [rad], and `active` (…, nv) without the wheels.

    Raises
    ------
    ModelError
        If the hinge `base` is not free, if a hinge is no wheel that turns in the base, or if the
        axes of the wheels are in one plane.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> from phipsi.control import wheel_attitude_hold
    >>> robot = pp.robots.space_arm(wheels=True)
    >>> q, v = robot.neutral(), np.zeros(robot.nv)
    >>> v[:3] = (0.1, 0.0, 0.0)  # the base turns about x
    >>> tau = wheel_attitude_hold(robot, q, v, robot.driven, wheel_damping=20.0)["tau"]
    >>> float(tau[robot.hinge("wheel_x").v][0])
    2.0
    """
    (v,) = arrays(v)
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
        "base_attitude_error": length(e[:3]),
        "active": left * where(as_mask(robot, active), 1.0, 0.0),
    }


class Wheels(NamedTuple):
    """The reaction wheels of a base."""

    freedoms: Array
    """(n,) indices of their joint velocities."""
    axes: Array
    """(3, n) in the base."""


def _wheels(robot: Robot, body: str, names: str | Sequence[str]) -> Wheels:
    """The wheels of these names, which turn in the body."""
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
    return Wheels(np.array([h.v.start for h in hinges]), U)
