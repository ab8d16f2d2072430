"""MuJoCo compiles in a process of its own: what it does not survive is one sentence."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import phipsi as pp
from phipsi.model import mjcf, mjcf_actuators, mjcf_process
from phipsi.model.mjcf_process import Limits
from tests.each import each
from tests.model.mjcf_bombs import ARM, AT_LENGTH, AT_ONCE, HARMLESS, asset, model

mujoco = pytest.importorskip("mujoco")

SOME = (
    "mesh: wedge", "height field: overflow", "texture: plus", "texture: size in the defaults",
    "replicate: other digits", "user data of bodies", "flexcomp: grid", "actuator: states",
    "hidden name, twice", "hidden name of a site", "long name, no effort", "quaternion: too long",
    "long element", "long attribute", "long root", "a hidden file",
)  # fmt: skip
"""Of those that are refused at once; `python -m tests.model.mjcf_bombs` tries all."""
linux = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory, and /proc")


def refused(source: str | Path, message: str | None = None) -> None:
    with pytest.raises(pp.ModelError, match=message) as caught:
        pp.load(source)
    assert len(str(caught.value)) < 450
    assert str(caught.value).isprintable()


@linux
@each("what", SOME)
def test_what_asks_for_too_much_is_refused(what: str):
    refused(AT_ONCE[what])


@linux
@each(
    "what, limits, message",
    [
        ("replicate", Limits(1, 4 << 30), "more than 1 s"),
        ("height fields", Limits(60, 300 << 20), "more than 300 MB of memory"),
    ],
)
def test_time_and_memory_are_limited(what: str, limits: Limits, message: str):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mjcf, "ALONE", limits)
        refused(AT_LENGTH[what], f"MuJoCo needs {message} for the MJCF")


@linux
@each("what", ["memory of simulations", "contacts", "ranges of muscles, simulated"])
@pytest.mark.filterwarnings("ignore::phipsi.ModelWarning")
def test_what_is_not_needed_is_not_made(what: str):
    pp.load(HARMLESS[what])


def test_the_number_of_parts_is_limited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mjcf, "MAX_PARTS", 2)
    bodies = ARM + '<body><site name="s"/></body>'
    refused(model(bodies=bodies), "the MJCF has 3 bodies and sites; at most 2 are read")


@linux
def test_memory_of_both_processes():
    code = (
        "import re, resource, phipsi as pp\n"
        "from phipsi.model import mjcf\n"
        "from tests.model.mjcf_bombs import AT_LENGTH\n"
        "mjcf.ALONE = mjcf.ALONE._replace(seconds=60)\n"  # memory ends it on slow machines too
        "try: pp.load(AT_LENGTH['height fields'])\n"
        "except pp.ModelError as error: print(error)\n"
        "print(int(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1]) >> 10)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)"
    )
    said = subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()
    assert "more than 1 GB" in said[0]
    assert int(said[1]) < 200
    assert int(said[2]) < 1024


def test_a_crash_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    monkeypatch.setattr(mjcf_process.mjcf_program, "__file__", str(program))
    refused(model(), r"MuJoCo crashes on the MJCF \(Segmentation fault\)")


def children() -> set[int]:
    """The processes with MuJoCo that this one started and that run."""
    listed = [path.read_text() for path in Path("/proc/self/task").glob("*/children")]
    commands = {int(pid): Path(f"/proc/{pid}/cmdline") for pid in " ".join(listed).split()}
    return {pid for pid, command in commands.items() if b"mjcf_program" in command.read_bytes()}


@linux
@pytest.mark.filterwarnings("ignore:subprocess:ResourceWarning")  # interrupted before it began
def test_an_interrupt_ends_both(interruptible: None):
    interrupted = threading.Event()

    def interrupt() -> None:
        while not children():
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        if not interrupted.wait(2):  # Python loses one that arrives within a finalizer
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        pp.load(AT_LENGTH["replicate"])
    interrupted.set()
    thread.join()
    while children():  # one that Python did not know yet gets no task, and ends by itself
        time.sleep(0.01)


@linux
def test_a_process_that_was_left_alone_ends(tmp_path: Path):
    """The time is limited by the process itself, not by the one that started it."""
    task = {"sys_path": sys.path, "folder": None, "seconds": 1, "waiting": 5, "memory": 1 << 30}
    content = json.dumps(task | {"output": 1 << 20}) + "\n" + AT_LENGTH["replicate"]
    command = [sys.executable, "-I", "-S", mjcf_process.mjcf_program.__file__]
    ended = subprocess.run(command, input=content.encode(), capture_output=True)
    assert -ended.returncode in (signal.SIGPROF, signal.SIGALRM)


@linux
def test_files_that_never_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    os.mkfifo(tmp_path / "pipe.stl")
    (tmp_path / "zero.stl").symlink_to("/dev/zero")
    monkeypatch.setattr(mjcf, "WITH_FILES", Limits(1, 1 << 30))
    monkeypatch.setattr(mjcf_process, "WAITING", 1)
    path = tmp_path / "robot.xml"
    for name, message in ("pipe.stl", "needs more than 1 s"), ("zero.stl", "zero.stl' is empty"):
        path.write_text(asset(f'<mesh name="m" file="{name}"/>'))
        refused(path, message)


@linux
def test_a_text_opens_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Even where nobody has looked at its references."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "part.xml").write_text("<mujocoinclude><option/></mujocoinclude>")
    text = model('<include file="part.xml"/>')
    with pytest.raises(pp.ModelError, match=r"'part\.xml'"):
        mjcf_process.compiled(text, None, mjcf.ALONE)
    assert mjcf_process.compiled(text, tmp_path, mjcf.ALONE).nbody == 2


def test_a_warning_of_mujoco_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "part.xml").write_text(
        '<mujocoinclude><geom size="1" rgba="nan 0 0 0"/></mujocoinclude>'
    )
    (tmp_path / "robot.xml").write_text(model(bodies='<include file="part.xml"/>'))
    with pytest.warns(pp.ModelWarning, match=r"""MuJoCo says of this MJCF: ["'].*NaN"""):
        pp.load("robot.xml")
    with pytest.raises(pp.ModelError, match="MuJoCo says of this MJCF"):
        pp.load("robot.xml", strict=True)
    assert sorted(os.listdir()) == ["part.xml", "robot.xml"], "MuJoCo left a log behind"


