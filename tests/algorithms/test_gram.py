"""Gram matrices of Jacobians: JJ* at every body and (Σ J*WJ + μ²I)⁻¹, against dense algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import phipsi as pp
from phipsi.algorithms.kinematics import gram_inverse_product
from phipsi.model.hinges import HingeName
from tests.zoo import MOVING, State, close, forests, random_forest

pytestmark = pytest.mark.usefixtures("interpreted")

law = settings(max_examples=settings().max_examples // 12)


def dense(robot: pp.Robot, q: Any, frames: Any, weights: Any, damping: Any) -> np.ndarray:
    """Σ J*WJ + diag μ² by plain matrices."""
    total = np.diag(np.full(robot.nv, 1.0) * damping**2)
    for frame, W in zip(frames, weights, strict=True):
        J = pp.jacobian(robot, q, frame)
        total = total + J.T @ W @ J
    return total


def random_weights(rng: np.random.Generator, *shape: int) -> np.ndarray:
    roots = rng.normal(size=(*shape, 6, 6))
    return roots @ np.swapaxes(roots, -1, -2)


@law
@given(forests())
def test_gram_is_the_jacobian_times_its_transpose(robot: pp.Robot) -> None:
    s = State(robot)
    found = pp.jacobian_gram(robot, s.q)
    for own, body in zip(found, robot.bodies, strict=True):
        J = pp.jacobian(robot, s.q, body.name)
        close(own, J @ J.T)
    assert (found == np.swapaxes(found, -1, -2)).all()


@law
@given(forests())
def test_gram_solve_inverts_the_dense_sum_over_frames(robot: pp.Robot) -> None:
    s, rng = State(robot), np.random.default_rng(3)
    frames = tuple(dict.fromkeys(("tool", robot.bodies[0].name, robot.bodies[-1].name)))
    weights, damping = random_weights(rng, len(frames)), rng.uniform(0.3, 1.0, robot.nv)
    whole = dense(robot, s.q, frames, weights, damping)
    y = pp.gram_solve(robot, s.q, s.w, frames=list(frames), weights=weights, damping=damping)
    close(y, np.linalg.solve(whole, s.w))
    diagonal = np.stack([np.diag(W) for W in weights])
    whole = dense(robot, s.q, frames, [np.diag(w) for w in diagonal], 0.7)
    y = pp.gram_solve(robot, s.q, s.w, frames=frames, weights=diagonal, damping=0.7)
    close(y, np.linalg.solve(whole, s.w))


def test_without_damping_it_is_the_inverse_of_the_jacobian_twice() -> None:
    robot = pp.robots.puma560()
    s = State(robot)
    J = pp.jacobian(robot, s.q, "tool")
    y = pp.gram_solve(robot, s.q, J.T @ np.arange(6.0), frames="tool")
    close(y, np.linalg.solve(J, np.arange(6.0)), 1e-9)


def test_every_argument_has_a_batch() -> None:
    robot = random_forest(5, 5, kinds=MOVING)
    rng = np.random.default_rng(0)
    s = State(robot, (2, 3))
    W, mu = random_weights(rng, 3, 2), rng.uniform(0.5, 1.0, (2, 3))
    frames = ("tool", robot.bodies[0].name)
    y = pp.gram_solve(robot, s.q, s.w, frames=frames, weights=W, damping=mu[..., None])
    assert y.shape == (2, 3, robot.nv)
    for i, j in np.ndindex(2, 3):
        whole = dense(robot, s.q[i, j], frames, W[j], mu[i, j])
        close(y[i, j], np.linalg.solve(whole, s.w[i, j]))
    with pytest.raises(ValueError, match=r"gram_solve: damping has shape \(2, 3\), needs a number"):
        pp.gram_solve(robot, s.q, s.w, frames=frames, weights=W, damping=mu)


def test_single_precision_stays_so() -> None:
    robot = pp.robots.puma560()
    s = State(robot)
    q, w = s.q.astype(np.float32), s.w.astype(np.float32)
    y = pp.gram_solve(robot, q, w, frames="tool", damping=0.3)
    assert y.dtype == np.float32
    close(y, pp.gram_solve(robot, s.q, s.w, frames="tool", damping=0.3), 1e-4)


def test_a_frame_of_the_world_adds_nothing() -> None:
    robot = pp.robots.puma560()
    s = State(robot)
    one = pp.gram_solve(robot, s.q, s.w, frames="tool", damping=0.1)
    close(pp.gram_solve(robot, s.q, s.w, frames=("world", "tool"), damping=0.1), one)
    close(pp.gram_solve(robot, s.q, s.w, frames="world", damping=0.1), 100.0 * s.w)


@pytest.mark.parametrize(("links", "kind"), [(100, "revolute"), (70, "spherical"), (80, "planar")])
def test_loops_over_bodies_invert_the_dense_sum(links: int, kind: HingeName) -> None:
    robot = pp.robots.chain(links, kind)
    s, frames = State(robot), ("tool", robot.bodies[links // 2].name)
    weights = random_weights(np.random.default_rng(1), 2)
    y = pp.gram_solve(robot, s.q, s.w, frames=frames, weights=weights, damping=1.0)
    close(y, np.linalg.solve(dense(robot, s.q, frames, weights, 1.0), s.w))
    last = robot.bodies[-1].name
    J = pp.jacobian(robot, s.q, last)
    close(pp.jacobian_gram(robot, s.q)[-1], J @ J.T)


def test_a_thousand_joints() -> None:
    robot = pp.robots.chain(1000)
    s = State(robot)
    y = pp.gram_solve(robot, s.q, s.w, frames="tool", damping=1.0)
    J = pp.jacobian(robot, s.q, "tool")
    close(y + J.T @ (J @ y), s.w, 1e-9)


def test_a_frame_on_every_body() -> None:
    robot = pp.robots.chain(70)
    s, names = State(robot), [body.name for body in robot.bodies]
    y = pp.gram_solve(robot, s.q, s.w, frames=names, damping=1.0)
    J = pp.velocities(robot, s.q, np.eye(70)).reshape(70, -1).T
    close(y, np.linalg.solve(J.T @ J + np.eye(70), s.w))


def operations(links: int, frames: int, unroll: bool | None) -> int:
    robot = pp.robots.chain(links)
    names = tuple(body.name for body in robot.bodies[-frames:])
    return gram_inverse_product.graph(
        robot, unroll=unroll, weights=None, damping=0.1, frames=names
    ).operations


@pytest.mark.parametrize(("unroll", "n"), [(True, 10), (False, 70), (False, 200)])
def test_cost_is_linear(unroll: bool, n: int) -> None:
    small, middle, large = (operations(k * n, 1, unroll) for k in (1, 2, 4))
    assert large - middle == pytest.approx(2 * (middle - small), rel=0.02)
    gram = [pp.jacobian_gram.graph(pp.robots.chain(k * n), unroll=unroll) for k in (1, 2, 4)]
    small, middle, large = (graph.operations for graph in gram)
    assert large - middle == pytest.approx(2 * (middle - small), rel=0.02)


def test_cost_does_not_depend_on_the_number_of_frames() -> None:
    assert operations(30, 30, True) < 1.2 * operations(30, 2, True)
    assert operations(200, 200, False) < 1.2 * operations(200, 2, False)


def test_it_is_a_part_of_programs() -> None:
    @pp.program
    def pull(robot: pp.Robot, q: Any, e: Any, W: Any) -> Any:
        J = pp.jacobian(robot, q, "tool")
        mu = 0.2 * W[0]
        return pp.gram_solve(robot, q, J.T @ e, frames="tool", weights=W[None], damping=mu)

    robot = pp.robots.seven_axis_arm()
    s = State(robot)
    J, W = pp.jacobian(robot, s.q, "tool"), np.arange(1.0, 7.0)
    expected = np.linalg.solve(J.T @ np.diag(W) @ J + 0.04 * np.eye(7), J.T @ W)
    close(pull(robot, s.q, W, W), expected)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"frames": "tol"}, "did you mean 'tool'"),
        ({"frames": ()}, "names of different frames"),
        ({"frames": ("tool", "tool")}, "names of different frames"),
        ({"frames": "tool", "weights": np.ones(6)}, r"needs \(..., 1, 6, 6\) or \(..., 1, 6\)"),
        ({"frames": None}, "gram_solve: frames is None, needs names"),
        ({"frames": ("tool", 3)}, "gram_solve: frames is .*, needs names"),
        ({"frames": "tool", "damping": np.ones(5)}, r"needs a number, \(..., 1\) or \(..., 6\)"),
        ({"frames": "tool", "damping": None}, "gram_solve: damping is None, needs a number"),
        ({"frames": "tool", "q": np.zeros(3)}, r"gram_solve: q has shape \(3,\)"),
    ],
)
def test_what_is_wrong_is_said(options: Any, words: str) -> None:
    robot = pp.robots.puma560()
    s = State(robot)
    with pytest.raises(ValueError, match=words):
        pp.gram_solve(robot, **({"q": s.q, "x": s.w} | options))


def test_a_robot_is_needed() -> None:
    none: Any = 3
    with pytest.raises(TypeError, match="gram_solve: robot is an int, needs a Robot"):
        pp.gram_solve(none, np.zeros(6), np.zeros(6), frames="tool")
