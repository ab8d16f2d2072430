"""The targets of the compiler: random graphs on every backend, and their derivatives.

An input is a list in JSON of the numbers from which graphs are made: ten of them, such that a C
compiler is started once for all.
"""

from __future__ import annotations

import ctypes
import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from phipsi.compile import Graph, schedule, to_cuda
from phipsi.compile.c_file import c_file
from tests.fuzz.target import Target, Wrong

BATCH = 10
ROWS = 100
"""States at which the graphs of a spec are evaluated."""
Spec = dict[str, Any]
TIGHT = {"ALIVE": 64, "LOCAL": 16, "TILE": 8 << 10, "AGAIN": 5}
"""Bounds of the CUDA emitter that make small graphs take the ways of large ones."""


def mutate(rng: Random, _: list[bytes]) -> bytes:
    """A list of graphs; small ones and large ones, with and without loops."""
    specs = [
        {
            "seed": rng.randrange(10**9),
            "n": int(10 ** rng.uniform(0.3, 2.2)),
            "loops": rng.choice((0, 0, 1, 1, 2, 3)),
            "segment": rng.choice((3, 7, 50, 600)),
            "dtype": rng.choice(("float64", "float32")),
            "special": rng.random() < 0.5,
            "tight": rng.random() < 0.3,
        }
        for _ in range(BATCH)
    ]
    return json.dumps(specs).encode()


def smaller(content: bytes) -> Iterator[bytes]:
    """The list without some of the graphs, or with a smaller or plainer one."""
    specs: list[Spec] = json.loads(content)
    if len(specs) > 1:
        yield from (json.dumps([spec]).encode() for spec in specs)
        return
    spec, plain = specs[0], {"special": False, "tight": False, "segment": 600, "dtype": "float64"}
    less = [{"n": n} for n in range(1, spec["n"])] + [{"loops": k} for k in range(spec["loops"])]
    for change in (*less, *({key: value} for key, value in plain.items())):
        if spec | change != spec:
            yield json.dumps([spec | change]).encode()


