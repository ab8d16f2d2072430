"""Suggestions for mistyped names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


def meant(name: Any, known: Iterable[str]) -> str:
    """ "did you mean 'tool'? ", or nothing where no known name is near.

    >>> meant("tol", ["base", "tool"])
    "did you mean 'tool'? "
    """
    near = difflib.get_close_matches(str(name), list(known), n=1)
    return f"did you mean {near[0]!r}? " if near else ""
