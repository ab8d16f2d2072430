"""Kernels as C: the files compile without a warning and give the interpreter's numbers."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.compile import Graph, interpret
from phipsi.compile.c_file import FUNCTIONS, as_comment, c_file, identifiers, is_taken
from tests.compile.cuda_device import every_hinge, everything, pushed
from tests.compile.test_fuzz import bounded, check_within, random_graph, random_inputs
from tests.compile.toolchain import shared_library

STRICT = ("-O2", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
TAKEN = "round pow hypot exp2 lgamma remainder isnan signbit NAN PHIPSI_FMA t0 printf".split()
COMPILER = shutil.which("cc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")


def built(text: str, name: str, folder: Path, *flags: str) -> Any:
    """The function of a file."""
    library = folder / f"{abs(hash((text, flags)))}.so"
    library.write_bytes(shared_library(text, ".c", "cc", *(flags or STRICT)))
    return getattr(ctypes.CDLL(str(library)), name)


def evaluated(graph: Graph, text: str, name: str, folder: Path, inputs: list[Any]) -> list[Any]:
    """The outputs of the function, row by row."""
    dtype, rows = inputs[0].dtype, inputs[0].shape[0]
    outputs = [np.full((rows, len(nodes) + 1), 777.0, dtype) for _, nodes in graph.outputs]
    room = re.search(r"w: room for (\d+) numbers", text)
    work = np.full(int(room[1]) if room else 0, np.nan, dtype)
    function = built(text, name, folder)
    for row in range(rows):
        places = [a[row : row + 1].ctypes.data for a in (*inputs, *outputs)]
        function(*map(ctypes.c_void_p, [*places, work.ctypes.data][: len(places) + bool(room)]))
    assert all((y[:, -1] == 777.0).all() for y in outputs)
    return [y[:, :-1] for y in outputs]


def check(
    folder: Path, program: Any, robot: pp.Robot, dtype: str, tolerance: float, **how: Any
) -> str:
    """A program's file against the interpreter; the file."""
    text = program.source(robot, dtype=dtype, name="evaluate", **how)
    kernel = program.compile(robot, backend="numpy", dtype=dtype, **how)
    graph = kernel.graph
    rng = np.random.default_rng(1)
    inputs = [rng.normal(size=(3, size)).astype(dtype) for _, size in graph.inputs]
    expected = [np.empty((3, len(nodes)), dtype) for _, nodes in graph.outputs]
    interpret.run(graph, inputs, expected)
    found = evaluated(graph, text, "evaluate", folder, inputs)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1.0, abs(b).max(initial=0)))
    return text


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-13), ("float32", 1e-4)])
def test_every_hinge(tmp_path: Path, dtype: str, tolerance: float) -> None:
    text = check(tmp_path, pp.forward_dynamics, every_hinge(), dtype, tolerance)
    assert "(spherical): q[" in text and "malloc" not in text


def test_loops(tmp_path: Path) -> None:
    check(tmp_path, pp.forward_dynamics, every_hinge(), "float64", 1e-13, unroll=False)
    robot, forces = pp.robots.double_pendulum(), np.zeros(12)
    text = check(tmp_path, pushed, robot, "float64", 1e-13, steps=forces)
    assert len(re.findall(r"for \(int", text)) == 2
    motion = pp.motion(duration=1.0, dt=0.01, every=2)
    assert "double w[9] = {0};" in check(tmp_path, motion, robot, "float64", 1e-10)


def test_large_memory_is_the_callers(tmp_path: Path) -> None:
    robot = pp.robots.chain(150, kind="spherical")
    text = check(tmp_path, pp.forward_dynamics, robot, "float64", 1e-12)
    assert "double *restrict w)" in text


def test_operations_results_and_arguments(tmp_path: Path) -> None:
    robot = pp.robots.double_pendulum()
    text = check(tmp_path, everything, robot, "float64", 1e-13, x=np.zeros(2))
    assert "double *restrict values, double *restrict dynamics" in text.replace("\n    ", " ")
    arm = pp.robots.space_arm()
    text = check(
        tmp_path, pp.forward_dynamics, arm, "float64", 1e-13,
        external={"tool": np.zeros(6)}, inputs=("gravity", "inertia:wrist_roll_link"),
    )  # fmt: skip
    assert "const double *restrict inertia_wrist_roll_link" in text
    assert "in  inertia_wrist_roll_link = inertia:wrist_roll_link: 10" in text


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_random_graphs(tmp_path: Path, seed: int, dtype: str) -> None:
    graph, rng = random_graph(seed, 60, seed % 4)
    inputs = random_inputs(graph, rng, dtype, special=seed % 2 == 0)
    results = [f"y{k}" for k in range(len(graph.outputs))]
    text = c_file(graph, dtype, "evaluate", ["A random graph."], results)
    found = evaluated(graph, text, "evaluate", tmp_path, inputs)
    check_within(bounded(graph, inputs), found)


