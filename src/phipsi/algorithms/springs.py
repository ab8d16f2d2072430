"""Springs and dampers between points: joint forces, energy, and stiffness for implicit steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np

from phipsi.algorithms.cut import Cut, Rows
from phipsi.algorithms.kinematics import frame_of, posed
from phipsi.compile import lift
from phipsi.model import ModelError, Robot, Spring
from phipsi.operators import B, J, a, beta, phi
from phipsi.operators.lowering.compute import compute
from phipsi.programs import program
from phipsi.spatial import Motion, Transform
from phipsi.spatial import rotation as rot
from phipsi.spatial.rotation import Vector
from phipsi.sweeps import forest
from phipsi.typing import (
    Array,
    ConfigurationLike,
    JointVector,
    JointVectorLike,
    Real,
    Scalar,
)


class Line(NamedTuple):
    """The line of a spring from frame b to frame a, in the axes of the world."""

    spring: Spring
    d: Vector
    """From the origin of b to that of a [m]."""
    per_length: Real
    """1/|d| [1/m], or 0 where the origins coincide."""

    @property
    def n(self) -> Vector:
        """The direction, or zero where the origins coincide."""
        return rot.scaled(self.per_length, self.d)

    @property
    def stretch(self) -> Vector:
        """(ℓ − ℓ₀) n."""
        return self.d - rot.scaled(self.spring.rest_length, self.n)


def _line(spring: Spring, X: dict[str, Transform]) -> Line:
    d = X[spring.a].position - X[spring.b].position
    square = rot.dot(d, d)
    apart = square > 0.0
    return Line(spring, d, rot.select(apart, 1.0 / np.sqrt(rot.select(apart, square, 1.0)), 0.0))


def _poses(robot: Robot, springs: Sequence[Spring], q: ConfigurationLike) -> dict[str, Transform]:
    """The poses of all frames of the springs in the world, by name."""
    x = posed(forest(robot, q))
    return {name: frame_of(x, name) for s in springs for name in (s.a, s.b)}


class Springs:
    """Springs at a state: the lines, how they move, and the joint forces of pulls along them."""

    def __init__(
        self, robot: Robot, springs: Sequence[Spring], q: ConfigurationLike, v: JointVectorLike
    ) -> None:
        self.robot, self.q, self.v = robot, q, v
        self.X = _poses(robot, springs, q)
        self.frames = tuple(self.X)
        self.lines = [_line(spring, self.X) for spring in springs]
        V = compute(J(*self.frames) @ beta, robot, q, v)
        self.V = {f: Motion.of(row) for f, row in zip(self.frames, V.reshape(-1, 6), strict=True)}

    def between(self, line: Line, vectors: dict[str, Vector]) -> Vector:
        """The vector of frame a less that of frame b, in the axes of the world; each is given in
        the axes of its own frame."""
        first, second = (self.X[f].R @ vectors[f] for f in (line.spring.a, line.spring.b))
        return first - second

    def rate(self, line: Line) -> Vector:
        """ḋ [m/s]."""
        return self.between(line, {f: V.linear for f, V in self.V.items()})

    def at_frames(self, line: Line, pull: Vector) -> Annotated[Array, "n"]:
        """The forces (6 frames,) on the frames by `pull` on frame a and its opposite on frame b."""
        rows = np.full((len(self.frames), 6), 0.0, object)
        for name, sign in ((line.spring.a, 1.0), (line.spring.b, -1.0)):
            rows[self.frames.index(name), 3:] = self.X[name].R.T @ rot.scaled(sign, pull)
        return rows.reshape(-1)

    def forces(self) -> list[Vector]:
        """For each spring the force on frame a [N], in the axes of the world."""
        out: list[Vector] = []
        for line in self.lines:
            n = line.n
            damper = rot.scaled(line.spring.damping * rot.dot(n, self.rate(line)), n)
            out.append(-(rot.scaled(line.spring.stiffness, line.stretch) + damper))
        return out

    def joint_forces(self, pulls: Sequence[Vector]) -> JointVector:
        """J*f of the given pulls on the frames a of the springs, and their opposites on b."""
        f = sum(self.at_frames(line, pull) for line, pull in zip(self.lines, pulls, strict=True))
        return compute(J(*self.frames).T, self.robot, self.q, x=f)


def check_springs(robot: Robot, springs: Sequence[Spring]) -> None:
    """Raise unless `springs` is a list of springs, each of which joins two bodies of the robot."""
    if not isinstance(springs, (list, tuple)):
        raise TypeError(f"springs is {springs!r}, needs a list [pp.Spring(…)]")
    for s in springs:
        if not isinstance(s, Spring):
            raise TypeError(f"springs has {s!r}, needs pp.Spring(…)")
        bodies = {robot.frame(name).body for name in (s.a, s.b)}
        if len(bodies) == 1:
            raise ModelError(
                f"robot {robot.name!r}: frames {s.a!r} and {s.b!r} are both fixed to "
                f"{bodies.pop()!r}, so a spring between them does nothing"
            )


@program(static=("springs",), joint_space=True)
def spring_forces(
    robot: Robot, springs: Sequence[Spring], q: ConfigurationLike, v: JointVectorLike
) -> JointVector:
    """Joint forces of springs and dampers between points: −J*n(k(ℓ − ℓ₀) + c ℓ̇).

    No algorithm adds these forces by itself: add them to `tau`. Simulations take `springs=`. Where
    the two points of a spring coincide, its force is zero. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    springs
        The springs.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].

    Returns
    -------
    (…, nv)
        Joint forces [N·m or N].

    Raises
    ------
    ModelError
        If both frames of a spring are fixed to one body.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> springs = [pp.Spring("tool", "world", stiffness=100.0)]
    >>> tau = pp.spring_forces(robot, springs, q=[0.3, -0.5], v=[0.0, 0.0])
    >>> position = pp.frame_pose(robot, [0.3, -0.5], "tool")[:3, 3]
    >>> J = pp.jacobian(robot, [0.3, -0.5], "tool", reference="aligned")[3:]
    >>> np.allclose(tau, J.T @ (-100.0 * position))
    True
    """
    check_springs(robot, springs)
    if not springs:
        return np.zeros(robot.nv)
    x = Springs(robot, springs, q, v)
    return x.joint_forces(x.forces())


@program(static=("springs",), joint_space=True)
def spring_energy(robot: Robot, springs: Sequence[Spring], q: ConfigurationLike) -> Scalar:
    """The energy Σ k(ℓ − ℓ₀)²/2 of springs between points.

    Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    springs
        The springs.
    q : (…, nq)
        Configuration.

    Returns
    -------
    (…)
        Energy [J].

    Raises
    ------
    ModelError
        If both frames of a spring are fixed to one body.

    Examples
    --------
    >>> import phipsi as pp
    >>> robot = pp.robots.double_pendulum()  # 0.6 m long, hanging down
    >>> spring = pp.Spring("tool", "world", stiffness=100.0, rest_length=0.4)
    >>> round(float(pp.spring_energy(robot, [spring], [0.0, 0.0])), 6)
    2.0
    """
    check_springs(robot, springs)
    X = _poses(robot, springs, q)
    total: Real = 0.0
    for line in (_line(spring, X) for spring in springs):
        rest = line.spring.rest_length
        pressed = rot.select(line.per_length > 0.0, 0.0, rest * rest)
        square = rot.dot(line.stretch, line.stretch) + pressed
        total = total + 0.5 * line.spring.stiffness * square
    return lift(total)


# ---- linearly implicit steps --------------------------------------------------------------------


class SoftRows(NamedTuple):
    """Unit forces N (6 frames, m) at frames, which act with the forces −N N*Jβ̇: an inertia J*N N*J
    that is added to the mass matrix."""

    frames: tuple[str, ...]
    N: Annotated[Array, "n m"]

    def beside(self, x: Cut | None) -> tuple[Cut, Rows]:
        """Rows after those of closures, and the compliance of all: 0 of closures, 1 of others."""
        m: int = self.N.shape[1]
        none = np.zeros(m, object)
        own = Cut(self.frames, (), [], [], self.N, none, none, none)
        if x is None:
            return own, np.ones(m)
        N = np.zeros((len(x.N) + len(self.N), x.N.shape[1] + m), object)
        N[: len(x.N), : x.N.shape[1]], N[len(x.N) :, x.N.shape[1] :] = x.N, self.N
        rate, bias, error = (np.concatenate([y, none]) for y in (x.rate, x.bias, x.error))
        frames = (*x.frames, *self.frames)
        both = x._replace(frames=frames, N=N, rate=rate, bias=bias, error=error)
        return both, np.concatenate([np.zeros(x.N.shape[1]), np.ones(m)])


def softened_springs(
    robot: Robot,
    springs: Sequence[Spring],
    q: ConfigurationLike,
    v: JointVectorLike,
    dt: Scalar | float,
) -> tuple[JointVector, SoftRows]:
    """What a linearly implicit step h adds to `spring_forces`: joint forces, and rows whose inertia
    is added to the mass matrix.

    At the end of the step the force along the line is −k(ℓ⁺ − ℓ₀) − cℓ̇⁺ with ℓ⁺ = ℓ + h(ℓ̇ + hn*Jβ̇)
    and ℓ̇⁺ = ℓ̇ + hn*Jβ̇ + γ, where γ is what ℓ̇ gains without joint accelerations. A part of it is
    n*n⁺ n⁺*ḋ − n*ḋ of the line that turns from n to n⁺, the direction of d + hḋ: a form that is
    bounded where ℓ is small. Across the line the stiffness is that of a tense string, k(1 − ℓ₀/ℓ)
    where it is positive; a spring that pushes is taken to have none.
    """
    x = Springs(robot, springs, q, v)
    drift = compute(B(*x.frames).T @ phi.T @ a, robot, q, v).reshape(-1, 6)
    bias: dict[str, Vector] = {}
    for name, row in zip(x.frames, drift, strict=True):
        V = x.V[name]
        bias[name] = Motion.of(row).linear + rot.cross(V.angular, V.linear)
    h: Real = np.asarray(dt).item()
    pulls: list[Vector] = []
    columns: list[Array] = []
    for line in x.lines:
        s, rate = line.spring, x.rate(line)
        apart = line.per_length > 0.0
        x_axis = zip(line.n, (1.0, 0.0, 0.0), strict=True)
        n = rot.vector(*(rot.select(apart, own, other) for own, other in x_axis))
        speed = rot.dot(n, rate)
        ahead = line.d + rot.scaled(h, rate)
        square = rot.dot(ahead, ahead)
        turned = rot.dot(n, ahead) * rot.dot(ahead, rate) / rot.select(square > 0.0, square, 1.0)
        gain = h * rot.dot(n, x.between(line, bias)) + turned - speed
        slack = 1.0 - s.rest_length * line.per_length
        across = s.stiffness * rot.select(slack > 0.0, slack, 0.0)
        along = h * s.stiffness * speed + s.damping * gain
        sideways = rate - rot.scaled(speed, n)
        pulls.append(-(rot.scaled(along, n) + rot.scaled(h * across, sideways)))
        soft = (h * s.damping + h * h * s.stiffness, h * h * across, h * h * across)
        for direction, weight in zip((n, *rot.perpendicular(n)), soft, strict=True):
            positive = weight > 0.0
            root = rot.select(positive, np.sqrt(rot.select(positive, weight, 1.0)), 0.0)
            columns.append(x.at_frames(line, rot.scaled(root, direction)))
    return x.joint_forces(pulls), SoftRows(x.frames, np.stack(columns, axis=1))
