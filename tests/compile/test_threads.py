"""Machine code at the end of a process, in forked children, beside other threads, and Ctrl-C."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.cached import cached_property
from phipsi.compile import Graph, Kernel, Recalled, Tracer, jit, lift, native, tracing, workers
from phipsi.compile.native import MachineCode, Native, host
from phipsi.compile.signature import Signature, Structure
from tests.compile import test_native
from tests.compile.test_native import GRAPH, forks, kernel, long_graph, same, sample, small
from tests.stress import threads as stress

WAIT = 60.0
"""After so long [s] a thread is taken to hang."""


def told(call: str, *arguments: object, **environment: str) -> str:
    """What a function of this module prints, in a process of its own that ends well."""
    return test_native.told(test_native.process(call, *arguments, module=__name__, **environment))


def ends(work: Any) -> bool:
    """Whether a function ends in another thread."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(WAIT)
    return not thread.is_alive()


# ---- the end of a process -----------------------------------------------------------------------


class Caller:
    """Calls kernels when it is finalized; `me` makes it a member of a cycle."""

    def __init__(self, name: str, *kernels: Kernel, cycle: bool = False) -> None:
        self.name, self.kernels, self.me = name, kernels, self if cycle else None
        self.inputs, self.expected = sample(1000), [y.copy() for y in kernels[0](*sample(1000))]
        self.same, self.tell = same, os.write

    def __del__(self) -> None:
        self.call()

    def call(self) -> None:
        for f in self.kernels:
            self.same(list(f(*self.inputs)), self.expected)
            f(*(x[0] for x in self.inputs))
        self.tell(1, f"{self.name}\n".encode())


def call_late() -> None:
    """Call kernels from functions at exit, registered before and after the compiler is imported,
    and from finalizers."""
    native.WORK = 1
    f = kernel(GRAPH, threads=2)
    f(*sample(1000))
    f(*(x[0] for x in sample(1)))
    atexit.register(Caller("exit", f, kernel(GRAPH, threads=1)).call)
    sys.modules["kept"] = Caller("module", f)  # pyright: ignore[reportArgumentType]
    Caller("cycle", kernel(GRAPH), cycle=True)
    gc.collect()
    kernel(small(2.0))(np.ones((2, 1)))  # whose making frees what is not used
    Caller("cycle left", f, cycle=True)
    global caller
    caller = Caller("global", f)


def test_code_can_be_called_to_the_end_of_the_process() -> None:
    early = "import atexit; atexit.register(lambda: t.caller.call())"
    lines = told("call_late", before=early, PHIPSI_CACHE_DIR="off").splitlines()
    assert lines[0] == "cycle"
    assert sorted({*lines}) == ["cycle", "cycle left", "exit", "global", "module"]
    assert lines.count("global") == 2  # at exit, and when it is finalized


def leave_threads(what: str) -> None:
    """End the process while daemon threads run kernels, or compile them."""
    native.WORK = 1
    f, inputs = kernel(GRAPH, threads=3 if "several" in what else 1), sample(200)
    expected = [y.copy() for y in f(*inputs)]
    begun = threading.Barrier(4)

    def work(seed: int) -> None:
        for k in range(10**9):
            same(list(f(*inputs)), expected)
            if what == "compile":
                kernel(small(seed + 0.001 * k))(np.ones((2, 1)))
            if not k:
                begun.wait()

    for seed in range(3):
        threading.Thread(target=work, args=(seed,), daemon=True).start()
    begun.wait()
    time.sleep(0.05)
    print("left", flush=True)


@pytest.mark.parametrize("what", ["run", "run on several threads", "compile"])
def test_a_process_ends_well_while_threads_run_kernels(what: str) -> None:
    assert told("leave_threads", what, PHIPSI_CACHE_DIR="off") == "left"


# ---- finalizers and locks -----------------------------------------------------------------------


def finalize_within_calls() -> None:
    """While batches are divided among threads, garbage of another thread is collected at nearly any
    allocation, and its finalizers call the same kernel."""
    native.WORK = 1
    f, inputs = kernel(GRAPH, threads=3), sample(300)
    expected, finalized, over = [y.copy() for y in f(*inputs)], 0, threading.Event()

    class Cycle:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            nonlocal finalized
            same(list(f(*inputs)), expected)
            finalized += 1

    def litter() -> None:
        while not over.is_set():
            Cycle()
            time.sleep(1e-5)

    gc.set_threshold(10)
    threading.Thread(target=litter).start()
    while finalized < 500:
        same(list(f(*inputs)), expected)
    over.set()
    print("ended")


def test_finalizers_call_kernels_within_calls_of_kernels() -> None:
    assert told("finalize_within_calls", PHIPSI_CACHE_DIR="off") == "ended"


def loaded(count: int, code: bytes) -> list[np.ndarray]:
    return [jit.load(code, "run") for _ in range(count)]


@pytest.fixture
def code() -> bytes:
    return jit.compiled("define void @run() {\n  ret void\n}")


