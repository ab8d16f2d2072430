"""A backend is a row of the table: kernels know no more of it."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

import phipsi as pp
from phipsi.compile import BACKENDS, BackendName, Graph, Recalled
from phipsi.compile.backend import Backend, Executable
from phipsi.compile.interpret import run
from phipsi.compile.signature import Signature

ROBOT = pp.robots.double_pendulum()


class Reversed(Executable):
    """The interpreter, from the last row to the first."""

    def __init__(self, code: Graph | Recalled) -> None:
        self.code, self.prepared = code, 0

    def prepare(self) -> None:
        self.prepared += 1

    def run(self, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
        results = [np.empty_like(x) for x in outputs]
        run(self.code.whole, [np.ascontiguousarray(x[::-1]) for x in inputs], results)
        for x, result in zip(outputs, results, strict=True):
            x[:] = result[::-1]


class Mirror(Backend):
    """A backend that nobody knows of."""

    name = "mirror"

    def check(self, dtype: str, threads: int | None) -> None:
        if dtype != "float64":
            raise ValueError("the mirror backend has float64 only")

    def load(
        self, signature: Signature, code: Graph | Recalled, dtype: str, threads: int | None
    ) -> Executable:
        return Reversed(code)

    def source(self, graph: Graph, dtype: str = "float64") -> str:
        return f"{graph.operations} operations, backwards"


@pytest.fixture(autouse=True)
def mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "mirror", Mirror())


def test_the_type_of_names_lists_the_table() -> None:
    assert {*get_args(BackendName), "mirror"} == set(BACKENDS)


def test_a_row_is_all_that_a_new_backend_needs() -> None:
    kernel = pp.forward_dynamics.compile(ROBOT, backend="mirror")
    q, v = ROBOT.random_state(0, (5,))
    expected = pp.forward_dynamics(ROBOT, q, v, np.ones((5, 2)))
    np.testing.assert_allclose(kernel(q, v, np.ones((5, 2))), expected, rtol=1e-13)
    np.testing.assert_allclose(kernel(q[0], v[0], np.ones(2)), expected[0], rtol=1e-13)
    gradient = kernel.pullback("q")
    assert gradient.backend == "mirror" and gradient(q, v, q, expected)[0].shape == (5, 2)


def test_its_rules_and_its_text_are_its_own() -> None:
    with pytest.raises(ValueError, match="the mirror backend has float64 only"):
        pp.forward_dynamics.compile(ROBOT, backend="mirror", dtype="float32")
    graph = pp.mass_matrix.graph(ROBOT)
    assert BACKENDS["mirror"].source(graph) == f"{graph.operations} operations, backwards"
    with pytest.raises(ValueError, match=r"'mirrors' is not in this version; there is .* mirror"):
        pp.forward_dynamics.compile(ROBOT, backend="mirrors")
