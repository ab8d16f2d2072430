"""What every test shares: the hypothesis profiles.

The default is deterministic, so that a failure in CI is the same failure here;
`HYPOTHESIS_PROFILE=explore` searches further, with new examples each time.
"""

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("explore", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
