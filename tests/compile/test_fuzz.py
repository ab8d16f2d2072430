"""Random graphs: the interpreter and machine code mean the same.

Both round, and machine code fuses a product with a sum: where terms cancel, or a comparison is
close, their results differ by more than a few digits, and rightly so. How much they may differ is
computed alongside: `Bounded` runs through the interpreter in place of numbers and carries, for
every value, a bound on the distance of any two right evaluations (a running error analysis: errors
of the operands through the derivative, with second-order terms, and the rounding of the operation
itself, as if nothing were fused). A bound of infinity means that nothing is known: an overflow that
a fused operation avoids, a division by what may be zero, a zero whose sign matters. Everywhere else
infinities and NaN must stand in the same places.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import phipsi as pp
from phipsi.compile import (
    Builder,
    Graph,
    LoopBuilder,
    MemoryPlace,
    Tracer,
    array_of,
    current,
    interpret,
    lift,
    schedule,
    to_cuda,
    to_llvm,
    tracing,
)
from phipsi.compile.c_file import c_file
from phipsi.compile.loops import pick
from phipsi.compile.native import MachineCode, host
from phipsi.compile.ops import OPS, Op

CONSTANTS = (0.0, 1.0, -1.0, 0.5, -2.0, 3.7, 1e-3, 1e5, 1e300, -1e-300, 1e-30, np.inf)
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e30, -1e-30, 1e300, 5e-324, 1e6, -0.5)
UNKNOWN = np.inf


@pytest.fixture(scope="module", autouse=True)
def no_cache() -> Iterator[None]:
    """Segments are cut anew in these tests, which the cache cannot know."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PHIPSI_CACHE_DIR", "off")
        yield


# ---- how far two right evaluations may be apart --------------------------------------------------


class Bounded(np.lib.mixins.NDArrayOperatorsMixin):
    """Values, and for each a bound on the distance of any two right evaluations of it."""

    def __init__(self, value: Any, error: Any = 0.0) -> None:
        self.value = np.asarray(value)
        self.error = np.broadcast_to(np.asarray(error, float), self.value.shape)

    def astype(self, dtype: Any) -> Bounded:
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Bounded:
        xs = list(map(_as, inputs))
        value = ufunc(*(x.value for x in xs))
        if value.dtype == bool:
            a, b = (x.value.astype(float) for x in xs)
            unclear = (abs(a - b) <= xs[0].error + xs[1].error) & ((xs[0].error + xs[1].error) > 0)
            return Bounded(value.astype(xs[0].value.dtype), unclear)
        wide = [x.value.astype(float) for x in xs]
        error = np.asarray(RULES[ufunc](*wide, *(x.error for x in xs)), float)
        info, result = np.finfo(value.dtype), value.astype(float)
        rounding = ROUNDED.get(ufunc, 8) * abs(result) * info.eps + 4 * float(info.tiny)
        finite, size = np.isfinite(result), sum(map(abs, wide))
        # What is not finite is certain where an operand is not, or (NaN) outside of the domain.
        outside = np.isnan(result) & (wide[0] + xs[0].error < 0) & (len(xs) == 1)
        special = np.where(np.isfinite(size) & ~outside, UNKNOWN, 0.0 * error)
        error = np.where(finite, 1.01 * error + rounding, special)
        error = np.where(finite & (abs(result) + error > 0.4 * float(info.max)), UNKNOWN, error)
        error = np.where(np.isnan(error) & ~np.isnan(size), UNKNOWN, error)
        known = np.isfinite(sum(x.error for x in xs))
        return Bounded(value, np.where(known, np.where(np.isnan(error), 0.0, error), UNKNOWN))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func is np.result_type:
            return None
        assert func is np.where
        c, a, b = map(_as, args)
        value = np.where(c.value != 0, a.value, b.value)
        either = abs(a.value.astype(float) - b.value) + a.error + b.error
        both = np.where((a.value == b.value) & (a.error + b.error == 0), 0.0, either)
        error = np.where(c.error > 0, both, np.where(c.value != 0, a.error, b.error))
        return Bounded(value, np.where(np.isnan(error), UNKNOWN, error))


