"""Hinges that are described from their other side: every law holds for them, in every program."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.model.hinges import KINDS, REVERSED
from tests.algorithms import (
    test_curvature,
    test_diagonalized,
    test_laws,
    test_operational_space,
    test_under_actuated,
)
from tests.algorithms.test_base_invariant import ways
from tests.sweeps.test_looped import PROGRAMS, arguments, cases, precise
from tests.zoo import State, close, reversed_forest

pytestmark = pytest.mark.usefixtures("interpreted")

NUMBERS = ("armature", "damping", "stiffness", "friction")


def floating(robot: pp.Robot) -> pp.Robot:
    """The robot without numbers at its roots, which are free bases then."""
    free = [h for h in robot.hinges if h.parent == "world"]
    return robot.with_parameters(
        {f"{what}:{h.name}": np.zeros(6) for h in free for what in NUMBERS}
    )


FORESTS = [reversed_forest(seed, 5) for seed in (3, 8, 11)]
FLYERS = [
    floating(reversed_forest(seed, 5, roots=("free",), massless=False)) for seed in (0, 1, 2, 4)
]
MODULES = (test_laws, test_curvature, test_diagonalized, test_operational_space,
           test_under_actuated)  # fmt: skip
OF_FLYERS = (
    "test_momentum_changes_by_external_forces_and_gravity_alone",
    "test_operational_bias_is_the_force_without_acceleration",
    "test_operational_inertia_inverts_upsilon",
)
ONE_FREEDOM = ("test_christoffel_symbols", "test_curvature_by_its_definition", "test_flat_robots",
               "test_curved_robots")  # fmt: skip
"""Laws of robots whose joint velocities are rates of coordinates."""


def laws() -> Iterator[Callable[[pp.Robot], None]]:
    """The laws over random robots that take nothing but the robot."""
    for name, law in ((name, x) for module in MODULES for name, x in vars(module).items()):
        inner = getattr(getattr(law, "hypothesis", None), "inner_test", None)
        if (
            inner
            and [*inspect.signature(inner).parameters] == ["robot"]
            and name not in ONE_FREEDOM
        ):
            yield inner


LAWS = {law.__name__: law for law in laws()}


def test_the_forests_are_complete() -> None:
    for robots in (FORESTS, FLYERS):
        assert {h.kind.name for robot in robots for h in robot.hinges} >= {*REVERSED}
    assert {*OF_FLYERS, "test_energy_rate_is_power"} < {*LAWS}


@pytest.mark.parametrize("name", LAWS)
def test_a_law(name: str) -> None:
    for robot in FLYERS if name in OF_FLYERS else FORESTS:
        LAWS[name](robot)


@pytest.mark.parametrize(("name", "options"), list(cases()))
def test_looped_is_unrolled(name: str, options: dict[str, Any]) -> None:
    if options.get("about") != "base":
        precise(PROGRAMS[name], FORESTS[0], arguments(PROGRAMS[name], State(FORESTS[0]), options))


@pytest.mark.parametrize("robot", FLYERS, ids=range(len(FLYERS)))
def test_base_invariant_dynamics(robot: pp.Robot) -> None:
    s = State(robot)
    a = pp.forward_dynamics(robot, s.q, s.v, s.tau)
    for found in ways(pp.base_invariant_forward_dynamics, robot, s.q, s.v, s.tau):
        close(found, a, 1e-9)
    X, V = pp.poses(robot, s.q), pp.velocities(robot, s.q, s.v)
    found = pp.decoupled_forward_dynamics(robot, X, V, s.tau)
    close(found, pp.accelerations(robot, s.q, s.v, a), 1e-8)
    q, v = pp.minimal_state(robot, X, V)
    close(v, s.v)
    assert np.abs(robot.difference(q, s.q)).max() < 1e-7


@pytest.mark.parametrize("method", ["rk4", "rk4-mk", "implicit", "preserving"])
@pytest.mark.parametrize("kind", ["spherical", "planar", "free"])
def test_motions_are_those_of_the_other_base(kind: Any, method: Any) -> None:
    """With unequal armature, springs and dampers both descriptions move alike, as far as the order
    of the method takes them."""
    nv = KINDS[kind].nv
    robot = (
        pp.Builder("pair", gravity=(0, 0, -1))
        .body("a", mass=2, com=(0.1, 0.2, 0), inertia=(0.3, 0.4, 0.5))
        .body("b", mass=1, com=(0, 0.1, 0.3), inertia=(0.2, 0.1, 0.15))
        .hinge("float", "free", "world", "a")
        .hinge("joint", kind, "a", "b", position=(0.2, 0, 0.4),
               axis=(1, 2, 3) if kind == "planar" else None, stiffness=1.0,
               armature=0.1 * np.arange(1, nv + 1), damping=0.2 * np.arange(1, nv + 1))
        .build()
    )  # fmt: skip
    other = pp.rebase(robot, "b")
    assert other.robot.hinge("joint").kind.name == f"reversed_{kind}"
    q, v = State(robot).q, 0.3 * State(robot).v
    options: Any = {"duration": 0.04, "dt": 2e-3, "method": method, "passive": True}
    end = pp.simulate(robot, q, v, **options)
    expected, _ = other.state(end.q[-1], end.v[-1])
    found = pp.simulate(other.robot, *other.state(q, v), **options)
    error = np.abs(other.robot.difference(found.q[-1], expected)).max()
    assert error < {1: 1e-3, 2: 1e-6, 4: 1e-11}[pp.simulation.METHODS[method].order]
    still = np.abs(other.robot.difference(found.q[0], found.q[-1])).max()
    assert still > 0.008


def test_other_libraries_have_no_such_hinges() -> None:
    robot = FLYERS[1]
    words = "is reversed_spherical, "
    for call in (
        lambda: pp.interop.to_pinocchio_model(robot),
        lambda: pp.interop.to_pinocchio(robot, robot.neutral()),
        lambda: pp.interop.to_mujoco(robot, robot.neutral()),
        lambda: pp.interop.to_mujoco_model(robot),
    ):
        with pytest.raises(pp.ModelError, match=words):
            call()
