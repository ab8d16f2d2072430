"""Ctrl-C while the command line starts, runs and ends: status 130, one sentence, no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

START = "import sys; from phipsi.cli import main; print('ready', flush=True); main()"


def interrupted(after: float, *arguments: str) -> tuple[int, str]:
    """The status and the errors of a command that gets SIGINT some seconds after `main` began."""
    command = [sys.executable, "-c", START, *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        time.sleep(after)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
        return child.returncode, errors


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_at_any_moment_of_a_command(interruptible: None) -> None:
    statuses: list[int] = []
    for after in (0.0, 0.01, 0.03, 0.07, 0.12, 0.2, 0.35, 0.5):
        status, errors = interrupted(after, "explain", "mass.inv", "double_pendulum")
        assert status in (0, 130), (after, status, errors)
        assert errors == ("phipsi: interrupted\n" if status else ""), after
        statuses.append(status)
    assert 130 in statuses


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_after_the_last_function_at_exit() -> None:
    """When the work is done, and Python no longer calls handlers of signals."""
    last = "import os; from signal import SIGINT; import phipsi\n"
    last += "class Last:\n    def __del__(self, kill=os.kill, pid=os.getpid()): kill(pid, SIGINT)\n"
    last += f"phipsi.last = Last()\n{START}"
    done = subprocess.run([sys.executable, "-c", last, "robots"], text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "") and "double_pendulum" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_command_that_was_told_to_ignore_ctrl_c_ignores_it() -> None:
    code = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {START}"
    command = [sys.executable, "-c", code, "robots"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        out, errors = child.communicate(timeout=60)
    assert (child.returncode, errors) == (0, "") and "double_pendulum" in out