def _sum(a: Any, b: Any, ea: Any, eb: Any) -> Any:
    return ea + eb


def _product(a: Any, b: Any, ea: Any, eb: Any) -> Any:
    """0 · ∞ is NaN for certain only where the zero is exact; ±0 · ∞ has an unknown sign."""
    error = _zero_times(abs(a), eb) + _zero_times(abs(b), ea) + ea * eb
    infinite = (np.isinf(a) & (abs(b) <= eb) & (eb > 0)) | (np.isinf(b) & (abs(a) <= ea) & (ea > 0))
    return np.where(infinite, np.nan, error)


def _zero_times(x: Any, e: Any) -> Any:
    return np.where(e == 0, 0.0, np.where(np.isinf(x), 0.0, x) * e)


def _quotient(a: Any, b: Any, ea: Any, eb: Any) -> Any:
    away = abs(b) - eb
    error = (_zero_times(abs(a / b), eb) + ea) / away  # the products of a and eb may underflow
    error = np.where(np.isinf(b), 0.0, error)
    return np.where((away <= 0) & ~np.isnan(a), np.nan, error)


def _root(a: Any, ea: Any) -> Any:
    error = np.sqrt(np.maximum(a + ea, 0.0)) - np.sqrt(np.maximum(a - ea, 0.0))
    unclear = (a - ea < 0) & (a + ea >= 0) & (ea > 0)
    return np.where(unclear, np.nan, np.where(np.isfinite(a), error, 0.0))


def _logarithm(a: Any, ea: Any) -> Any:
    unclear = (abs(a) <= ea) & (ea > 0)
    return np.where(unclear, np.nan, np.where(a > ea, ea / (a - ea), 0.0))


def _angle(y: Any, x: Any, ey: Any, ex: Any) -> Any:
    r, e = np.hypot(y, x), np.hypot(ey, ex)
    cut = (x <= ex) & (abs(y) <= ey)
    near = np.where((e == 0) | np.isinf(r), 0.0, e / (r - e))
    return np.where(cut | ((e >= r / 2) & (e > 0)), 7.0, 2 * near)


RULES: dict[Any, Callable[..., Any]] = {
    np.add: _sum,
    np.subtract: _sum,
    np.multiply: _product,
    np.divide: _quotient,
    np.negative: lambda a, ea: ea,
    np.absolute: lambda a, ea: ea,
    np.sqrt: _root,
    np.sin: lambda a, ea: np.minimum(ea, 2.0),
    np.cos: lambda a, ea: np.minimum(ea, 2.0),
    np.arctan2: _angle,
    np.exp: lambda a, ea: np.where(ea == 0, 0.0, np.exp(a) * np.expm1(ea)),
    np.log: _logarithm,
    np.tanh: lambda a, ea: np.minimum(ea, 2.0),
    np.floor: lambda a, ea: np.where(np.isfinite(a), np.floor(a + ea) - np.floor(a - ea), 0.0),
    np.minimum: lambda a, b, ea, eb: np.maximum(ea, eb),
    np.maximum: lambda a, b, ea, eb: np.maximum(ea, eb),
}
ROUNDED = {np.negative: 0, np.absolute: 0, np.floor: 0, np.minimum: 0, np.maximum: 0, np.add: 1}


def _as(x: Any) -> Bounded:
    return x if isinstance(x, Bounded) else Bounded(x)


def _bounding(op: Op) -> Op:
    """The operation with bounds on numbers, too: those of tables, which are rounded as well."""
    return replace(op, evaluate=lambda *xs: op.evaluate(*map(_as, xs)))


