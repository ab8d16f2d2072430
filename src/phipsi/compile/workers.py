"""Worker threads, which compute parts of a batch beside the calling thread.

A call may begin in the middle of another one on the same thread: garbage is collected at any
moment, and a finalizer may call a kernel. So nothing here waits for a lock that another call may
hold, as `ThreadPoolExecutor.submit` does, and a call on a worker, where garbage is collected too,
waits for no other worker.
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
    """A call of a function by a worker."""

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


def submit(count: int, work: Callable[[], None], jobs: list[Job]) -> None:
    """Let so many workers call a function as soon as they are free, and add their jobs to a list.
    There are none if no thread can be started, as at the end of the process, and none on a worker.
    """
    workers = _workers()
    if sys.is_finalizing() or get_ident() in workers.threads or not workers.enough(count):
        return
    for _ in range(count):
        jobs.append(Job(work))  # before it can begin, whenever Ctrl-C comes
        workers.jobs.put(jobs[-1])


class _Workers:
    """The workers of a process, and the jobs that they have yet to do."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[Job] = SimpleQueue()  # which finalizers may use
        self.threads: set[int] = set()

    def enough(self, count: int) -> bool:
        """Start threads until there are so many; whether there are any."""
        with suppress(RuntimeError):
            while len(self.threads) < count:
                self.threads.add(start_new_thread(self._work, ()))
        return bool(self.threads)

    def _work(self) -> None:
        self.threads.add(get_ident())  # perhaps before the thread that started it does
        while True:
            self.jobs.get().run()


@once
def _workers() -> _Workers:
    """The workers of this process."""
    return _Workers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.cache_clear)  # none of them is in the child
