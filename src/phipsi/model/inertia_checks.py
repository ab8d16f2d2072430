"""Checks of inertias, over all bodies of a robot at once: which ones no real body has, and whether
every hinge moves some inertia."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np

from phipsi.model.configurations import random_state
from phipsi.model.description import RobotDescription
from phipsi.model.errors import ModelError
from phipsi.model.parts import Body, Hinge, WeldedBody
from phipsi.model.untrusted import quoted
from phipsi.model.validate import Floats, stacked
from phipsi.spatial import rotation as rot
from phipsi.typing import Array

SINGULAR = 1e-12
"""A hinge is singular if its articulated inertia is below this fraction of the inertia that it has
with the next outboard hinges locked."""
ROUNDING = 1e-9
"""Moments of inertia below this fraction of the largest one of the body, its mass times the squared
distance of the centre of mass included, are rounding errors of the file or of the loader."""
THIN = 1e-9
"""A radius of gyration below this length [m], that of a few atoms, is zero."""
NEGLIGIBLE = 1e-15
"""Moments of inertia below this fraction of the largest one of the robot vanish in sums with it."""
HUGE = 1e100
"""The bound of ratios of lengths, whose squares must not overflow."""

_TENSOR = np.array([[4, 5, 6], [5, 7, 8], [6, 8, 9]])
"""Where the inertia parameters have the entries of J."""


def doubts(bodies: Sequence[Body]) -> Iterator[tuple[str, str]]:
    """Check that inertias are finite, masses not negative, and moments of mass those of a mass.

    Yields the name of a body and a sentence for each property that no real body has, such as a
    negative moment. Welded bodies are checked likewise.
    """
    parts = [part for body in bodies for part in (body, *body.welded)]
    carried = [body for body in bodies for _ in (body, *body.welded)]
    p = _parameters(parts)
    for wrong, message in (
        (p[:, 0] < 0, "has negative mass {:g} kg"),
        (
            (p[:, 0] == 0) & p[:, 1:4].any(axis=1),
            "has the mass {:g} kg but a first moment of mass, which no mass has at any place; give "
            "it a mass",
        ),
    ):
        if wrong.any():
            i = int(np.argmax(wrong))
            raise ModelError(f"{_where(parts[i])} {message.format(p[i, 0])}")
    for body in bodies:
        _heavier(body)
    m, size, moments, scale = _principal(p)
    floor = np.sqrt(m) * THIN + np.sqrt(NEGLIGIBLE) * size.max(initial=0.0)
    slack = ROUNDING * scale + np.minimum(floor / size, HUGE) ** 2
    negative = moments[:, 0] < -slack
    unreal = moments[:, 0] + moments[:, 1] < moments[:, 2] - np.maximum(slack, 1e-6 * moments[:, 2])
    for i in np.flatnonzero(negative | unreal):
        what = "is not positive semidefinite" if negative[i] else "violates the triangle inequality"
        shown = ", ".join(f"{x:.3g}" for x in (moments[i] * size[i] * size[i]).tolist())
        yield (
            carried[i].name,
            f"{_where(parts[i])} has an inertia that {what} (principal moments {shown} kg·m²)",
        )


def regular(robot: RobotDescription) -> None:
    """Check that every hinge moves some inertia: D > 0 at a generic state.

    A hinge that moves a body with a positive definite inertia is regular. For the others, and with
    them for the hinges of their children, the articulated-body recursion ([BI] Alg 2.2) runs on
    numbers; it may start at bodies with positive definite inertias as if these were the tips,
    because releasing more hinges outboard of such a body does not change which motions P⁺ does not
    feel. D is compared with the value that it has with the next outboard hinges locked: releasing
    them may cancel all but rounding errors.
    """
    p = _parameters(robot.bodies)
    m, _, moments, scale = _principal(p)
    full = (m > 0) & (moments[:, 0] > 1e-6 * scale)
    if full.all():
        return
    run = ~full | np.append(~full, False)[list(robot.parents)]
    q, _ = random_state(robot, 0, ())
    free: dict[int, Floats] = {}
    locked: dict[int, Floats] = {}
    for i in map(int, np.flatnonzero(run)[::-1]):
        h, parent, own = robot.hinges[i], robot.parents[i], _matrix(p[i])
        P, L = own + free.pop(i, 0.0), own + locked.pop(i, 0.0)
        phi, H = _phi_and_map(h, rot.scalars(q[h.q]))
        U, armature = P @ H.T, np.diag(h.armature)
        D, most = H @ U + armature, np.abs(H @ L @ H.T + armature).max()
        if not np.isfinite(most + D.sum()):
            raise ModelError(f"the inertia that {quoted(h.name)} moves overflows; use SI units")
        if not full[i] and np.linalg.eigvalsh(D)[0] <= SINGULAR * most:
            raise _singular(h)
        if parent < 0 or full[parent]:
            continue
        try:
            released = P - U @ np.linalg.solve(D, U.T)
        except np.linalg.LinAlgError:  # so small that D underflows
            raise _singular(h) from None
        for total, seen in ((free, (released + released.T) / 2), (locked, P)):
            total[parent] = total.get(parent, 0.0) + phi @ seen @ phi.T


def _singular(h: Hinge) -> ModelError:
    return ModelError(
        f"hinge {quoted(h.name)} moves body {quoted(h.child)}, which has no inertia along it: give "
        "the body a mass and an inertia, weld it, or give the hinge an armature (for a URDF: "
        f"load(..., armature={{{quoted(h.name)}: 1e-4}}))"
    )


def _where(part: Body | WeldedBody) -> str:
    return f"body {quoted(part.name)}"


def _parameters(parts: Sequence[Body | WeldedBody]) -> Annotated[Floats, "n 10"]:
    """The inertia parameters of each part, which are finite."""
    return stacked(
        lambda i: f"{_where(parts[i])}: inertia", [x.inertia.parameters for x in parts], (10,)
    )


def _principal(p: Annotated[Floats, "n 10"]) -> tuple[Floats, Floats, Floats, Floats]:
    """The masses, the sizes √kg·m, and in units of their squares the principal moments about the
    centres of mass and the scales of their rounding errors."""
    m, J = p[:, 0], p[:, _TENSOR]
    root = np.sqrt(np.where(m > 0, m, 1.0))
    arm = np.clip(p[:, 1:4] / root[:, None], -HUGE, HUGE)
    size = np.maximum(np.sqrt(np.abs(J).max(axis=(1, 2), initial=0.0)), np.abs(arm).max(axis=1))
    size[size == 0.0] = 1.0
    u: Floats = arm / size[:, None]
    square: Floats = (u * u).sum(axis=1)
    central = J / size[:, None, None] / size[:, None, None]
    central -= square[:, None, None] * np.eye(3) - u[:, :, None] * u[:, None, :]
    moments = np.linalg.eigvalsh(central).astype(float)
    return m, size, moments, np.maximum(np.abs(moments).max(axis=1), square)


def _heavier(body: Body) -> None:
    """Check that the mass of a body includes those of the bodies welded to it."""
    parts = sum(float(w.inertia.mass) for w in body.welded)
    if parts > (1.0 + ROUNDING) * float(body.mass):
        raise ModelError(
            f"{_where(body)} has the mass {body.mass:g} kg, less than the {parts:g} kg of the "
            "bodies welded to it, which it includes"
        )


def _matrix(p: Annotated[Floats, "10"]) -> Annotated[Floats, "6 6"]:
    """M = [[J, h~], [−h~, m I]] of inertia parameters."""
    return _blocks(p[_TENSOR], _skew(p[1:4]), p[0] * np.eye(3), -_skew(p[1:4]))


def _phi_and_map(h: Hinge, q: Array) -> tuple[Annotated[Floats, "6 6"], Annotated[Floats, "nv 6"]]:
    """φ and H of a hinge at its coordinates q."""
    pose = h.kind.pose(h, q)
    outer, inner = np.asarray(h.placement.rotation, float), np.asarray(pose.rotation, float)
    R = outer @ inner
    l = np.asarray(h.placement.position, float) + outer @ np.asarray(pose.position, float)
    phi = _blocks(R, _skew(l) @ R, R)
    return phi, np.array([column.array for column in h.kind.columns(h, q)], float)


def _blocks(a: Floats, b: Floats, d: Floats, c: Floats | float = 0.0) -> Annotated[Floats, "6 6"]:
    """[[a, b], [c, d]]."""
    out = np.empty((6, 6))
    out[:3, :3], out[:3, 3:], out[3:, :3], out[3:, 3:] = a, b, c, d
    return out


def _skew(a: Annotated[Floats, "3"]) -> Annotated[Floats, "3 3"]:
    x, y, z = a.tolist()
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
