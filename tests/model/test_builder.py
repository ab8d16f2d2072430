"""The builder: what it refuses, in which words, and how it numbers, merges and lays out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from phipsi.model import KINDS, Builder, ModelError, ModelWarning, combine
from phipsi.model.hinges import HingeName
from phipsi.spatial import Transform

NAN, INF = float("nan"), float("inf")
BALL = (0.1, 0.1, 0.1)
Y = (0, 1, 0)


def arm(**hinge: Any) -> Builder:
    """Two good bodies on revolute hinges; keywords change the second hinge."""
    options: dict[str, Any] = {"axis": Y, "position": (0, 0, -1), **hinge}
    return (
        Builder("arm")
        .body("upper", 1.0, (0, 0, -0.5), BALL)
        .hinge("shoulder", "revolute", "world", "upper", axis=Y)
        .body("lower", 1.0, (0, 0, -0.5), BALL)
        .hinge("elbow", options.pop("kind", "revolute"), "upper", "lower", **options)
    )


def stick(**body: Any) -> Builder:
    """One body named "stick" on a hinge; keywords change the body."""
    options = {"mass": 1.0, "com": (0, 0, -0.5), "inertia": BALL, **body}
    return Builder().body("stick", **options).hinge("pivot", "revolute", "world", "stick", axis=Y)


REFUSED: dict[str, tuple[Callable[[], Any], list[str]]] = {
    # names
    "two bodies of one name": (lambda: arm().body("upper"), ["two bodies", "'upper'", "prefix"]),
    "two hinges of one name": (
        lambda: arm().body("hand").hinge("elbow", "weld", "lower", "hand"),
        ["two hinges", "'elbow'"],
    ),
    "two frames of one name": (lambda: arm().frame("tip").frame("tip"), ["two frames", "'tip'"]),
    "body without name": (lambda: arm().body(""), ["body", "'arm'", "no name"]),
    "hinge without name": (
        lambda: arm().body("hand").hinge("", "weld", "lower", "hand"),
        ["hinge", "'arm'", "no name"],
    ),
    "frame without name": (lambda: arm().frame(""), ["frame", "no name"]),
    "name that is no text": (lambda: arm().body(7), ["body", "no name"]),  # type: ignore[arg-type]
    "name with an escape": (lambda: arm().body("a\x1b[2J"), ["printable", "\\x1b"]),
    "robot without name": (lambda: Builder("").body("b"), ["robot", "no name"]),
    "body named world": (lambda: arm().body("world"), ["'world'", "root", "rename"]),
    "frame named world": (lambda: arm().frame("world"), ["'world'", "root"]),
    "frame named as a welded body": (
        lambda: arm().body("hand").hinge("grip", "weld", "lower", "hand").frame("hand", "upper"),
        ["frame 'hand'", "welded body", "rename"],
    ),
    # the tree
    "unknown parent": (
        lambda: Builder().body("a").hinge("j", "free", "ghost", "a"),
        ["hinge 'j'", "unknown parent 'ghost'"],
    ),
    "unknown child": (
        lambda: arm().hinge("j", "free", "upper", "ghost"),
        ["hinge 'j'", "unknown child 'ghost'"],
    ),
    "world as child": (lambda: arm().hinge("j", "free", "upper", "world"), ["child 'world'"]),
    "two inboard hinges": (
        lambda: arm().hinge("j", "free", "world", "lower"),
        ["body 'lower'", "'elbow' and 'j'", "close the loop"],
    ),
    "cycle": (
        lambda: Builder().body("a").body("b").hinge("i", "free", "a", "b")
        .hinge("j", "free", "b", "a"),
        ["cycle", "'a' → 'b' → 'a'"],
    ),
    "hinge onto itself": (lambda: Builder().body("a").hinge("i", "free", "a", "a"), ["cycle"]),
    "unconnected body": (
        lambda: arm().body("rock", 1.0, inertia=BALL),
        ["body 'rock'", "not connected", "'free'"],
    ),
    "frame on unknown body": (lambda: arm().frame("f", "ghost"), ["frame 'f'", "'ghost'"]),
    # bodies
    "negative mass": (lambda: stick(mass=-1.0), ["body 'stick'", "negative mass -1"]),
    "mass that is not a number": (lambda: stick(mass=NAN), ["body 'stick': mass", "finite"]),
    "infinite mass": (lambda: stick(mass=INF), ["body 'stick': mass", "finite"]),
    "mass that is text": (lambda: stick(mass="heavy"), ["body 'stick': mass", "'heavy'"]),
    "centre of mass not finite": (
        lambda: stick(com=(0, INF, 0)), ["body 'stick': centre of mass", "finite"],
    ),
    "centre of mass too short": (lambda: stick(com=(0, 0)), ["'stick'", "(2,)", "(3,)"]),
    "inertia not finite": (lambda: stick(inertia=(1, NAN, 1)), ["body 'stick': inertia", "finite"]),
    "inertia of wrong shape": (lambda: stick(inertia=np.eye(4)), ["'stick'", "(4, 4)", "(3, 3)"]),
    "inertia that is text": (lambda: stick(inertia="big"), ["body 'stick': inertia", "'big'"]),
    "inertia not symmetric": (
        lambda: stick(inertia=[[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]),
        ["body 'stick': inertia", "not symmetric"],
    ),
    # hinges
    "unknown kind": (
        lambda: arm(kind="ball"), ["hinge 'elbow'", "unknown kind 'ball'", *KINDS],
    ),
    "unknown keyword": (
        lambda: arm(stifness=1.0), ["hinge 'elbow'", "does not know 'stifness'", "stiffness"],
    ),
    "array of wrong length": (
        lambda: arm(effort=(1, 2)), ["hinge 'elbow': effort", "(2,)", "one number or 1"],
    ),
    "rest of wrong length": (
        lambda: arm(kind="spherical", rest=(1, 0, 0)), ["hinge 'elbow': rest", "(3,)", "4"],
    ),
    "limit that is not a number": (
        lambda: arm(lower=NAN), ["hinge 'elbow': lower", "not a number"],
    ),
    "limit that is text": (lambda: arm(upper="far"), ["hinge 'elbow': upper", "'far'"]),
    "infinite damping": (lambda: arm(damping=INF), ["hinge 'elbow': damping", "finite"]),
    "negative armature": (lambda: arm(armature=-1), ["hinge 'elbow'", "negative armature"]),
    "negative friction": (lambda: arm(friction=-1), ["hinge 'elbow'", "negative friction"]),
    "negative backlash": (lambda: arm(backlash=-1), ["hinge 'elbow'", "negative backlash"]),
    "limits exchanged": (lambda: arm(lower=1, upper=-1), ["hinge 'elbow'", "lower", "upper"]),
    "friction speed of zero": (lambda: arm(friction_speed=0), ["hinge 'elbow'", "friction_speed"]),
    "friction speed that is text": (
        lambda: arm(friction_speed="slow"), ["hinge 'elbow': friction_speed", "'slow'"],
    ),
    "pitch not finite": (
        lambda: arm(kind="helical", pitch=INF), ["hinge 'elbow': pitch", "finite"],
    ),
    "no axis": (lambda: arm(axis=None), ["hinge 'elbow'", "revolute", "needs an axis"]),
    "zero axis": (lambda: arm(axis=(0, 0, 0)), ["hinge 'elbow'", "zero axis"]),
    "axis not finite": (lambda: arm(axis=(0, NAN, 0)), ["hinge 'elbow': axis", "finite"]),
    "axis of wrong length": (lambda: arm(axis=(0, 1)), ["hinge 'elbow': axis", "(1, 2)", "(1, 3)"]),
    "axis that is text": (lambda: arm(axis="y"), ["hinge 'elbow': axis", "'y'"]),
    "one axis of two": (
        lambda: arm(kind="universal", axis=Y), ["hinge 'elbow': axis", "(1, 3)", "(2, 3)"],
    ),
    "parallel axes": (
        lambda: arm(kind="universal", axis=(Y, (0, -2, 0))),
        ["hinge 'elbow'", "universal", "parallel"],
    ),
    "position not finite": (
        lambda: arm(position=(NAN, 0, 0)), ["hinge 'elbow': position", "finite"],
    ),
    "angles not finite": (lambda: arm(rpy=(INF, 0, 0)), ["hinge 'elbow': rpy", "finite"]),
    "placement that is no rotation": (
        lambda: arm(placement=Transform.of(2 * np.eye(3))), ["hinge 'elbow'", "no rotation"],
    ),
    "frame position not finite": (
        lambda: arm().frame("tip", "lower", position=(0, 0, NAN)), ["frame 'tip': position"],
    ),
    "frame placement that mirrors": (
        lambda: arm().frame("tip", "lower", placement=Transform.of(-np.eye(3))),
        ["frame 'tip'", "no rotation"],
    ),
    "change of an unknown hinge": (
        lambda: arm().replace_hinge("wrist", effort=np.ones(1)), ["'arm'", "no hinge 'wrist'"],
    ),
    # the whole
    "gravity too short": (lambda: Builder(gravity=(0, -9.81)), ["gravity", "(2,)", "(3,)"]),
    "gravity not finite": (lambda: Builder(gravity=(0, 0, NAN)), ["gravity", "finite"]),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_a_sentence_that_names_it(case: str) -> None:
    make, pieces = REFUSED[case]
    with pytest.raises(ModelError) as caught:
        make().build()
    message = str(caught.value)
    assert "\n" not in message
    for piece in pieces:
        assert piece in message


def test_a_model_error_is_a_value_error() -> None:
    assert issubclass(ModelError, ValueError)


# ---- inertias ----------------------------------------------------------------------------------


DOUBTFUL = {
    "triangle inequality": (1.0, 0.1, 0.1),
    "positive semidefinite": (1.0, 1.0, -0.5),
}


@pytest.mark.parametrize("what", DOUBTFUL)
def test_doubtful_inertia_warns_and_is_an_error_when_strict(what: str) -> None:
    builder = stick(inertia=DOUBTFUL[what])
    with pytest.warns(ModelWarning, match=f"'stick'.*{what}"):
        builder.build()
    with pytest.raises(ModelError, match=f"'stick'.*{what}"):
        builder.build(strict=True)


def test_triangle_inequality_is_about_principal_moments_at_the_centre_of_mass() -> None:
    """A thin rod in turned axes, far from its origin, is still a rod."""
    u = np.array([1.0, 2.0, 3.0]) / np.sqrt(14)
    rod = np.eye(3) - np.outer(u, u)
    stick(com=(50, -20, 10), inertia=rod).build(strict=True)


@pytest.mark.parametrize("kind", ["revolute", "spherical", "free"])
def test_a_leaf_without_inertia_is_refused(kind: HingeName) -> None:
    builder = arm().body("dust").hinge("drift", kind, "lower", "dust", axis=Y)
    with pytest.raises(ModelError, match=r"hinge 'drift' moves body 'dust'.*no inertia.*armature"):
        builder.build()


def test_a_point_mass_on_its_own_axis_is_refused() -> None:
    with pytest.raises(ModelError, match="'stick'"):
        stick(com=(0, 1, 0), inertia=(0, 0, 0)).build()


def test_a_massless_body_that_carries_something_or_has_armature_is_fine() -> None:
    carried = Builder().body("gimbal").hinge("yaw", "revolute", "world", "gimbal", axis=(0, 0, 1))
    carried.body("bob", 1.0, (0, 0, -1), BALL).hinge("roll", "revolute", "gimbal", "bob", axis=Y)
    assert carried.build().nv == 2
    geared = arm().body("dust").hinge("spin", "revolute", "lower", "dust", axis=Y, armature=0.1)
    assert geared.build().nv == 3


# ---- what is built -----------------------------------------------------------------------------


def test_parts_may_come_in_any_order() -> None:
    late = Builder("arm")
    late.hinge("elbow", "revolute", "upper", "lower", axis=Y, position=(0, 0, -1))
    late.body("lower", 1.0, (0, 0, -0.5), BALL).body("upper", 1.0, (0, 0, -0.5), BALL)
    late.hinge("shoulder", "revolute", "world", "upper", axis=Y)
    robot = late.build()
    assert [b.name for b in robot.bodies] == ["upper", "lower"]
    assert robot == arm().build()


def test_bodies_are_numbered_depth_first_and_states_follow() -> None:
    builder = Builder()
    for name in ("a", "b", "a1", "b1", "a2"):
        builder.body(name, 1.0, inertia=BALL)
    builder.hinge("i", "free", "world", "a").hinge("j", "revolute", "world", "b", axis=Y)
    builder.hinge("k", "spherical", "a", "a1").hinge("l", "prismatic", "b", "b1", axis=Y)
    builder.hinge("m", "universal", "a", "a2", axis=((1, 0, 0), Y))
    robot = builder.build()
    assert [b.name for b in robot.bodies] == ["a", "a1", "a2", "b", "b1"]
    assert [h.name for h in robot.hinges] == ["i", "k", "m", "j", "l"]
    assert robot.parents == (-1, 0, 0, -1, 3)
    assert [(h.q.start, h.q.stop) for h in robot.hinges] == [
        (0, 7), (7, 11), (11, 13), (13, 14), (14, 15)]  # fmt: skip
    assert [(h.v.start, h.v.stop) for h in robot.hinges] == [
        (0, 6), (6, 9), (9, 11), (11, 12), (12, 13)]  # fmt: skip
    assert (robot.nb, robot.nq, robot.nv) == (5, 15, 13)


def test_welds_merge_bodies_and_keep_their_frames() -> None:
    builder = arm().body("tool", 2.0, (0, 0, -0.1), BALL).body("tip")
    builder.hinge("flange", "weld", "lower", "tool", position=(0, 0, -1), rpy=(np.pi, 0, 0))
    builder.hinge("end", "weld", "tool", "tip", position=(0, 0, 0.5))
    builder.frame("lens", "tool", position=(0, 0.2, 0))
    robot = builder.build()
    lower = robot.bodies[1]
    assert robot.nb == 2
    assert lower.mass == 3.0
    moment = np.asarray(lower.inertia.moment, float)
    assert_allclose(moment, [0, 0, -0.5 - 2 * 0.9], atol=1e-15)
    assert set(robot.frames) == {"tool", "tip", "lens"}
    assert {f.body for f in robot.frames.values()} == {"lower"}
    position = {name: np.asarray(robot.frame(name).placement.position, float)
                for name in robot.frames}  # fmt: skip
    assert_allclose(position["tip"], [0, 0, -1.5], atol=1e-15)
    assert_allclose(position["lens"], [0, -0.2, -1], atol=1e-15)


def test_what_is_welded_to_the_world_becomes_a_world_frame() -> None:
    builder = Builder().body("table", 50.0, inertia=BALL)
    builder.hinge("floor", "weld", "world", "table", position=(1, 0, 0))
    builder.body("arm", 1.0, (0, 0, -0.5), BALL)
    builder.hinge("pivot", "revolute", "table", "arm", axis=Y, position=(0, 0, 2))
    robot = builder.build()
    assert robot.mass == 1.0
    assert robot.frame("table").body == "world"
    assert robot.hinge("pivot").parent == "world"
    assert_allclose(np.asarray(robot.hinge("pivot").placement.position, float), [1, 0, 2])


def test_hinge_numbers_fill_defaults_and_broadcast() -> None:
    h = arm(kind="universal", axis=((1, 0, 0), Y), effort=5, damping=(1, 2)).build().hinge("elbow")
    assert h.effort.tolist() == [5, 5]
    assert h.damping.tolist() == [1, 2]
    assert h.lower.tolist() == [-INF, -INF]
    assert h.upper.tolist() == h.velocity.tolist() == [INF, INF]
    assert h.stiffness.tolist() == h.armature.tolist() == h.friction.tolist() == [0, 0]
    assert h.rest.tolist() == [0, 0]
    assert arm(kind="free", axis=None).build().hinge("elbow").rest.tolist() == [0, 0, 0, 1, 0, 0, 0]


def test_axes_are_made_unit_and_a_plane_gets_a_right_handed_triple() -> None:
    robot = arm(axis=(0, 0, -7)).build()
    assert np.asarray(robot.hinge("elbow").axes[0], float).tolist() == [0, 0, -1]
    normal, first, second = arm(kind="planar", axis=(1, 1, 0)).build().hinge("elbow").axes
    assert_allclose(np.cross(first.astype(float), second.astype(float)), normal.astype(float))
    flat = arm(kind="planar", axis=(0, 0, 1)).build().hinge("elbow").axes
    assert np.asarray(flat, float).tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]


def test_an_empty_robot_is_a_robot() -> None:
    robot = Builder("nothing").frame("origin").build()
    assert (robot.nb, robot.nq, robot.nv, robot.mass) == (0, 0, 0, 0.0)
    assert robot.neutral().shape == (0,)


def test_long_chains_need_no_recursion() -> None:
    builder = Builder()
    for i in range(1200):
        parent = f"b{i - 1}" if i else "world"
        builder.body(f"b{i}", 1.0, inertia=BALL).hinge(f"h{i}", "revolute", parent, f"b{i}", axis=Y)
    assert builder.build().nb == 1200


# ---- several robots ----------------------------------------------------------------------------


def test_combine_puts_robots_in_one_world() -> None:
    one = arm().frame("tip", "lower").build()
    both = combine({"left": one, "right": one.with_gravity((0, 0, 0))}, name="pair")
    assert both.name == "pair"
    assert [b.name for b in both.bodies] == [
        "left/upper", "left/lower", "right/upper", "right/lower"]  # fmt: skip
    assert both.parents == (-1, 0, -1, 2)
    assert both.gravity.tolist() == [0, 0, -9.81]
    assert both.frame("right/tip").body == "right/lower"
    assert both.mass == 2 * one.mass


def test_combine_of_a_sequence_needs_names_that_differ() -> None:
    one = arm().build()
    other = Builder().body("ball", 1.0, inertia=BALL).hinge("ball", "free", "world", "ball").build()
    assert combine([one, other]).nb == 3
    with pytest.raises(ModelError, match="'upper'"):
        combine([one, one])
    with pytest.raises(ModelError, match="at least one"):
        combine([])
