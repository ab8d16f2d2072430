"""The native entry: what it takes it computes, all else reaches the fallback as it came."""

from __future__ import annotations

import ctypes
import gc
import pickle
import sys
import sysconfig
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phipsi.compile import entry as module
from phipsi.compile.entry import entry
from tests.each import each

LIMIT = 50
FLOAT = np.dtype(np.float64)
WORKSPACE = ctypes.create_string_buffer(64)

# y[r, i] = a[r, i] + 2 b[r, i], then if there is another output, s[r] = Σ y[r, i]; 2 b goes through
# the workspace, to see that nobody else is in it.
CODE = """
define void @run(ptr %arrays, i64 %start, i64 %stop, ptr %workspace) {{
entry:
  br label %row
row:
  %r = phi i64 [ %start, %entry ], [ %r.next, %next ]
  %rows = icmp slt i64 %r, %stop
  br i1 %rows, label %element, label %done
element:
  %i = phi i64 [ 0, %row ], [ %i.next, %body ]
  %s = phi {T} [ 0.0, %row ], [ %s.next, %body ]
  %more = icmp slt i64 %i, {n}
  br i1 %more, label %body, label %end
body:
  %pa = call ptr @place(ptr %arrays, i64 0, i64 %r, i64 %i)
  %pb = call ptr @place(ptr %arrays, i64 1, i64 %r, i64 %i)
  %py = call ptr @place(ptr %arrays, i64 2, i64 %r, i64 %i)
  %a = load {T}, ptr %pa
  %b = load {T}, ptr %pb
  %b2 = fmul {T} %b, 2.0
  store volatile {T} %b2, ptr %workspace
  %again = load volatile {T}, ptr %workspace
  %y = fadd {T} %a, %again
  store {T} %y, ptr %py
  %s.next = fadd {T} %s, %y
  %i.next = add i64 %i, 1
  br label %element
end:
  br i1 {several}, label %sum, label %next
sum:
  %ps = call ptr @place(ptr %arrays, i64 3, i64 %r, i64 0)
  store {T} %s, ptr %ps
  br label %next
next:
  %r.next = add i64 %r, 1
  br label %row
done:
  ret void
}}
define internal ptr @place(ptr %arrays, i64 %which, i64 %r, i64 %i) {{
  %view = getelementptr [3 x i64], ptr %arrays, i64 %which
  %data = load ptr, ptr %view
  %p.row = getelementptr i64, ptr %view, i64 1
  %row = load i64, ptr %p.row
  %p.step = getelementptr i64, ptr %view, i64 2
  %step = load i64, ptr %p.step
  %down = mul i64 %row, %r
  %along = mul i64 %step, %i
  %offset = add i64 %down, %along
  %place = getelementptr i8, ptr %data, i64 %offset
  ret ptr %place
}}
"""


@cache
def code(n: int, dtype: np.dtype[Any] = FLOAT, several: bool = False) -> tuple[Any, int]:
    kind = "double" if dtype == FLOAT else "float"
    text = CODE.format(n=n, T=kind, several=str(several).lower())
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    return engine, engine.get_function_address("run")


class Refused(Exception):
    """Raised by a fallback that should not have been reached."""


def never(*args: Any, out: Any = None, **named: Any) -> Any:
    raise Refused(args, out, named)


def make(
    core: tuple[int, ...] = (3,),
    outputs: tuple[tuple[int, ...], ...] | None = None,
    dtype: np.dtype[Any] = FLOAT,
    fallback: Callable[..., Any] = never,
    **options: Any,
) -> Callable[..., Any]:
    outputs = (core,) if outputs is None else outputs
    engine, run = code(prod(core), dtype, len(outputs) > 1)
    given = {"single": run, "batch": run, "limit": LIMIT, "keep": engine, **options}
    given = {"held": LIMIT, "size": ctypes.sizeof(WORKSPACE), **given}
    workspace = ctypes.addressof(WORKSPACE)
    return entry(
        name="add",
        inputs=(core, core),
        outputs=outputs,
        dtype=dtype,
        workspace=workspace,
        fallback=fallback,
        **given,
    )


def sample(*shape: int, dtype: Any = float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-99, 99, (2, *shape)).astype(dtype)
    return a.copy(), b.copy()


pytestmark = pytest.mark.skipif(not module._familiar(), reason="no native entry in this process")


