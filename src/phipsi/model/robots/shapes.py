"""Inertias of solid shapes and serial limbs made of them, for the packaged robots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple, TypedDict

import numpy as np

from phipsi.model.parts import INF
from phipsi.model.robot import Builder, Robot
from phipsi.typing import ArrayLike

Vector3Like = Annotated[ArrayLike, "3"]

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


class Solid(TypedDict):
    """Mass [kg], centre of mass [m], inertia about it [kg·m²]: the keywords of `Builder.body`."""

    mass: float
    com: Vector3Like
    inertia: ArrayLike


def box(mass: float, sides: Vector3Like, center: Vector3Like = (0.0, 0.0, 0.0)) -> Solid:
    """A uniform box with sides [m] along the axes."""
    squares = np.square(np.asarray(sides))
    return Solid(mass=mass, com=center, inertia=mass / 12 * (squares.sum() - squares))


def sphere(mass: float, radius: float, center: Vector3Like = (0.0, 0.0, 0.0)) -> Solid:
    """A uniform solid ball."""
    return Solid(mass=mass, com=center, inertia=np.full(3, 0.4 * mass * radius**2))


def cylinder(
    mass: float, radius: float, end: Vector3Like, start: Vector3Like = (0.0, 0.0, 0.0)
) -> Solid:
    """A uniform cylinder whose axis runs from `start` to `end` [m]."""
    a, b = np.asarray(start), np.asarray(end)
    axis = b - a
    length = np.linalg.norm(axis)
    along = np.outer(axis, axis) / length**2
    across = np.eye(3) - along
    inertia = mass * (radius**2 / 2 * along + (3 * radius**2 + length**2) / 12 * across)
    return Solid(mass=mass, com=(a + b) / 2, inertia=inertia)


class Link(NamedTuple):
    """One link of a serial limb: a cylinder from its hinge to `end`, where the next hinge is."""

    joint: str
    axis: Vector3Like
    mass: float
    radius: float
    end: Vector3Like
    limits: tuple[float, float]
    effort: float
    velocity: float = INF
    armature: float = 0.0


def limb(name: str, links: Sequence[Link], tip: str) -> Robot:
    """The serial robot of these links with revolute hinges, and the frame `tip` at its end."""
    builder = Builder(name)
    parent: str = "world"
    position: Vector3Like = (0.0, 0.0, 0.0)
    for link in links:
        child = f"{link.joint}_link"
        builder.body(child, **cylinder(link.mass, link.radius, link.end))
        builder.hinge(
            link.joint, "revolute", parent, child, position=position, axis=link.axis,
            lower=link.limits[0], upper=link.limits[1], effort=link.effort,
            velocity=link.velocity, armature=link.armature,
        )  # fmt: skip
        parent, position = child, link.end
    return builder.frame(tip, parent, position=position).build()
