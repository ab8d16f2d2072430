"""Suggestions for mistyped names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

from phipsi.model.untrusted import quoted

LENGTH, COUNT = 60, 5_000
"""How many characters of a name are compared, with how many known names."""


def meant(name: object, known: Iterable[str]) -> str:
    """The question "did you mean 'tool'? ", or "" if no known name is similar.

    >>> meant("tol", ["base", "tool"])
    "did you mean 'tool'? "
    """
    given = name[:LENGTH] if isinstance(name, str) else ""
    near = difflib.get_close_matches(given, islice(known, COUNT), n=1)
    return f"did you mean {quoted(near[0])}? " if near else ""
