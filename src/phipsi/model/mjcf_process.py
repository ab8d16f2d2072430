"""MuJoCo's compiler in a process of its own: a model that it does not survive ends that process
alone, and time and memory are bounded.

The process has the rights of its user. It is started for each MJCF (about 0.3 s), and returns
arrays, which are read without running any code.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from phipsi.model import mjcf_program, untrusted
from phipsi.model.errors import ModelError


class Limits(NamedTuple):
    """The processor time [s] and the memory [bytes] that MuJoCo may use for an MJCF."""

    seconds: int
    memory: int


ALONE = Limits(5, 1 << 30)
"""The limits of an MJCF that refers to no other files."""
WITH_FILES = Limits(60, 4 << 30)
"""The limits of an MJCF with meshes, images or other MJCFs in files."""
WAITING = 30
"""The time [s] that the process may wait, for files or for a processor, besides working."""
MAX_ANSWER = 64 << 20
"""The maximum size [bytes] of the arrays that are returned."""
ENVIRONMENT = {
    "MUJOCO_GL": "disable",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",
}
"""Variables that keep the process small: no graphics, and no memory for threads."""


class CompiledModel(SimpleNamespace):
    """A model as MuJoCo compiled it: the fields of mjModel that `mjcf_program` names, as arrays,
    the names of the effects that are `disabled`, and what MuJoCo `said` as a warning."""


def compiled(text: str, folder: Path | None, limits: Limits) -> CompiledModel:
    """The model that an MJCF describes, which refers to files from a folder; None: opens none."""
    if importlib.util.find_spec("mujoco") is None:
        raise ModelError("MJCF needs mujoco: pip install 'phipsi[mjcf]'")
    task = {
        "folder": folder and str(folder.absolute()),
        "sys_path": [os.path.abspath(os.fsdecode(entry)) for entry in sys.path],
        "waiting": WAITING,
        "output": MAX_ANSWER,
        **limits._asdict(),
    }
    content = json.dumps(task).encode() + b"\n" + text.encode()
    try:
        with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as complaints:
            status = _status(content, answer, complaints, limits)
            fields = _read(answer)
            complaints.seek(0)
            said = complaints.read(10_000).decode(errors="replace")
    except OSError as error:
        raise ModelError(
            f"MuJoCo compiles an MJCF in a Python process of its own, and none starts: {error}"
        ) from None
    if "nbody" not in fields:
        raise ModelError(_wrong(fields, status, said, limits))
    texts = {key: fields[key].tolist() for key in ("disabled", "said")}
    return CompiledModel(**fields | texts | {"names": fields["names"].tobytes()})


def _status(task: bytes, answer: BinaryIO, complaints: BinaryIO, limits: Limits) -> int | None:
    """The exit status of the process that writes the answer to a task, None if it took too long."""
    if getattr(sys, "frozen", False) or not sys.executable:
        raise OSError("this application has no Python of its own")
    try:
        status = subprocess.run(
            [sys.executable, "-I", "-S", mjcf_program.__file__], input=task, stdout=answer,
            stderr=complaints, env={**os.environ, **ENVIRONMENT}, timeout=limits.seconds + WAITING,
        ).returncode  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    late = {getattr(signal, name, None) for name in ("SIGPROF", "SIGALRM")}
    return None if -status in late else status


def _read(answer: BinaryIO) -> dict[str, Any]:
    """The arrays of an answer; those without an axis as numbers."""
    answer.seek(0)
    try:
        with np.load(answer, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file}
    except (ValueError, EOFError, zipfile.BadZipFile):
        return {}
    return {key: array if array.ndim else array.item() for key, array in arrays.items()}


def _wrong(answer: dict[str, Any], status: int | None, said: str, limits: Limits) -> str:
    """What is wrong if an answer is no model, in one sentence."""
    memory = f"more than {_size(limits.memory)} of memory"
    if "missing" in answer:
        reason = untrusted.quoted(answer["missing"], 200)
        return f"MJCF needs mujoco 3.2.5 or newer ({reason}): pip install --upgrade mujoco"
    if "error" in answer:
        reason = untrusted.quoted(" ".join(answer["error"].split()), 300)
        return f"MuJoCo refuses the MJCF: {reason}"
    if "memory" in answer:
        return f"MuJoCo needs {memory} for the MJCF; make its arrays, meshes or copies smaller"
    if status is None:
        return (
            f"MuJoCo needs more than {limits.seconds} s for the MJCF; make its arrays, meshes or "
            "copies smaller"
        )
    if status < 0:
        return (
            f"MuJoCo crashes on the MJCF ({signal.strsignal(-status)}), which has wrong sizes or "
            f"needs {memory}"
        )
    last = untrusted.quoted(said.strip().rpartition("\n")[2], 200)
    return (
        f"the Python process in which MuJoCo compiles the MJCF ended with status {status}: {last}"
    )


def _size(count: int) -> str:
    """A number of bytes in words."""
    return f"{count >> 30} GB" if count >> 30 else f"{count >> 20} MB"
