"""`phipsi simulate` as a user meets it."""

from __future__ import annotations

import errno
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import phipsi as pp
from phipsi.cli.app import app
from phipsi.scenarios import SCENARIOS
from tests.scenarios.texts import PENDULUM

OUTPUT = (
    '[output]\nfolder = "out"\nformats = ["npz", "csv"]\nfigures = ["q", "energy"]\nreport = true\n'
)
RUNAWAY = """title = "Diverges"
[robot]
name = "double_pendulum"
[simulation]
duration = 10
dt = 0.1
method = "euler"
[controller]
law = "pd_gravity"
target = { joint1 = 1.0 }
stiffness = 1e9
damping = 1e7
"""
ALL = {"trajectory.npz", "trajectory.csv", "q.png", "energy.png", "report.html", "summary.json"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.toml").write_text(PENDULUM + OUTPUT)
    return tmp_path


def simulate(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["simulate", *arguments], prog_name="phipsi")


def refused(code: int, *arguments: str) -> str:
    """The one sentence on stderr."""
    before = sorted(Path().rglob("*"))
    result = simulate(*arguments)
    assert result.exit_code == code, result.output
    assert result.stdout == "" and result.stderr.startswith("phipsi: ")
    assert result.stderr.count("\n") == 1
    assert sorted(Path().rglob("*")) == before
    return result.stderr.strip()


def test_a_scenario_is_run_told_and_kept(here: Path):
    result = simulate("my.toml")
    assert result.exit_code == 0 and result.stderr == ""
    for words in (
        "A double pendulum falls",
        "0.1 s in steps of 0.01 s (rk4), 11 samples",
        "energy",
    ):
        assert words in result.stdout
    assert {path.name for path in here.joinpath("out").iterdir()} == ALL | {"scenario.toml"}
    assert sorted(path.name for path in here.iterdir()) == ["my.toml", "out"]
    motion = pp.Trajectory.load("out/trajectory.npz")
    assert len(motion) == 11 and motion.method == "rk4"
    again = pp.Trajectory.load("out/trajectory.csv", motion.robot)
    np.testing.assert_array_equal(again.q, motion.q)
    assert Path("out/scenario.toml").read_text() == PENDULUM + OUTPUT
    page = Path("out/report.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and "A double pendulum falls" in page


def test_json_is_one_object_and_nothing_else(here: Path):
    told = json.loads(simulate("my.toml", "--json").stdout)
    assert told == json.loads(Path("out/summary.json").read_text())
    assert (told["samples"], told["ended"], told["folder"]) == (11, "finished", "out")
    assert set(told["files"]) == ALL | {"scenario.toml"}
    assert abs(told["energy"]["change"]) < 1e-3 and told["momentum_change"] is None


def test_options_take_the_place_of_what_the_file_says(here: Path):
    arguments = (
        "--duration",
        "0.2",
        "--dt",
        "0.02",
        "--method",
        "euler",
        "--output",
        "else",
        "--json",
    )
    told = json.loads(simulate("my.toml", *arguments).stdout)
    assert (told["duration"], told["dt"], told["method"]) == (0.2, 0.02, "euler")
    assert Path("else/trajectory.npz").exists() and not Path("out").exists()


def test_without_a_folder_nothing_is_written(here: Path):
    Path("plain.toml").write_text(PENDULUM)
    result = simulate("plain.toml")
    assert result.exit_code == 0 and "--output DIR" in result.stdout
    assert sorted(os.listdir()) == ["my.toml", "plain.toml"]


def test_quiet_prints_nothing(here: Path):
    result = simulate("my.toml", "--quiet")
    assert (result.exit_code, result.output) == (0, "") and Path("out").exists()


def test_shipped_scenarios_are_listed():
    lines = simulate("--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(SCENARIOS)
    assert all(len(line.split()) > 4 for line in lines)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "name a scenario, or list them with --list"),
        (["reaction_mod"], 2, "no scenario 'reaction_mod'; did you mean 'reaction_mode'?"),
        (["no.toml"], 2, "there is no file and no scenario 'no.toml'"),
        (["."], 1, "is a directory"),
        (["my.toml", "--duration", "0"], 2, "--duration is 0.0, needs a positive number [s]"),
        (["my.toml", "--duration", "inf"], 2, "--duration is inf, needs a positive number [s]"),
        (["my.toml", "--duration", "long"], 2, "Invalid value for '--duration'"),
        (["my.toml", "--dt", "nan"], 2, "--dt is nan, needs a positive number [s]"),
        (["my.toml", "--dt", "1e-300"], 2, "--dt takes 1.0e+299 steps"),
        (["my.toml", "--duration", "1e300"], 2, "steps for 1e+300 s"),
        (["my.toml", "--method", "rk5"], 2, "--method is 'rk5'; did you mean 'rk45'?"),
        (["my.toml", "--outptu", "x"], 2, "No such option: --outptu"),
        (["my.toml", "--output", "my.toml"], 1, "'my.toml' is a file; name a folder"),
        (["my.toml", "--output", ""], 2, "--output needs the name of a folder"),
        (["my.toml", "--output", "no/such"], 1, "there is no folder 'no'"),
        (["my.toml", "--output", "a\0b"], 1, "is no path"),
        (["my.toml", "--output", "x" * 300], 1, "cannot be written: File name too long"),
    ],
)  # fmt: skip
def test_mistakes_get_one_sentence(here: Path, arguments: list[str], code: int, said: str):
    assert said in refused(code, *arguments)


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("/elsewhere/x", "below the current one"),
        ("../x", "below the current one"),
        ("", "needs a text"),
    ],
)
def test_a_scenario_writes_below_where_it_runs(here: Path, folder: str, said: str):
    Path("my.toml").write_text(PENDULUM + f'[output]\nfolder = "{folder}"\n')
    assert said in refused(1, "my.toml")