@pytest.mark.skipif(sys.platform != "linux", reason="needs gcc's flags")
def test_where_the_machine_fuses_it_is_as_machine_code(tmp_path: Path) -> None:
    """To the bit, but for the functions of the C library."""
    native = pytest.importorskip("phipsi.compile.native")
    if not native.host("float64").fma:
        pytest.skip("no fused operations")
    graph = pp.mass_matrix_solve.graph(pp.robots.chain(3, kind="prismatic"))
    inputs = [np.random.default_rng(0).normal(size=(5, size)) for _, size in graph.inputs]
    expected = [np.empty((5, len(nodes))) for _, nodes in graph.outputs]
    native.MachineCode(graph, native.host("float64")).run(inputs, expected, 1)
    text = c_file(graph, "float64", "evaluate", ["."], ["out"])
    function = built(text, "evaluate", tmp_path, "-O2", "-march=native", "-std=c99")
    found = np.empty_like(expected[0])
    for row in range(5):
        arrays = [*inputs, found]
        function(*(ctypes.c_void_p(a[row : row + 1].ctypes.data) for a in arrays))
    np.testing.assert_array_equal(found, expected[0])


def test_names_and_comments_cannot_break_the_file(tmp_path: Path) -> None:
    names = ["int", "w", "x3", "a b", "a:b", "3d", "θ", "sin", "M_PI", "INFINITY", "", "_t", "out"]
    found = identifiers(names)
    assert len(set(found)) == len(names)
    tracer_inputs = tuple((name, 1) for name in names)
    text = pp.kinetic_energy.source(pp.robots.double_pendulum())
    assert text.startswith("/* ")
    graph = pp.kinetic_energy.graph(pp.robots.double_pendulum())
    graph = Graph((*graph.inputs, *tracer_inputs), graph.nodes, graph.outputs)
    bad = ["*/ int main() { /*", "a\\", "line\nbreak */", "??/", "\u202e", "x" * 300]
    text = c_file(graph, "float64", "evaluate", bad, ["out"])
    comment = as_comment(bad)
    assert comment.count("*/") == 1 and comment.endswith("*/") and "\u202e" not in comment
    built(text, "evaluate", tmp_path)


@pytest.mark.parametrize("name", ["hypot", "t0", "NAN", "<lambda>"])
def test_a_program_may_have_any_name(tmp_path: Path, name: str) -> None:
    def energy(robot, q, v):
        return pp.kinetic_energy(robot, q, v)

    energy.__name__ = name
    text = pp.program(energy).source(pp.robots.double_pendulum())
    built(text, re.findall(r"void (\w+)\(", text)[0], tmp_path)


def test_names_that_could_be_chosen_compile(tmp_path: Path) -> None:
    """Whatever <math.h> of this machine declares is either refused or compiles."""
    include = "#include <math.h>\n"
    command = ["cc", "-std=gnu17", "-E", "-dD", "-"]
    seen = subprocess.run(command, input=include, capture_output=True, text=True, check=True).stdout
    words = set(re.findall(r"\b[A-Za-z]\w*\b", seen))
    free = sorted(x for x in words if not is_taken(x) and x not in FUNCTIONS)
    source = tmp_path / "names.c"
    source.write_text(include + "".join(f"void {x}(double *{x});\n" for x in free))
    subprocess.run(["cc", *STRICT, "-std=gnu17", "-fsyntax-only", str(source)], check=True)
    assert {*TAKEN, "sincosf", "y0", "lgamma_r"}.isdisjoint(free)


def test_nothing_in_a_result_and_cpp(tmp_path: Path) -> None:
    @pp.program
    def nothing(robot, q):
        return q[:0], 2.0 * q

    robot = pp.robots.double_pendulum()
    text = check(tmp_path, nothing, robot, "float64", 0.0)
    assert len(re.findall(r"\(void\)", text)) == 1
    texts = [text, pp.motion(duration=1.0, dt=0.01, every=2).source(robot, dtype="float32")]
    texts.append(everything.source(robot, x=np.zeros(2)))
    for k, text in enumerate(texts if shutil.which("g++") else ()):
        source = tmp_path / f"{k}.cpp"
        source.write_text(text)
        flags = ("-Wall", "-Wextra", "-Werror", "-fsyntax-only")
        subprocess.run(["g++", *flags, str(source)], check=True)


def test_wrong_requests() -> None:
    robot = pp.robots.double_pendulum()
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"language": "fortran"}, "language 'fortran' is not one of c, cuda"),
        ({"dtype": "longdouble"}, "dtype 'longdouble' is not float64 or float32"),
        ({"name": "a;b"}, "no name of a function in C"),
        ({"name": "double"}, "no name of a function in C"),
        *(({"name": x}, f"has it already; use another, as 'robot_{x}'") for x in TAKEN),
    ]
    for how, words in wrong:
        with pytest.raises(ValueError, match=words):
            pp.mass_matrix.source(robot, **how)
    assert "__global__" in pp.mass_matrix.source(robot, language="cuda", dtype="float32")
