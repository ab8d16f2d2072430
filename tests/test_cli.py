"""The command line, in process and as a user meets it."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from typer.testing import CliRunner

import phipsi
from phipsi.cli import bench, choices, demo, doctor, peers
from phipsi.cli.app import app
from phipsi.cli.lookup import programs
from phipsi.model import urdf
from phipsi.operators.writing.explain import LANGUAGES, Explanation
from phipsi.operators.writing.parser import parse
from phipsi.programs.program import Stage

COMMANDS = ("demo", "info", "robots", "explain", "show", "bench", "doctor", "cache")
LINK = """<link name="{name}"><inertial><mass value="2"/><origin xyz="0 0 1"/>
<inertia ixx="{ixx}" iyy="0.2" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
STICK = """<robot name="stick">{links}<joint name="pivot" type="continuous">
<parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>"""


def invoke(*arguments: str):
    return CliRunner().invoke(app, list(arguments), prog_name="phipsi")


def shell(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "phipsi.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture
def stick(tmp_path: Path) -> str:
    links = LINK.format(name="base", ixx=0.2) + LINK.format(name="rod", ixx=0.2)
    return write(tmp_path / "stick.urdf", STICK.format(links=links))


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_help_names_every_command():
    result = invoke("--help")
    assert result.exit_code == 0
    for command in (*COMMANDS, "--version"):
        assert command in result.stdout
    assert invoke().stdout == result.stdout


def test_version():
    assert invoke("--version").stdout.split() == ["phipsi", phipsi.__version__]


def test_robots_lists_each_with_a_line():
    lines = invoke("robots").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(phipsi.robots.ROBOTS)
    assert all(len(line.split()) > 3 for line in lines)


@pytest.mark.parametrize("name", phipsi.robots.ROBOTS)
def test_info_of_packaged_robots(name: str):
    result = invoke("info", name)
    robot = phipsi.robots.ROBOTS[name]()
    assert result.exit_code == 0
    assert result.stdout.strip() == str(robot)
    assert f"nq = {robot.nq}" in result.stdout and f"nv = {robot.nv}" in result.stdout


def test_info_as_json():
    described = json.loads(invoke("info", "space_arm", "--json").stdout)
    robot = phipsi.robots.space_arm()
    assert (described["nq"], described["nv"], described["mass"]) == (robot.nq, robot.nv, robot.mass)
    assert [h["name"] for h in described["hinges"]] == [h.name for h in robot.hinges]
    assert described["frames"]["tool"] == robot.frame("tool").body


def test_info_of_a_file(stick: str):
    assert json.loads(invoke("info", stick, "--json").stdout)["nv"] == 1
    floating = json.loads(invoke("info", stick, "--base", "free", "--json").stdout)
    assert (floating["nq"], floating["nv"]) == (8, 7)


def test_a_doubtful_robot_is_shown_with_a_warning(tmp_path: Path):
    links = LINK.format(name="base", ixx=0.2) + LINK.format(name="rod", ixx=20.0)
    result = invoke("info", write(tmp_path / "odd.urdf", STICK.format(links=links)))
    assert result.exit_code == 0
    assert result.stdout.startswith("stick: 1 body")
    (line,) = result.stderr.splitlines()
    assert line.startswith("phipsi: warning: ") and "rod" in line


TIP = "J('tool') @ mass.inv @ J('tool').T"


def test_explain_prints_what_python_does():
    robot = phipsi.robots.space_arm()
    result = invoke("explain", TIP, "space_arm")
    assert result.exit_code == 0
    assert result.stdout == str(parse(TIP).explain(robot))
    assert invoke("explain", TIP).stdout == str(parse(TIP).explain())


def test_explain_reads_the_three_writings():
    told = {invoke("explain", x).stdout for x in ("mass.inv", "𝓜⁻¹", r"\mathcal{M}^{-1}")}
    assert len(told) == 1


def test_explain_in_other_forms_and_words():
    x = parse("mass.inv")
    assert invoke("explain", "mass.inv", "--format", "markdown").stdout == x.explain().markdown
    assert invoke("explain", "mass.inv", "--format", "latex").stdout == x.explain().latex
    told = invoke("explain", "mass.inv", "--language", "estimation").stdout
    assert told == str(x.explain(language="estimation"))


def test_explain_takes_active_hinges():
    active = ["elbow_pitch", "wrist_roll"]
    options = [text for name in active for text in ("--active", name)]
    told = invoke("explain", "mass_pp.inv", "space_arm", *options).stdout
    assert told == str(parse("mass_pp.inv").explain(phipsi.robots.space_arm(), active=active))


def test_explain_says_why_there_is_no_recursion():
    result = invoke("explain", "gamma")
    assert result.exit_code == 0 and "No recursion computes it: " in result.stdout


def example_of(command: str) -> list[str]:
    """The arguments of the example in a command's help."""
    text = " ".join(invoke(command, "--help").stdout.split())
    example = text.split("For example: ")[1].split(" ╭")[0].split(" Arguments")[0]
    _, same, *arguments = shlex.split(example.split(" Options")[0])
    assert same == command
    return arguments


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "demo"])
def test_every_help_has_an_example_that_works(command: str, quick: None):
    assert invoke(command, *example_of(command)).exit_code == 0


