"""What every test shares: the hypothesis profiles, a cache of its own, graphs that are verified.

The default is deterministic, so that a failure in CI is the same failure here;
`HYPOTHESIS_PROFILE=explore` searches further, with new examples each time.
"""

import gc
import os
import signal
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

import phipsi
import phipsi.control
from phipsi.operators.lowering.program import as_program
from phipsi.programs import compiled, shortcut
from phipsi.simulation import closed_loop
from tests import declared_types

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True, max_examples=44)
settings.register_profile("explore", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
os.environ.setdefault("PHIPSI_VERIFY", "1")
declared_types.install()
compiled.CACHED = shortcut.KEPT = 16  # of the thousands of robots here few are met again


EXTRAS = ("torch", "jax")
"""Packages without which the module of phipsi.interop of that name cannot be imported. It is left
out; every other module that cannot be imported is an error."""
CACHE_LIMIT = 1 << 30
"""Size [bytes] that the cache of the tests may reach: about three runs of changed sources."""


def pytest_configure(config: pytest.Config) -> None:
    """Compiled code goes to a folder of the tests, `.pytest_cache/d/compiled`, which all workers,
    processes and runs share: a key of the cache names the sources of phipsi, so that no test sees
    code that other sources made. What has not been used for longest is deleted first."""
    kept: pytest.Cache | None = getattr(config, "cache", None)  # none with -p no:cacheprovider
    folder = kept.mkdir("compiled") if kept else Path(tempfile.mkdtemp())
    folder.chmod(0o700)  # else it would not be trusted under a umask of 002
    os.environ["PHIPSI_CACHE_DIR"] = str(folder)
    os.environ["PHIPSI_CACHE_SIZE"] = str(CACHE_LIMIT)
    missing = (name for name in EXTRAS if find_spec(name) is None)
    modules = [str(config.rootpath / "src/phipsi/interop" / f"{name}.py") for name in missing]
    config.option.ignore = [*(config.option.ignore or ()), *modules]


@pytest.fixture(scope="module")
def interpreted() -> Iterator[None]:
    """The interpreter runs the programs of a module: for laws over many robots, each of which would
    be compiled and run once. That machine code gives the same is tested of every program
    (sweeps/test_looped.py) and of random graphs (compile/test_fuzz.py)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PHIPSI_BACKEND", "numpy")
        yield


@pytest.fixture(scope="module", autouse=True)
def forgotten_kernels() -> Iterator[None]:
    """No kernels of one module stay for the next one: they would fill the memory, and those of the
    interpreter would be used where machine code is meant."""
    yield
    as_program.cache_clear()
    public = [
        getattr(package, name)
        for package in (phipsi, phipsi.control)
        for name in package.__all__
        if name not in declared_types.EXTRAS
    ]
    for program in (*public, closed_loop.advance, closed_loop.observe, closed_loop.derivative):
        if isinstance(program, compiled.CompiledFunction):
            program._kernels.clear()
            program._shortcuts._known.clear()


def pytest_collection_finish() -> None:
    """What has been imported stays: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 10, 10)  # tracing makes millions of objects, none of them garbage


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT interrupts, in the processes that a test starts as well. A shell that runs the tests
    in the background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


LONG = ("control", "scenarios", "simulation", "test_examples.py", "test_cli_simulate.py")
"""Tests of closed loops over thousands of steps."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The interpreter takes minutes for a closed loop, and is tested on what those are made of."""
    if os.environ.get("PHIPSI_BACKEND") != "numpy":
        return
    skip = pytest.mark.skip(reason="the interpreter takes too long")
    for item in items:
        parts = item.path.relative_to(Path(__file__).parents[1]).parts
        whole = item.name in (
            "test_demo_shows_what_it_claims",
            "test_code_runs[docs/simulation.md]",
        )
        if whole or (parts[0] == "tests" and parts[1] in LONG):
            item.add_marker(skip)
