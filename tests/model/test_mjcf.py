"""MJCF through MuJoCo's compiler: kinematics and dynamics against MuJoCo itself."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import phipsi as pp
from phipsi.model.mjcf import body_names, from_mjcf

pytestmark = pytest.mark.usefixtures("interpreted")

mujoco = pytest.importorskip("mujoco")

BOX = '<geom type="box" size=".1 .2 .3" pos=".05 .1 -.1" euler="10 20 30" mass="1.3"/>'
ROD = '<geom type="capsule" size=".05 .4" pos="0 .1 .3" mass=".7"/>'


def world(*bodies: str, option: str = "") -> str:
    """Bodies that neither touch nor meet a limit."""
    flags = '<flag contact="disable" limit="disable" frictionloss="disable"/>'
    return (
        f'<mujoco model="zoo"><option gravity="0.3 -0.2 -9" {option}>{flags}</option>'
        f"<worldbody>{''.join(bodies)}</worldbody></mujoco>"
    )


def body(name: str, *inside: str, pose: str = 'pos=".3 -.1 .2" euler="15 -25 40"') -> str:
    return f'<body name="{name}" {pose}>{"".join(inside)}</body>'


HINGE = '<joint name="hinge" axis="1 2 .5"/>'
ZOO = {
    "hinge": world(body("a", HINGE, BOX, body("b", '<joint name="b" axis="0 1 1"/>', ROD))),
    "hinge with offset": world(
        body("a", '<joint name="a" axis="1 2 .5" pos=".2 -.1 .3"/>', BOX,
             body("b", '<joint name="b" axis="0 1 1" pos="-.1 .2 0"/>', ROD))
    ),
    "slide": world(body("a", '<joint name="a" type="slide" axis="1 1 0" pos="1 2 3"/>', BOX,
                        body("b", HINGE, ROD))),
    "ref": world(
        body("a", '<joint name="a" axis="1 2 .5" pos=".2 0 .1" ref="35"/>', BOX,
             body("b", '<joint name="b" type="slide" axis="0 1 1" ref=".4"/>', ROD))
    ),
    "ball": world(body("a", '<joint name="a" type="ball"/>', BOX,
                       body("b", '<joint name="b" type="ball" pos=".1 .2 .3"/>', ROD))),
    "free": world(body("a", '<freejoint name="a"/>', BOX,
                       body("b", '<joint name="b" axis="0 1 1" pos="-.1 .2 0"/>', ROD))),
    "two free": world(body("a", '<freejoint name="a"/>', BOX),
                      body("b", '<freejoint name="b"/>', ROD, body("c", HINGE, BOX))),
    "many joints": world(
        body("a", '<joint name="x" type="slide" axis="1 0 0"/>',
             '<joint name="y" type="slide" axis="0 1 0" ref=".2"/>',
             '<joint name="turn" axis="0 0 1" pos=".1 .2 .3"/>',
             '<joint name="tilt" axis="1 1 0" pos="-.1 0 .2" ref="20"/>', BOX,
             body("b", '<joint name="shoulder" type="ball" pos=".1 0 0"/>',
                  '<joint name="stretch" type="slide" axis="0 1 1"/>', ROD))
    ),
    "welds": world(
        body("fixed", BOX, body("a", HINGE, BOX, body("w", ROD, body("b", BOX))),
             body("c", '<joint name="c" pos=".1 0 0"/>', ROD, body("d", BOX)))
    ),
    "branches": world(
        body("a", HINGE, BOX, *(body(f"b{i}", f'<joint name="b{i}"/>', ROD) for i in range(3))),
        body("z", '<joint name="z" axis="0 1 0"/>', BOX),
    ),
    "armature": world(
        body("a", '<joint name="a" axis="1 2 .5" armature=".3"/>', BOX,
             body("b", '<joint name="b" type="ball" armature=".2"/>', ROD))
    ),
    "springs": world(
        body("a", '<joint name="a" axis="1 2 .5" stiffness="3" springref="25" damping=".4"/>', BOX,
             body("b", '<joint name="b" type="slide" ref=".3" springref=".5" stiffness="7"/>', ROD),
             body("c", '<joint name="c" type="ball" stiffness="2" damping=".3"/>', ROD))
    ),
    "damped free": world(body("a", '<joint name="a" type="free" damping=".7"/>', BOX)),
    "no gravity": world(body("a", HINGE, BOX)).replace(
        'contact="disable"', 'contact="disable" gravity="disable"'
    ),
    "no names": world(
        f"<body><joint/><joint axis='0 1 0'/>{BOX}<body><joint/>{ROD}</body></body>",
        f"<body><freejoint/>{BOX}</body>",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", ZOO)
def test_motion_is_mujocos(what: str):
    model = mujoco.MjModel.from_xml_string(ZOO[what])
    robot, data, rng = from_mjcf(ZOO[what]), mujoco.MjData(model), np.random.default_rng(1)
    assert (robot.nq, robot.nv) == (model.nq, model.nv)
    for _ in range(5):
        q, v = robot.random_state(rng)
        tau = rng.standard_normal(robot.nv)
        total = tau + pp.passive_forces(robot, q, v)
        a = pp.forward_dynamics(robot, q, v, total)
        qpos, qvel, qacc, force = pp.interop.to_mujoco(robot, q, v, a, tau, joints=model)
        np.testing.assert_allclose(qpos, q, atol=1e-15)
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = qpos, qvel, force
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(qacc, data.qacc, rtol=0, atol=1e-10 * np.abs(data.qacc).max())
        for i, name in enumerate(body_names(model)):
            pose = np.asarray(pp.frame_pose(robot, q, name))
            np.testing.assert_allclose(pose[:3, 3], data.xpos[i], atol=1e-13)
            np.testing.assert_allclose(pose[:3, :3].reshape(9), data.xmat[i], atol=1e-13)


def test_sites_are_frames():
    sites = '<site name="s" pos=".1 .2 .3" euler="5 6 7"/><site name="b" pos="1 1 1"/><site/>'
    joint = '<joint name="a" axis="1 2 .5" pos=".2 -.1 .3"/>'
    text = world('<site name="w" pos="1 2 3"/>', body("a", joint, BOX, sites, body("b", BOX)))
    model = mujoco.MjModel.from_xml_string(text)
    robot, data = from_mjcf(text), mujoco.MjData(model)
    data.qpos[:] = 0.7
    mujoco.mj_forward(model, data)
    for name, theirs in (("s", "s"), ("b_site", "b"), ("w", "w")):
        pose = np.asarray(pp.frame_pose(robot, data.qpos, name))
        np.testing.assert_allclose(pose[:3, 3], data.site(theirs).xpos, atol=1e-14)
        np.testing.assert_allclose(pose[:3, :3].reshape(9), data.site(theirs).xmat, atol=1e-14)


def test_data_of_a_joint():
    joint = (
        '<joint name="a" axis="0 0 1" range="-10 20" actuatorfrcrange="-3 2" armature=".1" '
        'damping=".2" stiffness=".3" springref="30" frictionloss=".4"/>'
    )
    h = from_mjcf(world(body("a", joint, BOX))).hinge("a")
    np.testing.assert_allclose([h.lower, h.upper], np.radians([[-10], [20]]))
    values = (h.effort, h.armature, h.damping, h.stiffness, h.friction)
    assert [float(x[0]) for x in values] == [3.0, 0.1, 0.2, 0.3, 0.4]
    np.testing.assert_allclose(h.rest, np.radians([30]))


def test_names_of_what_has_none_and_of_bodies_in_between():
    robot = from_mjcf(ZOO["no names"])
    assert [b.name for b in robot.bodies] == ["body1/body1_joint0", "body1", "body2", "body3"]
    names = ["body1_joint0", "body1_joint1", "body2_joint", "body3_joint"]
    assert [h.name for h in robot.hinges] == names


def test_a_free_joint_starts_at_rest():
    rest = from_mjcf(world(body("a", "<freejoint/>", BOX, pose='pos="1 2 3"'))).hinges[0].rest
    assert list(rest) == [1, 2, 3, 1, 0, 0, 0]


CHAIN = ZOO["hinge"]
TOUCHING = CHAIN.replace('contact="disable" ', "")
GEOM = '<geom name="{}" size=".1" mass="1"/>'
LEFT_OUT = {
    "equality constraints (2: 'tie', number 1)": (
        CHAIN,
        '<equality><joint name="tie" joint1="hinge" joint2="b"/><joint joint1="b"/></equality>',
    ),
    "tendons (1: 'rope')": (
        CHAIN, '<tendon><fixed name="rope"><joint joint="b" coef="1"/></fixed></tendon>'
    ),
    "servos (4: 'p', 'v', 'd' and 1 more); the forces of joints are inputs, see phipsi.control": (
        CHAIN,
        '<actuator><position name="p" joint="hinge" kp="3"/><velocity name="v" joint="b" kv="2"/>'
        '<damper name="d" joint="b" kv="1" ctrlrange="0 1"/><position joint="b" kp="1"/>'
        '<motor joint="b"/></actuator>',
    ),
    "actuators that are no motors (2: 'slow', 'pull')": (
        CHAIN,
        '<actuator><general name="slow" joint="b" dyntype="integrator"/>'
        '<motor name="pull" site="s" refsite="s"/></actuator><worldbody><site name="s"/>'
        "</worldbody>",
    ),
    "mocap bodies (1: 'hand'), which stay at their pose": (
        world(body("a", HINGE, BOX), '<body name="hand" mocap="true"/>'), ""
    ),
    "contacts of geoms (2: 'ground', number 1)": (
        TOUCHING, '<worldbody><geom name="ground" type="plane" size="1 1 1"/></worldbody>'
        '<contact><exclude body1="world" body2="b"/></contact>',
    ),
    "fluid forces (density 0, viscosity 1)": (
        world(body("a", HINGE, BOX), option='viscosity="1"'), ""
    ),
    "gravity compensation (1: 'a')": (world(body("a", HINGE, BOX, pose='gravcomp="1"')), ""),
    "springs of free joints (1: number 0)": (
        world(body("a", '<joint type="free" stiffness="1"/>', BOX)), ""
    ),
    "limits of ball joints (1: 'b')": (
        world(body("a", '<joint name="b" type="ball" range="0 90"/>', BOX)), ""
    ),
    "armature of free joints (1: 'f')": (
        world(body("a", '<joint name="f" type="free" armature="1"/>', BOX)), ""
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", LEFT_OUT)
def test_what_is_left_out_is_said(what: str):
    text, more = LEFT_OUT[what]
    text = text.replace("</mujoco>", more + "</mujoco>")
    words = re.escape(f"does not take over from this MJCF: {what}")
    with pytest.warns(pp.ModelWarning, match=f"{words}$") as said:
        pp.load(text)
    assert len(said) == 1
    with pytest.raises(pp.ModelError, match=f"{words}$"):
        pp.load(text, strict=True)


def test_each_kind_that_is_left_out_has_a_sentence():
    more = (
        '<worldbody><body name="hand" mocap="true"/></worldbody>'
        '<actuator><position name="p" joint="b"/></actuator>'
    )
    with pytest.warns(pp.ModelWarning) as said:
        pp.load(CHAIN.replace("</mujoco>", more + "</mujoco>"))
    assert [str(w.message).split(": ", 1)[1].split(" (")[0] for w in said] == [
        "servos",
        "mocap bodies",
    ]


APART = '<geom size="1" contype="4" conaffinity="8"/>'


def two(a: str, b: str, more: str = "") -> str:
    """Two moving bodies, the second on the first, with a geom of these attributes each."""
    inner = body("b", "<joint/>", f'<geom size=".1" mass="1" {b}/>')
    text = world(body("a", "<joint/>", f'<geom size=".1" mass="1" {a}/>', inner))
    return text.replace('contact="disable" ', "").replace("</mujoco>", f"{more}</mujoco>")


@pytest.mark.parametrize(
    "text",
    [
        two("", ""),
        two("", "").replace("<worldbody>", f"<worldbody>{APART}"),
        two('contype="2"', 'contype="2"').replace("<worldbody>", '<worldbody><geom size="1"/>'),
    ],
)  # fmt: skip
def test_geoms_that_mujoco_never_lets_touch_are_no_contacts(
    text: str, recwarn: pytest.WarningsRecorder
):
    """A parent and its child do not touch, nor do geoms whose bits exclude each other."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    model.body_pos[:] = 0.0  # all geoms in one place
    mujoco.mj_forward(model, data)
    expected = data.ncon > 0
    pp.load(text)
    assert any("contacts" in str(w.message) for w in recwarn) == expected


