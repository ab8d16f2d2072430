"""Another body as the base: the re-rooted robot, and how states and forces go over ([BI] A)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from phipsi.algorithms.kinematics import (
    accelerations,
    frame_pose,
    frame_velocity,
    jacobian,
)
from phipsi.model import Hinge, ModelWarning, Robot
from phipsi.model import rebase as model
from phipsi.programs import program
from phipsi.spatial import Force, Motion, Transform


@dataclass(frozen=True)
class Rebased:
    """A robot seen from another base: `robot` describes what `old` does, one or more of its trees
    rooted elsewhere.

    The maps are compiled and take any leading batch shape; `inverse` goes the other way.
    """

    old: Robot
    robot: Robot

    def state(self, q: Any, v: Any) -> tuple[Any, Any]:
        """(q', v') of the new description: v' = T v with the new base's velocity first ([BI] A.1).

        Shapes (…, nq), (…, nv).
        """
        return rebased_state(self.old, q, v, other=self.robot)

    def acceleration(self, q: Any, v: Any, a: Any) -> Any:
        """a' = T a + Ṫ v, (…, nv)."""
        return rebased_acceleration(self.old, q, v, a, other=self.robot)

    def force(self, q: Any, tau: Any) -> Any:
        """tau' = T⁻* tau, (…, nv): of the same power, v'·tau' = v·tau. A force on the old base
        becomes one on that body, which hinge torques must then carry too."""
        return rebased_force(self.old, q, tau, other=self.robot)

    @property
    def inverse(self) -> Rebased:
        """The way back."""
        return Rebased(self.robot, self.old)


def rebase(robot: Robot, body: str) -> Rebased:
    """The same robot with another body of a free tree as its base ([BI] Appendix A).

    On the way from the old base to `body` hinges are turned round (same kinds and names, axes
    reversed), and bodies get their frame at the hinge that is now inboard; the old one stays as a
    frame of the body's name, for `jacobian`, `frame_pose` and `external={name: …}`. The free hinge
    keeps its name and moves the new base. The mechanics are the same: 𝓜' = T⁻*𝓜T⁻¹. To the base
    itself it gives the same robot. Limits that cannot be said from the other side are dropped with
    a `ModelWarning`.

    >>> import phipsi as pp
    >>> arm = pp.robots.space_arm()
    >>> hand = pp.rebase(arm, arm.bodies[-1].name)
    >>> q, v = hand.state(*arm.random_state(0))
    """
    if not isinstance(robot, Robot) or not isinstance(body, str):
        kind = type(robot).__name__
        raise TypeError(f"rebase needs a Robot and the name of a body, got a {kind} and {body!r}")
    other, dropped = model.rerooted(robot, body)
    for words in dropped:
        warnings.warn(words, ModelWarning, stacklevel=2)
    return Rebased(robot, other)


@program(static=("other",))
def rebased_state(robot: Robot, q: Any, v: Any, *, other: Robot) -> tuple[Any, Any]:
    """`Rebased.state`: q' and v' of the description `other`. Cost O(N)."""
    q, v = np.asarray(q), np.asarray(v)

    def pose(body: str) -> Transform:
        X = np.asarray(frame_pose(robot, q, body))
        return Transform.of(X[:3, :3], X[:3, 3]) @ other.frame(body).placement.inv

    def V(body: str) -> Motion:
        return other.frame(body).placement.inv.T @ Motion.of(frame_velocity(robot, q, v, body))

    return model.configuration(robot, other, q, pose), model.velocity(robot, other, q, v, V)


@program(static=("other",))
def rebased_acceleration(robot: Robot, q: Any, v: Any, a: Any, *, other: Robot) -> Any:
    """`Rebased.acceleration`: a' of the description `other`. Cost O(N)."""
    q, v, a = np.asarray(q), np.asarray(v), np.asarray(a)
    every = np.asarray(accelerations(robot, q, v, a))

    def alpha(body: str) -> Motion:
        frame = robot.frame(body)
        own = frame.placement.T @ Motion.of(every[robot.body_index(frame.body)])
        return other.frame(body).placement.inv.T @ own

    return model.acceleration(robot, other, q, v, a, alpha)


@program(static=("other",))
def rebased_force(robot: Robot, q: Any, tau: Any, *, other: Robot) -> Any:
    """`Rebased.force`: tau' of the description `other`, tau' = L⁻*tau + Σ J'*f, f the force on an
    old base and J' the Jacobian of that body. Cost O(N)."""
    q, tau = np.asarray(q), np.asarray(tau)
    there, _ = rebased_state(robot, q, np.zeros(robot.nv), other=other)

    def carried(h: Hinge) -> Any:
        f = robot.frame(h.child).placement.solve(Force.of(tau[h.v]))
        return np.asarray(jacobian(other, there, h.child)).T @ f.array

    return sum(map(carried, model.uprooted(robot, other)), model.force(robot, other, q, tau))
