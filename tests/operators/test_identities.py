"""Every row of the table, its adjoint and its passive counterpart, against dense matrices: of
random robots, and of random numbers that no robot has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.operators import Equation
from phipsi.operators.algebra.derivation import CONDITIONS
from phipsi.operators.algebra.identities import TABLE, Identity
from phipsi.operators.algebra.symbols import DOTTED
from phipsi.operators.dense import System, matrix, system
from tests.operators.systems import random_system
from tests.zoo import ONE_DOF, random_forest

MOVING = {
    "Delta_cross", "V_cross", "H_cross", "spin", "mass_by", "C_xi", "C_nu", "gamma", "lam",
    *(dot.symbol.name for dot in DOTTED.values()),
}  # fmt: skip
"""Symbols that only a robot in motion has."""


DUAL = {"S", "S_plus", "G_s", "C_s", "psi_s", "Lambda", "tau_bar_s"}
REBASED = {"rebase", "mass_at", "Omega_at", "P_at"}


def symbols(row: Identity) -> set[str]:
    return {leaf.symbol.name for leaf in row.left.leaves | row.right.leaves}


def free(row: Identity) -> bool:
    return "free base" in row.needs or bool(symbols(row) & DUAL)


def variants(row: Identity) -> list[Identity]:
    own = [one for one in (row, row.passive) if one]
    return [y for x in own for y in (x, x.adjoint)]


def rows(chosen: Callable[[Identity], object] = bool) -> list[Any]:
    chosen_rows = ((i, row) for i, row in enumerate(TABLE) if chosen(row))
    return [pytest.param(row, id=f"{i}-{row.name}") for i, row in chosen_rows]


def sides(row: Identity, s: System, **vectors: Any) -> list[np.ndarray]:
    return [matrix(x, s, **vectors) for x in (row.left, row.right - 0 * row.left)]


def holds(row: Identity, s: System, tolerance: float, **vectors: Any) -> None:
    left, right = sides(row, s, **vectors)
    scale = max(1.0, np.abs(left).max(initial=0.0), np.abs(right).max(initial=0.0))
    assert np.abs(left - right).max(initial=0.0) <= tolerance * scale, row.text


def at(row: Identity, name: str) -> Identity:
    framed = any(leaf.frames for leaf in row.left.leaves)
    return row.at(name) if framed else row


def random_vectors(s: System) -> dict[str, Any]:
    rng, nv = np.random.default_rng(5), len(s.H)
    return {name: rng.normal(size=nv) for name in ("T", "beta", "beta_dot")}


@pytest.mark.parametrize("row", rows(lambda row: not symbols(row) & MOVING))
def test_on_random_numbers(row: Identity) -> None:
    """Algebra, not robotics."""
    rebased = symbols(row) & REBASED
    for seed in range(4):
        s = random_system(
            seed,
            serial="serial" in row.needs,
            free=free(row),
            armature="no armature" not in row.needs,
        )
        if rebased and s.parents.count(-1) > 1:
            s = random_system(seed, serial=True, free=True)
        s = replace(s, frames={**s.frames, "body1": (1, np.eye(6))})
        given = random_vectors(s)
        if symbols(row) & {"a", "b", "C", "u"}:
            rng = np.random.default_rng(seed)
            given.update({n: rng.normal(size=(len(s.parents), 6)) for n in ("a", "b")})
        for one in variants(at(row, "body1" if rebased else "tool")):
            holds(one, s, 1e-9, **given)


@pytest.mark.parametrize("row", rows(lambda row: row.any_gain and not free(row)))
def test_with_any_gain(row: Identity) -> None:
    """What needs no Riccati equation holds for random G, D and P."""
    for seed in range(4):
        s = random_system(seed, gain=True)
        rng = np.random.default_rng(seed)
        given = {n: rng.normal(size=(len(s.parents), 6)) for n in ("a", "b")}
        for one in (row, row.adjoint):
            holds(one, s, 1e-9, **given)


def robot_for(row: Identity, seed: int) -> pp.Robot:
    """A forest that meets what the row needs."""
    armature = "no armature" not in row.needs and not free(row)
    kinds = None if free(row) or "one freedom" not in row.needs else ONE_DOF
    robot = _robot(seed, "serial" not in row.needs, armature, free(row), kinds)
    return still(robot) if "no loads" in row.needs else robot


@cache
def _robot(
    seed: int, branching: bool, armature: bool, free: bool, kinds: tuple[str, ...] | None
) -> pp.Robot:
    options: dict[str, Any] = {"roots": ("free",)} if free else {"kinds": kinds} if kinds else {}
    return random_forest(seed, 4, branching=branching, armature=armature, **options)


@cache
def still(robot: pp.Robot) -> pp.Robot:
    return robot.with_gravity((0.0, 0.0, 0.0))


@cache
def moving(robot: pp.Robot, seed: int) -> System:
    """The system of a robot in motion, half of its joints active, with joint forces."""
    q, v = robot.random_state(seed)
    s = system(robot, q, v, active=np.random.default_rng(seed).random(robot.nv) < 0.5)
    return s.giving(**{name: x for name, x in random_vectors(s).items() if name != "beta"})


@pytest.mark.parametrize("row", rows())
def test_on_robots(row: Identity) -> None:
    """Forests with every hinge kind, armature and massless bodies, in motion."""
    for seed in range(3):
        robot = robot_for(row, seed)
        s = moving(robot, seed)
        if symbols(row) & {"mass_by", "H_cross"}:
            frame = robot.hinges[-1].name
        elif symbols(row) & REBASED:
            frame = robot.bodies[-1].name
            if robot.parents.count(-1) > 1:
                continue
        else:
            frame = "tool"
        for one in variants(at(row, frame)):
            holds(one, s, 1e-9)


def test_conditions_are_needed() -> None:
    """A row that asks for a condition fails without it: none is asked for in vain."""
    asked = [row for row in TABLE if row.needs and not symbols(row) & MOVING]
    asked = [row for row in asked if not free(row)]
    for row in asked:
        failures = 0
        for seed in range(6):
            s = random_system(seed, n=6)
            one = at(row, "tool")
            left, right = sides(one, s, **random_vectors(s))
            failures += bool(np.abs(left - right).max() > 1e-6 * max(1.0, np.abs(left).max()))
        assert failures, f"{row.name} {row.text} holds without {row.needs}"


def test_conditions_of_rates_are_needed() -> None:
    """Each of them, on robots that meet the others."""
    rates = [row for row in TABLE if symbols(row) & MOVING and "mass_by" not in symbols(row)]
    asked = [(row, need) for row in rates for need in row.needs]
    for row, need in asked:
        one = replace(row, needs=tuple(other for other in row.needs if other != need))
        both = (sides(one, moving(robot_for(one, seed), seed)) for seed in range(3))
        errors = [np.abs(left - right).max() / max(1.0, np.abs(left).max()) for left, right in both]
        assert max(errors) > 1e-6, f"{row.name} {row.text} holds without {need}"


def test_the_table_is_proved() -> None:
    """Rows of the pure algebra follow from each other: the simplifier proves them."""
    unknown = MOVING | DUAL | REBASED | {"Upsilon", "Upsilon_plus"}
    algebra = [row for row in TABLE if not symbols(row) & unknown]
    assert len(algebra) > 90
    for row in algebra:
        for one in variants(row):
            assert Equation(one.left, one.right).proved(row.needs), one.text


def test_a_wrong_identity_is_not_proved() -> None:
    """As printed: [SOA] states I1 without armature, [DL] (4.4) loses a transpose elsewhere."""
    from phipsi.operators import E_psi, M, P, psi

    assert not Equation(M, P - E_psi @ P @ E_psi.T).proved()
    assert Equation(M, P - E_psi @ P @ E_psi.T).proved(["no armature"])
    assert not Equation(psi @ M @ psi.T, psi @ P + P @ psi.T).proved(["no armature"])


def test_rows_are_complete() -> None:
    for row in TABLE:
        assert row.name
        assert set(row.needs) <= CONDITIONS.keys()
        assert row.source or row.name in ("no armature",) or row.name.startswith("definition")
    assert {row.name for row in TABLE} >= {f"I{i}" for i in range(1, 25)}