def test_choices_are_those_of_the_library():
    assert get_args(choices.Base) == get_args(urdf.Base)
    assert get_args(choices.Stage) == get_args(Stage)
    assert get_args(choices.Language) == tuple(LANGUAGES)
    assert all(hasattr(Explanation, form) for form in get_args(choices.Format))


def test_show_prints_what_python_does():
    robot = phipsi.robots.space_arm()
    shown = invoke("show", "forward_dynamics", "space_arm").stdout
    assert shown == phipsi.forward_dynamics.show(robot) + "\n"
    for stage in ("operators", "sweeps", "graph", "llvm", "cuda"):
        options = ("--option", "frame=tool", "--option", "reference=world", "--stage", stage)
        shown = invoke("show", "jacobian", "space_arm", *options).stdout
        assert shown == phipsi.jacobian.show(robot, stage, frame="tool", reference="world") + "\n"


def test_show_as_json_counts_operations():
    robot = phipsi.robots.space_arm()
    options = ("--option", "external=tool", "--json")
    found = json.loads(invoke("show", "pp.forward_dynamics", "space_arm", *options).stdout)
    graph = phipsi.forward_dynamics.graph(robot, external={"tool": np.zeros(6)})
    assert found["operations"] == graph.operations == sum(found["count"].values())
    assert found["text"].startswith("forward_dynamics on 'space_arm'")


@pytest.mark.parametrize(
    ("program", "robot", "option"),
    [
        ("hybrid_dynamics", "space_arm", "active=elbow_pitch, wrist_roll"),
        ("accelerations", "space_arm", "classical=yes"),
        ("operational_inertia", "space_arm", "frames=tool,mount"),
        ("closed_chain_dynamics", "four_bar", "loops=coupler_tip:rocker_tip:revolute"),
        ("grasp_dynamics", "four_bar", "grasps=coupler_tip:rocker_tip:point"),
        ("close_loops", "four_bar", "loops=coupler_tip:rocker_tip"),
    ],
)
def test_show_reads_options_of_every_kind(program: str, robot: str, option: str):
    result = invoke("show", program, robot, "--option", option)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"{program} on {robot!r}: ")


