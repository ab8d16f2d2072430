"""What a scenario says is what is simulated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi import control as c
from phipsi.scenarios import ScenarioError
from tests.scenarios.texts import ARM, HELD, PENDULUM, read, refused

BULK = """<inertial><mass value="2"/><origin xyz="0 0 1"/>
<inertia ixx="0.2" iyy="0.2" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>"""
STICK = f"""<robot name="stick"><link name="base">{BULK}</link><link name="rod">{BULK}</link>
<joint name="pivot" type="continuous"><parent link="base"/><child link="rod"/>
<axis xyz="0 1 0"/></joint></robot>"""


def same(one: pp.Trajectory, other: pp.Trajectory) -> None:
    np.testing.assert_array_equal(one.t, other.t)
    np.testing.assert_allclose(one.q, other.q, atol=1e-12)


def test_a_fall_is_that_of_simulate():
    motion = read(PENDULUM).run()
    same(motion, pp.simulate(pp.robots.double_pendulum(), [1.0, 0.0], duration=0.1, dt=0.01))


def test_a_law_on_a_path_is_that_of_control():
    scenario = read(ARM)
    robot = pp.robots.puma560()
    q = robot.neutral()
    q[[1, 4]] = np.radians([40, 50])
    np.testing.assert_allclose(scenario.start[0], q)
    goal = q.copy()
    goal[0] = np.radians(5)
    other = pp.simulate(
        robot, q, None, c.on_path(c.computed_torque), duration=0.2, dt=0.01,
        parameters={"start": q, "goal": goal, "duration": 0.1, "stiffness": 100.0},
    )  # fmt: skip
    same(scenario.run(), other)


def test_a_path_waits_until_it_begins():
    motion = read(ARM.replace("duration = 0.1\n", "duration = 0.1\nbegin = 0.1\n")).run()
    before = motion.t <= 0.1
    assert np.abs(np.diff(motion.q[before], axis=0)).max() < 1e-12
    assert motion.q[-1, 0] > 0.01


def test_changed_values_and_progress():
    done: list[float] = []
    scenario = read(PENDULUM).changed(duration=0.2, dt=0.02, method="euler")
    motion = scenario.run(done.append)
    assert (motion.duration, motion.dt, motion.method) == (0.2, 0.02, "euler")
    assert done[-1] == 1.0
    with pytest.raises(ScenarioError, match=r"my: simulation.dt is -1, needs a positive number"):
        scenario.changed(dt=-1)
    with pytest.raises(ScenarioError, match=r"simulation.durations is not known"):
        scenario.changed(durations=1)


def test_an_event_after_a_shorter_end_does_not_happen():
    failure = "[[events]]\nkind = 'failure'\nat = 0.15\nhinge = 'joint1'\n"
    assert len(read(ARM + failure).run().events) == 1
    assert not read(ARM + failure).changed(duration=0.1).run().events


def test_a_robot_of_a_file_beside_the_scenario(tmp_path: Path):
    (tmp_path / "stick.urdf").write_text(STICK)
    text = PENDULUM.replace('name = "double_pendulum"', 'file = "stick.urdf"\nbase = "free"')
    text = text.replace("joint1", "pivot").replace("[start.q]", "gravity = [0, 0, -1]\n[start.q]")
    scenario = read(text, tmp_path)
    assert scenario.robot.nq == 8 and scenario.start[0][7] == 1.0
    np.testing.assert_array_equal(np.asarray(scenario.robot.gravity, float), [0, 0, -1])
    (tmp_path / "stick.urdf").write_text("<robot>")
    assert "line 3: robot.file is wrong" in refused(text, tmp_path)


def test_what_is_put_somewhere_is_there():
    robot = read(HELD).robot
    box = read(HELD).start[0]
    face = pp.frame_pose(robot, box, "face")
    np.testing.assert_allclose(face[:3, 3], [0.8, 0.0, 1.05])
    np.testing.assert_allclose(face[:3, 2], [0, 0, -1], atol=1e-12)
    assert robot.frame("tool") and robot.bodies[-1].mass == 2.0
    assert not robot.driven[robot.mask("box")].any()
    place = "place = { position = [1, 2, 3], rpy_deg = [0, 0, 90] }"
    placed = PENDULUM.replace("[start.q]", f'prefix = "a"\n{place}\n[start.q]')
    scenario = read(placed.replace("joint1", '"a/joint1"'))
    tool = pp.frame_pose(scenario.robot, scenario.start[0], "a/tool")[:3, 3]
    own = pp.frame_pose(pp.robots.double_pendulum(), [1.0, 0.0], "tool")[:3, 3]
    np.testing.assert_allclose(tool, [1 - own[1], 2 + own[0], 3 + own[2]])


def test_a_free_base_that_is_put_somewhere_is_there_in_its_coordinates():
    base = "[robot]\nname = 'space_arm'\nplace = { position = [1, 2, 3], rpy_deg = [0, 0, 90] }\n"
    moved = "[start.q]\nbase = { shift = [1, 0, 0], turn_deg = [0, 0, 90] }\n"
    text = "title = 'x'\n{}[simulation]\nduration = 1\n"
    q = read(text.format(base)).start[0]
    np.testing.assert_allclose(q[:7], [1, 2, 3, np.sqrt(0.5), 0, 0, np.sqrt(0.5)])
    q = read(text.format(base + moved)).start[0]
    np.testing.assert_allclose(q[:7], [2, 2, 3, 0, 0, 0, 1], atol=1e-12)


def test_velocities_forces_springs_and_limits():
    text = PENDULUM + "external = { tool = [0, 0, 0, 1, 0, 0] }\nlimits = { stiffness = 10 }\n"
    text += "springs = [{ a = 'tool', b = 'world', stiffness = 20, rest_length = 0.3 }]\n"
    text += "[start.v]\njoint1 = 0.5\n[start.v_deg]\njoint2 = 90\n"
    scenario = read(text)
    np.testing.assert_allclose(scenario.start[1], [0.5, np.pi / 2])
    other = pp.simulate(
        pp.robots.double_pendulum(), [1.0, 0.0], [0.5, np.pi / 2], duration=0.1, dt=0.01,
        external={"tool": [0, 0, 0, 1, 0, 0]}, limits=pp.Limits(stiffness=10.0),
        springs=[pp.Spring("tool", "world", stiffness=20.0, rest_length=0.3)],
    )  # fmt: skip
    same(scenario.run(), other)


def test_parameters_change_on_the_way():
    text = ARM + "[[events]]\nkind = 'change'\nat = 0.1\nparameters = { stiffness = 400 }\n"
    motion = read(text).run()
    assert motion.events == ((0.1, "'stiffness' of the controller change"),)


CATCH = """title = "A payload is caught and let go"
[robot]
body = "left"
mass = 1
sides = [1, 1, 1]
gravity = [0, 0, 0]
frames = { hand = { position = [0.5, 0, 0] } }
[[robot.add]]
body = "right"
mass = 3
sides = [1, 1, 1]
place = { position = [1.2, 0, 0] }
frames = { handle = { position = [-0.5, 0, 0] } }
[start.v]
left = [0, 0, 0, 1, 0, 0]
[simulation]
duration = 0.6
dt = 0.01
stabilisation = 0
[[events]]
kind = "capture"
at = 0.2
closures = [{ kind = "loop", a = "hand", b = "handle" }]
[[events]]
kind = "release"
at = 0.4
closures = ["hand"]
"""


def test_a_payload_is_caught_and_let_go():
    motion = read(CATCH).run()
    assert [time for time, _ in motion.events] == pytest.approx([0.2, 0.4])
    after = motion.t > 0.2
    np.testing.assert_allclose(motion.v[after, 3], 0.25, atol=1e-9)
    np.testing.assert_allclose(motion.v[after, 9], 0.25, atol=1e-9)
    np.testing.assert_allclose(motion.momentum - motion.momentum[0], 0, atol=1e-9)


@pp.program(shapes={"t": (), "memory": (2,)})
def push(robot: pp.Robot, t: Any, v: Any, memory: Any, *, strength: Any = 1.0) -> Any:
    tau = strength * np.ones(robot.nv)
    return {"tau": tau, "memory": memory + np.array([1.0, 2.0]), "count": memory[0]}


@pp.program(shapes={"memory": (1,)})
def oppose(robot: pp.Robot, q: Any, active: Any, memory: Any, tau: Any = None) -> Any:
    return {"tau": -0.5 * tau, "memory": memory - 1.0, "count": memory[0], "given": active}


def test_laws_of_your_own_add_and_remember_side_by_side():
    text = PENDULUM + "[[controller]]\nlaw = 'push'\nstrength = 4.0\ndrives = ['joint2']\n"
    text += "[[controller]]\nlaw = 'oppose'\nname = 'second'\n"
    motion = read(text, laws={"push": push, "oppose": oppose}).run()
    np.testing.assert_allclose(motion.tau, np.tile([0.0, 2.0], (11, 1)))
    np.testing.assert_allclose(motion.signals["push.count"], np.arange(11))
    np.testing.assert_allclose(motion.signals["second.count"], -np.arange(11))
    assert "'mine'; known are" in refused(PENDULUM + "[controller]\nlaw = 'mine'\n")
    change = "[[events]]\nkind = 'change'\nat = 0.05\nparameters = { strength = 8 }\n"
    laws = {"push": push, "oppose": oppose}
    with pytest.raises(ScenarioError, match=r"events\[0\].controller is missing; known are push"):
        read(text + change, laws=laws)
    motion = read(text + change + "controller = 'push'\n", laws=laws).run()
    np.testing.assert_allclose(motion.tau[[0, -1], 1], [2.0, 4.0])


def test_a_frame_begins_where_another_is_and_closures_are_closed():
    text = HELD + "[[start.reach]]\nframe = 'tool'\nto = 'face'\n"
    scenario = read(text)
    q = scenario.start[0]
    X, Y = (pp.frame_pose(scenario.robot, q, name) for name in ("tool", "face"))
    np.testing.assert_allclose(X, Y, atol=1e-7)
    grasp = "[[closures]]\nkind = 'grasp'\na = 'tool'\nb = 'face'\n"
    near = text.replace(
        "to = 'face'", "goal = { position = [0.8, 0.0, 1.1], rpy_deg = [180, 0, 0] }"
    )
    held = read(near + grasp)
    X, Y = (pp.frame_pose(held.robot, held.start[0], name) for name in ("tool", "face"))
    np.testing.assert_allclose(X, Y, atol=1e-6)
