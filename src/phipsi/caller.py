"""Warnings that point at the line of the user's code."""

from __future__ import annotations

import os
import sys
import warnings

_PACKAGE = os.path.dirname(__file__) + os.sep


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning at the line outside phipsi that called into it, however deep the call is."""
    frame = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    space = frame.f_globals
    warnings.warn_explicit(
        message, category, frame.f_code.co_filename, frame.f_lineno, space.get("__name__"),
        space.setdefault("__warningregistry__", {}),
    )  # fmt: skip