@contextmanager
def bounds_of(spec: Spec) -> Iterator[None]:
    """The emitters with the bounds of a spec."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "SEGMENT", spec["segment"])
        for name, value in TIGHT.items() if spec["tight"] else ():
            patch.setattr(to_cuda, name, value)
        yield


def compared(what: str, spec: Spec, check: Callable[[], object]) -> None:
    """Run a comparison; where it fails, say what differs."""
    try:
        with np.errstate(all="ignore"):
            check()
    except AssertionError as error:
        raise Wrong(f"{what} differs from the interpreter\n{spec}\n{error}") from error


# ---- every backend -------------------------------------------------------------------------------


def run(content: bytes, deep: bool) -> None:
    """Compare machine code, C and CUDA (in emulation) with the interpreter."""
    from tests.compile.test_fuzz import agree, bounded, random_graph, random_inputs

    made = []
    for spec in json.loads(content):
        with bounds_of(spec):
            graph, rng = random_graph(spec["seed"], spec["n"], spec["loops"])
            inputs = random_inputs(graph, rng, spec["dtype"], spec["special"], ROWS)
            bounds = bounded(graph, inputs)
            compared("machine code", spec, lambda: agree(graph, inputs, bounds))  # noqa: B023
        made.append((spec, graph, inputs, bounds))
    if shutil.which("cc"):
        _in_c(made)
    if shutil.which("g++"):
        _in_cuda(made)


Made = list[tuple[Spec, Graph, list[np.ndarray], Any]]


def _in_c(made: Made) -> None:
    from tests.compile.test_c import STRICT
    from tests.compile.test_fuzz import check_within
    from tests.compile.toolchain import built

    texts = []
    for k, (spec, graph, _, _) in enumerate(made):
        results = [f"y{i}" for i in range(len(graph.outputs))]
        with bounds_of(spec):
            texts.append(c_file(graph, spec["dtype"], f"evaluate{k}", ["A random graph."], results))
    with _library(built(_one_file(texts), ".c", "cc", *STRICT)) as library:
        for k, (spec, graph, inputs, bounds) in enumerate(made):
            found = _by_rows(library[f"evaluate{k}"], texts[k], graph, inputs)
            compared("C", spec, lambda: check_within(bounds, found))  # noqa: B023


def _one_file(texts: list[str]) -> str:
    """Several files of C as one: their tables and functions get names of their own."""
    own = re.compile(r"\b(t\d+|phipsi_min|phipsi_max)\b")
    parts = (
        "#undef PHIPSI_FMA\n#undef restrict\n" + own.sub(rf"g{k}_\1", text)
        for k, text in enumerate(texts)
    )
    return "\n".join(parts)


def _by_rows(function: Any, text: str, graph: Graph, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """The outputs of a C function, row by row; nothing is written behind them."""
    dtype = inputs[0].dtype
    outputs = [np.full((ROWS, len(nodes) + 1), 777.0, dtype) for _, nodes in graph.outputs]
    room = re.search(r"w: room for (\d+) numbers", text)
    work = np.full(int(room[1]) if room else 0, np.nan, dtype)
    for row in range(ROWS):
        places = [a[row : row + 1].ctypes.data for a in (*inputs, *outputs)]
        function(*map(ctypes.c_void_p, [*places, work.ctypes.data][: len(places) + bool(room)]))
    if not all((y[:, -1] == 777.0).all() for y in outputs):
        raise Wrong("C writes behind its outputs")
    return [y[:, :-1] for y in outputs]


def _in_cuda(made: Made) -> None:
    from tests.compile import emulated
    from tests.compile.test_fuzz import check_within

    modules = []
    for spec, graph, _, _ in made:
        with bounds_of(spec):
            modules.append(to_cuda.emit(graph, spec["dtype"]))
    text = emulated.side_by_side([module.text for module in modules])
    with _library(emulated.library(text)) as library:
        for k, (spec, graph, inputs, bounds) in enumerate(made):
            found = emulated.launched(library[f"run{k}"], modules[k], graph, inputs)
            compared("CUDA", spec, lambda: check_within(bounds, found))  # noqa: B023


@contextmanager
def _library(content: bytes) -> Iterator[Any]:
    with TemporaryDirectory() as folder:
        file = Path(folder, "library.so")
        file.write_bytes(content)
        yield ctypes.CDLL(str(file))


# ---- derivatives ---------------------------------------------------------------------------------


def run_derivatives(content: bytes, deep: bool) -> None:
    """Compare both modes of differentiation with differences and with each other, to the second
    order, and run what they make as machine code."""
    from phipsi.compile.forward_mode import pushforward
    from phipsi.compile.reverse_mode import pullback
    from tests.compile.test_derivative_modes import check_modes, tame
    from tests.compile.test_fuzz import agree, random_graph, random_inputs

    for spec in json.loads(content):
        with bounds_of(spec):
            graph, rng = random_graph(spec["seed"], spec["n"], spec["loops"])
            wrt = list(range(len(graph.inputs)))
            ahead, back = pushforward(graph, wrt), pullback(graph, wrt)
            if tame(graph):
                compared("derivatives: a mode", spec, lambda: check_modes(graph, rng))  # noqa: B023
                compared("second derivatives: a mode", spec, lambda: _second(graph, rng))  # noqa: B023
            for derived in (ahead, back):
                inputs = random_inputs(derived, rng, spec["dtype"], False)
                compared("machine code of a derivative", spec, lambda: agree(derived, inputs))  # noqa: B023


def _second(graph: Graph, rng: np.random.Generator) -> None:
    """The rate of the gradient of w·f along d is the gradient of the rate of w·f along d."""
    from phipsi.compile.forward_mode import pushforward
    from phipsi.compile.reverse_mode import pullback
    from tests.compile.test_derivative_modes import run as interpreted

    wrt = list(range(len(graph.inputs)))

    def drawn(sizes: list[int]) -> list[np.ndarray]:
        return [rng.normal(size=(8, size)).astype(np.longdouble) for size in sizes]

    sizes, results = [n for _, n in graph.inputs], [len(nodes) for _, nodes in graph.outputs]
    x, d, w = drawn(sizes), drawn(sizes), drawn(results)
    one = interpreted(pushforward(pullback(graph, wrt), wrt), [*x, *w, *d])
    two = interpreted(pullback(pushforward(graph, wrt), wrt), [*x, *d, *w])
    for a, b in zip(one, two, strict=True):
        size = np.maximum(1.0, np.maximum(abs(a), abs(b)))
        told = np.isfinite(a) & np.isfinite(b) & (size < 1e6)
        np.testing.assert_array_less(abs(a - b)[told], 1e-7 * size[told])


TARGETS = (
    Target("graphs", f"random graphs at {ROWS} states: the interpreter, LLVM (single and batch), C "
           "and emulated CUDA", ".json", list, mutate, run, (), smaller,
           count=1_000, batch=BATCH, seconds=300.0),
    Target("derivatives", "forward and reverse derivatives of random graphs with loops, against "
           "differences and one another, and as machine code", ".json", list, mutate,
           run_derivatives, (), smaller,
           count=200, batch=BATCH, seconds=300.0),
)  # fmt: skip
