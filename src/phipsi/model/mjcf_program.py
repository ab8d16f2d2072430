"""The program that compiles an MJCF with MuJoCo, in a process of its own (`mjcf_process`).

It imports MuJoCo and NumPy and nothing of phipsi. From its standard input it takes the task, a line
of JSON, and the text of the MJCF; it answers with an archive of arrays.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any

FIELDS = (
    "nbody", "njnt", "nu", "neq", "ntendon", "nflex", "nplugin", "nsite",
    "name_bodyadr", "name_jntadr", "name_geomadr", "name_siteadr", "name_actuatoradr",
    "name_eqadr", "name_tendonadr", "name_flexadr", "name_pluginadr",
    "body_parentid", "body_weldid", "body_jntadr", "body_jntnum", "body_mocapid", "body_pos",
    "body_quat", "body_ipos", "body_iquat", "body_mass", "body_inertia", "body_gravcomp",
    "jnt_type", "jnt_bodyid", "jnt_qposadr", "jnt_dofadr", "jnt_pos", "jnt_axis", "jnt_limited",
    "jnt_range", "jnt_stiffness", "jnt_stiffnesspoly", "jnt_springyield", "jnt_actfrclimited",
    "jnt_actfrcrange", "dof_jntid", "dof_armature", "dof_damping", "dof_dampingpoly",
    "dof_frictionloss", "qpos0", "qpos_spring", "geom_bodyid", "geom_contype", "geom_conaffinity",
    "exclude_signature", "pair_geom1", "pair_geom2", "site_bodyid", "site_pos", "site_quat",
    "actuator_trntype", "actuator_trnid", "actuator_dyntype", "actuator_gaintype",
    "actuator_biastype", "actuator_gainprm", "actuator_gear", "actuator_forcelimited",
    "actuator_forcerange", "actuator_ctrllimited", "actuator_ctrlrange", "actuator_armature",
    "actuator_damping",
)  # fmt: skip
"""Fields of mjModel that are read; older versions of MuJoCo lack some."""
ARENA = 64 << 20
"""The memory [bytes] that MuJoCo has for simulations while it compiles. What the MJCF or MuJoCo
itself asks for may be gigabytes, and is not needed."""
SAID = 10
"""The maximum number of MuJoCo's warnings that are returned."""


def main() -> None:
    """Compile the MJCF of the standard input."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what MuJoCo prints is no answer
    task: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    text = sys.stdin.buffer.read().decode()
    sys.path[:] = task["sys_path"]
    np = importlib.import_module("numpy")
    importlib.import_module("zipfile")  # np.savez needs it, when no file may be opened any more
    np.savez(answers, **_answer(np, task, text))
    answers.flush()
    os._exit(0)  # MuJoCo need not free its memory


def _answer(np: Any, task: dict[str, Any], text: str) -> dict[str, Any]:
    """The fields of the compiled model and MuJoCo's warnings, or what is wrong."""
    try:
        mujoco = importlib.import_module("mujoco")
    except ImportError as error:
        return {"missing": str(error)}
    if not hasattr(mujoco.MjSpec, "compiler"):
        return {"missing": f"version {mujoco.__version__} is installed"}
    said: dict[str, None] = {}
    mujoco.set_mju_user_warning(said.setdefault)
    _limit(task)
    try:
        if task["folder"] is not None:
            os.chdir(task["folder"])
        model = _compiled(mujoco, text)
        return {**_fields(np, mujoco, model), "said": [*said][:SAID]}
    except MemoryError:
        return {"memory": True}
    except Exception as error:
        # MuJoCo tells of std::bad_alloc and of malloc in these words
        lacks = any(words in str(error) for words in ("unknown exception", "allocate memory"))
        return {"memory": True} if lacks else {"error": str(error)}


def _limit(task: dict[str, Any]) -> None:
    """Bound the time, the memory and the files of this process, where the system can."""
    if hasattr(signal, "setitimer"):
        for end, timer, seconds in (
            (signal.SIGPROF, signal.ITIMER_PROF, task["seconds"]),
            (signal.SIGALRM, signal.ITIMER_REAL, task["seconds"] + task["waiting"]),
        ):
            signal.signal(end, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {end})
            signal.setitimer(timer, seconds)
    try:
        import resource
    except ImportError:
        return
    limits = {"RLIMIT_AS": task["memory"], "RLIMIT_FSIZE": task["output"], "RLIMIT_CORE": 0}
    if task["folder"] is None:
        limits["RLIMIT_NOFILE"] = 0
    for name, most in limits.items():
        kind = getattr(resource, name)
        allowed = (x for x in resource.getrlimit(kind) if x != resource.RLIM_INFINITY)
        most = min([most, *allowed])
        with suppress(ValueError):  # macOS refuses limits of memory
            resource.setrlimit(kind, (most, most))


def _compiled(mujoco: Any, text: str) -> Any:
    """The model, without what is for simulations alone."""
    spec = mujoco.MjSpec.from_string(text)
    spec.memory = ARENA
    spec.compiler.LRopt.mode = 0  # mjLRMODE_NONE: the ranges of muscles are found by simulations
    return spec.compile()


def _fields(np: Any, mujoco: Any, m: Any) -> dict[str, Any]:
    """FIELDS, gravity, the fluid, and the names of the effects that are disabled."""
    flags = mujoco.mjtDisableBit.__members__.items()  # their numbers differ between versions
    return {
        **{name: getattr(m, name) for name in FIELDS if hasattr(m, name)},
        "names": np.frombuffer(m.names, np.uint8),
        "gravity": m.opt.gravity,
        "density": m.opt.density,
        "viscosity": m.opt.viscosity,
        "disabled": [name for name, flag in flags if m.opt.disableflags & int(flag)],
    }


if __name__ == "__main__":
    main()
