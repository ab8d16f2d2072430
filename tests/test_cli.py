"""The command line, in process and as a user meets it."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import phipsi
from phipsi.cli import app, demo
from phipsi.operators.reading import parse

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
    for command in ("demo", "info", "robots", "explain", "doctor", "--version"):
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


def test_explain_help_has_an_example_that_works():
    text = " ".join(invoke("explain", "--help").stdout.split())
    example = text.split("For example: ")[1].split(" ╭")[0].split(" Arguments")[0]
    _, command, *arguments = shlex.split(example)
    assert invoke(command, *arguments).exit_code == 0


def test_demo_passes():
    result = invoke("demo", "--seed", "3")
    assert result.exit_code == 0, result.stdout
    assert "checks passed" in result.stdout and "✗" not in result.stdout


def test_demo_fails_when_a_check_does(monkeypatch: pytest.MonkeyPatch):
    wrong = demo.Row("energy", "1 J", "is 2 J", float("nan"))
    monkeypatch.setattr(demo, "rows", lambda robot, rng: iter([wrong]))
    result = invoke("demo")
    assert result.exit_code == 1
    assert "1 of 1 checks failed" in result.stdout


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
        (["demo", "--seed", "x"], 2, "--seed"),
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
    result = shell(*arguments)
    assert result.returncode == code
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("phipsi: ") and message in line


def test_module_and_script_agree():
    assert shell("--version").stdout == invoke("--version").stdout
    assert shell("--help").stdout.split()[:2] == ["Usage:", "phipsi"]


def test_output_into_a_closed_pipe_is_quiet():
    command = f"{sys.executable} -m phipsi.cli robots | true"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in result.stderr
