"""`pp.verify`: sound robots are sound, and each check notices what it is there for."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import phipsi as pp
from phipsi.cli.app import app
from phipsi.model.hinges import HingeName
from phipsi.operators import E_psi, M, P
from phipsi.operators.algebra.identities import Identity
from phipsi.verification import Check, Verification, code, dynamics, peers, states
from phipsi.verification.slope import slope
from phipsi.verification.states import States
from phipsi.verification.table import TABLE
from tests.each import each
from tests.zoo import random_forest

ALL = {row.name for row in TABLE}
HERE = {"CUDA"}
"""Checks that are left out without a GPU."""


def tower() -> pp.Robot:
    """Two trees with free bases, a spherical hinge and armature within them."""
    builder = pp.Builder("tower")
    kinds: dict[str, HingeName] = {"a": "free", "b": "spherical", "c": "revolute", "d": "free"}
    for name, kind in kinds.items():
        parent = {"b": "a", "c": "b"}.get(name, "world")
        builder.body(name, mass=1.0, com=(0.1, 0.2, 0.3), inertia=(0.4, 0.5, 0.6))
        armature = 0.1 if kind == "revolute" else 0.0
        builder.hinge(
            name, kind, parent, name, position=(0.5, 0.1, 0.0), armature=armature,
            axis=(0.0, 1.0, 0.0) if kind == "revolute" else None,
        )  # fmt: skip
    return builder.build()


# ---- sound robots -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["double_pendulum", "puma560"])
def test_packaged_robots_are_sound(name: str):
    found = pp.verify(pp.robots.ROBOTS[name]())
    assert found.sound, str(found)


def test_every_check_is_made_of_a_robot_that_fits_them_all():
    found = pp.verify(tower())
    assert found.sound, str(found)
    assert {check.name for check in found.checks} | HERE == ALL


def test_a_forest_of_every_hinge_is_sound():
    """With massless bodies, and a condition number of 2e3."""
    found = pp.verify(random_forest(9, 3))
    assert found.sound and found.condition > 1e3, str(found)


def test_a_potential_energy_whose_terms_cancel_is_sound():
    x = States(random_forest(1059, 6), 0)
    (row,) = (row for row in TABLE if row.name == "gravity")
    error, tolerance, _ = row.run(x)
    assert error <= tolerance < 1e-12


def test_limits_without_meaning_are_not_reached():
    """Propellers in URDFs have limits of 1e16 rad, where an angle has no digits left."""
    builder = pp.Builder("rotor")
    builder.body("rotor", mass=0.005, inertia=(1e-6, 1e-6, 2e-6))
    builder.hinge("spin", "revolute", "world", "rotor", axis=(0, 0, 1), lower=-1e16, upper=1e16)
    x = States(builder.build(), 0)
    assert np.abs(x.q).max() < 20.0 and len(set(x.q[:, 0])) == len(x.q)
    rail = builder.build().edit()
    rail.replace_hinge("spin", lower=(1e3,), upper=(1e9,))
    q = States(rail.build(), 0).q
    assert (q >= 1e3).all() and (q <= 1e3 + 20.0).all()


def test_robots_of_many_bodies_leave_out_what_would_take_long(monkeypatch: pytest.MonkeyPatch):
    """As one of more than 64 bodies does."""
    for module in (states, code):
        monkeypatch.setattr(module, "DENSE", 1)
    monkeypatch.setattr(peers, "MANY", 1)
    found = pp.verify(pp.robots.double_pendulum())
    assert found.sound, str(found)
    gone = {"identities", "mass matrix", "loops", "Pinocchio", "MuJoCo"}
    assert gone <= set(found.left_out) and found.left_out["loops"] == "2 bodies are not unrolled"
    assert found.condition > 5.0  # by power iterations
    for name in ("equation of motion", "inverse", "power", "machine code"):
        assert found[name].ok


def test_a_light_last_body_is_a_base_too():
    """It accelerates much more than the forces of the others show."""
    builder = pp.Builder("feather")
    builder.body("hull", mass=100.0, inertia=(10.0, 10.0, 10.0))
    builder.hinge("free", "free", "world", "hull")
    builder.body("tip", mass=1e-6, com=(0.0, 0.0, 1e-3), inertia=(1e-12, 1e-12, 1e-12))
    builder.hinge("turn", "revolute", "hull", "tip", position=(1.0, 0.0, 0.0), axis=(0, 1, 0))
    found = pp.verify(builder.build())
    assert found.sound and found["another base"].error < 1e-12, str(found)


def almost(offset: float, links: int) -> pp.Robot:
    """A chain whose centres of mass are at this offset from their hinges."""
    builder = pp.Builder("almost")
    for k in range(links):
        builder.body(f"b{k}", mass=1.0, com=(offset, 0.0, 0.0), inertia=(0.4, 0.5, 0.6))
        parent, place = (f"b{k - 1}" if k else "world"), (1.0, 0.0, 0.0)
        builder.hinge(f"h{k}", "revolute", parent, f"b{k}", position=place, axis=(0, 1, 0))
    return builder.build()


def test_mujoco_takes_inertial_frames_for_those_of_bodies():
    """Within 1e-6, which is avoided where that can be."""
    pytest.importorskip("mujoco")
    two, one = (pp.verify(almost(5e-7, links)) for links in (2, 1))
    assert two.sound and two["MuJoCo"].tolerance < 1e-11, str(two)
    assert one.sound and "within 1e-6" in one.left_out["MuJoCo"], str(one)
    assert pp.verify(almost(0.0, 1))["MuJoCo"].ok


def test_a_robot_that_cannot_move_is_read_again():
    builder = pp.Builder("rock")
    builder.body("rock", mass=1.0, inertia=(1.0, 1.0, 1.0)).hinge("weld", "weld", "world", "rock")
    found = pp.verify(builder.build())
    assert found.sound and [check.name for check in found.checks] == ["JSON"]


def test_the_states_are_those_of_the_seed():
    robot = pp.robots.double_pendulum()
    errors = [[c.error for c in pp.verify(robot, seed=k).checks] for k in (1, 1, 2)]
    assert errors[0] == errors[1] != errors[2]


def test_only_robots_are_verified():
    with pytest.raises(TypeError, match=r"^verify needs a Robot, got str$"):
        pp.verify("ur5.urdf")  # type: ignore[arg-type]


# ---- what is wrong is noticed -------------------------------------------------------------------


def wrong(function: Any, part: float = 1e-6) -> Any:
    """A function whose results are off by a millionth, each number by another part of it."""

    def off(x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple(map(off, x))
        x = np.asarray(x)
        return x * (1.0 + part * np.sin(np.arange(1.0, 1.0 + x.shape[-1]))) if x.ndim else x

    def call(*args: Any, **options: Any) -> Any:
        return off(function(*args, **options))

    for name in ("compile", "function"):
        if hasattr(function, name):
            setattr(call, name, getattr(function, name))
    return call


def not_compiled_right(function: Any) -> Any:
    """A program whose kernels are wrong."""

    def call(*args: Any, **options: Any) -> Any:
        return function(*args, **options)

    call.function = function.function  # type: ignore[attr-defined]
    call.compile = lambda *args, **options: wrong(function.compile(*args, **options))  # type: ignore[attr-defined]
    return call


def rounded_otherwise(function: Any) -> Any:
    """A program that rounds single states differently."""

    def call(robot: pp.Robot, q: Any, *rest: Any) -> Any:
        found = np.asarray(function(robot, q, *rest))
        return np.nextafter(found, np.inf) if q.ndim == 1 else found

    return call


def much_off(function: Any) -> Any:
    """Off by more than single precision allows."""
    return wrong(function, 0.1)


MUTANTS: list[tuple[str, Any, str, Any]] = [
    ("mass matrix", dynamics, "mass_matrix", wrong),
    ("inverse", dynamics, "mass_matrix_solve", wrong),
    ("forward and inverse dynamics", dynamics, "inverse_dynamics", wrong),
    ("power", dynamics, "kinetic_energy", wrong),
    ("gravity", dynamics, "gravity_force", wrong),
    ("momentum", dynamics, "momentum", wrong),
    ("momentum", dynamics, "center_of_mass", wrong),
    ("Jacobian", dynamics, "jacobian", wrong),
    ("Jacobian", dynamics, "frame_pose", wrong),
    ("derivatives", dynamics, "inverse_dynamics", wrong),
    ("equation of motion", states, "forward_dynamics", wrong),
    ("power", states, "forward_dynamics", wrong),
    ("machine code", code, "exact", wrong),
    ("interpreter", code, "_run", wrong),
    ("single precision", code, "_run", much_off),
    ("loops", code, "forward_dynamics", not_compiled_right),
    ("batches", code, "inverse_dynamics", rounded_otherwise),
    ("another base", code, "inverse_dynamics", wrong),
    ("Pinocchio", peers, "from_pinocchio", wrong),
    ("MuJoCo", peers, "from_mujoco", wrong),
    ("JSON", code, "from_json", lambda read: lambda text: read(text).with_gravity((0, 0, 1))),
    ("quaternions", pp.Robot, "integrate", wrong),
]  # fmt: skip


@each("name, home, function, mutation", MUTANTS)
def test_each_check_fails_where_something_is_wrong(
    name: str, home: Any, function: str, mutation: Any
):
    x = States(tower(), 0)
    (row,) = (row for row in TABLE if row.name == name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home, function, mutation(getattr(home, function)))
        error, tolerance, _ = row.run(x)
    assert error > 2.0 * tolerance, f"{error:.1e} of {tolerance:.1e}"
    error, tolerance, _ = row.run(States(tower(), 0))
    assert error <= tolerance


def test_every_check_has_a_mutant():
    assert {name for name, *_ in MUTANTS} | HERE | {"identities", "equivalent robot"} == ALL


def test_a_wrong_identity_is_noticed(monkeypatch: pytest.MonkeyPatch):
    """As printed in [SOA]: it holds without armature alone."""
    printed = Identity("as printed", M, P - E_psi @ P @ E_psi.T)
    monkeypatch.setattr(dynamics, "TABLE", (*dynamics.TABLE, printed))
    found = pp.verify(tower())
    assert [check.name for check in found.failed] == ["identities"]
    assert "'as printed'" in found["identities"].note


def test_a_robot_whose_programs_are_wrong_is_not_sound():
    """Programs are traced on `Robot.equivalent`; here it has a body that is a millionth heavier.
    Dense matrices, peers and Python over long double are made of the robot itself."""

    def made(mass: float) -> pp.Robot:
        builder = pp.Builder("one of its kind")  # no cache has another trace of it
        for k, axis in enumerate(((0, 1, 0), (1, 0, 0), (0, 1, 0))):
            parent = f"b{k - 1}" if k else "world"
            builder.body(f"b{k}", mass=mass, com=(0.1, 0.2, 0.3), inertia=(0.4, 0.5, 0.6))
            builder.hinge(f"h{k}", "revolute", parent, f"b{k}", position=(0.3, 0, 1), axis=axis)
        return builder.build()

    robot = made(1.5)
    robot.__dict__["equivalent"] = made(1.5 * (1.0 + 1e-6))
    found = pp.verify(robot)
    assert not found.sound and f"{len(found.failed)} of " in str(found)
    failed = {check.name for check in found.failed}
    assert failed >= {"mass matrix", "equation of motion", "machine code", "equivalent robot"}
    assert failed >= {"Pinocchio", "MuJoCo"} and "interpreter" not in failed


def test_a_check_that_cannot_be_computed_has_failed(monkeypatch: pytest.MonkeyPatch):
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("no\nway")

    monkeypatch.setattr(dynamics, "gravity_force", broken)
    found = pp.verify(pp.robots.double_pendulum())
    assert [check.name for check in found.failed] == ["gravity"]
    assert found["gravity"].note == "ZeroDivisionError: no way"
    with pytest.raises(KeyError, match="no check 'grav' was made; there are identities"):
        _ = found["grav"]


def test_an_error_that_is_no_number_is_too_large():
    check = Check("a", "b", float("nan"), 1.0, 0.0)
    found = Verification("robot", 1.0, (check,), {})
    assert not check.ok and not found.sound and "FAILED a" in str(found)


def test_a_slope_knows_its_error():
    found, error = slope(lambda t: np.sin(3.0 * t)[:, None, None] * np.array([[1.0], [1e6]]))
    gap = np.abs(found[:, 0] - np.array([3.0, 3e6]))
    assert (gap <= 4.0 * error).all() and (error < 1e-11 * np.array([1.0, 1e6])).all()


# ---- the command line ---------------------------------------------------------------------------


def test_doctor_verifies_a_robot():
    result = CliRunner().invoke(app, ["doctor", "--robot", "double_pendulum", "--json"])
    found = json.loads(result.stdout)
    assert result.exit_code == 0 and found["sound"] and found["robot"] == "double_pendulum"
    assert {c["name"] for c in found["checks"]} | set(found["left_out"]) == ALL
    assert all(c["ok"] and c["error"] <= c["tolerance"] for c in found["checks"])


def test_doctor_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch):
    checks = (Check("power", "this", float("inf"), 1e-9, 0.1), Check("JSON", "that", 0.0, 0.0, 0.1))
    monkeypatch.setattr(pp, "verify", lambda robot: Verification("r", 2.0, checks, {"CUDA": "no"}))
    result = CliRunner().invoke(app, ["doctor", "--robot", "double_pendulum"])
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == "r: 1 of 2 checks FAILED in 0.2 s, condition 2.0e+00"
    result = CliRunner().invoke(app, ["doctor", "--robot", "double_pendulum", "--json"])
    assert result.exit_code == 1 and json.loads(result.stdout)["checks"][0]["error"] is None


def test_doctor_takes_a_base_for_files_alone():
    result = CliRunner().invoke(app, ["doctor", "--base", "free"])
    assert result.exit_code == 2 and "--robot" in result.stderr
    result = CliRunner().invoke(app, ["doctor", "--robot", "space_amr"])
    assert result.exit_code == 2 and "did you mean 'space_arm'?" in result.stderr
