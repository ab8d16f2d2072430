"""What every test shares: the hypothesis profiles, a cache of its own.

The default is deterministic, so that a failure in CI is the same failure here;
`HYPOTHESIS_PROFILE=explore` searches further, with new examples each time.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("explore", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compiled code of the tests goes to a directory of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PHIPSI_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
