"""Machine code: other machines, memory it may touch, threads, processes, the disk cache."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.compile import (
    ArraySpec,
    Dtype,
    Graph,
    Kernel,
    Structure,
    Tracer,
    jit,
    lift,
    llvm_driver,
    native,
    tracing,
)
from phipsi.compile.llvm_text import Machine
from phipsi.compile.native import MachineCode, Native, host
from phipsi.compile.signature import Signature

posix = pytest.mark.skipif(sys.platform == "win32", reason="pages, signals and fork are POSIX")
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
ROOT = Path(__file__).parents[2]
SIZES = (5, 3, 1)


def graph(factor: float = 1.0) -> Graph:
    """Three inputs, three outputs (one of a loop, long enough to be written by a loop), every way
    of calling a function, a division, a choice, a fused product."""
    tracer = Tracer()
    with tracing(tracer):
        a, b, c = (lift(tracer.input(f"x{i}", n)) for i, n in enumerate(SIZES))
        s = np.sin(a) * b[0] + np.exp(-a * a) / (1.0 + b[1] * b[1]) - factor * np.arctan2(a, c[0])
        t = pp.where(s > a, np.tanh(s), np.log(np.abs(s) + 1.0)) * np.cos(b[2] - a)
        last, rows = pp.repeat(23, lambda x, k: (0.9 * x[::-1] + c[0] * k, x[:3] * x[1]), t)
        outputs = [("y", [*t, *b[:2]]), ("z", [last @ s]), ("w", list(rows.reshape(-1)))]
        return tracer.graph(outputs)


def small(factor: float) -> Graph:
    tracer = Tracer()
    (x,) = tracer.input("x", 1)
    return tracer.graph([("y", [x * factor + 1.0])])


def sample(rows: int, dtype: str = "float64", seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(rows, n)).astype(dtype) for n in SIZES]


def empty(g: Graph, rows: int, dtype: str = "float64") -> list[np.ndarray]:
    return [np.full((rows, len(nodes)), 777.0, dtype) for _, nodes in g.outputs]


def results(code: MachineCode, inputs: list[np.ndarray], threads: int = 1) -> list[np.ndarray]:
    outputs = empty(GRAPH, len(inputs[0]), code.machine.dtype)
    code.run(inputs, outputs, threads)
    return outputs


def same(xs: list[np.ndarray], ys: list[np.ndarray]) -> None:
    """Equal to the bit; any NaN is as good as another."""
    for x, y in zip(xs, ys, strict=True):
        assert x.dtype == y.dtype
        nan = x.dtype.type(np.nan)
        a, b = (np.where(np.isnan(z), nan, z).tobytes() for z in (x, y))
        assert a == b


def kernel(g: Graph, threads: int | None = None, dtype: Dtype = "float64") -> Kernel:
    leaves = tuple(ArraySpec(name, (n,)) for name, n in g.inputs)
    named = tuple((leaf.name, leaf) for leaf in leaves)
    out = tuple(ArraySpec(name, (len(nodes),)) for name, nodes in g.outputs)
    pack = (lambda xs: xs[0]) if len(out) == 1 else tuple
    return Kernel("test", g, named, Structure(out, pack), dtype, "llvm", threads)


GRAPH = graph()


# ---- machines -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fma", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_machine_gives_the_same_bits(dtype: str, fma: bool) -> None:
    inputs = sample(37, dtype)
    inputs[0][5, 1] = 1e9  # an angle that leaves the vector
    inputs[0][8, 2] = np.nan
    inputs[1][20, 0] = np.inf
    expected = results(MachineCode(GRAPH, Machine(dtype, 1, fma, False)), inputs)
    for lanes in (2, 4, 8, 16):
        for masked in (False, True):
            same(results(MachineCode(GRAPH, Machine(dtype, lanes, fma, masked)), inputs), expected)


def test_a_fused_product_is_rounded_once() -> None:
    tracer = Tracer()
    x, y, z = tracer.input("x", 3)
    g = tracer.graph([("y", [x * y + z])])
    e = 2.0**-30
    inputs = [np.array([[1 + e, 1 - e, -1.0]])]
    for fma, value in ((True, -(e * e)), (False, 0.0)):
        out = empty(g, 1)
        MachineCode(g, Machine("float64", 1, fma)).run(inputs, out, 1)
        assert out[0][0, 0] == value


# ---- memory -------------------------------------------------------------------------------------

VIEWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "rows apart": lambda x: np.repeat(x, 3, axis=0)[::3],
    "elements apart": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "rows reversed": lambda x: x[::-1].copy()[::-1],
    "elements reversed": lambda x: x[:, ::-1].copy()[:, ::-1],
    "all reversed": lambda x: np.repeat(x, 2, axis=0)[::-1, ::-1].copy()[::-2, ::-1],
    "Fortran": np.asfortranarray,
    "part of wider rows": lambda x: np.pad(x, ((0, 0), (1, 2)))[:, 1:-2],
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_strides(dtype: str) -> None:
    for single in (True, False):
        code = MachineCode(GRAPH, host(dtype, single))
        for rows in (1, 3, 16, 29):
            inputs = sample(rows, dtype)
            expected = results(code, inputs)
            for view in VIEWS.values():
                given = [view(x) for x in inputs]
                assert all(x.shape == y.shape for x, y in zip(given, inputs, strict=True))
                same(results(code, given), expected)
                outputs = [view(y) for y in empty(GRAPH, rows, dtype)]
                code.run([inputs[0], *given[1:]], outputs, 1)
                same(outputs, expected)
            row = [np.broadcast_to(x[:1], x.shape) for x in inputs]
            repeated = [np.repeat(y[:1], rows, axis=0) for y in expected]
            same(results(code, row), repeated)
            one = [np.broadcast_to(x[:1, :1], x.shape) for x in inputs]
            same(results(code, one), results(code, [x.copy() for x in one]))


@pytest.mark.parametrize("machine", [host("float64"), Machine("float64", 4, True, False)])
def test_guards_around_outputs_stay(machine: Machine) -> None:
    code = MachineCode(GRAPH, machine)
    for rows in range(1, 21):
        inputs = sample(rows)
        expected = results(code, inputs)
        wide = [np.full((rows + 4, 2 * y.shape[1] + 5), np.pi) for y in expected]
        for view in (
            [y[2:-2, 2 : 2 + (y.shape[1] - 5) // 2] for y in wide],
            [y[2:-2, 3:-2:2] for y in wide],
            [y[-3:1:-1, -3:2:-2] for y in wide],
        ):
            for y in wide:
                y[:] = np.pi
            code.run(inputs, view, 1)
            same(view, expected)
            for y in view:
                y[:] = np.pi
            assert all((y == np.pi).all() for y in wide)


class Walled:
    """Pages with walls before and behind: whoever touches those is killed."""

    def __init__(self, pages: int = 4) -> None:
        page = mmap.PAGESIZE
        self.size = pages * page
        self.memory = mmap.mmap(-1, self.size + 2 * page)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        libc = ctypes.CDLL(None, use_errno=True)
        for wall in (start, start + page + self.size):
            if libc.mprotect(ctypes.c_void_p(wall), page, 0):
                raise OSError(ctypes.get_errno(), "mprotect")
        self.bytes = np.frombuffer(self.memory, np.uint8, self.size, page)

    def array(self, x: np.ndarray, end: bool) -> np.ndarray:
        """A copy of x right behind the first wall or right before the last."""
        at = self.size - x.nbytes if end else 0
        y = self.bytes[at : at + x.nbytes].view(x.dtype).reshape(x.shape)
        y[:] = x
        return y


def run_between_walls(streamed: str = "") -> None:
    """Every number of rows with every array at a wall; called in a process of its own. Streamed:
    with outputs past the caches and rows fetched ahead, as large batches have it."""
    walls = [Walled() for _ in range(6)]
    machines = [host(d, s) for d in ("float64", "float32") for s in (True, False)]
    machines += [Machine("float64", 4, True, False), Machine("float32", 8, False, False)]
    for machine in machines:
        code = plain = MachineCode(GRAPH, machine)
        if streamed:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(llvm_driver, "STREAM", 0)
                patch.setattr(llvm_driver, "AHEAD", 0)
                code = MachineCode(GRAPH, machine)
        for rows in range(1, 21):
            inputs = sample(rows, machine.dtype)
            expected = results(plain, inputs)
            for end in (False, True):
                every = [*inputs, *(0 * y for y in expected)]
                placed = [w.array(x, end) for w, x in zip(walls, every, strict=True)]
                code.run(placed[:3], placed[3:], 1)
                same(placed[3:], expected)
                turned = [  # a negative step to the wall
                    w.array(x[::-1, ::-1].copy(), end)[::-1, ::-1]
                    for w, x in zip(walls, every, strict=True)
                ]
                code.run(turned[:3], turned[3:], 1)
                same(turned[3:], expected)
    print("unharmed")


def process(
    call: str, *arguments: object, module: str = __name__, before: str = "", **environment: str
) -> subprocess.Popen[str]:
    """A process that calls a function of a module of tests, after the line `before`."""
    text = f"import sys, {module} as t; t.{call}(*sys.argv[1:])"
    command = [sys.executable, "-c", f"{before}\n{text}", *map(str, arguments)]
    surroundings = {**os.environ, **environment}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, cwd=ROOT, env=surroundings, text=True, stdout=pipe, stderr=pipe
    )


def told(child: subprocess.Popen[str]) -> str:
    """What a process printed, after it ended well."""
    out, errors = child.communicate(timeout=120)
    assert child.returncode == 0, (child.returncode, errors[-2000:])
    return out.strip()


@posix
@pytest.mark.parametrize("streamed", ["", "streamed"])
def test_nothing_outside_the_arrays_is_touched(streamed: str) -> None:
    child = process("run_between_walls", streamed, PHIPSI_CACHE_DIR="off")
    assert told(child) == "unharmed"


def touch_a_wall() -> None:
    """What the test above relies on."""
    wall = Walled().bytes
    ctypes.string_at(wall.ctypes.data + wall.size, 1)


@posix
def test_walls_are_walls() -> None:
    child = process("touch_a_wall")
    child.communicate()
    assert child.returncode in (-signal.SIGSEGV, -signal.SIGBUS)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_results_do_not_depend_on_the_place_in_the_batch(dtype: str) -> None:
    rng = np.random.default_rng(1)
    inputs = sample(500, dtype)
    for x in inputs:
        wild = rng.choice([np.nan, np.inf, 1e30, 1e8, 0.0], size=x.shape)
        x[:] = np.where(rng.random(x.shape) < 0.02, wild, x)
    code = MachineCode(GRAPH, host(dtype))
    expected = results(code, inputs)
    for _ in range(3):
        order = rng.permutation(500)[: int(rng.integers(400, 500))]
        same(results(code, [x[order] for x in inputs]), [y[order] for y in expected])


def test_arrays_without_elements() -> None:
    tracer = Tracer()
    tracer.input("nothing", 0)
    (x,) = tracer.input("x", 1)
    g = tracer.graph([("none", []), ("y", [x + 1.0]), ("fixed", [2.0, 3.0])])
    f = kernel(g)
    for rows in (0, 1, 5):
        none, y, fixed = f(np.zeros((rows, 0)), np.ones((rows, 1)))
        assert none.shape == (rows, 0)
        assert (y == 2.0).all()
        assert y.shape == (rows, 1)
        assert (fixed == [2.0, 3.0]).all()
        assert fixed.shape == (rows, 2)


def test_one_row_and_many_in_turn() -> None:
    """Scalar and vector code share a workspace, and each finds the tables of its loops."""
    f, inputs = kernel(GRAPH), sample(19)
    for _ in range(3):
        many = f(*inputs)
        for i in (0, 18):
            same([y[i] for y in many], list(f(*(x[i] for x in inputs))))


# ---- threads ------------------------------------------------------------------------------------


@pytest.fixture
def threads_used(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Among how many threads each batch was divided."""
    seen: list[int] = []
    submit = native.submit

    def noted(count: int, *rest: Any) -> None:
        seen.append(count + 1)
        submit(count, *rest)

    monkeypatch.setattr(native, "submit", noted)
    return seen


