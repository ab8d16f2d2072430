"""Every hinge kind beside Pinocchio's joint of that kind, on random trees with armature."""

from __future__ import annotations

from typing import Any

import pytest

import phipsi as pp
from tests.zoo import MOVING, State, close, random_forest

pytestmark = pytest.mark.usefixtures("interpreted")

pin: Any = pytest.importorskip("pinocchio")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kinds", [*((kind,) for kind in MOVING), MOVING], ids="+".join)
def test_dynamics_of_each_hinge_kind(kinds: tuple[str, ...], seed: int) -> None:
    robot = random_forest(seed, 5, kinds=kinds, massless=False)
    model = pp.interop.to_pinocchio_model(robot)
    data = model.createData()
    for k in range(3):
        s = State(robot, seed=k)
        q, v, a, tau = pp.interop.to_pinocchio(robot, s.q, s.v, s.a, s.tau, joints=model)
        qdd = pp.forward_dynamics(robot, s.q, s.v, s.tau)
        ours = pp.interop.to_pinocchio(robot, s.q, qdd, joints=model)[1]
        close(ours, pin.aba(model, data, q, v, tau))
        ours = pp.interop.to_pinocchio(
            robot, s.q, tau=pp.inverse_dynamics(robot, s.q, s.v, s.a), joints=model
        )[1]
        close(ours, pin.rnea(model, data, q, v, a))
