"""How a command says that it cannot go on."""

from __future__ import annotations

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


class BadUsage(Exception):
    """The arguments make no sense; the message is one sentence."""
