"""Pendula, chains and snakes made of identical links, and a four-bar linkage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

import numpy as np

from phipsi.model.builder import HingeNumbers
from phipsi.model.errors import ModelError
from phipsi.model.hinges import KINDS, HingeName
from phipsi.model.robot import Builder, Robot
from phipsi.model.robots.options import at_least, one_of
from phipsi.model.robots.shapes import X, Y, Z, box, cylinder
from phipsi.typing import ArrayLike

ChainBase = Literal["fixed", "free"]
"""What a chain hangs from: the world, or a floating box."""
SnakeBase = Literal["free", "planar"]
"""How the head of a snake moves: it floats, or slides on the ground."""

LENGTH, MASS, RADIUS = 0.3, 1.0, 0.03
"""Length [m], mass [kg] and radius [m] of a link of pendula and chains."""


def double_pendulum() -> Robot:
    """Two rods hanging from the world on ideal revolute hinges about y; frame "tool" at the tip.

    Returns
    -------
    Robot
        The robot.

    Examples
    --------
    >>> import phipsi as pp
    >>> pp.robots.double_pendulum()
    <Robot 'double_pendulum': 2 bodies, nq=2, nv=2>
    """
    return _hanging("double_pendulum", 2, "revolute", [Y])


def planar_chain(n: int) -> Robot:
    """Rods hanging from the world on ideal revolute hinges, all about y; frame "tool" at the tip.

    Parameters
    ----------
    n
        The number of rods.

    Returns
    -------
    Robot
        The robot.

    Examples
    --------
    >>> import phipsi as pp
    >>> pp.robots.planar_chain(5)
    <Robot 'planar_chain': 5 bodies, nq=5, nv=5>
    """
    return _hanging("planar_chain", n, "revolute", [Y])


def chain(n: int, kind: HingeName = "revolute", base: ChainBase = "fixed") -> Robot:
    """Rods hanging on ideal hinges of one kind, with axes x and y in turn; frame "tool" at the tip.

    Parameters
    ----------
    n
        The number of rods.
    kind : optional
        The name of a hinge kind other than "weld".
    base : optional
        Whether the chain hangs from the world ("fixed") or from a floating box ("free", body
        "base").

    Returns
    -------
    Robot
        The robot.

    Examples
    --------
    >>> import phipsi as pp
    >>> pp.robots.chain(3, "universal", base="free")
    <Robot 'chain': 4 bodies, nq=13, nv=12>
    """
    if kind == "weld" or kind not in KINDS:
        known = ", ".join(name for name in KINDS if name != "weld")
        raise ModelError(f"chain has no kind {kind!r}; choose one of {known}")
    one_of("chain", "base", base, get_args(ChainBase))
    axes: dict[int, list[ArrayLike | None]] = {0: [None], 1: [X, Y], 2: [(X, Y), (Y, X)]}
    return _hanging("chain", n, kind, axes[KINDS[kind].axes], floating=base == "free")


def snake(n: int = 8, passive: Iterable[int] | None = None, base: SnakeBase = "free") -> Robot:
    """A snake with joints about z (yaw) and y in turn, and frames "head" and "tail".

    Parameters
    ----------
    n : optional
        The number of links.
    passive : optional
        The numbers (1 to n − 1) of the joints that have a damped spring instead of a motor, and
        `effort` 0; by default every third joint.
    base : optional
        Whether the head floats ("free"), or slides on the ground with every joint about z
        ("planar").

    Returns
    -------
    Robot
        The robot.

    Examples
    --------
    >>> import phipsi as pp
    >>> pp.robots.snake(4, base="planar")
    <Robot 'snake': 4 bodies, nq=6, nv=6>
    """
    at_least("snake", "n", n, 2)
    one_of("snake", "base", base, get_args(SnakeBase))
    springs = set(range(3, n, 3) if passive is None else passive)
    if not springs <= set(range(1, n)):
        raise ModelError(f"snake(n={n}) has joints 1 to {n - 1}, but passive={sorted(springs)}")
    length, link = 0.12, cylinder(0.4, 0.03, (-0.12, 0.0, 0.0))
    axes = [Z] if base == "planar" else [Z, Y]
    motor = HingeNumbers(effort=7.0, velocity=6.0, armature=0.01)
    spring = HingeNumbers(effort=0.0, stiffness=2.0, damping=0.02)
    builder = Builder("snake").body("link1", **link)
    builder.hinge("base", base, "world", "link1", axis=Z)
    for i in range(1, n):
        drive = HingeNumbers(lower=-np.pi / 2, upper=np.pi / 2)
        drive.update(spring if i in springs else motor)
        builder.body(f"link{i + 1}", **link).hinge(
            f"joint{i}", "revolute", f"link{i}", f"link{i + 1}", position=(-length, 0.0, 0.0),
            axis=axes[(i - 1) % len(axes)], **drive,
        )  # fmt: skip
    builder.frame("head", "link1").frame("tail", f"link{n}", position=(-length, 0.0, 0.0))
    return builder.build()


def four_bar() -> Robot:
    """A crank-rocker in the x-z plane, cut open between its coupler and its rocker.

    Ground 0.4 m along x, crank 0.1 m and rocker 0.4 m (upright when neutral), coupler 0.5 m, on
    ideal revolute hinges about y; only the crank is driven. The frames "coupler_tip" and
    "rocker_tip" meet while the loop is closed, as it is when neutral. The loop transmits forces in
    the plane; the other rows of a pin joint are redundant in a planar mechanism.

    Returns
    -------
    Robot
        The robot.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.four_bar()
    >>> loops = [pp.Loop("coupler_tip", "rocker_tip", free=np.eye(6)[:, [3, 5]])]
    >>> q, v, _ = pp.close_loops(robot, loops, *robot.random_state(0))
    >>> a, forces, *_ = pp.closed_chain_dynamics(robot, loops, q, v, np.zeros(3))
    >>> a.shape, forces.shape
    ((3,), (1, 6))
    """
    rows = (  # body, parent, hinge, end, effort
        ("crank", "world", (0.0, 0.0, 0.0), (0.0, 0.0, 0.1), 20.0),
        ("coupler", "crank", (0.0, 0.0, 0.1), (0.4, 0.0, 0.3), 0.0),
        ("rocker", "world", (0.4, 0.0, 0.0), (0.0, 0.0, 0.4), 0.0),
    )
    builder = Builder("four_bar")
    for body, parent, position, end, effort in rows:
        solid = cylinder(2.0 * float(np.linalg.norm(end)), 0.01, end)  # steel, about 2 kg/m
        builder.body(body, **solid).hinge(
            body, "revolute", parent, body, position=position, axis=Y, effort=effort
        )
        builder.frame(f"{body}_tip", body, position=end)
    return builder.build()


def _hanging(
    name: str,
    n: int,
    kind: HingeName,
    axes: Sequence[ArrayLike | None],
    *,
    floating: bool = False,
) -> Robot:
    """A chain of n identical rods, whose hinges have the given axes in turn."""
    at_least(name, "n", n, 1)
    builder, parent, position = Builder(name), "world", (0.0, 0.0, 0.0)
    if floating:
        builder.body("base", **box(5.0, (0.3, 0.3, 0.2))).hinge("base", "free", "world", "base")
        parent, position = "base", (0.0, 0.0, -0.1)
    pitch = 0.02 if kind == "helical" else 0.0
    link = cylinder(MASS, RADIUS, (0.0, 0.0, -LENGTH))
    for i in range(n):
        child = f"link{i + 1}"
        builder.body(child, **link).hinge(
            f"joint{i + 1}", kind, parent, child, position=position, axis=axes[i % len(axes)],
            pitch=pitch,
        )  # fmt: skip
        parent, position = child, (0.0, 0.0, -LENGTH)
    return builder.frame("tool", parent, position=position).build()
