"""The error and the warning about robot descriptions."""

from __future__ import annotations


class ModelError(ValueError):
    """A robot description is wrong; the message says what is wrong, where, and what to do."""


class ModelWarning(UserWarning):
    """A robot description is doubtful but is used as it is."""