@linux
def test_mujoco_leaves_no_log(tmp_path: Path):
    """Where memory fails, MuJoCo warns of files that it has not closed, in a file."""
    (tmp_path / "part.xml").write_text("<mujocoinclude><option/></mujocoinclude>")
    parts = '<mesh name="m" builtin="wedge" params="100000 100000 90 90 0"/>'
    (tmp_path / "robot.xml").write_text(
        asset(parts).replace("<mujoco>", '<mujoco><include file="part.xml"/>')
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        refused("robot.xml", "needs more than 4 GB of memory")
    assert sorted(os.listdir(tmp_path)) == ["part.xml", "robot.xml"]


@each(
    "name, value, message",
    [
        ("executable", "/nowhere/python", "in a Python process of its own, and none starts: .*no"),
        ("executable", "", "none starts: this application has no Python"),
        ("frozen", True, "none starts: this application has no Python"),
        ("executable", "/bin/false", "ended with status 1: ''"),
        ("executable", "/bin/echo", "ended with status 0: ''"),
    ],
)
def test_where_python_is_not_python(name: str, value: object, message: str):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, name, value, raising=False)
        refused(model(), message)


@each("content, reason", {
    r"raise ImportError('no library\n libGL')": r"no library\n libGL",
    "__version__ = '3.2.0'; MjSpec = int": "version 3.2.0 is installed",
}.items())  # fmt: skip
def test_a_mujoco_that_is_broken_or_old_is_named(content: str, reason: str, tmp_path: Path):
    (tmp_path / "mujoco.py").write_text(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        patch.delitem(sys.modules, "mujoco")
        refused(model(), re.escape(f"needs mujoco 3.2.5 or newer ('{reason}')"))


def test_numbers_of_mujoco():
    """Those of its enumerations that are written as numbers here."""
    enumerations = mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT
    assert tuple(map(int, enumerations)) == mjcf_actuators.ON_JOINT
    assert int(mujoco.mjtGain.mjGAIN_AFFINE) == mjcf_actuators.AFFINE
    assert int(mujoco.mjtBias.mjBIAS_AFFINE) == mjcf_actuators.AFFINE
    assert int(mujoco.mjtJoint.mjJNT_FREE) == 0
    assert int(mujoco.mjtJoint.mjJNT_BALL) == 1
    assert int(mujoco.mjtLRMode.mjLRMODE_NONE) == 0
