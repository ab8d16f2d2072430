"""The cuda backend: its text everywhere, its numbers in emulation, all where there is a GPU."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.compile import cuda_code, interpret, on_device
from phipsi.compile.cuda_code import OPTIONS
from phipsi.compile.to_cuda import emit
from tests.compile import cuda_device, emulated
from tests.compile.test_fuzz import bounded, check_within, random_graph, random_inputs

PENDULUM = pp.robots.double_pendulum()
ARM = pp.robots.puma560()
CHAIN = pp.robots.chain(12, kind="spherical")
TEXTS: dict[str, Callable[[], Any]] = {
    "every operation": lambda: cuda_device.everything.graph(PENDULUM, x=np.zeros(2)),
    "wide arrays": lambda: pp.operational_inertia_inverse.graph(ARM),
    "a loop with a workspace": lambda: pp.forward_dynamics.graph(CHAIN, unroll=False),
    "loops in loops": lambda: cuda_device.pushed.graph(PENDULUM, steps=np.zeros(12)),
}


@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
def test_nvcc_takes_the_text(tmp_path: Path) -> None:
    """In both precisions, without a warning."""
    texts = []
    for k, make in enumerate(TEXTS.values()):
        for dtype in OPTIONS:
            text = emit(make(), dtype).text  # all in one file, to start the compiler once
            text = text.replace('extern "C" ', "")
            texts.append(f"namespace n{k}{dtype} {{\n{text}\n}}\n#undef PHIPSI_W\n")
    file = tmp_path / "kernels.cu"
    file.write_text("#undef PHIPSI_TABLE\n".join(texts))
    how = ["-arch=sm_90", "--ptx", "-Werror", "all-warnings", "-Xcicc", "-O0"]
    subprocess.run(["nvcc", *how, "-o", str(tmp_path / "kernels.ptx"), str(file)], check=True)


# ---- in emulation --------------------------------------------------------------------------------

emulator = pytest.mark.skipif(
    not shutil.which("g++") or sys.platform != "linux", reason="needs g++ and threads of POSIX"
)


@emulator
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_random_graphs(seed: int, dtype: str) -> None:
    graph, rng = random_graph(100 + seed, 60, seed % 4)
    inputs = random_inputs(graph, rng, dtype, special=seed % 2 == 0)
    check_within(bounded(graph, inputs), emulated.run(graph, inputs))


@pp.program
def awkward(robot: Any, q: Any, v: Any, x: Any) -> dict[str, Any]:
    """An input that is a result, one that could lie over it, none, and one of infinities."""
    bounds = np.array([1.0, np.inf, 2.0, np.nan])
    last, _ = pp.repeat(4, lambda c, b: (np.minimum(c, b), 0.0), q, bounds)
    return {"y\\": np.sin(x[:1]) * np.array([2.0, 3.0, 5.0]), "x\n": x, "e": x[:0], "last": last}


@emulator
def test_awkward_results() -> None:
    graph = awkward.graph(PENDULUM, x=np.zeros(3))
    inputs = [np.random.default_rng(0).normal(size=(33, size)) for _, size in graph.inputs]
    expected = [np.empty((33, len(nodes))) for _, nodes in graph.outputs]
    interpret.run(graph, inputs, expected)
    for found, wanted in zip(emulated.run(graph, inputs), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


@emulator
def test_a_workspace_is_shared_by_rows_that_follow_each_other() -> None:
    """More rows than threads: each thread computes several."""
    graph = pp.forward_dynamics.graph(CHAIN, unroll=False)
    module = emit(graph, "float64")
    assert module.work > 0
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(2 * module.threads + 5, size)) for _, size in graph.inputs]
    expected = [np.empty((len(inputs[0]), len(nodes))) for _, nodes in graph.outputs]
    interpret.run(graph, inputs, expected)
    np.testing.assert_allclose(emulated.run(graph, inputs)[0], expected[0], atol=1e-12)


@emulator
@pytest.mark.parametrize("program", [pp.mass_matrix, pp.mass_matrix_inverse, pp.christoffel])
def test_matrices_by_loops(program: Any) -> None:
    """Loops over copies of paths, and loops that read the memory of others."""
    graph = program.graph(pp.robots.chain(4, kind="spherical"), unroll=False)
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(33, size)) for _, size in graph.inputs]
    expected = [np.empty((33, len(nodes))) for _, nodes in graph.outputs]
    interpret.run(graph, inputs, expected)
    np.testing.assert_allclose(emulated.run(graph, inputs)[0], expected[0], rtol=1e-9, atol=1e-11)


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """What stands in for CuPy."""
    with emulated.in_place_of_cupy(tmp_path_factory.mktemp("cache")) as module:
        yield module


@emulator
@pytest.mark.parametrize("check", cuda_device.CHECKS, ids=lambda check: check.__name__)
def test_in_emulation(check: Callable[[Any], None], backend: Any) -> None:
    check(backend)


@emulator
def test_code_is_kept_on_disk(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second kernel of the same graph is neither traced nor compiled."""
    q = backend.asarray(np.zeros((2, 2)))
    first: Any = pp.mass_matrix.compile(PENDULUM, backend="cuda")(q)
    monkeypatch.delattr(cuda_code, "compiled")
    again = pp.mass_matrix.compile(PENDULUM, backend="cuda")
    found: Any = again(q)
    np.testing.assert_array_equal(found.get(), first.get())
    assert "whole" not in again.code.__dict__


@emulator
def test_several_devices(backend: Any) -> None:
    q, v = (emulated.Array(np.zeros((3, 2)), device) for device in (0, 1))
    with pytest.raises(ValueError, match=r"devices \(q on device 0, v on device 1\), needs one"):
        pp.kinetic_energy(PENDULUM, q, v)


# ---- without ------------------------------------------------------------------------------------


def test_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr("phipsi.compile.device.find_spec", lambda name: None)
    with pytest.raises(
        ImportError, match=r'^the cuda backend needs CuPy: pip install "phipsi\[cuda'
    ):
        pp.mass_matrix.compile(PENDULUM, backend="cuda")


def test_the_backend_needs_no_llvmlite() -> None:
    code = (
        "import sys; sys.modules['llvmlite'] = None; import phipsi as pp, phipsi.compile.cuda;"
        "print(pp.mass_matrix.show(pp.robots.double_pendulum(), stage='cuda'))"
    )
    text = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "__global__" in text.stdout


def test_what_is_on_a_device() -> None:
    class Elsewhere:
        __cuda_array_interface__: dict[str, Any] = {}  # noqa: RUF012

    class There:
        def __init__(self, kind: int) -> None:
            self.kind = kind

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.kind, 0

    assert on_device(Elsewhere()) and on_device(There(2)) and on_device(There(13))
    assert not any(map(on_device, (There(1), 1.0, None, "q", [1.0], np.zeros(2), np.float32(1))))


def _devices() -> int:
    try:
        import cupy

        return cupy.cuda.runtime.getDeviceCount()
    except Exception:
        return 0


@pytest.mark.skipif(not _devices(), reason="needs a CUDA device")
@pytest.mark.parametrize(
    "check", [*cuda_device.CHECKS, *cuda_device.ON_DEVICE], ids=lambda check: check.__name__
)
def test_on_a_device(check: Callable[[Any], None]) -> None:
    import cupy

    check(cupy)
