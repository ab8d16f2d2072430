"""Suggestions for mistyped names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from phipsi.model.untrusted import quoted


def meant(name: object, known: Iterable[str]) -> str:
    """The question "did you mean 'tool'? ", or "" if no known name is similar.

    >>> meant("tol", ["base", "tool"])
    "did you mean 'tool'? "
    """
    near = difflib.get_close_matches(str(name), list(known), n=1)
    return f"did you mean {quoted(near[0])}? " if near else ""