def test_dropping_a_kernel_waits_for_nothing() -> None:
    """Neither for the lock nor for LLVM: garbage is collected at any moment, in any thread."""
    dropped = [kernel(small(float(k))) for k in range(3)]
    for f in dropped:
        f(np.ones((2, 1)))
    held, done = threading.Event(), threading.Event()

    def compiling() -> None:
        with jit.lock, jit.llvm.ffi.lib._lock:
            held.set()
            done.wait(WAIT)

    worker = threading.Thread(target=compiling)
    worker.start()
    held.wait(WAIT)
    assert ends(lambda: (dropped.clear(), gc.collect()))
    done.set()
    worker.join()


def test_code_is_freed_after_its_array_and_not_before(code: bytes) -> None:
    (array,) = loaded(1, code)
    address = array.ctypes.data
    jit.free()
    assert address in jit._loaded
    kept = array[:]  # shares its memory
    del array
    assert address in jit._loaded
    del kept
    assert address in jit._unused
    jit.free()
    assert address not in jit._loaded


def test_code_that_is_dropped_does_not_pile_up(code: bytes) -> None:
    gc.collect()
    jit.free()
    most = before = len(jit._loaded)
    for _ in range(20):
        loaded(20, code)
        most = max(most, len(jit._loaded))
    assert most <= before + 40
    many = loaded(5 * jit.MANY // 2, code)
    assert len(jit._loaded) >= len(many)
    del many  # and nothing is loaded any more
    end = time.monotonic() + WAIT
    while len(jit._loaded) > before + jit.MANY and time.monotonic() < end:
        time.sleep(0.01)
    assert len(jit._loaded) <= before + jit.MANY


def test_threads_compute_properties_of_two_objects_at_once() -> None:
    both = threading.Barrier(2)

    class Thing:
        @cached_property
        def value(self) -> object:
            """A value."""
            both.wait(WAIT)
            return object()

    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(lambda: Thing().value) for _ in range(2)]
        assert len({job.result() for job in jobs}) == 2
        thing = Thing()
        jobs = [pool.submit(lambda: thing.value) for _ in range(2)]
        assert {job.result() for job in jobs} == {thing.value}
    assert Thing.value.__doc__ == "A value."


def test_no_property_holds_a_lock() -> None:
    sources = Path(pp.__file__).parent.rglob("*.py")
    users = [p.name for p in sources if "functools import cached_property" in p.read_text("utf-8")]
    assert not users


def test_a_trace_may_wait_for_another_thread_that_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace runs code of the user, so that no lock is held meanwhile."""
    monkeypatch.setenv("PHIPSI_CACHE_DIR", "off")

    def trace() -> Graph:
        assert ends(lambda: kernel(small(-7.0))(np.ones((2, 1))))
        return small(3.0)

    known = Recalled("0" * 64, 2, trace)
    code = Native(Signature("", (), Structure((), tuple)), known, "float64", 1).batch
    out = np.empty((3, 1))
    code.run([np.ones((3, 1))], [out], 1)
    assert (out == 4.0).all()


# ---- forks --------------------------------------------------------------------------------------


def forked(work: Any) -> int:
    """The status of a forked child that calls a function."""
    child = os.fork()
    if not child:
        signal.alarm(int(WAIT))
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


def fork_while_importing(folder: str) -> None:
    """Another thread is importing a module of phipsi, for the first time."""
    pp.__path__.append(folder)
    Path(folder, "slow.py").write_text("import time; time.sleep(0.5); value = 1")

    def load() -> None:
        from phipsi.slow import value  # pyright: ignore[reportMissingImports]

        assert value == 1

    worker = threading.Thread(target=load)
    worker.start()
    while "phipsi.slow" not in sys.modules:
        time.sleep(0.001)
    print(forked(load))
    worker.join()


@forks
def test_a_fork_while_another_thread_imports_works(tmp_path: Path) -> None:
    assert told("fork_while_importing", tmp_path) == "0"


def fork_while_busy() -> None:
    """Other threads trace, compile, and run batches on several threads."""
    native.WORK = 1
    stop, tracing = threading.Event(), threading.Event()
    f, inputs = kernel(GRAPH, threads=3), sample(20_000)
    expected = [y.copy() for y in f(*inputs)]

    def whole(factor: float, seconds: float) -> None:
        def trace() -> Graph:
            tracing.set()
            time.sleep(seconds)
            return small(factor)

        assert Recalled("", 2, trace).whole.size

    def compiled() -> None:
        for k in range(10**9):
            assert kernel(small(float(k)))(np.ones((3, 1)))[0, 0] == k + 1.0
            if stop.is_set():
                return

    def run() -> None:
        while not stop.is_set():
            same(list(f.run(inputs)), expected)

    def child() -> None:
        whole(2.0, 0.0)
        same(list(f.run(inputs)), expected)
        assert kernel(small(-3.0))(np.ones((3, 1)))[0, 0] == -2.0

    def trace() -> None:
        while not stop.is_set():
            whole(1.0, 0.05)

    threads = [threading.Thread(target=work) for work in (compiled, run, trace)]
    for worker in threads:
        worker.start()
    tracing.wait()
    print({forked(child) for _ in range(4)})
    stop.set()
    for worker in threads:
        worker.join()


@forks
def test_a_fork_while_other_threads_trace_compile_and_run_works() -> None:
    assert told("fork_while_busy", PHIPSI_CACHE_DIR="off") == "{0}"


# ---- Ctrl-C -------------------------------------------------------------------------------------


def endless(rounds: int) -> Graph:
    """A loop in a loop: 2·10⁵ operations in each round of the outer one."""
    tracer = Tracer()
    with tracing(tracer):
        x = lift(tracer.input("x", 1))

        def step(c: Any, _: object) -> Any:
            return pp.repeat(100_000, lambda c, _: (0.999999 * c + x, 0.0), c)[0], 0.0

        return tracer.graph([("y", list(pp.repeat(rounds, step, x)[0]))])


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no timer")
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("what", ["rows", "quick rows", "one row", "long rows"])
def test_ctrl_c_ends_a_call(what: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these calls takes a minute or more, and ends within the time of a part."""
    graph = {"rows": long_graph(20_000), "quick rows": small(0.5)}.get(what) or endless(100_000)
    rows = {"rows": 2_000_000, "quick rows": 300_000, "one row": 1, "long rows": 100}[what]
    f, expected = kernel(graph, threads), np.zeros(1)
    x, out = np.ones((rows, 1)), np.full((rows, 1), 777.0)
    if what.endswith("rows") and what != "long rows":
        f(x[:3])
        expected = f(x[0])
    else:
        f.prepare()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGALRM, interrupt)
    calls, used = 0, time.process_time()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            while True:
                f(x, out=out)
                calls += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, former)
    assert time.process_time() - used < 10.0
    after = out.copy()
    if what == "quick rows":
        assert calls
    elif what == "rows":
        done = out[:, 0] != 777.0
        assert (out[done] == expected).all()
        assert 0 < done.sum() < rows
    time.sleep(0.05)
    assert (out == after).all()  # no thread is left that writes
    assert f(x[:1, :] if what == "rows" else np.ones((0, 1))).shape[1] == 1