def test_effort_is_the_force_of_the_motors():
    """MuJoCo's joint force at full control, both motors of one joint together; none: no motor."""
    bodies = [body(n, f'<joint name="{n}"/>', BOX) for n in "wxy"]
    bodies.append(body("z", '<joint name="z" actuatorfrcrange="-2 2"/>', BOX))
    motors = (
        '<motor joint="w" gear="-3" ctrlrange="-2 1"/><motor joint="w" gear="2" ctrlrange="-5 5" '
        'forcerange="-1 .5"/><motor joint="x"/><general joint="z" gainprm="4" ctrlrange="0 1"/>'
    )
    text = world(*bodies).replace("</mujoco>", f"<actuator>{motors}</actuator></mujoco>")
    robot, model = pp.load(text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.ctrl[:] = -2, 5, 1e9, 1
    mujoco.mj_forward(model, data)
    most = abs(data.qfrc_actuator)
    assert [float(h.effort[0]) for h in robot.hinges] == [8.0, np.inf, 0.0, 2.0]
    assert most.tolist() == [7.0, 1e9, 0.0, 2.0]  # the second motor of w is stronger backwards
    assert robot.driven.tolist() == [True, True, False, True]


def test_a_file_with_a_mesh_and_an_include(tmp_path: Path):
    corners = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    lines = [f"v {x} {y} {z}" for x, y, z in corners]
    faces = "1 2 4 3, 5 7 8 6, 1 5 6 2, 3 4 8 7, 1 3 7 5, 2 6 8 4".split(", ")
    (tmp_path / "cube.obj").write_text("\n".join(lines + [f"f {face}" for face in faces]))
    (tmp_path / "part.xml").write_text(
        '<mujocoinclude><asset><mesh name="cube" file="cube.obj"/></asset></mujocoinclude>'
    )
    text = world(body("a", HINGE, '<geom type="mesh" mesh="cube" density="2"/>'))
    text = text.replace("<worldbody>", '<include file="part.xml"/><worldbody>')
    path = tmp_path / "robot.xml"
    path.write_text(text)
    assert from_mjcf(path).mass == pytest.approx(2.0)
    assert pp.load(path) == from_mjcf(str(path))
    with pytest.raises(pp.ModelError, match=r"refers to the file 'part.xml'.*from its path"):
        from_mjcf(text)


@pytest.mark.parametrize(
    "asset",
    [
        '<mesh name="m" file="/etc/passwd"/>',
        '<texture name="t" type="cube" fileright="/etc/passwd"/>',
        '<hfield name="h" file="/etc/passwd" size="1 1 1 1"/>',
        '<model name="m" file="/etc/passwd"/>',
    ],
)
def test_a_text_reads_no_files(asset: str):
    text = ZOO["hinge"].replace("<worldbody>", f"<asset>{asset}</asset><worldbody>")
    with pytest.raises(pp.ModelError, match="'/etc/passwd', which an MJCF given as text must not"):
        pp.load(text)


WRONG = {
    "MuJoCo": ("<mujoco><robot/></mujoco>", "MuJoCo refuses the MJCF: .*unrecognized element"),
    "massless": (world(body("a", HINGE)), "MuJoCo refuses the MJCF: .*mass and inertia"),
    "root": ("<robot/>", "an MJCF has <mujoco>"),
    "NaN": (world(body("a", HINGE, BOX, pose='pos="0 nan 0"')), "'<body pos>' is not a number"),
    "1e400": (world(body("a", HINGE, BOX, pose='pos="0 1e400 0"')), "MuJoCo refuses .*too large"),
    "entities": ('<!DOCTYPE mujoco [<!ENTITY a "b">]><mujoco model="&a;"/>', "DOCTYPE, entities"),
    "texture": (
        ZOO["hinge"].replace("<worldbody>", '<asset><texture name="t" type="2d" builtin="flat" '
                             'width="99999" height="99999"/></asset><worldbody>'),
        "MuJoCo needs more than 1 GB of memory",
    ),
    "user data": (ZOO["hinge"].replace("<worldbody>", '<size nuser_body="999999999"/><worldbody>'),
                  "MuJoCo needs more than 1 GB of memory"),
    "deep": (world("<body>" * 700 + BOX + "</body>" * 700), "MuJoCo refuses .*too deep"),
    "long name": (world(body("a" * 5000, HINGE, BOX)), "at most 1000 characters"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_said(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    text, message = WRONG[what]
    with pytest.raises(pp.ModelError, match=message) as caught:
        from_mjcf(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert list(tmp_path.iterdir()) == [], "MuJoCo left a log behind"


def test_without_mujoco_one_sentence_says_how_to_get_it():
    code = (
        "import sys; sys.modules['mujoco'] = None\n"
        "import phipsi as pp\n"
        "try: pp.load('<mujoco/>')\n"
        "except pp.ModelError as error: print(error)"
    )
    said = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert said == "MJCF needs mujoco: pip install 'phipsi[mjcf]'\n"
