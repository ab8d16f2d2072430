"""Forks of a process that has several threads.

A forked child has the one thread that forked. A lock that another thread held at that moment stays
locked in the child for ever, and so does a module that another thread was importing: Python renews
the locks of its own library, but not those of modules under import. A fork therefore waits until no
other thread imports a part of phipsi, or of a library that phipsi loads when it is first needed, or
holds a lock given to `held_at_forks`. Such locks are not held while the user's code runs (a program
that is traced, say), for that may wait for a thread which forks, or wants the lock.
"""

from __future__ import annotations

import _imp
import importlib
import os
import threading
import time
from contextlib import ExitStack
from typing import Any

PATIENCE = 30.0
"""How long a fork waits for imports [s]: longer than they take, but not for ever, since an import
may itself wait for the forking thread."""
LIBRARIES = frozenset(
    ("phipsi", "numpy", "scipy", "defusedxml", "xml", "mujoco", "sympy", "pandas", "matplotlib")
)
"""The libraries whose imports a fork waits for: those that functions of phipsi import, and those
that import parts of themselves when they are first used. None runs code of the user."""
_locks: list[threading.RLock] = []
_held: list[ExitStack] = []
"""What the fork in progress holds."""


def held_at_forks(lock: threading.RLock) -> threading.RLock:
    """The lock, which every fork acquires before and releases after, in the parent and the child.

    Parameters
    ----------
    lock
        A lock that is held for short times.

    Returns
    -------
    RLock
        The same lock.
    """
    _locks.append(lock)
    return lock


def _before() -> None:
    """Wait until no other thread imports a library or holds a lock, and keep it so."""
    end = time.monotonic() + PATIENCE
    while True:
        with ExitStack() as held:
            locks = [held.enter_context(lock) for lock in _locks.copy()]
            _imp.acquire_lock()  # from here on no import begins, and none adds a lock
            held.callback(_imp.release_lock)
            at_rest = len(locks) == len(_locks) and not _imported_elsewhere()
            if at_rest or time.monotonic() > end:
                _held.append(held.pop_all())
                return
        time.sleep(0.001)


def _after() -> None:
    if _held:
        _held.pop().close()


def _imported_elsewhere() -> bool:
    """Whether another thread is importing a module of these libraries."""
    locks: dict[str, Any] = getattr(vars(importlib)["_bootstrap"], "_module_locks", {})
    for name, reference in locks.copy().items():
        lock = reference() if name.partition(".")[0] in LIBRARIES else None
        if lock is not None and lock.owner not in (None, threading.get_ident()):
            return True
    return False


# It and what it imports have work at forks, too. Some of the libraries import them when first
# needed: imported while a fork waits, they would do the second half of it only.
importlib.import_module("concurrent.futures.thread")
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
