"""Closure errors: at every free angle they are coordinates of the constrained directions alone."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from numpy.testing import assert_allclose

import phipsi as pp
from phipsi.model import KINDS
from phipsi.model.hinges import HingeName
from phipsi.spatial import Motion, Transform
from phipsi.spatial import rotation as rot
from tests.each import each

X, Y, Z = np.eye(3).tolist()
SKEW = (1.0, -2.0, 0.5)
ANGLES = (*np.linspace(-np.pi, np.pi, 25).tolist(), 3.1, -3.1, np.pi - 1e-7)
COLUMNS = np.eye(6)
CLOSURES: dict[str, tuple[Any, dict[str, Any]]] = {
    **{
        kind: (pp.Loop("a", "b", free=cast("HingeName", kind), axis=axis), {})
        for kind, axis in (
            ("weld", None), ("revolute", SKEW), ("continuous", Y), ("prismatic", SKEW),
            ("cylindrical", SKEW), ("universal", (X, SKEW)), ("planar", SKEW), ("spherical", None),
        )
    },
    "helical": (pp.Loop("a", "b", free="helical", axis=SKEW, pitch=0.3), {}),
    "rigid": (pp.Grasp("a", "b"), {}),
    "point": (pp.Grasp("a", "b", "point"), {"free": "spherical"}),
    "line": (pp.Grasp("a", "b", "line"), {"free": "revolute", "axis": X}),
    "sliding_plane": (pp.Grasp("a", "b", "sliding_plane"), {"free": "planar", "axis": Z}),
    "all six columns": (pp.Loop("a", "b", free=COLUMNS), {}),
    "columns of a pin": (
        pp.Loop("a", "b", free=COLUMNS[:, [0, 1, 3, 4, 5]]), {"free": "revolute", "axis": Z},
    ),
    "columns of a planar mechanism": (
        pp.Loop("a", "b", free=COLUMNS[:, [3, 5]]), {"free": "revolute", "axis": Y},
    ),
    "columns of a slider": (
        pp.Loop("a", "b", free=COLUMNS[:, [0, 1, 5]]), {"free": "planar", "axis": Z},
    ),
    "a column that holds the angle of a planar mechanism": (
        pp.Loop("a", "b", free=COLUMNS[:, [2, 4]]), {"free": "prismatic", "axis": X},
    ),
}  # fmt: skip


def free_pose(closure: Any, joint: dict[str, Any], angle: float, rng: Any) -> Transform:
    """A pose of a in b that the closure allows, every free angle of it the given one."""
    loop = pp.Loop("a", "b", **joint) if joint else closure
    if isinstance(loop, pp.Grasp) or not isinstance(loop.free, str):
        return Transform.identity()
    kind = KINDS[cast("HingeName", loop.free)]
    q = rng.uniform(-1, 1, kind.nq)
    q[np.array(kind.angles, bool)] = angle if kind.angles else 0.0
    if kind.quaternion is not None:
        axis = rng.normal(size=3)
        q = np.array(rot.exp(rot.scalars(angle * axis / np.linalg.norm(axis))), float)
    return kind.pose(loop, rot.scalars(q))


def displaced(X: Transform, twist: Any) -> Transform:
    w, v = rot.scalars(twist[:3]), rot.scalars(twist[3:])
    return X @ Transform(rot.from_quaternion(rot.exp(w)), rot.exp_translation(w, v))


@pytest.mark.parametrize("name", CLOSURES)
def test_errors_are_zero_where_closed_and_grow_at_the_rate_of_the_rows(name: str) -> None:
    closure, joint = CLOSURES[name]
    rng, step = np.random.default_rng(0), 1e-5
    for angle in ANGLES:
        pose = free_pose(closure, joint, angle, rng)
        rows = [np.array(f.array, float) for f in closure.forces(pose)]
        held = np.array(closure.error(pose).array, float)
        assert_allclose([held @ f for f in rows], 0.0, atol=2e-15 * (1 + abs(angle)))
        twist = rng.normal(size=6)
        if name.startswith("a column"):  # other turns than that about z would be slips of a wheel
            twist[:2] = 0.0
        ahead, behind = (
            np.array(closure.error(displaced(pose, k * step * twist)).array, float) for k in (1, -1)
        )
        rates = [(ahead - behind) @ f / (2 * step) for f in rows]
        assert_allclose(rates, [twist @ f for f in rows], atol=2e-9)


@each("contact", ["line", "sliding_plane", "point"])
def test_contacts_have_the_errors_of_the_loops_that_allow_the_same(contact: str) -> None:
    grasp, joint = CLOSURES[contact]
    loop = pp.Loop("a", "b", **joint)
    rng = np.random.default_rng(1)
    for angle in ANGLES:
        pose = displaced(free_pose(grasp, joint, angle, rng), 0.1 * rng.normal(size=6))
        assert_allclose(
            np.array(grasp.error(pose).array, float), np.array(loop.error(pose).array, float)
        )


def test_a_soft_finger_holds_no_attitude() -> None:
    finger = pp.Grasp("a", "b", "soft_finger")
    turned = displaced(Transform.identity(), [0.3, -0.2, 2.0, 0.0, 0.0, 0.0])
    assert isinstance(finger.error(turned), Motion)
    assert_allclose(np.array(finger.error(turned).array, float), 0.0, atol=1e-15)


def hand_and_box(spin: float, tilt: float) -> tuple[pp.Robot, Any, Any]:
    """A flat box that lies with a face on a palm that stands still, turned by `spin` on it."""
    builder = pp.Builder("hand and box", gravity=(0, 0, 0))
    builder.body("palm", mass=50.0, inertia=(5, 5, 5)).hinge("palm", "free", "world", "palm")
    builder.body("box", mass=1.0, inertia=(0.02, 0.03, 0.04)).hinge("box", "free", "world", "box")
    robot = builder.build()
    q, v = robot.neutral(), np.zeros(robot.nv)
    turn = rot.multiply(rot.exp(rot.vector(0.0, 0.0, spin)), rot.exp(rot.vector(tilt, 0.0, 0.0)))
    q[robot.hinge("palm").q.start + 3 :][:4] = np.array(turn, float)
    return robot, q, v


@pytest.mark.parametrize("spin", [0.5, 2.0, 3.1, -3.1])
def test_a_tilt_of_a_sliding_contact_decays_at_every_angle(spin: float) -> None:
    robot, q, v = hand_and_box(spin, 2e-7)
    grasp = pp.Grasp("palm", "box", "sliding_plane")
    motion = pp.simulate(robot, q, v, duration=8.0, dt=2e-3, closures=[grasp], every=100)
    tilts = np.abs(pp.loop_opening(robot, [grasp], motion.q, motion.v).error).max(axis=-1)
    assert tilts[0] > 1e-7 and tilts[-1] < 1e-12 and (tilts <= tilts[0]).all()


@pytest.mark.parametrize("contact", ["sliding_plane", "line"])
def test_closing_a_contact_closes_what_the_loop_closes(contact: str) -> None:
    robot, q, v = hand_and_box(3.0, 0.4)
    grasp, joint = CLOSURES[contact]
    grasp = pp.Grasp("palm", "box", grasp.contact)
    loop = pp.Loop("palm", "box", **joint)
    q = robot.integrate(q, 0.2 * np.random.default_rng(2).normal(size=robot.nv))
    found = pp.close_loops(robot, [grasp], q, v)
    again = pp.close_loops(robot, [loop], q, v)
    assert found.error < 1e-12 and again.error < 1e-12
    assert_allclose(robot.difference(found.q, again.q), 0.0, atol=1e-9)