def bounded(graph: Graph, inputs: list[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Every output (rows, size) of the interpreter and the distance machine code may have."""
    rows, dtype = inputs[0].shape[0], inputs[0].dtype
    columns = [[Bounded(x) for x in a.T] for a in inputs]
    with np.errstate(all="ignore"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpret, "OPS", {name: _bounding(op) for name, op in OPS.items()})
        results = interpret.evaluate(graph, columns, dtype)
    out = []
    for values in results:
        pairs = ([np.broadcast_to(p, rows) for p in (x.value, x.error)] for x in map(_as, values))
        value, error = zip(*pairs, strict=True)
        out.append((np.stack(value, 1).astype(dtype), np.stack(error, 1)))
    return out


Bounds = list[tuple[np.ndarray, np.ndarray]]
"""Outputs of the interpreter, and how far other right ones may be from them."""


def check_within(bounds: Bounds, outputs: list[np.ndarray]) -> None:
    """Raise an error where outputs are further from the interpreter's than they may be."""
    for (expected, error), found in zip(bounds, outputs, strict=True):
        special = np.isfinite(error) & ~np.isfinite(expected)
        np.testing.assert_array_equal(found[special], expected[special])
        with np.errstate(invalid="ignore", over="ignore"):
            distance = abs(found.astype(float) - expected.astype(float))
        wrong = np.isfinite(error) & np.isfinite(expected) & ~(distance <= error)
        assert not wrong.any(), (found[wrong], expected[wrong], error[wrong])


def agree(graph: Graph, inputs: list[np.ndarray], bounds: Bounds | None = None) -> float:
    """Compare the interpreter with machine code: scalar and vector (equal to the bit), any number
    of rows. The share of numbers whose value was known."""
    bounds = bounds or bounded(graph, inputs)
    rows, dtype = inputs[0].shape[0], inputs[0].dtype
    scalar, vector = (MachineCode(graph, host(dtype.name, single)) for single in (True, False))

    def run(code: MachineCode, rows: int) -> list[np.ndarray]:
        outputs = [np.full((rows, len(nodes)), 777.0, dtype) for _, nodes in graph.outputs]
        code.run([a[:rows] for a in inputs], outputs, 1)
        return outputs

    plain = [np.empty((rows, len(nodes)), dtype) for _, nodes in graph.outputs]
    interpret.run(graph, inputs, plain)
    whole = run(scalar, rows)
    check_within(bounds, whole)
    known = total = 0
    for (expected, error), same in zip(bounds, plain, strict=True):
        np.testing.assert_array_equal(same, expected)
        near = ~np.isfinite(expected) | (error <= 1e-3 * (1 + abs(expected)))
        known += int((np.isfinite(error) & near).sum())
        total += error.size
    lanes = vector.machine.lanes
    for n in (1, lanes - 1, lanes, lanes + 1, rows):
        for code in (scalar, vector):
            for found, expected in zip(run(code, n), whole, strict=True):
                np.testing.assert_array_equal(bits(found), bits(expected[:n]))
    return known / max(total, 1)


def bits(x: np.ndarray) -> np.ndarray:
    """The bits, any NaN being one NaN."""
    return np.where(np.isnan(x), x.dtype.type(np.nan), x).view(f"u{x.dtype.itemsize}")


# ---- random graphs -------------------------------------------------------------------------------

ARITY = {"atan2": 2, "min": 2, "max": 2, "less": 2, "less_equal": 2, "equal": 2, "where": 3} | {
    name: 2 for name in ("add", "sub", "mul", "div")
}
SOFT = ("sin", "cos", "tanh", "add", "sub", "mul", "mul", "add", "where", "max")
"""What keeps values at a size where there is something to compare."""


class Grower:
    """Grows scalars out of scalars at random."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def some(self, values: list[Any]) -> Any:
        """A value, often one of the last."""
        if self.rng.random() < 0.15:
            return float(self.rng.choice(CONSTANTS[:-2] if self.rng.random() < 0.9 else CONSTANTS))
        n = len(values)
        at = n - 1 - int(self.rng.exponential(6.0)) if self.rng.random() < 0.6 else -1
        return values[at if 0 <= at < n else int(self.rng.integers(n))]

    def grow(self, tracer: Builder, values: list[Any], n: int) -> None:
        """n more values by single operations, half of them through the rules of tracing."""
        for _ in range(n):
            op = str(self.rng.choice(SOFT if self.rng.random() < 0.7 else list(OPS)))
            xs = [tracer.lift(self.some(values)) for _ in range(ARITY.get(op, 1))]
            if op in ("sin", "cos") and self.rng.random() < 0.5:
                values.append(tracer.apply("cos" if op == "sin" else "sin", *xs))
            match op if self.rng.random() < 0.5 else "":
                case "add":
                    values.append(xs[0] + xs[1])
                case "sub":
                    values.append(xs[0] - xs[1])
                case "mul":
                    values.append(xs[0] * xs[1])
                case "div":
                    values.append(xs[0] / xs[1])
                case "neg":
                    values.append(-xs[0])
                case _:
                    values.append(tracer.apply(op, *xs))

    def repeat(self, values: list[Any], depth: int) -> None:
        """Values that come out of a loop, some with a loop in it."""
        count, size, width = (int(self.rng.integers(*r)) for r in ((0, 6), (1, 5), (1, 4)))
        if depth == 2 and self.rng.random() < 0.3:
            count = int(self.rng.integers(20, 40))
        carry = lift([self.some(values) for _ in range(size)])
        match int(self.rng.integers(4)):
            case 0:
                rows: Any = None
            case 1:
                rows = self.rng.normal(size=(count, width))
            case 2:
                rows = lift([self.some(values) for _ in range(count * width)])
                rows = rows.reshape(count, width)
            case _:  # may be a whole array in its order
                k = int(self.rng.integers(len(values)))
                rows = lift(np.array(values[k : k + count], dtype=object)) if count else None
                count = len(rows) if count else 0

        def step(c: Any, row: Any) -> Any:
            own = [*np.atleast_1d(c), *np.ravel(row)]
            inner = current()
            assert inner is not None
            seen = own + [values[int(i)] for i in self.rng.integers(len(values), size=3)]
            if self.rng.random() < 0.8:
                self.grow(inner, seen, int(self.rng.integers(1, 9)))
            if depth > 1 and self.rng.random() < 0.5:
                self.repeat(seen, depth - 1)
            pool = own if self.rng.random() < 0.3 else seen  # at times the carry is only moved
            after = [self.some(pool) for _ in range(size)]
            return lift(after), lift([self.some(seen) for _ in range(width)])

        last, results = pp.repeat(count, step, carry, rows)
        values.extend([*last, *np.ravel(results)])

    def sweep(self, values: list[Any]) -> None:
        """A loop over the bodies of a random tree, as looped sweeps make them: rounds of several
        kinds that read the rows of parents or add to them, tables, whole arrays."""
        rng, n, width, sums = self.rng, *(int(self.rng.integers(1, m)) for m in (8, 4, 3))
        backward = rng.random() < 0.5
        order = np.arange(n)[::-1] if backward else np.arange(n)
        parents = np.array([int(rng.integers(-1, i)) if i else -1 for i in range(n)])
        parents[parents < 0] = n
        loop = LoopBuilder(n)
        loop.choice = rng.integers(3, size=n)
        rows, added = loop.memory((n + 1) * width), loop.memory((n + 1) * sums)
        loop.cleared = (added, added + (n + 1) * sums)
        for j in range(width):
            loop.put(rows + n * width + j, self.some(values))
        own, up = loop.index(order * width), loop.index(parents[order] * width)
        mine, theirs = loop.index(order * sums), loop.index(parents[order] * sums)
        each = loop.index(2 * order)
        table = loop.table(rng.normal(size=2 * n))
        packed = loop.array(array_of([self.some(values) for _ in range(2 * n)]))
        for _ in range(3):
            case = loop.case()
            with tracing(case):
                seen = [case.read(MemoryPlace(-1, each, table + j)) for j in range(2)]
                seen += [case.read(MemoryPlace(packed, each, j)) for j in range(2)]
                seen += [values[int(i)] for i in rng.integers(len(values), size=2)]
                if backward:
                    seen += [case.read(MemoryPlace(0, mine, added + j)) for j in range(sums)]
                else:
                    seen += [case.read(MemoryPlace(0, up, rows + j)) for j in range(width)]
                self.grow(case, seen, int(rng.integers(1, 12)))
                for j in range(width):
                    case.write(MemoryPlace(0, own, rows + j), self.some(seen))
                for j in range(sums):
                    case.write(MemoryPlace(0, theirs, added + j, add=True), self.some(seen))
        memory = loop.node()
        values.extend(pick(memory, int(at)) for at in rng.permutation(loop.size)[:20])


def random_graph(seed: int, n: int, loops: int) -> tuple[Graph, np.random.Generator]:
    """A random graph of about n nodes with so many loops, and the generator for its inputs."""
    rng = np.random.default_rng(seed)
    grower, tracer = Grower(rng), Tracer()
    with tracing(tracer):
        values: list[Any] = []
        for k in range(int(rng.integers(1, 5))):
            values.extend(tracer.input(f"x{k}", int(rng.integers(1, 21))))
        for _ in range(loops):
            grower.grow(tracer, values, n // (loops + 1))
            if rng.random() < 0.6:
                grower.repeat(values, 2)
            else:
                grower.sweep(values)
        grower.grow(tracer, values, n // (loops + 1))
        outputs = []
        for k in range(int(rng.integers(1, 5))):
            size = int(rng.integers(1, 21))
            match int(rng.integers(4)):
                case 0:  # what comes out of loops, in order or not; written by a loop of its own
                    picks = [x for x in tracer.table.values() if x.op == "pick"] or values
                    chosen = (
                        picks
                        if rng.random() < 0.5
                        else [picks[int(i)] for i in rng.permutation(len(picks))]
                    )
                    chosen = [*chosen, 1.5, 0.0, *chosen[:3]] if rng.random() < 0.5 else chosen
                case 1:
                    chosen = [values[int(i)] for i in rng.integers(len(values), size=size)]
                case _:
                    chosen = [grower.some(values) for _ in range(size)]
            outputs.append((f"y{k}", chosen))
        return tracer.graph(outputs), rng


def random_inputs(
    graph: Graph, rng: np.random.Generator, dtype: str, special: bool, rows: int = 0
) -> list[Any]:
    """Rows of inputs, some with infinities, NaN, huge and tiny numbers in them."""
    rows = rows or 3 * host(dtype).lanes + 2
    arrays = []
    for _, size in graph.inputs:
        x = rng.normal(size=(rows, size)) * 10.0 ** rng.integers(-1, 2, size=(rows, 1))
        if special:
            x = np.where(rng.random(x.shape) < 0.08, rng.choice(SPECIAL, size=x.shape), x)
        with np.errstate(over="ignore"):
            arrays.append(x.astype(dtype))
    return arrays


few = settings(max_examples=max(1, settings().max_examples // 2))


@few
@given(
    st.integers(0, 10**6),
    st.integers(1, 150),
    st.integers(0, 3),
    st.sampled_from([3, 7, 50, 600]),
    st.sampled_from(["float64", "float32"]),
    st.booleans(),
)
def test_machine_code_and_interpreter_agree(
    seed: int, n: int, loops: int, segment: int, dtype: str, special: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "SEGMENT", segment)
        graph, rng = random_graph(seed, n, loops)
        share = agree(graph, random_inputs(graph, rng, dtype, special))
    event(f"known: {10 * int(10 * share)} %")


# ---- chosen graphs -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_operation_on_special_values(dtype: str) -> None:
    tracer = Tracer()
    x = tracer.input("x", 3)
    graph = tracer.graph([(op, [tracer.apply(op, *x[: ARITY.get(op, 1)])]) for op in OPS])
    assert set(graph.count()) == set(OPS)
    each = np.array(np.meshgrid(SPECIAL, SPECIAL, [0.3, np.nan])).reshape(3, -1).T
    with np.errstate(over="ignore"):
        assert agree(graph, [each.astype(dtype)]) > 0.9


def test_the_bound_is_tight_enough_to_see_an_error() -> None:
    """One part in 10¹⁴ is noticed; the cancelled difference of two roundings is not."""
    tracer = Tracer()
    (x,) = tracer.input("x", 1)
    y = x.sin() * x + x.exp()
    graph = tracer.graph([("y", [y, y * (1 / 3) - y * x * (1 / 3) / x])])
    ((value, error),) = bounded(graph, [np.array([[0.7], [2.0]])])
    assert (error[:, 0] < 1e-14 * value[:, 0]).all()
    assert (error[:, 1] > abs(value[:, 1])).all()


def moved(x: Any) -> Any:
    return pp.repeat(3, lambda c, k: (np.roll(c, 1), c[0]), x)[0]


def swapped(x: Any) -> Any:
    """What is swapped is used before, in another segment."""

    def step(c: Any, k: Any) -> Any:
        return lift([c[1], c[0], np.tanh(c[2] + c[0]), c[3] * c[1]]), np.sin(c) * c

    last, all_ = pp.repeat(4, step, x)
    return np.concatenate([last, all_.reshape(-1)])


def rows_of_the_carry(x: Any) -> Any:
    """The rows of an inner loop are the carry of the outer one, whole and in order."""

    def outer(c: Any, k: Any) -> Any:
        s, _ = pp.repeat(4, lambda d, row: (d + row, d), c[0], c)
        return lift([s, *c[:3]]), s

    return pp.repeat(2, outer, x)[0]


def no_rounds(x: Any) -> Any:
    last, all_ = pp.repeat(0, lambda c, k: (c * 2.0, c), x)
    assert all_.shape == (0, 4)
    return last


def chosen(x: Any) -> Any:
    for k in range(30):
        x = pp.where(x < 0.1 * k - 1.0, np.sin(x) + x[::-1], pp.where(x == 0.25, x, -0.9 * x))
    return x


def nothing_but_constants(x: Any) -> Any:
    return pp.repeat(5, lambda c, k: (lift([1.0, k, 0.0, 2.0]), 3.0), x)[0]


FUNCTIONS = (moved, swapped, rows_of_the_carry, no_rounds, chosen, nothing_but_constants)


@pytest.mark.parametrize("segment", [1, 600])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_chosen_graphs(
    function: Callable[[Any], Any], segment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "SEGMENT", segment)
    tracer = Tracer()
    with tracing(tracer):
        y = function(lift(tracer.input("x", 4)))
        graph = tracer.graph([("y", list(y))])
    assert agree(graph, [np.random.default_rng(0).normal(size=(26, 4))]) == 1.0


EMITTERS: dict[str, Callable[[Graph], object]] = {
    "machine code": lambda graph: to_llvm.emit(graph, host("float32")),
    "C": lambda graph: c_file(graph, "float32", "f", ["A loop."], ["y"]),
    "CUDA": lambda graph: to_cuda.emit(graph, "float32"),
}


@pytest.mark.parametrize("name", EMITTERS)
def test_a_table_beyond_single_precision_takes_no_warning(name: str) -> None:
    tracer = Tracer()
    with tracing(tracer):
        rows = lift([1.0, 1e300, -1e300])
        y, _ = pp.repeat(3, lambda c, row: (c * row, c), lift(tracer.input("x", 1))[0], rows)
        graph = tracer.graph([("y", [y])])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EMITTERS[name](graph)


def test_unequal_graphs_have_unequal_digests() -> None:
    """Also where only inputs differ: the machine code in the disk cache goes by the digest."""

    def graph(*inputs: tuple[str, int], use: int = 0, whole: bool = False) -> Graph:
        tracer = Tracer()
        with tracing(tracer):
            x = lift([tracer.input(*one) for one in inputs][use])
            last = pp.repeat(len(x), lambda c, row: (c + row, c), x[0], x)[0] if whole else x[0]
            return tracer.graph([("y", [last * 2.0])])

    graphs = [
        graph(("x", 2)),
        graph(("x", 3)),
        graph(("x", 2), ("y", 1)),
        graph(("y", 1), ("x", 2), use=1),
        graph(("x", 2), ("x", 2)),
        graph(("x", 2), ("x", 2), use=1),
        graph(("x", 2), whole=True),
        graph(("x", 2), ("x", 2), use=1, whole=True),
    ]
    assert len({g.digest for g in graphs}) == len(graphs)
    assert graph(("x", 3)).digest == graphs[1].digest
