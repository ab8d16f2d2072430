"""Checks of the options of packaged robots."""

from __future__ import annotations

import numpy as np

from phipsi.model.errors import ModelError


def at_least(robot: str, option: str, value: int, least: int) -> None:
    """Check that an option is a whole number, not less than `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ModelError(f"{robot} needs a whole number {option} ≥ {least}, not {value!r}")


def one_of(robot: str, option: str, value: str, choices: tuple[str, ...]) -> None:
    """Check that an option is one of the choices."""
    if value not in choices:
        raise ModelError(f"{robot} has no {option} {value!r}; choose one of {', '.join(choices)}")
