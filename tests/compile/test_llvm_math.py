"""The vector functions against mpmath and NumPy, in every lane count and both formats."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest

from phipsi.compile.llvm_math import definitions

Array = np.ndarray[Any, Any]
NAMES = ("sincos", "exp", "log", "tanh", "atan2")
FORMATS = ("float64", "float32")
ULPS = {"sin": 1.6, "cos": 1.6, "exp": 1.1, "log": 0.9, "tanh": 1.2, "atan2": 1.6}
NUMPY = dict(sin=np.sin, cos=np.cos, exp=np.exp, log=np.log, tanh=np.tanh, atan2=np.arctan2)
# The multiples of π/2 up to 1e6 that lie nearest to a float of either format.
NEAR = (1, 2, 3, 6, 9, 29, 58, 116, 161, 232, 322, 464, 928, 1288, 3712, 33433, 204551, 409102)

# One loop over arrays for each function; sincos writes to both results.
LOOP = """
define void @run.{name}(i64 %n, ptr %a, ptr %b, ptr %p, ptr %q) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %ai = getelementptr {real}, ptr %a, i64 %i
  %bi = getelementptr {real}, ptr %b, i64 %i
  %pi = getelementptr {real}, ptr %p, i64 %i
  %qi = getelementptr {real}, ptr %q, i64 %i
  %x = load {vector}, ptr %ai, align 4
  %y = load {vector}, ptr %bi, align 4
{call}
  %next = add i64 %i, {lanes}
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %out
out:
  ret void
}}
"""
PAIR = """  %r = call {{{vector}, {vector}}} @phipsi.sincos({vector} %x)
  %s = extractvalue {{{vector}, {vector}}} %r, 0
  %c = extractvalue {{{vector}, {vector}}} %r, 1
  store {vector} %s, ptr %pi, align 4
  store {vector} %c, ptr %qi, align 4"""
SINGLE = """  %r = call {vector} @phipsi.{name}({arguments})
  store {vector} %r, ptr %pi, align 4"""

Function = Callable[..., Array]


@cache
def library(lanes: int, dtype: str, fma: bool = True, native: bool = True) -> dict[str, Function]:
    """The compiled functions by name, each from arrays to an array."""
    real = {"float64": "double", "float32": "float"}[dtype]
    vector = real if lanes == 1 else f"<{lanes} x {real}>"
    text = definitions(NAMES, lanes, dtype, fma)
    for name in NAMES:
        arguments = f"{vector} %x" + (f", {vector} %y" if name == "atan2" else "")
        call = (PAIR if name == "sincos" else SINGLE).format(
            name=name, vector=vector, arguments=arguments
        )
        text += LOOP.format(name=name, real=real, vector=vector, lanes=lanes, call=call)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text)
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name() if native else "",
        features=llvm.get_host_cpu_features().flatten() if native else "",
        opt=2,
        codemodel="small",
    )
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()

    def loop(name: str, result: int) -> Function:
        address = engine.get_function_address(f"run.{name}")
        run = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * 4)(address)

        def function(*arguments: Array) -> Array:
            count = -(-len(arguments[0]) // 16) * 16
            arrays = [np.resize(argument, count).astype(dtype) for argument in arguments]
            results = np.empty((2, count), dtype)
            pointers = [array.ctypes.data for array in (arrays[0], arrays[-1], *results)]
            run(count, *pointers)
            return results[result][: len(arguments[0])]

        function.engine = engine  # type: ignore[attr-defined]
        return function

    singles = {name: loop(name, 0) for name in NAMES[1:]}
    return {"sin": loop("sincos", 0), "cos": loop("sincos", 1), **singles}


@cache
def points(name: str, dtype: str) -> tuple[Array, ...]:
    """Arguments that cover the range and where it is hard."""
    rng = np.random.default_rng(0)
    info = np.finfo(dtype)

    def spread(low: Any, high: Any, count: int = 300) -> Array:
        sign = rng.choice([-1.0, 1.0], count)
        return sign * np.exp(rng.uniform(np.log(float(low)), np.log(float(high)), count))

    def around(x: Any) -> Array:
        x = np.asarray(x, dtype)
        return np.concatenate([x, np.nextafter(x, x.dtype.type(9e9)), np.nextafter(x, -x)])

    tiny, large = info.smallest_subnormal, info.max
    if name in ("sin", "cos"):
        with mpmath.workdps(40):
            multiples = [*NEAR, *rng.integers(1, 636619, 100).tolist()]
            near = around([float(k * mpmath.pi / 2) for k in multiples])
        edges = around([1e3, 1e4, 1e5, 1e6, 0.5236, 0.7854])
        parts = [rng.uniform(-10, 10, 600), rng.uniform(-1e6, 1e6, 600), spread(tiny, large)]
        return (np.concatenate([*parts, spread(1e3, 1e7), near, -near, edges]).astype(dtype),)
    if name == "exp":
        low, high = (-745.0, 709.7) if dtype == "float64" else (-103.0, 88.7)
        parts = [rng.uniform(-1, 1, 600), rng.uniform(low, high, 900), spread(tiny, 1)]
        return (np.concatenate([*parts, rng.uniform(low, 0.95 * low, 300)]).astype(dtype),)
    if name == "log":
        parts = [rng.uniform(0.3, 3, 900), np.abs(spread(tiny, large)), around([1, 0.5**0.5])]
        return (np.concatenate([*parts, np.abs(spread(tiny, info.tiny))]).astype(dtype),)
    if name == "tanh":
        parts = [rng.uniform(-1, 1, 900), rng.uniform(-25, 25, 300), around([0.75])]
        return (np.concatenate([*parts, spread(tiny, large)]).astype(dtype),)
    normal = rng.normal(size=(2, 900)) * [[1], [2]]
    mixed = np.stack([spread(tiny, large), spread(tiny, large)])
    y, x = np.concatenate([normal, mixed, [[0.3] * 4, [-0.3, 0.3, 3e-9, -3e-9]]], axis=1)
    return y.astype(dtype), x.astype(dtype)


@cache
def exact(name: str, dtype: str) -> list[Any]:
    with mpmath.workprec(200):
        arguments = [[mpmath.mpf(float(v)) for v in array] for array in points(name, dtype)]
        return [getattr(mpmath, name)(*values) for values in zip(*arguments, strict=True)]


@pytest.mark.parametrize("name", ULPS)
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize(("lanes", "fma"), [(1, True), (4, True), (8, True), (8, False)])
def test_error_in_units_in_the_last_place(name: str, dtype: str, lanes: int, fma: bool) -> None:
    arguments = points(name, dtype)
    results = library(lanes, dtype, fma)[name](*arguments)
    with mpmath.workprec(200):
        for result, right, *at in zip(results, exact(name, dtype), *arguments, strict=True):
            unit = np.spacing(np.abs(np.dtype(dtype).type(float(right))))
            error = abs(mpmath.mpf(float(result)) - right) / float(unit)
            assert error < ULPS[name], f"{name}({at}) = {result!r} is off by {float(error)} ulp"


def specials(name: str, dtype: str) -> tuple[Array, ...]:
    info = np.finfo(dtype)
    values = [0.0, info.smallest_subnormal, info.tiny, 0.5, 1.0, 2e6, info.max, np.inf]
    x = np.array([*values, *(-value for value in np.array(values)), np.nan], dtype)
    if name != "atan2":
        return (x,)
    y, x = np.meshgrid(x, x)
    return y.reshape(-1), x.reshape(-1)


def assert_same_bits(a: Array, b: Array) -> None:
    """Any NaN is as good as another."""
    np.testing.assert_array_equal(a, b)
    number = ~np.isnan(b)
    np.testing.assert_array_equal(np.signbit(a)[number], np.signbit(b)[number])


@pytest.mark.parametrize("name", ULPS)
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("fma", [True, False])
def test_specials_are_numpys(name: str, dtype: str, fma: bool) -> None:
    arguments = specials(name, dtype)
    result = library(8, dtype, fma)[name](*arguments)
    with np.errstate(all="ignore"):
        right = NUMPY[name](*(argument.astype(np.longdouble) for argument in arguments))
        right = right.astype(dtype)
    tolerance = 1.6 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(result, right, rtol=tolerance, atol=0)
    number = ~np.isnan(right)
    np.testing.assert_array_equal(np.signbit(result)[number], np.signbit(right)[number])


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("fma", [True, False])
def test_every_lane_count_and_machine_gives_the_same_bits(dtype: str, fma: bool) -> None:
    others = [library(lanes, dtype, fma) for lanes in (2, 4, 8, 16)]
    if not fma:  # the plainest machine of the family
        others.append(library(4, dtype, fma, native=False))
    for name, function in library(1, dtype, fma).items():
        for arguments in (points(name, dtype), specials(name, dtype)):
            right = function(*arguments)
            for other in others:
                assert_same_bits(other[name](*arguments), right)


@pytest.mark.parametrize("name", ULPS)
@pytest.mark.parametrize("dtype", FORMATS)
def test_a_lane_does_not_see_its_neighbours(name: str, dtype: str) -> None:
    function = library(8, dtype)[name]
    arguments = [array[:16] for array in points(name, dtype)]
    right = function(*arguments)
    for special in (2e6, -1e30, np.inf, -np.inf, np.nan, 0.0, -1.0, 1e-40):
        for lane in (0, 3, 7):
            changed = [array.copy() for array in arguments]
            for array in changed:
                array[lane] = special
            others = np.arange(16) != lane
            assert_same_bits(function(*changed)[others], right[others])


def test_only_what_is_asked_for_is_defined_and_nothing_is_declared() -> None:
    text = definitions(["exp", "exp"], 8, "float64")
    assert text.count("define") == 1
    assert "declare" not in definitions(NAMES, 8, "float64")
    assert "llvm.fma" not in definitions(NAMES, 8, "float64", fma=False)