def test_an_interrupted_workspace_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    code = MachineCode(endless(10), host("float64"))
    one, out = np.ones((1, 1)), np.empty((1, 1))
    code.run([one], [out], 1)
    (room,) = code._free
    room[native.STOP] = 1
    expected = out.copy()
    code.run([one], [out], 1)
    assert 0.0 < out[0, 0] < 0.9 * expected[0, 0]  # the word stops loops
    code._free.clear()

    monkeypatch.setattr(native, "LONG", 1)  # on another thread
    started = threading.Event()
    work = MachineCode._work

    def begun(self: MachineCode, call: Any) -> None:
        started.set()
        work(self, call)

    wait, waits = workers.Job.wait, []

    def interrupted(job: workers.Job) -> None:
        waits.append(job)
        if len(waits) == 1:
            started.wait(WAIT)
            raise KeyboardInterrupt
        wait(job)

    with monkeypatch.context() as patch:
        patch.setattr(MachineCode, "_work", begun)
        patch.setattr(workers.Job, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            code.run([one], [out], 1)
    assert not code._free
    code.run([one], [out], 1)
    assert (out == expected).all()


def test_a_batch_is_computed_where_no_thread_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    inputs, code = sample(300), MachineCode(GRAPH, host("float64"))
    expected = test_native.results(code, inputs)
    alone = workers._Workers()
    monkeypatch.setattr(workers, "_workers", lambda: alone)
    monkeypatch.setattr(workers, "start_new_thread", full)
    same(test_native.results(code, inputs, 3), expected)
    monkeypatch.setattr(native, "LONG", 1)
    same(test_native.results(code, inputs, 3), expected)


def test_an_error_in_another_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """A workspace may be too large for the memory that is left."""
    inputs, code = sample(300), MachineCode(GRAPH, host("float64"))
    workspace, caller, asked = native.workspace, threading.get_ident(), threading.Event()

    def full(codes: Any) -> Any:
        if threading.get_ident() != caller:
            asked.set()
            raise MemoryError("no room")
        asked.wait(WAIT)
        return workspace(codes)

    monkeypatch.setattr(native, "workspace", full)
    with pytest.raises(MemoryError, match="no room"):
        test_native.results(code, inputs, 3)
    monkeypatch.setattr(native, "LONG", 1)
    with pytest.raises(MemoryError, match="no room"):
        test_native.results(code, inputs, 3)


# ---- all of it ----------------------------------------------------------------------------------


@forks
def test_threads_and_processes_under_stress(tmp_path: Path) -> None:
    """A short run of the campaign."""
    counts = stress.run(processes=2, threads=2, seconds=1.0, folder=tmp_path)
    assert not counts.wrong
    assert counts.kernels > 0
    assert counts.calls > 0
    assert counts.forks > 0
