"""What is raised and warned of when a robot description is wrong."""

from __future__ import annotations


class ModelError(ValueError):
    """A robot description is wrong; the message names what, where, and what to do."""


class ModelWarning(UserWarning):
    """A robot description is doubtful and is taken as it is."""