def test_a_wrong_file_is_told_with_its_line(here: Path):
    Path("my.toml").write_text(PENDULUM.replace("joint1 =", "joint9 ="))
    assert "my.toml, line 5: start.q.joint9 is no hinge of the robot" in refused(1, "my.toml")


def test_an_existing_folder_is_replaced_only_by_force(here: Path):
    Path("out").mkdir()
    assert simulate("my.toml").exit_code == 0  # it was empty
    Path("out/notes.txt").write_text("mine")
    Path("out/q.png").write_text("old")
    said = refused(1, "my.toml")
    assert "holds 'energy.png', 'notes.txt', 'q.png'" in said and "--force" in said
    assert simulate("my.toml", "--force").exit_code == 0
    assert Path("out/notes.txt").read_text() == "mine"
    assert Path("out/q.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EIO])
def test_a_disk_that_fails_leaves_nothing_half_written(
    here: Path, monkeypatch: pytest.MonkeyPatch, number: int, there: bool
):
    if there:
        Path("out").mkdir()
        Path("out/q.png").write_text("old")

    def fail(*_: Any, **more: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "write_text", fail)  # the last file: the summary
    said = refused(1, "my.toml", "--force")
    assert said == f"phipsi: nothing was written to 'out': {os.strerror(number)}"
    assert not there or Path("out/q.png").read_text() == "old"


def test_a_disk_that_is_full_when_the_trajectory_is_saved(
    here: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert refused(1, "my.toml") == "phipsi: nothing was written to 'out': No space left on device"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_no_permission(here: Path):
    Path("shut").mkdir(mode=0o500)
    assert "cannot be written: Permission denied" in refused(1, "my.toml", "--output", "shut/x")


def test_no_permission_is_found_before_anything_is_simulated(
    here: Path, monkeypatch: pytest.MonkeyPatch
):
    def deny(*_: Any) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "mkdir", deny)
    monkeypatch.setattr("phipsi.scenarios.Scenario.run", None)
    assert refused(1, "my.toml") == "phipsi: 'out' cannot be written: Permission denied"


def test_a_motion_that_diverges_is_kept_as_far_as_it_went(here: Path):
    Path("my.toml").write_text(RUNAWAY)
    result = simulate("my.toml", "--output", "out")
    assert result.exit_code == 1
    assert "the motion is no longer finite at t = " in result.stderr
    assert result.stderr.strip().endswith("what was computed is in 'out'")
    motion = pp.Trajectory.load("out/trajectory.npz")
    assert np.isfinite(motion.v).all() and motion.duration < 10.0
    assert "no longer finite" in json.loads(Path("out/summary.json").read_text())["ended"]


def test_without_matplotlib_the_rest_is_written(here: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = simulate("my.toml")
    assert result.exit_code == 0
    assert result.stderr == (
        "phipsi: figures were left out: plot needs matplotlib: pip install 'phipsi[plot]'\n"
    )
    assert Path("out/report.html").exists() and not Path("out/q.png").exists()


def test_a_figure_of_nothing_is_left_out(here: Path):
    Path("my.toml").write_text(PENDULUM + '[output]\nfolder = "out"\nfigures = ["q", "qq"]\n')
    result = simulate("my.toml")
    assert result.exit_code == 0 and Path("out/q.png").exists()
    assert "the figure of 'qq' was left out" in result.stderr and result.stderr.count("\n") == 1


def test_ctrl_c_keeps_what_was_computed(here: Path, interruptible: None):
    long = PENDULUM.replace("duration = 0.1", "duration = 1e4").replace("dt = 0.01", "dt = 1e-4")
    Path("long.toml").write_text(long.replace("dt =", "every = 1000\ndt ="))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "phipsi.cli", "simulate", "long.toml", "--output", "out"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    shown = _until(ours, lambda text: "%" in text and "0%" not in text.replace("10%", ""))
    run.send_signal(signal.SIGINT)
    shown += _until(ours, lambda text: "what was computed" in text)
    stdout, _ = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "stopped at t = " in shown and "what was computed is in 'out'" in shown
    assert "Traceback" not in shown and "simulated" in stdout
    motion = pp.Trajectory.load("out/trajectory.npz")
    assert 0.0 < motion.duration < 1e4 and np.isfinite(motion.q).all()
    assert sorted(os.listdir()) == ["long.toml", "my.toml", "out"]


def _until(terminal: int, enough: Any) -> str:
    """What a terminal shows, until it is enough."""
    text, end = "", time.monotonic() + 90
    while not enough(text):
        assert time.monotonic() < end, text
        if select.select([terminal], [], [], 1.0)[0]:
            try:
                text += os.read(terminal, 4096).decode("utf-8", "replace")
            except OSError:  # it is closed
                break
    return text
