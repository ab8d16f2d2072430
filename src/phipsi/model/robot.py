"""The public `Robot` and `Builder`.

A `Robot` is immutable data, made by a `Builder` (or by a loader, which uses one). Methods that
change something return a new robot. Its numbers may be traced (`with_parameters`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from phipsi.cached import cached_property
from phipsi.conventions import GRAVITY
from phipsi.model import configurations, edit, parameters, validate
from phipsi.model.builder import RobotBuilder
from phipsi.model.description import RobotDescription
from phipsi.model.equivalent import equivalent
from phipsi.model.errors import ModelError
from phipsi.model.json import read_json, to_json
from phipsi.model.untrusted import quoted
from phipsi.spatial import Transform
from phipsi.typing import (
    Array,
    ArrayLike,
    Configuration,
    ConfigurationLike,
    JointVector,
    JointVectorLike,
)


@dataclass(frozen=True, eq=False, repr=False)
class Robot(RobotDescription):
    """A robot: a forest of bodies with their hinges, frames and gravity.

    Make one with `phipsi.Builder`, `phipsi.load` or `phipsi.robots`. Bodies are numbered base to
    tip, and hinge i moves body i. Two robots are equal if all their numbers and names are equal.

    Parameters
    ----------
    name
        Its name.
    bodies
        The moving bodies.
    hinges
        The hinge of each body.
    frames
        Named frames by name.
    gravity : (3,), optional
        Gravity [m/s²] in the world frame.
    """

    # ---- configurations ------------------------------------------------------------------------

    def random_state(
        self, rng: np.random.Generator | int | None = None, batch: tuple[int, ...] = ()
    ) -> tuple[Configuration, JointVector]:
        """A random configuration and random joint velocities.

        Coordinates are uniform within their limits (±π rad or ±1 m if there are none),
        orientations are uniform, velocities are standard normal.

        Parameters
        ----------
        rng : optional
            A generator of random numbers, or its seed.
        batch : optional
            The shape of a batch of states.

        Returns
        -------
        q : (*batch, nq)
            Configurations.
        v : (*batch, nv)
            Joint velocities [rad/s or m/s].
        """
        return configurations.random_state(self, rng, batch)

    def integrate(self, q: ConfigurationLike, dv: JointVectorLike) -> Configuration:
        """The configuration reached from q by the displacement dv = v·dt: q exp(dv).

        Each hinge moves on its own Lie group: quaternions keep unit length, and a free body moves
        along a screw. May be called inside programs.

        Parameters
        ----------
        q : (…, nq)
            Configuration.
        dv : (…, nv)
            Displacement [rad or m].

        Returns
        -------
        (…, nq)
            The new configuration.
        """
        return configurations.integrate(self, q, dv)

    def difference(self, q0: ConfigurationLike, q1: ConfigurationLike) -> JointVector:
        """The displacement from q0 to q1: the dv for which `integrate(q0, dv)` is q1.

        May be called inside programs.

        Parameters
        ----------
        q0 : (…, nq)
            The first configuration.
        q1 : (…, nq)
            The second configuration.

        Returns
        -------
        (…, nv)
            The displacement [rad or m]; angles of planar, spherical and free hinges are at most π.
        """
        return configurations.difference(self, q0, q1)

    def difference_rate(self, u: JointVectorLike, v: JointVectorLike) -> JointVector:
        """The rate of u = difference(q0, q) where the joints move with v: dlog_u v.

        It is v for hinges whose coordinates add. May be called inside programs.

        Parameters
        ----------
        u : (…, nv)
            Displacements, whose rotations are less than a turn.
        v : (…, nv)
            Joint velocities [rad/s or m/s].

        Returns
        -------
        (…, nv)
            The rates of u.
        """
        return configurations.difference_rate(self, u, v)

    def difference_force(self, u: JointVectorLike, p: JointVectorLike) -> JointVector:
        """The joint forces of forces p on u = difference(q0, q): (dlog_u)* p.

        Their power is that of p, ((dlog_u)* p)·v = p·u̇. So −(dlog_u)* ∂V/∂u are the joint forces of
        an energy V(u). May be called inside programs.

        Parameters
        ----------
        u : (…, nv)
            Displacements, whose rotations are less than a turn.
        p : (…, nv)
            Forces on the displacements [N·m or N].

        Returns
        -------
        (…, nv)
            Joint forces [N·m or N].
        """
        return configurations.difference_force(self, u, p)

    def flow(self, q: ConfigurationLike, v: JointVectorLike) -> Configuration:
        """The time derivative q̇ of the coordinates for given joint velocities.

        May be called inside programs.

        Parameters
        ----------
        q : (…, nq)
            Configuration.
        v : (…, nv)
            Joint velocities [rad/s or m/s].

        Returns
        -------
        (…, nq)
            The rates of the coordinates, quaternions included.
        """
        return configurations.flow(self, q, v)

    def bracket(self, u: JointVectorLike, x: JointVectorLike) -> JointVector:
        """The Lie bracket [u, x] of joint velocities, hinge by hinge.

        It is zero for hinges whose coordinates add. May be called inside programs.

        Parameters
        ----------
        u : (…, nv)
            Joint velocities.
        x : (…, nv)
            Joint velocities.

        Returns
        -------
        (…, nv)
            The bracket.
        """
        return configurations.bracket(self, u, x)

    def coadjoint(self, u: JointVectorLike, p: JointVectorLike) -> JointVector:
        """The coadjoint action ad*_u p, hinge by hinge: (ad*_u p)·x = p·[u, x] for every x.

        May be called inside programs.

        Parameters
        ----------
        u : (…, nv)
            Joint velocities.
        p : (…, nv)
            Joint momenta.

        Returns
        -------
        (…, nv)
            Rates of joint momenta.
        """
        return configurations.coadjoint(self, u, p)

    def inboard(self, q: ConfigurationLike, p: JointVectorLike) -> JointVector:
        """Joint momenta expressed in the frames of the hinges on their parents.

        The momentum of a free base is then about the origin of the world. Momenta of hinges whose
        coordinates add do not change. May be called inside programs.

        Parameters
        ----------
        q : (…, nq)
            Configuration.
        p : (…, nv)
            Joint momenta, in the frames of the moved bodies.

        Returns
        -------
        (…, nv)
            Joint momenta, in the hinge frames on the parents.
        """
        return configurations.inboard(self, q, p)

    def outboard(self, q: ConfigurationLike, p: JointVectorLike) -> JointVector:
        """Joint momenta expressed in the frames of the moved bodies: the inverse of `inboard`.

        Parameters
        ----------
        q : (…, nq)
            Configuration.
        p : (…, nv)
            Joint momenta, in the hinge frames on the parents.

        Returns
        -------
        (…, nv)
            Joint momenta, in the frames of the moved bodies.
        """
        return configurations.outboard(self, q, p)

    # ---- variants ------------------------------------------------------------------------------

    def with_gravity(self, gravity: Annotated[ArrayLike, "3"]) -> Robot:
        """The same robot under another gravity.

        Parameters
        ----------
        gravity : (3,)
            Gravity [m/s²] in the world frame.

        Returns
        -------
        Robot
            The new robot.
        """
        return self.with_parameters({"gravity": gravity})

    def parameter(self, name: str) -> Annotated[Array, "n"]:
        """The value of a parameter of the robot, which can become an input of a kernel.

        Parameters
        ----------
        name
            "gravity" (3 numbers [m/s²]); "inertia:BODY" (10, see `phipsi.conventions`: of a moving
            body with all that is welded to it, or of a welded body alone, in its own frame);
            "armature:HINGE", "damping:HINGE", "stiffness:HINGE" or "friction:HINGE" (nv of the
            hinge); "placement:HINGE" or "frame:FRAME" (7: [position; quaternion] of the hinge
            frame on its parent, or of a named frame on its body).

        Returns
        -------
        (n,)
            The numbers.

        Raises
        ------
        ModelError
            If there is no such parameter.
        """
        return parameters.get(self, name)

    def with_parameters(self, values: Mapping[str, ArrayLike]) -> Robot:
        """The same robot with other values of some parameters.

        Parameters
        ----------
        values
            New values by the names that `parameter` takes: numbers, or traced numbers inside
            programs. The inertia of a welded body takes the place of the one that it has in that of
            its moving body.

        Returns
        -------
        Robot
            The new robot.

        Raises
        ------
        ModelError
            If there is no such parameter, or its value has another shape or is impossible.
        """
        if not isinstance(values, Mapping):
            raise ModelError(f"values is {quoted(values)}, needs a mapping from names to numbers")
        return parameters.put_all(self, values)

    @cached_property
    def equivalent(self) -> Robot:
        """A robot with the same joint-space dynamics whose numbers include more zeros.

        Its body frames and inertias are different (`phipsi.model.equivalent`).
        """
        robot = equivalent(self)
        robot.__dict__["equivalent"] = robot
        return robot

    def locked(self, joints: str | Iterable[str], q: ConfigurationLike | None = None) -> Robot:
        """The robot with some joints locked, which it no longer has.

        Parameters
        ----------
        joints
            The name of a hinge, or several names.
        q : (nq,), optional
            The configuration in which these joints are locked; by default the neutral one.

        Returns
        -------
        Robot
            The new robot.
        """
        return edit.locked(self, joints, q)

    def attach(
        self, other: Robot, *, at: str, prefix: str = "", placement: Transform | None = None
    ) -> Robot:
        """This robot with another one mounted on it: an arm on a spacecraft, a payload in a hand.

        A free hinge between `other` and its world becomes a weld.

        Parameters
        ----------
        other
            The robot that is mounted.
        at
            The name of the frame of this robot that takes the place of its world.
        prefix : optional
            A text that is put before all names of `other`.
        placement : optional
            The pose of its world in the frame `at`.

        Returns
        -------
        Robot
            The new robot, with the name and the gravity of this one.

        Raises
        ------
        ModelError
            If two parts would have the same name.
        """
        return edit.attach(self, other, at=at, prefix=prefix, placement=placement)

    def edit(self, *, name: str | None = None) -> Builder:
        """A builder with all parts of this robot, from which a changed robot can be built.

        Parameters
        ----------
        name : optional
            The name of the new robot; by default that of this one.

        Returns
        -------
        Builder
            The builder.
        """
        return Builder(self.name if name is None else name, gravity=self.gravity).add(self)

    # ---- identity ------------------------------------------------------------------------------

    @cached_property
    def key(self) -> str:
        """A digest of all names and numbers: equal robots have equal keys."""
        return hashlib.sha256(to_json(self).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Robot) and self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self) -> tuple[Callable[[str], Robot], tuple[str]]:
        return from_json, (to_json(self),)

    def __copy__(self) -> Robot:
        return self

    def __deepcopy__(self, memo: object) -> Robot:
        return self

    def __repr__(self) -> str:
        bodies = "body" if self.nb == 1 else "bodies"
        return f"<Robot {self.name!r}: {self.nb} {bodies}, nq={self.nq}, nv={self.nv}>"

    def __str__(self) -> str:
        from phipsi.model.display import tree

        return tree(self)

    def _repr_html_(self) -> str:
        from phipsi.model.display import html

        return html(self)


class Builder(RobotBuilder[Robot]):
    """Collects the parts of a robot; `build` checks them and makes the robot.

    Bodies, hinges and frames may be added in any order. Each method returns the builder.

    Parameters
    ----------
    name : optional
        The name of the robot.
    gravity : (3,), optional
        Gravity [m/s²] in the world frame.

    Examples
    --------
    >>> robot = (
    ...     Builder("pendulum")
    ...     .body("bob", mass=1.0, com=(0, 0, -0.5), inertia=(0.02, 0.02, 0.001))
    ...     .hinge("pivot", "revolute", "world", "bob", axis=(0, 1, 0))
    ...     .frame("tip", "bob", position=(0, 0, -1))
    ...     .build()
    ... )
    >>> robot
    <Robot 'pendulum': 1 body, nq=1, nv=1>
    """

    def __init__(
        self, name: str = "robot", *, gravity: Annotated[ArrayLike, "3"] = GRAVITY
    ) -> None:
        super().__init__(Robot, name, gravity)


def from_json(text: str | bytes, *, strict: bool = False) -> Robot:
    """The robot that a JSON text (`phipsi.model.json`) describes.

    Parameters
    ----------
    text
        The text.
    strict : optional
        Whether an inertia that no real body has is an error.

    Returns
    -------
    Robot
        The robot.
    """
    return read_json(text, Robot, strict=strict)


def combine(robots: Mapping[str, Robot] | Sequence[Robot], *, name: str = "world") -> Robot:
    """One robot that consists of several robots in one world.

    Parameters
    ----------
    robots
        The robots. The key of each robot in a mapping is put before its names ("left/…"); the names
        of robots in a sequence must be different.
    name : optional
        The name of the new robot.

    Returns
    -------
    Robot
        The new robot, with the gravity of the first one.

    Raises
    ------
    ModelError
        If there is no robot, or two parts have the same name.

    Examples
    --------
    >>> import phipsi as pp
    >>> arm = pp.robots.double_pendulum()
    >>> two = pp.combine({"left": arm, "right": arm})
    >>> [h.name for h in two.hinges]
    ['left/joint1', 'left/joint2', 'right/joint1', 'right/joint2']
    """
    if isinstance(robots, Mapping):
        members = [(f"{key}/", robot) for key, robot in robots.items()]
    elif isinstance(robots, Iterable):
        members = [("", robot) for robot in robots]
    else:
        raise ModelError(f"combine needs robots, not {quoted(robots)}")
    if not members:
        raise ModelError("combine needs at least one robot")
    for _, robot in members:
        validate.of_class("combine: a member", robot, Robot)
    builder = Builder(name, gravity=members[0][1].gravity)
    for prefix, robot in members:
        builder.add(robot, prefix=prefix)
    return builder.build()


def needs_robot(what: str, robot: object) -> None:
    """Raise a TypeError if the first argument of the function `what` is no robot."""
    if not isinstance(robot, Robot):
        raise TypeError(f"{what} needs a Robot first, got {type(robot).__name__}")
