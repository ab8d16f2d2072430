"""Threads that help to compute a batch.

A call may begin in the middle of another one on the same thread: garbage is collected at any
moment, and a finalizer may call a kernel. So nothing here waits for a lock that another call may
hold, as `ThreadPoolExecutor.submit` does, and a helper, which collects garbage too, waits for
nobody.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock, get_ident, start_new_thread
from collections.abc import Callable
from contextlib import suppress
from functools import cache as once
from queue import SimpleQueue


class Job:
    """A call of a function by a helper."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self.begun = False
        self.error: BaseException | None = None
        """What it raised."""
        self._ended = allocate_lock()
        self._ended.acquire()

    def run(self) -> None:
        """Make the call."""
        self.begun = True
        try:
            self._work()
        except BaseException as error:
            self.error = error
        finally:
            self._ended.release()

    def wait(self) -> None:
        """Wait for its end."""
        with self._ended:
            pass


def ask(count: int, work: Callable[[], None], jobs: list[Job]) -> None:
    """Ask so many helpers to call a function as soon as they are free; their jobs are added to a
    list. There are none if no thread can be started, as at the end of the process, and none for a
    helper."""
    helpers = _helpers()
    if sys.is_finalizing() or get_ident() in helpers.threads or not helpers.enough(count):
        return
    for _ in range(count):
        jobs.append(Job(work))  # before it can begin, whenever Ctrl-C comes
        helpers.jobs.put(jobs[-1])


class _Helpers:
    """The helpers of a process, and the jobs that they have yet to do."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[Job] = SimpleQueue()  # which finalizers may use
        self.threads: set[int] = set()

    def enough(self, count: int) -> bool:
        """Start threads until there are so many; whether there are any."""
        with suppress(RuntimeError):
            while len(self.threads) < count:
                self.threads.add(start_new_thread(self._help, ()))
        return bool(self.threads)

    def _help(self) -> None:
        self.threads.add(get_ident())  # perhaps before the thread that started it does
        while True:
            self.jobs.get().run()


@once
def _helpers() -> _Helpers:
    """The helpers of this process."""
    return _Helpers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)  # none of them is in the child