@each("dtype", [np.float64, np.float32])
@each("core", [(3,), (2, 6), (1,), (0,)])
@each("batch", [(), (1,), (7,), (4, 5), (2, 1, 3), (1,) * 20])
def test_plain_arrays_are_computed(dtype: Any, core: tuple[int, ...], batch: tuple) -> None:
    f = make(core, dtype=np.dtype(dtype))
    a, b = sample(*batch, *core, dtype=dtype)
    y = f(a, b)
    assert type(y) is np.ndarray and y.dtype == dtype and y.shape == a.shape
    assert y.flags.c_contiguous and y.flags.owndata and y.flags.writeable
    np.testing.assert_array_equal(y, a + 2 * b)
    out = np.full_like(a, np.nan)
    assert f(a, b, out=out) is out
    np.testing.assert_array_equal(out, a + 2 * b)
    np.testing.assert_array_equal(f(a, b, out=None), y)


@pytest.mark.parametrize("batch", [(), (1,), (4, 5)])
def test_several_outputs_are_packed(batch: tuple[int, ...]) -> None:
    given = []
    f = make((3,), ((3,), ()), pack=lambda ys: given.append(ys) or tuple(ys))
    a, b = sample(*batch, 3)
    y, s = f(a, b)
    assert type(given[0]) is list
    assert type(s) is (np.ndarray if batch else np.float64)
    np.testing.assert_array_equal(y, a + 2 * b)
    np.testing.assert_array_equal(s, (a + 2 * b).sum(-1))


def test_a_scalar_output_is_a_numpy_scalar() -> None:
    f = make((1,), ((),))
    assert type(f(np.array([1.0]), np.array([2.0]))) is np.float64
    y = f(np.array([[1.0], [3.0]]), np.array([[2.0], [4.0]]))
    np.testing.assert_array_equal(y, [5.0, 11.0])
    out = np.array(0.0)
    assert f(np.array([1.0]), np.array([2.0]), out=out) is out and out == 5.0


def test_one_output_may_be_packed_too() -> None:
    f = make(pack=lambda ys: {"y": ys[0]}, fallback=lambda *args, out=None: "fallback")
    a, b = sample(3)
    np.testing.assert_array_equal(f(a, b)["y"], a + 2 * b)
    assert f(a, b, out=np.empty(3)) == "fallback"


def test_one_row_and_more_rows_have_their_own_code() -> None:
    def slow(*args: Any, out: Any = None) -> str:
        return "fallback"

    one, two = sample(3), sample(2, 3)
    only_single, only_batch = make(batch=0, fallback=slow), make(single=0, fallback=slow)
    assert isinstance(only_single(*one), np.ndarray) and only_single(*two) == "fallback"
    assert isinstance(only_batch(*two), np.ndarray) and only_batch(*one) == "fallback"
    few = make(limit=2, fallback=slow)
    assert isinstance(few(*two), np.ndarray) and few(*sample(3, 3)) == "fallback"
    assert make(limit=0, fallback=slow)(*one) == "fallback"


def test_unpickled_arrays_are_plain() -> None:
    a, b = sample(3)
    copies = [pickle.loads(pickle.dumps(x)) for x in (a, b)]
    np.testing.assert_array_equal(make()(*copies), a + 2 * b)


class Sub(np.ndarray):
    """Not exactly an ndarray."""


