"""What an editor knows of public calls, and what a user is told who passes a wrong type.

`assert_type` is checked by pyright (`make lint`); here the values are compared with the types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, assert_type, get_args

import numpy as np
import pytest

import phipsi as pp
from phipsi import conventions
from phipsi.compile import BACKENDS, BackendName
from phipsi.typing import Array
from tests.any_parameters import counted


def test_an_editor_knows_the_results_of_public_calls() -> None:
    robot = pp.robots.double_pendulum()
    q, v, tau = np.zeros(2), np.ones(2), np.zeros(2)
    arrays = [
        assert_type(pp.forward_dynamics(robot, q, v, tau), Array),
        assert_type(pp.inverse_dynamics(robot, [0.0, 0.0], v, a=tau), Array),
        assert_type(pp.mass_matrix(robot, q), Array),
        assert_type(pp.jacobian(robot, q, "tool", reference="world"), Array),
        assert_type(pp.frame_pose(robot, q, "tool"), Array),
        assert_type(pp.forward_dynamics.compile(robot), pp.Kernel[Array])(q, v, tau),
        assert_type(robot.integrate(q, v), Array),
    ]
    assert all(isinstance(x, np.ndarray) for x in arrays)
    hybrid = assert_type(pp.hybrid_dynamics(robot, q, v, tau, tau, "joint1"), pp.HybridSolution)
    assert isinstance(hybrid, pp.HybridSolution)
    motion = assert_type(pp.simulate(robot, q, v, duration=0.01), pp.Trajectory)
    assert isinstance(motion, pp.Trajectory)
    target = pp.frame_pose(robot, [0.3, 0.4], "tool")
    found = assert_type(
        pp.inverse_kinematics(robot, q, {"tool": target}, rows={"tool": "position"}),
        pp.InverseKinematicsSolution,
    )
    assert isinstance(found, pp.InverseKinematicsSolution)


def test_an_editor_knows_the_solution_of_a_closed_chain() -> None:
    robot = pp.robots.four_bar()
    loops = [pp.Loop("coupler_tip", "rocker_tip", "revolute")]
    v = np.zeros(robot.nv)
    q = pp.close_loops(robot, loops, np.full(robot.nq, 0.3), v).q
    solution = assert_type(
        pp.closed_chain_dynamics(robot, loops, q, v, v, strict=False),
        pp.ClosedChainSolution,
    )
    assert isinstance(solution, pp.ClosedChainSolution)


def test_literals_are_complete() -> None:
    assert set(get_args(BackendName)) == set(BACKENDS)
    assert get_args(conventions.Reference) == conventions.REFERENCES


WRONG: dict[str, Callable[[pp.Robot, Any], Any]] = {
    "a string for q": lambda robot, q: pp.forward_dynamics(robot, "zero", q, q),  # type: ignore[arg-type]
    "no robot": lambda robot, q: pp.mass_matrix(q, q),  # type: ignore[arg-type]
    "a dict for tau": lambda robot, q: pp.forward_dynamics(robot, q, q, {"a": "b"}),  # type: ignore[arg-type]
    "a number for a frame": lambda robot, q: pp.jacobian(robot, q, 3),  # type: ignore[arg-type]
    "another reference": lambda robot, q: pp.jacobian(robot, q, "tool", reference="body"),  # type: ignore[arg-type]
    "another method": lambda robot, q: pp.simulate(robot, q, duration=1.0, method="euler2"),  # type: ignore[arg-type]
    "another backend": lambda robot, q: pp.mass_matrix.compile(robot, backend="metal"),  # type: ignore[arg-type]
    "another dtype": lambda robot, q: pp.mass_matrix.compile(robot, dtype="float16"),  # type: ignore[arg-type]
    "a string for a duration": lambda robot, q: pp.simulate(robot, q, duration="1 s"),  # type: ignore[arg-type]
    "an unknown keyword": lambda robot, q: pp.mass_matrix(robot, q, w=q),  # type: ignore[call-arg]
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_type_is_one_sentence(what: str) -> None:
    robot = pp.robots.double_pendulum()
    with pytest.raises((TypeError, ValueError, KeyError)) as caught:
        WRONG[what](robot, np.zeros(2))
    text = str(caught.value)
    assert 10 < len(text) < 300 and "\n" not in text


def test_a_program_reads_shapes_masks_and_options_from_its_types() -> None:
    def spring(
        robot: pp.Robot,
        q: pp.typing.Configuration,
        stiffness: Annotated[Array, "nv nv"],
        active: pp.typing.MaskLike,
        kind: Literal["linear", "cubic"] = "linear",
    ) -> pp.typing.JointVector:
        travel = robot.difference(robot.neutral(), q)
        travel = travel if kind == "linear" else travel**3
        return -pp.where(np.asanyarray(active), stiffness @ travel, 0.0)

    robot, program = pp.robots.double_pendulum(), pp.program(spring)
    found = {p.name: (p.shape, p.kind) for p in program.parameters.values()}
    assert found == {
        "q": (("nq",), "array"),
        "stiffness": (("nv", "nv"), "array"),
        "active": (("nv",), "mask"),
        "kind": (None, "option"),
    }
    q, stiffness = np.ones((5, 2)), np.arange(20.0).reshape(5, 2, 2)
    tau = program(robot, q, stiffness, np.array([True, False]))
    np.testing.assert_allclose(tau[:, 0], -stiffness[:, 0].sum(-1))
    assert not tau[:, 1].any()


def test_an_unknown_length_among_several_axes_is_refused() -> None:
    def f(robot: pp.Robot, x: Annotated[Array, "nV 6"]) -> Array:
        return x

    sentence = "program f: the type of x has an axis 'nV', needs a number or one of nq, nv, nb"
    with pytest.raises(TypeError, match=f"^{sentence}$"):
        pp.program(f)


def test_few_parameters_are_any() -> None:
    rows = counted()
    bare, total = (sum(column) for column in zip(*rows.values(), strict=True))
    assert bare <= 0.03 * total, rows
