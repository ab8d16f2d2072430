"""Errors and exit codes of commands."""

from __future__ import annotations

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


class BadUsage(Exception):
    """Wrong arguments of a command; the message is one sentence."""