class Echo:
    """A fallback that says what it was given."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self, args, named


def misaligned(x: np.ndarray) -> np.ndarray:
    raw = np.zeros(x.nbytes + 1, np.uint8)[1:]
    y = raw.view(x.dtype).reshape(x.shape)
    y[...] = x
    return y


def read_only(x: np.ndarray) -> np.ndarray:
    y = x.copy()
    y.flags.writeable = False
    return y


# the first: plain; each of the others is another way not to be, or only for out=
WAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "plain": lambda x: x,
    "view": lambda x: np.concatenate([x.ravel(), x.ravel()])[x.size :].reshape(x.shape),
    "fortran": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "backwards": lambda x: x[..., ::-1],
    "transposed": lambda x: x.T,
    "broadcast": lambda x: np.broadcast_to(x, (2, *x.shape)),
    "misaligned": misaligned,
    "read-only": read_only,
    "swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "float32": lambda x: x.astype(np.float32),
    "longdouble": lambda x: x.astype(np.longdouble),
    "complex": lambda x: x.astype(complex),
    "int64": lambda x: x.astype(np.int64),
    "uint64 of the same bytes": lambda x: x.view(np.uint64),
    "time": lambda x: x.astype("m8[s]"),
    "object": lambda x: x.astype(object),
    "text": lambda x: x.astype("U8"),
    "record": lambda x: x.view([("x", float)]),
    "subclass": lambda x: x.view(Sub),
    "masked": lambda x: np.ma.masked_array(x),
    "list": lambda x: x.tolist(),
    "tuple": lambda x: tuple(x.ravel()),
    "memoryview": lambda x: x.data,
    "0-d": lambda x: np.array(1.0),
    "scalar": lambda x: np.float64(1.0),
    "empty": lambda x: x[:0] if x.ndim > 1 else x[None][:0],
    "wider": lambda x: np.concatenate([x, x], -1),
    "narrower": lambda x: np.ascontiguousarray(x[..., :-1]),
    "one more axis": lambda x: x[None],
    "column": lambda x: x[..., None],
    "very many axes": lambda x: x.reshape((1,) * (31 - x.ndim) + x.shape),
    "none": lambda x: None,
    "type": lambda x: np.ndarray,
    "string": lambda x: "abc",
    "int": lambda x: 3,
    "object()": lambda x: object(),
}

SHAPES = [(3,), (1, 3), (2, 3), (2, 2, 3), (1, 2, 3), (60, 3), (6, 10, 3), (0, 3), (2, 0, 3)]


def plain(x: Any, writeable: bool = False) -> bool:
    return (
        type(x) is np.ndarray
        and x.dtype == FLOAT
        and bool(x.flags.c_contiguous and x.flags.aligned and x.flags.writeable >= writeable)
        and 1 <= x.ndim <= 1 + module.MAX_LEADING
        and x.shape[-1] == 3
    )


def taken(args: list[Any], named: dict[str, Any]) -> bool:
    """The conditions in words of Python."""
    if len(args) != 2 or not all(map(plain, args)) or args[0].shape != args[1].shape:
        return False
    if not 1 <= args[0].size // 3 <= LIMIT or set(named) - {"out"}:
        return False
    out = named.get("out")
    return out is None or (
        plain(out, writeable=True)
        and out.shape == args[0].shape
        and not any(np.may_share_memory(out, x) for x in args)
    )


@st.composite
def calls(draw: st.DrawFn) -> tuple[list[Any], dict[str, Any]]:
    shape = draw(st.sampled_from(SHAPES))
    odd = st.one_of(st.just("plain"), st.just("plain"), st.sampled_from(list(WAYS)))

    def argument() -> Any:
        other = draw(st.integers(0, 9)) == 0
        x, _ = sample(*(draw(st.sampled_from(SHAPES)) if other else shape))
        return WAYS[draw(odd)](x)

    count = draw(st.sampled_from([2] * 12 + [0, 1, 3]))
    args = [argument() for _ in range(count)]
    named = {}
    names = draw(st.sampled_from([(), ("out",), ("out",), ("b",), ("out", "b"), ("b", "out")]))
    for name in names:
        kind = draw(st.sampled_from(["own"] * 3 + ["none", "input"]))
        named[name] = (
            None if kind == "none" else args[0] if kind == "input" and args else argument()
        )
    return args, named


@settings(max_examples=600)
@given(calls())
def test_anything_else_reaches_the_fallback_as_it_came(call: tuple) -> None:
    args, named = call
    echo = Echo()
    want = args[0] + 2 * args[1] if taken(args, named) else None
    arrays = [x for x in (*args, *named.values()) if isinstance(x, np.ndarray)]
    counts = [sys.getrefcount(x) for x in arrays]
    result = make(fallback=echo)(*args, **named)
    if want is not None:
        np.testing.assert_array_equal(result, want)
        assert named.get("out") is None or result is named["out"]
    else:
        assert result[0] is echo
        assert all(x is y for x, y in zip(result[1], args, strict=True))
        assert list(result[2]) == list(named)
        assert all(result[2][key] is value for key, value in named.items())
    del result
    assert counts == [sys.getrefcount(x) for x in arrays]


@each("way", WAYS)
@each("place", ["a", "b", "out"])
@each("batch", [(), (2,), (2, 2)])
def test_each_way_not_to_be_plain(way: str, place: str, batch: tuple[int, ...]) -> None:
    a, b = sample(*batch, 3)
    given: dict[str, Any] = {"a": a, "b": b, "out": np.empty_like(a)}
    given[place] = WAYS[way](given[place])
    args, named = [given["a"], given["b"]], {"out": given["out"]}
    result = make(fallback=Echo())(*args, **named)
    assert isinstance(result, np.ndarray) == taken(args, named)


def test_names_are_compared_as_python_does() -> None:
    a, b = sample(3)
    f = make(fallback=Echo())
    spelt = "".join(["o", "u", "t"])  # another string object
    assert f(a, b, **{spelt: b})[2] == {"out": b}
    assert f(a, b=b)[2] == {"b": b}
    assert f(a=a, b=b)[1] == ()
    assert f()[1:] == ((), {})
    with pytest.raises(TypeError):
        f(a, b, **{"out": None}, **{"out": None})  # type: ignore


def test_out_may_not_share_memory_with_an_input() -> None:
    f = make(fallback=Echo())
    memory = np.zeros(36)
    a, b = memory[12:18].reshape(2, 3), memory[18:24].reshape(2, 3)
    for start in range(31):
        out = memory[start : start + 6].reshape(2, 3)
        assert isinstance(f(a, b, out=out), np.ndarray) == (start <= 6 or start >= 24)
    assert isinstance(f(a, a, out=b), np.ndarray)  # two inputs may


def test_a_warning_on_writing_is_left_to_numpy() -> None:
    a, b = sample(3)
    out, _ = np.broadcast_arrays(np.empty(3), np.empty(3))
    if out.flags.num & 0x80000000:
        assert not isinstance(make(fallback=Echo())(a, b, out=out), np.ndarray)


def test_exceptions_propagate() -> None:
    def broken(*args: Any, **named: Any) -> Any:
        raise KeyError("broken")

    a, b = sample(3)
    with pytest.raises(KeyError, match="broken"):
        make(fallback=broken)([1], [2])
    with pytest.raises(KeyError, match="broken"):
        make((3,), ((3,), ()), pack=broken)(a, b)
    with pytest.raises(Refused):
        make()()
    with pytest.raises(ValueError, match="give pack"):
        make((3,), ((3,), ()))


def test_no_memory_is_an_exception() -> None:
    a, b = sample(3)
    before = sys.getrefcount(FLOAT)
    huge = (2**45,)
    for f in (make((3,), (huge,)), make((3,), ((3,), huge), pack=tuple)):
        for _ in range(50):
            with pytest.raises((MemoryError, ValueError)):
                f(a, b)
    assert abs(sys.getrefcount(FLOAT) - before) < 10


def test_what_is_too_much_stays_in_python() -> None:
    def slow(*args: Any, **named: Any) -> str:
        return "fallback"

    options: Any = {"dtype": FLOAT, "single": 1, "batch": 1, "workspace": 0, "limit": 9}
    options |= {"held": 9, "size": 64}
    options |= {"name": "f", "fallback": slow}
    assert entry(inputs=((1,),) * 64, outputs=((1,),), **options) is slow
    assert entry(inputs=((1,) * 7,), outputs=((1,),), **options) is slow
    assert entry(inputs=(), outputs=((1,),), **options) is slow
    assert entry(inputs=((1,),), outputs=(), pack=tuple, **options) is slow
    assert entry(inputs=((1,),) * 63, outputs=((1,),), **options) is not slow
    a, b = sample(*(1,) * module.MAX_LEADING, 3)
    assert make(fallback=slow)(a, b).shape == a.shape
    assert make(fallback=slow)(a[None], b[None]) == "fallback"


def test_many_arrays() -> None:
    seen = []
    view = ctypes.c_int64 * (3 * 64)

    @ctypes.CFUNCTYPE(None, ctypes.POINTER(view), ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    def run(arrays: Any, start: int, stop: int, workspace: int | None) -> None:
        seen.append((list(arrays.contents), start, stop, workspace))

    address = ctypes.cast(run, ctypes.c_void_p).value or 0
    f = entry(
        name="f",
        inputs=((2, 3),) * 40,
        outputs=((4,),) * 24,
        dtype=FLOAT,
        single=address,
        batch=address,
        workspace=12345,
        limit=100,
        held=100,
        size=64,
        fallback=never,
        pack=tuple,
        keep=run,
    )
    xs = [np.zeros((5, 2, 3)) for _ in range(40)]
    ys = f(*xs)
    assert [y.shape for y in ys] == [(5, 4)] * 24
    expected = [w for x in xs for w in (x.ctypes.data, 48, 8)]
    expected += [w for y in ys for w in (y.ctypes.data, 32, 8)]
    assert seen == [(expected, 0, 5, 12345)]


def test_a_long_run_has_a_workspace_of_its_own() -> None:
    header = np.arange(8, dtype=np.int64)
    seen: list[Any] = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    def run(arrays: Any, start: int, stop: int, workspace: int) -> None:
        copied = np.ctypeslib.as_array((ctypes.c_int64 * 8).from_address(workspace)).copy()
        seen.append((stop, workspace % 64, workspace == header.ctypes.data, list(copied)))

    address = ctypes.cast(run, ctypes.c_void_p).value or 0
    kernel = entry(
        name="f",
        inputs=((2,),),
        outputs=((2,),),
        dtype=FLOAT,
        single=address,
        batch=address,
        workspace=header.ctypes.data,
        limit=100,
        held=3,
        size=64,
        fallback=never,
        keep=run,
    )
    for rows in (1, 3, 4, 99):
        kernel(np.zeros((rows, 2)))
    assert [stop for stop, _, _, _ in seen] == [1, 3, 4, 99]
    assert [shared for _, _, shared, _ in seen] == [True, True, False, False]
    assert all(copied == list(range(8)) for _, _, _, copied in seen)
    assert all(rest == 0 for _, rest, shared, _ in seen if not shared)


def test_memory_is_flat_over_calls() -> None:
    f, g = make(fallback=Echo()), make((3,), ((3,), ()), pack=tuple, fallback=Echo())
    s = make((3,), ((),), fallback=Echo())
    a, b = sample(3)
    out = np.empty(3)
    watched = (a, b, out, FLOAT, None, f, g, f.__self__, np.ndarray)  # type: ignore

    def calls(n: int) -> None:
        for _ in range(n):
            f(a, b, out=out)
            f(a, b)
            g(a, b)
            s(a, b)
            f(a, [1.0])
            f(a, b, out=a)

    calls(100)
    tracemalloc.start()
    before, counts = tracemalloc.get_traced_memory()[0], [sys.getrefcount(x) for x in watched]
    calls(20_000)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 10_000
    after = [sys.getrefcount(x) for x in watched]
    assert max(abs(x - y) for x, y in zip(counts, after, strict=True)) < 1_000


def test_entries_are_freed() -> None:
    class Owner:
        pass

    def create(n: int) -> list[weakref.ref]:
        alive = []
        for _ in range(n):
            owner = Owner()
            alive.append(weakref.ref(owner))
            make(fallback=Echo(), keep=owner, pack=None)
        return alive

    create(100)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    alive = create(3_000)
    assert not any(ref() for ref in alive)  # at once: there is no cycle
    del alive
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 20_000


def test_cycles_are_collected() -> None:
    class Kernel:
        def __init__(self) -> None:
            self.native = make(fallback=self.checked)

        def checked(self, *args: Any, out: Any = None) -> Any:
            return self

    kernel = Kernel()
    native, ref = kernel.native, weakref.ref(kernel)
    assert native(1) is kernel
    del kernel
    gc.collect()
    assert ref() is native(1)  # the builtin keeps its fallback
    del native
    gc.collect()
    assert ref() is None


def test_the_builtin_owns_all_it_needs() -> None:
    functions = [make(fallback=Echo()) for _ in range(200)]
    gc.collect()
    trash = [bytes([255]) * (k % 400) for k in range(20_000)]  # over whatever was freed
    a, b = sample(2, 3)
    for f in functions:
        assert f.__name__ == "add"
        np.testing.assert_array_equal(f(a, b), a + 2 * b)
    assert len(trash) == 20_000


def test_threads() -> None:
    f = make()
    wrong = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        a, b = rng.normal(size=(2, 20, 3))
        want, out = a + 2 * b, np.empty((20, 3))
        for _ in range(3_000):
            if not (f(a, b) == want).all() or not (f(a, b, out=out) == want).all():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_unfamiliar_process_is_left_to_the_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    look = module._familiar.__wrapped__
    assert look()
    with monkeypatch.context() as patch:
        patch.setattr(sysconfig, "get_config_var", lambda name: name == "Py_GIL_DISABLED")
        assert not look()
    for name in ("_ITEMS", "_BYTES", "_KIND"):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, getattr(module, name) + 8)
            assert not look()
    monkeypatch.setattr(module, "_familiar", lambda: False)
    assert make(fallback=never) is never
