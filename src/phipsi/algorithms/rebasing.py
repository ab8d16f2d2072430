"""Another body as the base: the re-rooted robot, and the maps of states and forces ([BI] A)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phipsi.algorithms.kinematics import (
    accelerations,
    frame_pose,
    frame_velocity,
    jacobian,
)
from phipsi.arguments import a_class
from phipsi.caller import warn
from phipsi.model import Hinge, ModelWarning, Robot
from phipsi.model import rebase as model
from phipsi.programs import program
from phipsi.spatial import Force, Motion, Transform
from phipsi.typing import (
    Configuration,
    ConfigurationLike,
    JointVector,
    JointVectorLike,
)


@dataclass(frozen=True)
class RebasedRobot:
    """Two descriptions of the same robot with different bases, and the maps between their states.

    The maps are compiled and take any leading batch shape; `inverse` has those of the other
    direction.
    """

    old: Robot
    """The description that the maps start from."""
    robot: Robot
    """The description that they lead to: one or more trees of `old` rooted at another body."""

    def state(self, q: ConfigurationLike, v: JointVectorLike) -> tuple[Configuration, JointVector]:
        """The state (q', v') of the new description: v' = T v ([BI] A.1).

        The part of the free hinge is the pose and the velocity of the new base.

        Parameters
        ----------
        q : (…, nq)
            Configuration of `old`.
        v : (…, nv)
            Joint velocities of `old` [rad/s or m/s].

        Returns
        -------
        q : (…, nq)
            Configuration of `robot`.
        v : (…, nv)
            Joint velocities of `robot` [rad/s or m/s].
        """
        return rebased_state(self.old, q, v, other=self.robot)

    def acceleration(
        self, q: ConfigurationLike, v: JointVectorLike, a: JointVectorLike
    ) -> JointVector:
        """The joint accelerations a' = T a + Ṫ v of the new description.

        Parameters
        ----------
        q : (…, nq)
            Configuration of `old`.
        v : (…, nv)
            Joint velocities of `old` [rad/s or m/s].
        a : (…, nv)
            Joint accelerations of `old` [rad/s² or m/s²].

        Returns
        -------
        (…, nv)
            Joint accelerations of `robot` [rad/s² or m/s²].
        """
        return rebased_acceleration(self.old, q, v, a, other=self.robot)

    def force(self, q: ConfigurationLike, tau: JointVectorLike) -> JointVector:
        """The joint forces tau' = T⁻* tau of the new description, where v'·tau' = v·tau.

        The power is the same. A force on the old base becomes a force on that body, which the
        hinges between that body and the new base must then transmit.

        Parameters
        ----------
        q : (…, nq)
            Configuration of `old`.
        tau : (…, nv)
            Joint forces of `old` [N·m or N].

        Returns
        -------
        (…, nv)
            Joint forces of `robot` [N·m or N].
        """
        return rebased_force(self.old, q, tau, other=self.robot)

    @property
    def inverse(self) -> RebasedRobot:
        """The maps from the new description back to the old one."""
        return RebasedRobot(self.robot, self.old)


def rebase(robot: Robot, body: str) -> RebasedRobot:
    """The same robot with another body of a free tree as its base ([BI] Appendix A).

    The hinges between the old base and `body` are reversed (same kinds and names, opposite axes),
    and the frame of each body between them moves to the hinge that is now inboard. Its old frame
    stays as a frame with the name of the body, for `jacobian`, `frame_pose` and
    `external={name: …}`. The free hinge keeps its name and moves the new base. The mechanics are
    the same: 𝓜' = T⁻*𝓜T⁻¹. If `body` is the base already, the robot is the same.

    A planar, spherical or free hinge inside the tree whose numbers cannot be expressed in the
    coordinates of the reversed hinge, such as unequal armatures, becomes one of a reversed kind,
    "reversed_spherical" for example, which keeps its coordinates and all its numbers. Limits of the
    free base are dropped with a `ModelWarning`.

    Parameters
    ----------
    robot
        The robot; the tree of `body` has a free base.
    body
        Name of the body that becomes the base.

    Returns
    -------
    RebasedRobot
        The new description `robot` and the maps of states and forces to it.

    Raises
    ------
    ModelError
        If `body` is no body of a tree with a free base, or if the free hinge has armature, damping,
        a spring or friction, which would act on the new base.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> arm = pp.robots.space_arm()
    >>> hand = pp.rebase(arm, arm.bodies[-1].name)
    >>> q, v = arm.random_state(0)
    >>> energy = pp.kinetic_energy(hand.robot, *hand.state(q, v))
    >>> np.allclose(energy, pp.kinetic_energy(arm, q, v))
    True
    """
    if not isinstance(robot, Robot) or not isinstance(body, str):
        kind = a_class(robot)
        raise TypeError(f"rebase needs a Robot and the name of a body, got {kind} and {body!r}")
    other, dropped = model.rerooted(robot, body)
    for words in dropped:
        warn(words, ModelWarning)
    return RebasedRobot(robot, other)


@program(static=("other",))
def rebased_state(
    robot: Robot, q: ConfigurationLike, v: JointVectorLike, *, other: Robot
) -> tuple[Configuration, JointVector]:
    """`RebasedRobot.state`: q' and v' of the description `other`. Cost O(N)."""
    q, v = np.asarray(q), np.asarray(v)

    def pose(body: str) -> Transform:
        X = np.asarray(frame_pose(robot, q, body))
        return Transform.of(X[:3, :3], X[:3, 3]) @ other.frame(body).placement.inv

    def V(body: str) -> Motion:
        return other.frame(body).placement.inv.T @ Motion.of(frame_velocity(robot, q, v, body))

    return model.configuration(robot, other, q, pose), model.velocity(robot, other, q, v, V)


@program(static=("other",))
def rebased_acceleration(
    robot: Robot, q: ConfigurationLike, v: JointVectorLike, a: JointVectorLike, *, other: Robot
) -> JointVector:
    """`RebasedRobot.acceleration`: a' of the description `other`. Cost O(N)."""
    q, v, a = np.asarray(q), np.asarray(v), np.asarray(a)
    every = np.asarray(accelerations(robot, q, v, a))

    def alpha(body: str) -> Motion:
        frame = robot.frame(body)
        own = frame.placement.T @ Motion.of(every[robot.body_index(frame.body)])
        return other.frame(body).placement.inv.T @ own

    return model.acceleration(robot, other, q, v, a, alpha)


@program(static=("other",))
def rebased_force(
    robot: Robot, q: ConfigurationLike, tau: JointVectorLike, *, other: Robot
) -> JointVector:
    """`RebasedRobot.force`: tau' of the description `other`, tau' = L⁻*tau + Σ J'*f, with f the
    force on an old base and J' the Jacobian of that body. Cost O(N)."""
    q, tau = np.asarray(q), np.asarray(tau)
    q_other, _ = rebased_state(robot, q, np.zeros(robot.nv), other=other)

    def base_force(h: Hinge) -> JointVector:
        """J'*f of the force f that the free hinge h exerts on the old base."""
        f = robot.frame(h.child).placement.solve(Force.of(tau[h.v]))
        return np.asarray(jacobian(other, q_other, h.child)).T @ f.array

    return sum(map(base_force, model.uprooted(robot, other)), model.force(robot, other, q, tau))
