"""A dozen real robots, fixed and free, beside Pinocchio; all of them in `make validation`."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

import phipsi as pp

pytest.importorskip("pinocchio")

from tests.agreement.page import PAGE
from tests.agreement.pinocchio import TOLERANCE, Side, compare, difference
from tests.model.urdf_files import ROBOTS, URDFS

DOZEN = (
    "ur5_robot", "panda", "solo12", "anymal", "a1", "baxter", "kinova", "tiago",
    "double_pendulum", "hyq_no_sensors", "talos_reduced", "bravo7_gripper",
)  # fmt: skip


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("name", DOZEN)
def test_phipsi_agrees_with_pinocchio(
    name: str, base: Literal["fixed", "free"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fixed in machine code, free on the interpreter."""
    monkeypatch.setenv("PHIPSI_BACKEND", {"fixed": "llvm", "free": "numpy"}[base])
    result = compare(URDFS[name], base, ROBOTS)
    assert result.agrees, (result.errors, result.notes)


def test_the_committed_table_has_every_file_and_no_disagreement() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for path in ROBOTS.rglob("*.urdf"):
        assert text.count(f"`{path.relative_to(ROBOTS)}`") == 2, path
    assert "Pinocchio is nearer" not in text


@pytest.mark.parametrize(("name", "base"), [("panda", "fixed"), ("solo12", "free")])
def test_loops_over_bodies_agree_with_pinocchio(name: str, base: Any) -> None:
    side = Side(URDFS[name], base)
    q, v = side.robot.random_state(1, (11,))
    a, tau = np.random.default_rng(2).normal(size=(2, 11, side.robot.nv))
    forward = pp.forward_dynamics.compile(side.robot, unroll=False)(q, v, tau)
    inverse = pp.inverse_dynamics.compile(side.robot, unroll=False)(q, v, a)
    for i in range(11):
        theirs = side.quantities(q[i], v[i], a[i], tau[i])
        assert difference(forward[i], theirs["forward_dynamics"][1]) <= TOLERANCE
        assert difference(inverse[i], theirs["inverse_dynamics"][1]) <= TOLERANCE
