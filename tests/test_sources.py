"""What a process keeps on disk was made by the files that its key names, whatever becomes of them.

Processes run a copy of the package in which the energy of springs has two factors, one in each of
two modules: 2 × 3 in the old version, 5 × 7 in the new one."""

from __future__ import annotations

import compileall
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).parents[1] / "src"
ENERGY = """
import importlib, sys
import phipsi as pp
for name in sys.argv[1:]:
    importlib.import_module(name)
print("imported", flush=True)
sys.stdin.readline()
swing = pp.Builder("swing").body("bob", mass=1.0, com=(0, 0, -1))
swing = swing.hinge("pivot", "revolute", "world", "bob", axis=(0, 1, 0), stiffness=1.0)
factors = float(pp.passive_energy(swing.build(), [1.0]))
print(factors, pp.cache_info().entries)
"""
FIRST, SECOND = "phipsi/conventions.py", "phipsi/algorithms/energy_momentum.py"
OLD, NEW = 2.0 * 3.0, 5.0 * 7.0


class Found(NamedTuple):
    """What a process told: the product of both factors, and the number of entries of the cache."""

    factors: float
    entries: int
    warnings: str


class Installed(NamedTuple):
    """A copy of the package, and the environment of processes that use it."""

    folder: Path
    environment: dict[str, str]

    def change(self, name: str, old: str, new: str) -> None:
        """A new file in the place of one, as an installer puts it there."""
        path, draft = self.folder / name, self.folder / "draft"
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        draft.write_text(text.replace(old, new), encoding="utf-8")
        later = path.stat().st_mtime + 2  # else Python may run the bytecode of the one before
        os.utime(draft, (later, later))
        os.replace(draft, path)

    def upgrade(self) -> None:
        self.change(FIRST, "FACTOR = 2.0", "FACTOR = 5.0")
        self.change(SECOND, "FACTOR * 3.0", "FACTOR * 7.0")

    def run(self, meanwhile: Callable[[], None] = lambda: None, imports: str = "phipsi") -> Found:
        """A process, and what is done after it has imported a module and before it goes on."""
        process = subprocess.Popen(
            [sys.executable, "-c", ENERGY, imports],
            env=self.environment, cwd=self.folder, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "imported\n"
        meanwhile()
        output, errors = process.communicate("\n", timeout=100)
        assert process.returncode == 0, errors
        factors, entries = output.split()
        return Found(float(factors), int(entries), errors)


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    folder = tmp_path / "site"
    shutil.copytree(SOURCE, folder)
    environment = {
        **os.environ, "PYTHONPATH": str(folder), "PHIPSI_CACHE_DIR": str(tmp_path / "cache"),
        "PHIPSI_BACKEND": "numpy", "PHIPSI_VERIFY": "0", "PYTHONDONTWRITEBYTECODE": "",
    }  # fmt: skip
    copy = Installed(folder, environment)
    copy.change(FIRST, 'WORLD = "world"', 'FACTOR = 2.0\nWORLD = "world"')
    above = "from phipsi.algorithms.mass_matrix import composite\n"
    copy.change(SECOND, above, above + "from phipsi.conventions import FACTOR\n")
    copy.change(SECOND, "    return 0.5 * np.sum(", "    return FACTOR * 3.0 * np.sum(")
    return copy


def test_files_replaced_before_the_first_kernel(installed: Installed) -> None:
    """The process computes by the old files, and leaves nothing behind for the new ones."""
    before = installed.run(installed.upgrade, imports="phipsi.algorithms")
    assert (before.factors, before.entries) == (OLD, 0)
    assert before.warnings.count("files of phipsi have changed") == 1
    after = installed.run()
    assert after.factors == NEW
    assert after.entries > 0
    assert not after.warnings


def test_files_replaced_between_two_imports(installed: Installed) -> None:
    """The process computes by half of each."""
    before = installed.run(installed.upgrade, imports="phipsi.conventions")
    assert (before.factors, before.entries) == (2.0 * 7.0, 0)
    assert installed.run().factors == NEW


def test_a_file_of_the_same_size_and_time_as_the_one_before(installed: Installed) -> None:
    """Python runs the bytecode of the file before, until it is deleted."""
    files = [installed.folder / name for name in (FIRST, SECOND)]
    for path in files:
        os.utime(path, (1e9, 1e9))
    assert installed.run().factors == OLD
    installed.upgrade()
    for path in files:
        os.utime(path, (1e9, 1e9))
    assert installed.run().factors == OLD
    for path in files:
        shutil.rmtree(path.parent / "__pycache__")
    assert installed.run().factors == NEW


def test_a_package_without_sources_and_in_an_archive(installed: Installed, tmp_path: Path) -> None:
    """What is stored there is found there."""
    compileall.compile_dir(installed.folder, legacy=True, quiet=1)
    for path in installed.folder.rglob("*.py"):
        path.unlink()
    first = installed.run()
    assert first.factors == OLD
    assert first.entries > 0
    assert installed.run() == first
    archive = shutil.make_archive(str(tmp_path / "archive"), "zip", installed.folder)
    zipped = installed._replace(environment={**installed.environment, "PYTHONPATH": archive})
    shutil.rmtree(installed.folder / "phipsi")
    third = zipped.run()
    assert third.factors == OLD
    assert third.entries == 2 * first.entries
    assert zipped.run() == third
