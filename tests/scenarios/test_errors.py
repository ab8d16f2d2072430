"""Every mistake gets one sentence with the line and the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from phipsi.scenarios import SCENARIOS, ScenarioError, load
from phipsi.scenarios.toml_reader import line_of
from tests.scenarios.texts import ARM, HELD, PENDULUM, read, refused

CASES = [
    # what is added to the pendulum, what it is refused with
    ("a = 1", "line 9: simulation.a is not known; known are duration"),
    ("[start]\nv = 3", "line 10: start.v is 3, needs a table"),
    ("[strat]", "line 9: strat is not known; did you mean 'start'?"),
    ("[output]\nfolder = 3", "line 10: output.folder is 3, needs a text"),
    ("[output]\nformats = ['npz', 'xls']", "line 10: output.formats[1] is 'xls'; known are npz"),
    ("[output]\nframes = ['tol']", "output.frames[0] is 'tol', which is no frame; did you mean"),
    ("[output]\nreport = 'yes'", "output.report is 'yes', needs true or false"),
    ("external = { tool = [1, 2] }", "simulation.external.tool has 2 numbers, needs 6"),
    ("springs = [{ a = 'tool', b = 'wall' }]", "simulation.springs[0].b is 'wall'"),
    ("springs = [{ a = 'tool', b = 'world', stiffness = -1 }]",
     "simulation.springs[0].stiffness is -1"),
    ("external = { tol = [1, 2, 3, 4, 5, 6] }", "simulation.external.tol is 'tol'"),
    ("method = 'rk5'", "line 9: simulation.method is 'rk5'; did you mean 'rk45'?"),
    ("every = 1.5", "simulation.every is 1.5, needs a whole number from 1"),
    ("every = true", "simulation.every is True, needs a whole number"),
    ("coordinates = 'diag'", "simulation.coordinates is 'diag'; did you mean 'diagonal'?"),
    ("passive = 1", "simulation.passive is 1, needs true or false"),
    ("limits = 3", "simulation.limits is 3, needs true or false"),
    ("limits = { stifness = 3 }", "simulation.limits.stifness is not known; did you mean 'stiff"),
    ("limits = { width = 0 }", "simulation.limits.width is 0, needs a positive number"),
    ("stabilisation = -1", "simulation.stabilisation is -1, needs a number ≥ 0 [1/s]"),
    ("[[events]]\nat = 1", "line 9: events[0].kind is missing; known are failure"),
    ("[[events]]\nkind = 'fail'\nat = 1", "events[0].kind is 'fail'; did you mean 'failure'?"),
    ("[[events]]\nkind = 'failure'\nat = 0.05", "line 9: events[0].hinge is missing"),
    ("[[events]]\nkind = 'failure'\nat = 0.05\nhinge = 'join1'",
     "line 12: events[0].hinge is no hinge of the robot; did you mean 'joint1'?"),
    ("[[events]]\nkind = 'failure'\nat = 0.05\nhinge = 'joint1'\nhow = 'stuck'",
     "events[0].how is 'stuck'; known are free, locked"),
    ("[[events]]\nkind = 'failure'\nat = 3\nhinge = 'joint1'",
     "events[0].at is 3 s, after the end"),
    ("[[events]]\nkind = 'failure'\nat = -3\nhinge = 'joint1'",
     "events[0].at is -3, needs a number"),
    ("[[events]]\nkind = 'change'\nat = 0.01\nparameters = { x = 1 }", "there is none"),
    ("[[events]]\nkind = 'release'\nat = 0.01\nclosures = ['tool']", "where nothing is closed"),
    ("[[events]]\nkind = 'capture'\nat = 0.01\nclosures = [{ kind = 'loop', a = 'tool', b = 'x' }]",
     "line 12: events[0].closures[0].b is 'x', which is no frame"),
    ("[[closures]]\na = 'tool'\nb = 'world'", "closures[0].kind is missing; known are loop, grasp"),
    ("[[closures]]\nkind = 'loop'\na = 'tol'\nb = 'world'", "line 11: closures[0].a is 'tol'"),
    ("[[closures]]\nkind = 'loop'\na = 'tool'\nb = 'world'\n"
     "[[closures]]\nkind = 'grasp'\na = 'world'\nb = 'tool'",
     "closures[1] joins 'world' and 'tool', which closures[0] joins already"),
    ("[[closures]]\nkind = 'loop'\na = 'tool'\nb = 'world'\nfree = 'hinge'", "is no joint"),
    ("[[closures]]\nkind = 'grasp'\na = 'tool'\nb = 'world'\ncontact = 'firm'",
     "contact is 'firm'"),
    ("[controller]", "line 9: controller.law is missing"),
    ("[controller]\nlaw = 'pd_gravty'",
     "controller.law is 'pd_gravty'; did you mean 'pd_gravity'?"),
    ("[controller]\nlaw = 'pd_gravity'",
     "controller.target is missing: pd_gravity needs it, or a p"),
    ("[controller]\nlaw = 'pd_gravity'\ntarget = [1, 2, 3]", "target has shape (3,), needs (2,)"),
    ("[controller]\nlaw = 'pd_gravity'\ntarget = [1, 'x']", "line 11: controller.target[1] is 'x'"),
    ("[controller]\nlaw = 'pd_gravity'\ntarget = [1, [2]]", "controller.target is a list that is"),
    ("[controller]\nlaw = 'pd_gravity'\ntarget = { joint3 = 1 }",
     "controller.target.joint3 is no h"),
    ("[controller]\nlaw = 'pd_gravity'\ntarget = {}\nstifness = 3",
     "line 12: controller.stifness is no parameter of pd_gravity; did you mean 'stiffness'?"),
    ("[controller]\nlaw = 'pd_gravity'\ntarget = {}\nstiffness = -3",
     "stiffness is -3.0, needs a positive number or one per freedom"),
    ("[controller]\nlaw = 'pd_gravity'\ntarget = {}\nstiffness = [1, 2, 3]",
     "has 3 numbers, needs"),
    ("[controller]\nlaw = 'pd_gravity'\ntarget = {}\nq = [1, 2]", "controller.q is no parameter"),
    ("[controller]\nlaw = 'pd_gravity'\ntarget = {}\ndrives = ['arm*']", "which fits no hinge"),
    ("[controller]\nlaw = 'rate_feedback'\n[controller.path]\nduration = 1\ngoal = {}",
     "line 11: controller.path has no use: rate_feedback has no target that could move"),
    ("[controller]\nlaw = 'pd_gravity'\n[controller.path]\nduration = 0\ngoal = {}",
     "controller.path.duration is 0, needs a positive number [s]"),
    ("[controller]\nlaw = 'pd_gravity'\n[controller.path]\nduration = 1", "path.goal is missing"),
    ("[controller]\nlaw = 'pd_gravity'\n[controller.path]\nduration = 1\nkind = 'pose'\ngoal = {}",
     "controller.path.kind is 'pose', but pd_gravity needs 'joint'"),
    ("[controller]\nlaw = 'pd_gravity'\n[controller.path]\nduration = 1\ngoal = { joint9 = 1 }",
     "line 13: controller.path.goal.joint9 is no hinge of the robot; did you mean 'joint"),
    ("[controller]\nlaw = 'pd_gravity'\n[controller.path]\nduration = 1\n"
     "goal = { joint1 = [1, 2] }",
     "joint1 has 2 numbers, but a revolute hinge needs 1 number"),
    ("[controller]\nlaw = 'pd_gravity'\ntarget = {}\n[controller.path]\nduration = 1\ngoal = {}",
     "line 11: controller.target is given by the path; drop one of them"),
    ("[controller]\nlaw = 'operational_space'\nframe = 'tip'\n[controller.path]\nduration = 1\n"
     "goal = { shift = [0, 0, 1] }", "line 11: controller.frame is 'tip', which is no frame"),
    ("[controller]\nlaw = 'operational_space'\nrows = 3\npose = {}",
     "controller.rows is 3, needs a"),
    ("[controller]\nlaw = 'operational_space'\nrows = 'liner'\npose = {}",
     "rows 'liner' is not one"),
    ("[controller]\nlaw = 'operational_space'\npose = { shift = [0, 1] }",
     "has 2 numbers, needs 3"),
    ("[controller]\nlaw = 'operational_space'\npose = { rpy = [0, 0, 0], turn = [0, 0, 1] }",
     "controller.pose.turn and rpy exclude each other; drop one"),
    ("[controller]\nlaw = 'operational_space'\npose = { quaternion = [0, 0, 0, 0] }", "is zero"),
    ("[[controller]]\nlaw = 'rate_feedback'\n[[controller]]\nlaw = 'rate_feedback'",
     "line 11: controller[1].name is 'rate_feedback' again"),
    ("[[controller]]\nlaw = 'rate_feedback'\nname = 'a b'", "controller[0].name needs a word"),
]  # fmt: skip


@pytest.mark.parametrize(("added", "said"), CASES, ids=[said[:40] for _, said in CASES])
def test_a_mistake_at_the_end_of_a_scenario(added: str, said: str):
    assert said in refused(PENDULUM + added + "\n")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("title", "titel", "line 1: titel is not known; did you mean 'title'?"),
        ('title = "A double pendulum falls"', "", "title is missing"),
        ('name = "double_pendulum"', 'name = "double_pendulm"',
         "line 3: robot.name is 'double_pendulm'; did you mean 'double_pendulum'?"),
        ('name = "double_pendulum"', "", "line 2: robot needs one of name"),
        ('name = "double_pendulum"', 'name = "puma560"\nfile = "x"', "line 2: robot needs one of"),
        ('name = "double_pendulum"', 'name = "snake"\noptions = { m = 3 }',
         "line 4: robot.options.m is not known; known are n, passive, base"),
        ('name = "double_pendulum"', 'name = "snake"\noptions = { n = 100000 }', "-500 to 500"),
        ('name = "double_pendulum"', 'name = "snake"\noptions = { n = 1 }',
         "needs a whole number n"),
        ('name = "double_pendulum"', 'file = "arm.urdf"', "robot.file is wrong: there is no file"),
        ('name = "double_pendulum"', 'body = "a"\nmass = -1\nsides = [1, 1, 1]',
         "robot.mass is -1"),
        ('name = "double_pendulum"', 'body = "a"\nmass = 1\nsides = [1, 1, 0]', "sides[2] is 0"),
        ('name = "double_pendulum"', 'body = "a"\nmass = 1', "robot.sides is missing"),
        ("[start.q]", "gravity = [1, 2]\n[start.q]",
         "line 4: robot.gravity has 2 numbers, needs 3"),
        ("joint1 = 1.0", "joint7 = 1.0", "line 5: start.q.joint7 is no hinge"),
        ("joint1 = 1.0", "joint1 = 'up'", "line 5: start.q.joint1 is 'up', needs a number"),
        ("joint1 = 1.0", "joint1 = { position = [1, 2, 3] }", "but a revolute hinge is not free"),
        ("joint1 = 1.0", "joint1 = nan", "line 5: start.q.joint1 is nan, but every number must be"),
        ("joint1 = 1.0", "joint1 = 1979-05-27", "line 5: start.q.joint1 is a date"),
        ("joint1 = 1.0", "joint1 = = 1.0", "my.toml is not TOML: Invalid value (at line 5, column"),
        ("[start.q]\njoint1 = 1.0", "[[start.reach]]\nframe = 'tool'",
         "line 4: start.reach[0] needs e"),
        ("[start.q]\njoint1 = 1.0", "[[start.reach]]\nframe = 'tol'\nto = 'world'",
         "is 'tol', which"),
        ("[start.q]\njoint1 = 1.0", "[[start.reach]]\nframe = 'tool'\nto = 'wrld'",
         "is 'wrld', which"),
        ("[start.q]\njoint1 = 1.0",
         "[[start.reach]]\nframe = 'tool'\nrows = 'position'\ngoal = { position = [9, 0, 0] }",
         "start.reach cannot be done: 'tool' misses its target by"),
        ("duration = 0.1", "duration = 0", "line 7: simulation.duration is 0, needs a positive"),
        ("duration = 0.1", "", "line 6: simulation.duration is missing"),
        ("dt = 0.01", "dt = 1e-12", "line 8: simulation.dt takes 1.0e+11 steps for 0.1 s"),
        ("dt = 0.01", "dt = 2e-9", "line 6: simulation.every is 1, which records 3.0e+08 numbers"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_midst_of_a_scenario(old: str, new: str, said: str):
    assert old in PENDULUM
    assert said in refused(PENDULUM.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("joint2 = 40", "joint7 = 40", "start.q_deg.joint7 is no hinge"),
        ("law = ", 'memory = [1]\nlaw = ', "controller.memory is no parameter of computed_torque"),
        ("goal_deg = { joint1 = 5 }", "goal_deg = { joint1 = '5' }",
         "goal_deg.joint1 is '5', needs"),
        ("stiffness = 100.0", "stiffness = { joint1 = 3 }",
         "controller.stiffness is a table, needs"),
        ("stiffness = 100.0", "stiffness = [[1, 2], [3, 4]]", "stiffness"),
        ("stiffness = 100.0", "passive = 3", "controller.passive is 3, needs true or false"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_controller(old: str, new: str, said: str):
    assert old in ARM
    assert said in refused(ARM.replace(old, new))


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ("{ stifness = 3 }", "events[0].parameters.stifness is no parameter of computed_torque"),
        ("{ passive = false }", "events[0].parameters.passive cannot change on the way"),
        ("{ target = [1] }", "events[0].parameters.target cannot change on the way"),
        ("{ damping = 3 }", "events[0].parameters.damping has no value before"),
        ("{ stiffness = -3 }", "stiffness is -3.0, needs a positive number"),
        ("{ stiffness = 3 }\ncontroller = 'you'", "events[0].controller is 'you'; known are comp"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_change(parameters: str, said: str):
    change = f"[[events]]\nkind = 'change'\nat = 0.1\nparameters = {parameters}\n"
    assert said in refused(ARM + change)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('body = "box"', 'body = "box"\nhinge = "fre"',
         "robot.add[0].hinge is 'fre'; did you mean"),
        ('body = "box"', 'body = "box"\nhinge = "revolute"', "robot.add[0] is wrong: hinge 'box'"),
        ('body = "box"', 'body = "box"\nparent = "wrld"\nhinge = "spherical"', "'wrld'"),
        ('body = "box"', 'name = "box"',
         "robot.add[0].mass is not known; known are prefix, place, n"),
        ("position = [0.8", "position = ['a'",
         "robot.add[0].place.position[0] is 'a', needs a num"),
        ("rpy_deg = [180, 0, 0]", "rpy_deg = 180", "frames.face.rpy_deg is 180, needs a list"),
        ('[[robot.add]]', '[robot.add]', "seven"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_body(old: str, new: str, said: str):
    assert old in HELD
    text = HELD.replace(old, new)
    if said == "seven":  # one table instead of a list of them is as good
        assert read(text).robot == read(HELD).robot
    else:
        assert said in refused(text)


def test_degrees_are_for_angles():
    text = HELD + "[start.q_deg]\nbox = [1, 2, 3, 1, 0, 0, 0]\n"
    assert "start.q_deg.box is in degrees, but a free hinge has more than angles" in refused(text)
    zeros = HELD + "[start.q]\nbox = [1, 2, 3, 0, 0, 0, 0]\n"
    assert "start.q.box has a quaternion of zeros" in refused(zeros)


def test_closures_that_cannot_be_closed():
    far = PENDULUM.replace("[start.q]", "place = { position = [3, 0, 0] }\n[start.q]")
    loop = "[[closures]]\nkind = 'loop'\na = 'tool'\nb = 'world'\nfree = 'spherical'\n"
    assert "line 5: start.close fails: the closures stay open by" in refused(far + loop)


def test_too_many_of_anything():
    events = "[[events]]\nkind = 'failure'\nat = 0\nhinge = 'joint1'\n" * 101
    assert "events has 101 entries, but at most 100 are allowed" in refused(PENDULUM + events)


def test_a_scenario_that_is_not_there(tmp_path: Path):
    for name, said in (
        (
            "puma_diagnal",
            "there is no file and no scenario 'puma_diagnal'; did you mean 'puma_diag",
        ),
        (
            "no/such.toml",
            "there is no file and no scenario 'no/such.toml'; known are reaction_mode",
        ),
        (str(tmp_path), "is a directory; give the file in it"),
        ("a\0b", "there is no file"),
        ("x" * 10_000, "there is no file"),
    ):
        with pytest.raises(ScenarioError, match=said):
            load(name)


def test_folder_of_the_same_name_does_not_hide_a_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / SCENARIOS[0]).mkdir()
    assert load(SCENARIOS[0]).name == SCENARIOS[0]


LINES = '''a = 1
text = """
b = 2
[c]
"""
[c]    # the real one
d = [
  1,
  2 ]
"e f".g = { h = 1 }
[[x]]
[x.y]
k = 1
[[x]]
k = 1
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("a",), 1), (("text",), 2), (("c",), 6), (("c", "d"), 7), (("c", "d", 1), 7),
        (("c", "e f", "g", "h"), 10), (("x",), 11), (("x", 0, "y", "k"), 13), (("x", 1), 14),
        (("x", 1, "k"), 15), (("x", 1, "missing"), 14), (("nothing",), None), ((), None),
    ],
)  # fmt: skip
def test_lines_of_keys(path: tuple[str | int, ...], line: int | None):
    assert line_of(LINES, path) == line
