"""`import phipsi` is light: NumPy and nothing else."""

import subprocess
import sys

HEAVY = ("llvmlite", "typer", "rich", "click", "defusedxml", "scipy", "mujoco", "pinocchio")


def imported(code: str) -> set[str]:
    code += "; import sys; print('\\n'.join({name.partition('.')[0] for name in sys.modules}))"
    return set(subprocess.check_output([sys.executable, "-c", code], text=True).split())


def test_import_is_light():
    assert imported("import phipsi") & set(HEAVY) == set()


def test_import_does_not_run_the_algorithms():
    assert "numpy" in imported("import phipsi; phipsi.Robot")
    code = "import phipsi, sys; print([m for m in sys.modules if m.startswith('phipsi.')])"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert "phipsi.algorithms" not in loaded


def test_dynamics_needs_no_extra():
    code = "import phipsi as pp; r = pp.robots.double_pendulum(); pp.mass_matrix(r, r.neutral())"
    assert imported(code) & {"typer", "rich", "click", "defusedxml", "scipy", "mujoco"} == set()
