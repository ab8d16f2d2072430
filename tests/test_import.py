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


WITHOUT_EXTRAS = """
import importlib.abc, inspect, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("jax", "torch"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
real, sys.modules["importlib.util"].find_spec = sys.modules["importlib.util"].find_spec, (
    lambda name, package=None: None if name in ("jax", "torch") else real(name, package))
import phipsi as pp
names = dict(inspect.getmembers(pp))
assert "forward_dynamics" in names and not {"jax", "torch"} & set(names), names
for name in ("jax", "torch"):
    assert not hasattr(pp, name) and name not in dir(pp)
    try:
        getattr(pp, name)
    except AttributeError as error:
        print(error)
import doctest, pydoc
doctest.DocTestFinder().find(pp)
assert "forward_dynamics" in pydoc.render_doc(pp)
"""


def test_a_missing_extra_is_a_missing_attribute() -> None:
    """`inspect`, `pydoc`, `doctest` and `hasattr` find no more than what is installed."""
    command = [sys.executable, "-c", "import importlib.util\n" + WITHOUT_EXTRAS]
    said = subprocess.check_output(command, text=True)
    assert 'pp.jax needs JAX 0.7 or later: pip install "phipsi[jax]"' in said
    assert 'pp.torch needs PyTorch: pip install "phipsi[torch]"' in said