NAMELESS = Signature("", (), Structure((), tuple))


def test_threads_change_nothing(threads_used: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "WORK", 1)
    for rows in (2, 7, 100, 1001):
        inputs = sample(rows)
        expected = results(MachineCode(GRAPH, host("float64")), inputs)
        for threads in (1, 2, 3):
            threads_used.clear()
            outputs = empty(GRAPH, rows)
            Native(NAMELESS, GRAPH, "float64", threads).run(inputs, outputs)
            same(outputs, expected)
            assert threads_used == [min(threads, -(-rows // host("float64").lanes))]


def test_the_number_of_threads_is_honoured(
    threads_used: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "WORK", 1)
    inputs = sample(1000)
    for setting, threads, expected in (("3", None, 3), ("1", None, 1), ("3", 2, 2)):
        monkeypatch.setenv("PHIPSI_NUM_THREADS", setting)
        threads_used.clear()
        kernel(GRAPH, threads).run(inputs)
        assert threads_used == [expected]
    f = kernel(GRAPH, 3)
    f.prepare()
    with native.jit.lock:  # as a finalizer that is run while this thread compiles
        f.run(inputs)
    assert threads_used[1:] == [1]
    monkeypatch.delenv("PHIPSI_NUM_THREADS")
    assert native.default_threads() >= 1


@pytest.mark.parametrize("wrong", ["0", "-1", "two", "1.5", " "])
def test_a_wrong_number_of_threads_gets_one_sentence(
    wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHIPSI_NUM_THREADS", wrong)
    with pytest.raises(ValueError, match=r"PHIPSI_NUM_THREADS is .*, needs a whole") as caught:
        kernel(GRAPH)(*sample(1000))
    assert "\n" not in str(caught.value)
    assert repr(wrong) in str(caught.value)


def long_graph(rounds: int) -> Graph:
    tracer = Tracer()
    with tracing(tracer):
        x = lift(tracer.input("x", 1))
        return tracer.graph([("y", list(pp.repeat(rounds, lambda c, k: (c * 0.5 + x, 0.0), x)[0]))])


@pytest.mark.parametrize("way", ["builtin", "checked"])
def test_other_threads_go_on_during_a_large_batch(way: str) -> None:
    f = kernel(long_graph(20_000), threads=1)
    x = np.ones((4000, 1))
    f(x[:2])
    worker = threading.Thread(target=lambda: f(x) if way == "builtin" else f.run([x]))
    started = time.perf_counter()
    worker.start()
    rounds = 0
    while worker.is_alive():
        time.sleep(0.001)
        rounds += 1
    lasted = time.perf_counter() - started
    assert lasted > 0.03, "too short to tell"
    assert rounds > 10


def test_arrays_outlive_the_threads_that_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception (Ctrl-C) in the calling thread must not free what others still write."""
    alive: list[bool] = []
    done = threading.Event()
    main = threading.current_thread()

    def work(self: MachineCode, *args: Any) -> None:
        if threading.current_thread() is main:
            raise KeyboardInterrupt
        time.sleep(0.3)
        alive.extend(ref() is not None for ref in refs)
        done.set()

    monkeypatch.setattr(MachineCode, "_work", work)
    arrays = [np.ones((100, 1)), np.empty((100, 1))]
    refs = [weakref.ref(x) for x in arrays]
    code = MachineCode(small(2.0), host("float64"))
    with pytest.raises(KeyboardInterrupt) as caught:
        code.run(arrays[:1], arrays[1:], 2)
    del arrays, caught
    gc.collect()
    assert done.wait(10)
    assert alive == [True, True]


def test_many_threads_compile_and_call_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Different and equal kernels."""
    monkeypatch.setenv("PHIPSI_CACHE_DIR", "off")
    x = np.arange(40.0).reshape(40, 1)
    shared = kernel(GRAPH)
    inputs = sample(40)
    expected = results(MachineCode(GRAPH, host("float64")), inputs)

    def work(k: int) -> None:
        for j in range(4):
            factor = float(j if j < 2 else 10 * k + j)
            assert (kernel(small(factor))(x) == factor * x + 1.0).all()
            same(list(shared(*inputs)), expected)

    with ThreadPoolExecutor(8) as pool:
        for job in [pool.submit(work, k) for k in range(8)]:
            job.result()


# ---- processes ----------------------------------------------------------------------------------


def fork_after_use() -> None:
    """Threads and compiled code before the fork; both, and a new compilation, after it."""
    native.WORK = 1
    inputs = sample(1000)
    f = kernel(GRAPH, threads=3)
    expected = [y.copy() for y in f(*inputs)]
    same(list(f.run(inputs)), expected)
    children = []
    for _ in range(2):
        child = os.fork()
        if not child:
            signal.alarm(60)
            status = 1
            try:
                same(list(f.run(inputs)), expected)
                same(list(f(*inputs)), expected)
                assert kernel(small(4.0))(np.ones((3, 1))).tolist() == [[5.0]] * 3
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    same(list(f.run(inputs)), expected)
    print([os.waitpid(child, 0)[1] for child in children])


@forks
def test_a_fork_after_use_works() -> None:
    assert told(process("fork_after_use")) == "[0, 0]"


def fork_while_compiling() -> None:
    """A thread is compiling at the time of the fork."""
    os.environ["PHIPSI_CACHE_DIR"] = "off"
    stop = threading.Event()
    factor = iter(range(10**6))

    def work() -> None:
        while not stop.is_set():
            MachineCode(small(float(next(factor))), host("float64"))

    worker = threading.Thread(target=work)
    worker.start()
    statuses = []
    while len(statuses) < 8 and not any(statuses):
        time.sleep(0.03)
        child = os.fork()
        if not child:
            signal.alarm(10)
            right = kernel(small(-4.0))(np.ones((3, 1))).tolist() == [[-3.0]] * 3
            os._exit(0 if right else 1)
        statuses.append(os.waitpid(child, 0)[1])
    stop.set()
    worker.join()
    print(statuses)


@forks
def test_a_fork_while_another_thread_compiles_works() -> None:
    assert told(process("fork_while_compiling")) == str([0] * 8)


def compile_together(worker: str) -> None:
    for factor in range(12):
        f = kernel(small(float(factor)))
        assert (f(np.ones((3, 1))) == factor + 1.0).all()
        assert (f(np.ones(1)) == factor + 1.0).all()
    same(results(MachineCode(GRAPH, host("float64")), sample(9)), list(kernel(GRAPH)(*sample(9))))
    print("right")


def test_processes_share_a_cache(tmp_path: Path) -> None:
    place = str(tmp_path / "cache")
    children = [process("compile_together", k, PHIPSI_CACHE_DIR=place) for k in range(4)]
    assert [told(child) for child in children] == ["right"] * 4
    assert not list((tmp_path / "cache").glob("*.tmp"))


def compile_many(count: str) -> None:
    """How much the memory of the process grew [MB], after it had got going."""
    machine, one, out = host("float64", single=True), np.ones((1, 1)), np.empty((1, 1))
    started = 0
    for k in range(int(count) + 50):
        if k == 50:
            gc.collect()
            started = _resident()
        code = MachineCode(small(float(k)), machine)
        code.run([one], [out], 1)
        assert out[0, 0] == k + 1.0
    gc.collect()
    print((_resident() - started) / 1e6)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_dropped_kernels_free_their_memory() -> None:
    grown = float(told(process("compile_many", 300, PHIPSI_CACHE_DIR="off")))
    assert grown < 6.0  # 20 kB each; an LLVM pass manager alone is 90 kB


def compile_until_killed() -> None:
    print("ready", flush=True)
    for k in range(10**6):
        MachineCode(small(float(k % 30)), host("float64", single=bool(k % 2)))


FAR = """
import ctypes, mmap
import phipsi as pp

def run(robot):
    q, v = robot.random_state(0)
    kernel = pp.forward_dynamics.compile(robot)
    kernel(q, v, v), kernel(q[None], v[None], v[None])

run(pp.robots.space_arm())
c, n = ctypes.CDLL(None), mmap.PAGESIZE
c.mmap.restype = ctypes.c_void_p
c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
c.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

def reserved(size):
    return c.mmap(None, size, 0, 0x4022, -1, 0)  # private, anonymous, without memory

def far():
    lowest = reserved(1 << 33)
    for size in (n << k for k in range(16, -1, -1)):  # fill the gaps above
        while (place := reserved(size)) > lowest:
            pass
        lowest = place

far()
pages = [reserved(n) for _ in range(400)]
far()
for page in pages[::2]:
    c.munmap(page, n)
for links in range(3, 11):
    run(pp.robots.chain(links))
print("all loaded")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="numbers of Linux")
def test_code_is_loaded_whatever_gaps_the_address_space_has() -> None:
    """Gaps of one page, which constants fit in and code does not, 8 GiB from all others."""
    done = subprocess.run([sys.executable, "-c", FAR], capture_output=True, text=True)
    assert done.stdout == "all loaded\n", done.stderr


@posix
def test_a_killed_compiler_leaves_a_cache_that_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "cache")
    monkeypatch.setenv("PHIPSI_CACHE_DIR", place)
    for k in range(3):
        child = process("compile_until_killed", PHIPSI_CACHE_DIR=place)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.1 + 0.13 * k)
        while k == 2 and not list(Path(place).glob("*.bin")) and child.poll() is None:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        assert child.returncode == -signal.SIGKILL
    assert list(Path(place).glob("*.bin"))
    x = np.ones((3, 1))
    for factor in range(30):
        assert (kernel(small(float(factor)))(x) == factor + 1.0).all()


# ---- the disk cache -----------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PHIPSI_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The texts that LLVM compiles."""
    texts: list[str] = []
    compiled = jit.compiled

    def noted(text: str, *args: Any, **options: Any) -> bytes:
        texts.append(text)
        return compiled(text, *args, **options)

    monkeypatch.setattr(jit, "compiled", noted)
    yield texts


def test_a_damaged_entry_is_compiled_again(place: Path, compilations: list[str]) -> None:
    inputs, machine = sample(11), host("float64")
    expected = results(MachineCode(GRAPH, machine), inputs)
    (entry,) = place.glob("*.bin")
    whole = entry.read_bytes()
    rng = np.random.default_rng(0)
    damages = [whole[: len(whole) // 2], b"", whole + b"x", whole[:-1]]
    for at in rng.integers(len(whole), size=6):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << int(rng.integers(8))
        damages.append(bytes(flipped))
    for damage in damages:
        compilations.clear()
        entry.write_bytes(damage)
        same(results(MachineCode(GRAPH, machine), inputs), expected)
        assert len(compilations) == 1
        assert entry.read_bytes() == whole
    compilations.clear()
    same(results(MachineCode(GRAPH, machine), inputs), expected)
    assert not compilations


@pytest.mark.parametrize("unroll", [True, False])
def test_the_kernel_of_an_equal_robot_is_loaded(
    place: Path, compilations: list[str], unroll: bool
) -> None:
    robot = pp.robots.double_pendulum()
    q, v = robot.random_state(0, (9,))
    first = pp.forward_dynamics.compile(robot, backend="llvm", unroll=unroll)
    expected = first(q, v, v), first(q[0], v[0], v[0])
    assert compilations
    compilations.clear()
    options: Any = {"backend": "llvm", "unroll": unroll}
    again = pp.forward_dynamics.compile(pp.robots.double_pendulum(), **options)
    same([again(q, v, v), again(q[0], v[0], v[0])], list(expected))
    assert not compilations
    heavier = pp.forward_dynamics.compile(robot.with_gravity((0.0, 0.0, -1.0)), **options)
    assert (heavier(q, v, v) != expected[0]).any()
    assert compilations


def test_code_of_other_software_or_another_machine_is_not_used(
    place: Path, compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = host("float64")
    MachineCode(small(3.0), machine)
    assert len(compilations) == 1
    MachineCode(small(3.0), machine)
    assert len(compilations) == 1
    version = native._version.__wrapped__
    known = version()
    triple, processor, features = jit.target()
    for other in ((triple, processor, f"{features},+new"), (triple, "another", features)):
        with monkeypatch.context() as patch:
            patch.setattr(jit, "target", lambda other=other: other)
            assert version() != known
    monkeypatch.setattr(native, "_version", lambda: known + b" changed")
    MachineCode(small(3.0), machine)
    assert len(compilations) == 2


def test_programs_that_differ_in_their_inputs_alone_do_not_share_code(place: Path) -> None:
    """They compute the same from the same name, but find it in another place."""
    rows = np.arange(12.0).reshape(6, 2)
    for names in (("x",), ("other", "x"), ("x", "other")):
        tracer = Tracer()
        given = {name: tracer.input(name, 2) for name in names}
        f = kernel(tracer.graph([("y", [given["x"][0] * 2.0])]))
        found = f(**{name: rows if name == "x" else -rows for name in names})
        assert (found == 2.0 * rows[:, :1]).all()


def show_machine_code() -> None:
    """The compiler is imported before the programs are."""
    text = pp.forward_dynamics.show(pp.robots.double_pendulum(), stage="llvm")
    print("define void @run" in text)


def test_machine_code_can_be_shown_whatever_was_imported_first() -> None:
    assert told(process("show_machine_code")) == "True"
