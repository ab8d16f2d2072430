"""URDF files against Pinocchio, and what the loader makes of odd ones."""

import re
import warnings

import numpy as np
import pytest

import phipsi as pp
from phipsi.model.urdf import from_urdf
from tests.model.urdf_files import BROKEN, SINGULAR, SOUND, URDFS

pin = pytest.importorskip("pinocchio")

BODY = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'


def quietly(text: str | bytes, **options) -> pp.Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pp.ModelWarning)
        return from_urdf(text, **options)


def urdf(*joints: str, links: str = "") -> str:
    """A robot with the links base, a and b, the last two with mass."""
    parts = f'<link name="base"/><link name="a">{BODY}</link><link name="b">{BODY}</link>{links}'
    return f'<robot name="odd">{parts}{"".join(joints)}</robot>'


def joint(name: str, parent: str, child: str, type: str = "revolute", inside: str = "") -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{type}">{ends}{inside}</joint>'


CHAIN = (joint("one", "base", "a"), joint("two", "a", "b"))


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("name", SOUND)
def test_every_number_is_pinocchios(name: str, base: str):
    root = (pin.JointModelFreeFlyer(),) if base == "free" else ()
    model = pin.buildModelFromUrdf(str(SOUND[name]), *root)
    robot = quietly(SOUND[name].read_bytes(), base=base)
    assert (robot.nb, robot.nv) == (model.njoints - 1, model.nv)
    number = {joint: i for i, joint in enumerate(model.names)}
    carrier = {h.child: h.name for h in robot.hinges} | {"world": "universe"}
    for h, body in zip(robot.hinges, robot.bodies, strict=True):
        i = number[h.name]
        joint = model.joints[i]
        assert carrier[h.parent] == model.names[model.parents[i]]
        np.testing.assert_allclose(
            np.asarray(h.placement.matrix, float),
            model.jointPlacements[i].homogeneous,
            atol=1e-12,
        )
        theirs = model.inertias[i].toDynamicParameters()[[0, 1, 2, 3, 4, 5, 7, 6, 8, 9]]
        mine = np.asarray(body.inertia.parameters, float)
        np.testing.assert_allclose(mine, theirs, atol=1e-12 * max(1.0, np.abs(theirs).max()))
        if h.kind.name in ("revolute", "prismatic"):
            np.testing.assert_allclose(h.lower, model.lowerPositionLimit[joint.idx_q])
            np.testing.assert_allclose(h.upper, model.upperPositionLimit[joint.idx_q])
        if h.kind.nv == 1:
            np.testing.assert_allclose(h.velocity, model.velocityLimit[joint.idx_v])
            np.testing.assert_allclose(h.effort, model.effortLimit[joint.idx_v])
            np.testing.assert_allclose(h.damping, model.damping[joint.idx_v])
            np.testing.assert_allclose(h.friction, model.friction[joint.idx_v])
    for theirs in model.frames:
        if theirs.type == pin.FrameType.BODY and theirs.name not in ("universe", "world"):
            mine = robot.frame(theirs.name)
            assert carrier[mine.body] == model.names[theirs.parentJoint]
            np.testing.assert_allclose(
                np.asarray(mine.placement.matrix, float), theirs.placement.homogeneous, atol=1e-12
            )


@pytest.mark.parametrize("name", SINGULAR)
def test_a_massless_moving_body_is_refused(name: str):
    with pytest.raises(pp.ModelError, match=SINGULAR[name]):
        quietly(URDFS[name].read_bytes())


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused(name: str):
    with pytest.raises(pp.ModelError, match=BROKEN[name]):
        from_urdf(URDFS[name].read_bytes())


def test_joint_types():
    types = {"revolute": "revolute", "continuous": "continuous", "prismatic": "prismatic",
             "floating": "free", "planar": "planar"}  # fmt: skip
    for given, kind in types.items():
        robot = from_urdf(urdf(joint("one", "base", "a", given), joint("two", "a", "b", "fixed")))
        assert robot.hinge("one").kind.name == kind
        assert robot.mass == 4.0
        assert robot.frame("b").body == "a"


def test_data_of_a_joint():
    inside = (
        '<origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/><axis xyz="0 0 2"/>'
        '<limit lower="-1" upper="2" effort="3" velocity="4"/><dynamics damping="5" friction="6"/>'
        '<mimic joint="two" multiplier="7" offset="8"/>'
    )
    h = from_urdf(urdf(joint("one", "base", "a", inside=inside), CHAIN[1])).hinge("one")
    values = (h.lower, h.upper, h.effort, h.velocity, h.damping, h.friction)
    assert [float(x[0]) for x in values] == [-1, 2, 3, 4, 5, 6]
    assert h.mimic == pp.Mimic("two", 7.0, 8.0)
    assert list(h.axes[0]) == [0, 0, 1]
    np.testing.assert_allclose(
        np.asarray(h.placement.matrix, float),
        [[0, -1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]],
        atol=1e-15,
    )


MIMIC, SAFETY = '<mimic joint="two"/>', '<safety_controller k_velocity="1"/>'
DAMPED = '<limit effort="1" velocity="1"/><dynamics damping="1"/>'
LEFT_OUT = {
    "mimic relations, which are data: these joints move by themselves (1: 'one')": [
        joint("one", "base", "a", inside=MIMIC), CHAIN[1]
    ],
    "safety controllers (2: 'one', 'two')": [
        joint("one", "base", "a", inside=SAFETY), joint("two", "a", "b", inside=SAFETY)
    ],
    "limits and dynamics of joints with several freedoms (1: 'one')": [
        joint("one", "base", "a", "planar", DAMPED), joint("two", "a", "b", inside=DAMPED)
    ],
}  # fmt: skip