def test_show_knows_every_public_program():
    known = programs()
    assert {"forward_dynamics", "mass_matrix", "curvature"} <= set(known)
    for program in known.values():
        assert isinstance(program, phipsi.Program)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clocks that take no time, and few imports to time."""
    monkeypatch.setattr(bench, "ROUNDS", 1)
    monkeypatch.setattr(bench, "SPAN", 1e-5)
    monkeypatch.setattr(doctor, "import_time", lambda use="", runs=1: 0.01)


def test_bench_times_functions_beside_peers(quick: None):
    options = ("--batch", "16", "--functions", "forward_dynamics, jacobian", "--json")
    found = json.loads(invoke("bench", "double_pendulum", *options).stdout)
    assert (found["robot"], found["batch"], found["complete"]) == ("double_pendulum", 16, True)
    forward, jacobian = found["functions"]
    assert forward["function"] == "forward_dynamics" and jacobian["peers"] == {}
    assert set(forward["peers"]) | set(found["absent"]) == {"Pinocchio", "MuJoCo"}
    for row in (forward, jacobian, *forward["peers"].values()):
        assert row["single_ns"] > 0 and row["batch_ns"] > 0
    for peer in forward["peers"].values():
        assert peer["batch_ratio"] == pytest.approx(peer["batch_ns"] / forward["batch_ns"])


def test_bench_of_a_file(stick: str, quick: None):
    result = invoke("bench", stick, "--base", "free", "--batch", "8")
    assert result.exit_code == 0, result.stderr
    assert all(name in result.stdout for name in bench.FUNCTIONS)
    assert "nv = 7" in result.stdout


@pytest.mark.parametrize("name", ["space_arm", "quadruped", "puma560", "flexible_link_arm"])
def test_peers_have_the_same_robot_or_say_why_not(name: str):
    robot = phipsi.robots.ROBOTS[name]()
    found = {p.name: p for p in peers.peers(robot, bench.random_states(robot, 16))}
    assert list(found) == ["Pinocchio", "MuJoCo"]
    for peer in found.values():
        assert bool(peer.absent) != ("forward_dynamics" in peer.single)
        for contestant in (*peer.single.values(), *peer.batch.values()):
            contestant.call()
    assert not found["Pinocchio"].absent
    if name == "flexible_link_arm":
        assert "is universal, which MuJoCo does not have" in found["MuJoCo"].absent
    if name == "puma560":
        assert "body 'link1' has no mass" in found["MuJoCo"].absent


def test_a_peer_that_moves_otherwise_is_none():
    robot = phipsi.robots.double_pendulum()
    states = bench.random_states(robot, 4)
    with pytest.raises(ValueError, match="moves this robot otherwise"):
        peers._check("Pinocchio", robot, states, states["a"])


def test_bench_says_what_is_not_installed(quick: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pinocchio", None)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    options = ("--batch", "8", "--functions", "mass_matrix")
    shown = invoke("bench", "double_pendulum", *options).stdout
    assert "No Pinocchio beside it: not installed." in shown and "ratio" not in shown


def test_bench_keeps_what_it_measured(quick: None, monkeypatch: pytest.MonkeyPatch):
    true = bench.measured

    def interrupted(function: str, *rest):
        if function == "mass_matrix":
            raise KeyboardInterrupt
        return true(function, *rest)

    monkeypatch.setattr(bench, "measured", interrupted)
    options = ("--batch", "8", "--functions", "forward_dynamics,mass_matrix", "--json")
    result = invoke("bench", "double_pendulum", *options)
    found = json.loads(result.stdout)
    assert result.exit_code == 130 and result.stderr == "phipsi: interrupted\n"
    assert not found["complete"] and len(found["functions"]) == 1


def test_lists_as_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    listed = json.loads(invoke("robots", "--json").stdout)
    assert [row["name"] for row in listed] == list(phipsi.robots.ROBOTS)
    assert all(row["nv"] > 0 and row["summary"] for row in listed)
    monkeypatch.setenv("PHIPSI_CACHE_DIR", str(tmp_path))
    phipsi.mass_matrix.compile(phipsi.robots.double_pendulum())
    found = json.loads(invoke("cache", "--json").stdout)
    assert found["directory"] == str(tmp_path) and found["entries"] > 0 and not found["removed"]
    found = json.loads(invoke("cache", "--clear", "--json").stdout)
    assert found["entries"] == 0 and found["removed"] > 0
    monkeypatch.setenv("PHIPSI_CACHE_DIR", "off")
    assert json.loads(invoke("cache", "--json").stdout)["directory"] is None
    assert invoke("cache").stdout == "no cache of compiled code\n"


def test_doctor_as_json(quick: None, monkeypatch: pytest.MonkeyPatch):
    found = json.loads(invoke("doctor", "--json").stdout)
    assert found["phipsi"] == phipsi.__version__ and found["sound"]
    works = {row["backend"]: row["available"] for row in found["backends"]}
    assert works["numpy"] and found["packages"]["core"]["numpy"]
    wrong = doctor.Check("llvm", True, False, 1.0, 0.1)
    monkeypatch.setattr(doctor, "check", lambda name: wrong)
    result = invoke("doctor")
    assert result.exit_code == 1 and "backend llvm: wrong" in result.stdout


def test_errors_of_our_own_classes_are_sentences(monkeypatch: pytest.MonkeyPatch):
    def fail(*_):
        raise phipsi.SingularError("it is\nsingular")

    monkeypatch.setattr("phipsi.cli.info.run", fail)
    result = invoke("info", "space_arm")
    assert (result.exit_code, result.stderr) == (1, "phipsi: it is singular\n")


def test_demo_shows_what_it_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    result = invoke("demo", *example_of("demo"))
    assert result.exit_code == 0, result.stdout
    assert result.stdout.count("✓") == 9 and "✗" not in result.stdout
    assert "miss [mm]" in result.stdout
    pictures = {f"{x}.{y}" for x in ("reach", "base", "tip", "adrift") for y in ("png", "svg")}
    found = {file.name for file in (tmp_path / "demo").iterdir()}
    assert found == pictures | {"report.html", "reaction.npz"}
    motion = phipsi.Trajectory.load(tmp_path / "demo" / "reaction.npz")
    target = motion.frame("tool")[0, :3, 3] + demo.WAY
    assert np.linalg.norm(motion.frame("tool")[-1, :3, 3] - target) < 1e-3


def test_demo_fails_when_a_claim_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    wrong = demo.Check("water runs uphill", "it does not", False)
    monkeypatch.setattr(demo, "claims", lambda *_: iter([wrong]))
    monkeypatch.setattr(demo, "reach", lambda: ({}, np.eye(4)))
    monkeypatch.setattr(demo, "drift", lambda method: None)
    monkeypatch.setattr(demo, "conserved", lambda motion: [0.0])
    monkeypatch.setattr(demo, "write", lambda *_: [])
    (tmp_path / "d[").mkdir()
    result = invoke("demo", "-o", str(tmp_path / "d[/b]"))
    assert result.exit_code == 1 and "✗ water runs uphill" in result.stdout


def test_demo_says_where_it_cannot_write(tmp_path: Path):
    (tmp_path / "file").write_text("")
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "notes").write_text("")
    wrong = (("file", "is a file"), ("absent/demo", "no folder"), ("held", "say --force"))
    for folder, message in wrong:
        result = invoke("demo", "-o", str(tmp_path / folder))
        (line,) = result.stderr.splitlines()
        assert result.exit_code == 1 and message in line
    assert invoke("demo", "-o", "").exit_code == 2


def test_a_closed_output_is_no_error():
    command = f"{sys.executable} -m phipsi.cli info space_arm --json >&-"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0 and result.stderr == ""


def test_doctor():
    result = invoke("doctor")
    assert result.exit_code == 0, result.stdout
    assert "backend numpy: works" in result.stdout
    assert f"phipsi {phipsi.__version__}" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["dmeo"], 2, "demo"),
        (["info"], 2, "ROBOT"),
        (["info", "space_amr"], 2, "did you mean 'space_arm'?"),
        (["info", "missing.urdf"], 2, "no file and no packaged robot 'missing.urdf'"),
        (["info", "space_arm", "--base", "loose"], 2, "loose"),
        (["info", "space_arm", "--base", "free"], 2, "--base is for files"),
        (["info", "space_arm", "--jsn"], 2, "--jsn"),
        (["demo", "--outptu", "x"], 2, "--outptu"),
        (["explain"], 2, "EXPRESSION"),
        (["explain", "H @"], 2, "an operator, as H or psi, should stand here"),
        (["explain", "H @ phi.T"], 2, "H takes body forces, φ* gives body motions"),
        (["explain", "Hh"], 2, "no symbol is called"),
        (["explain", "H", "space_amr"], 2, "did you mean 'space_arm'?"),
        (["explain", "H", "broken.urdf"], 1, ""),
        (["explain", "J('tol')", "space_arm"], 1, "did you mean 'tool'?"),
        (["explain", "mass_pp.inv", "space_arm"], 2, "name each with --active HINGE"),
        (["explain", "mass_pp.inv", "--active", "base"], 2, "name the robot too"),
        (["explain", "mass_pp.inv", "space_arm", "--active", "bse"], 1, "no hinge 'bse'"),
        (["explain", "H", "--language", "french"], 2, "french"),
        (["explain", "H", "--format", "pdf"], 2, "pdf"),
        (["show"], 2, "PROGRAM"),
        (["show", "forward_dynamics"], 2, "ROBOT"),
        (["show", "forward_dynamcs", "space_arm"], 2, "did you mean 'forward_dynamics'?"),
        (["show", "xyzzy", "space_arm"], 2, "there are accelerations, "),
        (["show", "inverse_kinematics", "space_arm"], 2, "plain Python"),
        (["show", "mass_matrix", "space_amr"], 2, "did you mean 'space_arm'?"),
        (["show", "mass_matrix", "space_arm", "--stage", "grph"], 2, "grph"),
        (["show", "mass_matrix", "space_arm", "--option", "x=1"], 2, "it has none"),
        (["show", "jacobian", "space_arm"], 2, "needs --option frame=..."),
        (["show", "jacobian", "space_arm", "--option", "fram=tool"], 2, "did you mean 'frame'?"),
        (["show", "jacobian", "space_arm", "--option", "frame"], 2, "name=value"),
        (["show", "jacobian", "space_arm", "--option", "frame=tol"], 1, "did you mean 'tool'?"),
        (["show", "jacobian", "space_arm", "--option", "q=1"], 2, "need not be given"),
        (["show", "momentum", "space_arm", "--option", "about=bse"], 2, "about 'bse' is not one"),
        (["show", "velocities", "space_arm", "--base", "free"], 2, "--base is for files"),
        (["show", "total_rates", "chain", "--option", "normalized=2"], 2, "true or false"),
        (["show", "close_loops", "four_bar", "--option", "iterations=-1"], 2, "whole number"),
        (["show", "loop_opening", "four_bar"], 2, "loops=FRAME:FRAME:JOINT"),
        (["show", "loop_opening", "four_bar", "--option", "loops=a"], 2, "FRAME:FRAME"),
        (["show", "curvature", "humanoid"], 2, "freedoms"),
        (["show", "mass_matrix", "broken.urdf"], 1, "XML"),
        (["bench", "space_amr"], 2, "did you mean 'space_arm'?"),
        (["bench", "--batch", "0"], 2, "--batch"),
        (["bench", "--batch", "many"], 2, "--batch"),
        (["bench", "--batch", "99999999999"], 2, "GB; choose a smaller --batch"),
        (["bench", "--functions", "forward_dynamcs"], 2, "did you mean 'forward_dynamics'?"),
        (["bench", "--functions", "manipulability"], 2, "plain Python"),
        (["bench", "four_bar", "--functions", "loop_opening"], 2, "cannot make up"),
        (["bench", "humanoid", "--functions", "curvature"], 2, "freedoms"),
        (["bench", "broken.urdf"], 1, "XML"),
        (["bench", "."], 1, "is a directory"),
        (["robots", "more"], 2, "more"),
        (["cache", "--claer"], 2, "--clear"),
        (["doctor", "--jsn"], 2, "--json"),
        (["--verson"], 2, "--verson"),
        (["info", "broken.urdf"], 1, ""),
        (["info", "empty.urdf"], 1, ""),
        (["info", "text.txt"], 1, ""),
        (["info", "."], 1, ""),
    ],
)
def test_errors_are_one_sentence(
    arguments: list[str], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "broken.urdf").write_text("<robot name='r'><link></robot>")
    (tmp_path / "empty.urdf").write_text("")
    (tmp_path / "text.txt").write_text("hello")
    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments)
    assert result.exit_code == code
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("phipsi: ") and message in line


def test_module_and_script_agree(tmp_path: Path):
    (tmp_path / "broken.urdf").write_text("<robot name='r'><link></robot>")
    for arguments in (
        ["--version"],
        ["info", "space_amr"],
        ["info", str(tmp_path / "broken.urdf")],
    ):
        alone, here = shell(*arguments), invoke(*arguments)
        assert (alone.returncode, alone.stdout) == (here.exit_code, here.stdout)
        assert alone.stderr == here.stderr
    assert shell("--help").stdout.split()[:2] == ["Usage:", "phipsi"]


def test_output_into_a_closed_pipe_is_quiet():
    command = f"{sys.executable} -m phipsi.cli robots | true"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in result.stderr
