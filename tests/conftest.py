"""What every test shares: the hypothesis profiles, a cache of its own, graphs that are verified.

The default is deterministic, so that a failure in CI is the same failure here;
`HYPOTHESIS_PROFILE=explore` searches further, with new examples each time.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import declared_types

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True, max_examples=44)
settings.register_profile("explore", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
os.environ.setdefault("PHIPSI_VERIFY", "1")
declared_types.install()


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compiled code of the tests goes to a directory of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PHIPSI_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


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