@pytest.mark.parametrize("what", LEFT_OUT)
def test_what_has_no_effect_is_said(what: str):
    words = re.escape(f"phipsi does not apply from this URDF: {what}")
    with pytest.warns(pp.ModelWarning, match=f"^{words}$") as said:
        pp.load(urdf(*LEFT_OUT[what]))
    assert len(said) == 1
    with pytest.raises(pp.ModelError, match=f"^{words}$"):
        pp.load(urdf(*LEFT_OUT[what]), strict=True)


def test_defaults():
    h = from_urdf(urdf(joint("one", "base", "a"), CHAIN[1])).hinge("one")
    assert list(h.axes[0]) == [1, 0, 0]
    assert (h.lower[0], h.upper[0], h.effort[0]) == (-np.inf, np.inf, np.inf)
    limited = joint("one", "base", "a", inside='<limit effort="1" velocity="1"/>')
    h = from_urdf(urdf(limited, CHAIN[1])).hinge("one")
    assert (h.lower[0], h.upper[0]) == (0.0, 0.0)


def test_fixed_root_is_the_world():
    robot = from_urdf(urdf(*CHAIN))
    assert [b.name for b in robot.bodies] == ["a", "b"]
    assert robot.frame("base").body == "world"


def test_free_root_floats():
    text = urdf(*CHAIN).replace('<link name="base"/>', f'<link name="base">{BODY}</link>')
    robot = from_urdf(text, base="free")
    assert [h.name for h in robot.hinges] == ["root_joint", "one", "two"]
    assert robot.hinge("root_joint").kind.name == "free"
    taken = from_urdf(text.replace('"one"', '"root_joint"'), base="free")
    assert [h.name for h in taken.hinges] == ["root_joint_", "root_joint", "two"]


def test_a_link_named_world():
    text = urdf(*CHAIN).replace('"base"', '"world"')
    assert "world" not in from_urdf(text).frames
    free = from_urdf(text.replace("<link name=\"world\"/>", f'<link name="world">{BODY}</link>'),
                     base="free")  # fmt: skip
    assert free.bodies[0].name == "world_link"
    inner = from_urdf(urdf(*CHAIN).replace('"a"', '"world"'))
    assert [b.name for b in inner.bodies] == ["world_link", "b"]


def test_siblings_are_ordered_as_in_the_file():
    robot = from_urdf(urdf(joint("z", "base", "b"), joint("y", "base", "a")))
    assert [h.name for h in robot.hinges] == ["z", "y"]


def test_doubtful_inertia_is_a_warning_and_strictly_an_error():
    text = urdf(*CHAIN).replace('izz="1"', 'izz="9"')
    with pytest.warns(pp.ModelWarning, match="triangle inequality"):
        from_urdf(text)
    with pytest.raises(pp.ModelError, match="triangle inequality"):
        from_urdf(text, strict=True)


WRONG = {
    "type": (urdf(joint("one", "base", "a", "ball"), CHAIN[1]), "'ball'; known are fixed,"),
    "no type": (urdf(*CHAIN).replace(' type="revolute"', ""), "type None"),
    "no parent": (urdf(*CHAIN).replace('<parent link="base"/>', ""), "no <parent"),
    "unknown": (urdf(joint("one", "base", "c")), "child 'c', but no link has that name"),
    "two parents": (urdf(*CHAIN, joint("three", "base", "b")), "two joints, 'two' and 'three'"),
    "cycle": (urdf(*CHAIN, joint("three", "b", "base")), "form a cycle"),
    "two roots": (urdf(CHAIN[0]), "2 links have no parent joint"),
    "same links": (urdf(*CHAIN, links='<link name="a"/>'), "two links are named 'a'"),
    "same joints": (urdf(CHAIN[0], joint("one", "a", "b")), "two joints are named 'one'"),
    "no name": (urdf(*CHAIN, links="<link/>"), "has no name"),
    "mass": (urdf(*CHAIN).replace('value="2"', 'value="heavy"'), "'heavy', which is not a number"),
    "negative": (urdf(*CHAIN).replace('value="2"', 'value="-2"'), "negative mass"),
    "no mass": (urdf(*CHAIN).replace('<mass value="2"/>', ""), "without <mass>"),
    "no ixx": (urdf(*CHAIN).replace('ixx="1"', ""), "without 'ixx'"),
    "axis": (urdf(joint("one", "base", "a", inside='<axis xyz="0 0 0"/>'), CHAIN[1]), "zero axis"),
    "two": (urdf(joint("o", "base", "a", inside='<axis xyz="0 1"/>'), CHAIN[1]), "three numbers"),
    "crossed": (
        urdf(joint("one", "base", "a", inside='<limit lower="2" upper="1"/>'), CHAIN[1]),
        "lower limit above the upper",
    ),
    "xacro": (urdf(*CHAIN).replace('value="2"', 'value="${m}"'), "xacro"),
    "empty": ("<robot/>", "no <link>"),
    "root": ("<model/>", "a URDF has <robot>"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_said(what: str):
    text, message = WRONG[what]
    with pytest.raises(pp.ModelError, match=message) as caught:
        from_urdf(text)
    assert "\n" not in str(caught.value)


def test_unknown_base():
    with pytest.raises(pp.ModelError, match="needs 'fixed' or 'free'"):
        from_urdf(urdf(*CHAIN), base="floating")  # type: ignore[arg-type]
