"""The words of the sweeps beside plain NumPy and the dense operators, unrolled and looped.

Results are those of the interpreter in long double: what is wrong is then the words, not rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phipsi as pp
from phipsi.operators.algebra.symbols import H, mass, phi
from phipsi.operators.dense import matrix, system
from phipsi.operators.lowering.steps import riccati
from phipsi.spatial import Compliance, Force, Motion, SpatialInertia
from phipsi.sweeps import (
    Forest,
    columns,
    forest,
    gather,
    inward,
    local,
    outward,
    over_siblings,
    stack,
    total,
)
from tests.sweeps.test_looped import flat, inside, loops
from tests.zoo import State, close, forests

some = settings(max_examples=max(1, settings().max_examples // 12))
forms = pytest.mark.parametrize("unroll", [True, False], ids=["unrolled", "looped"])


def run(program: pp.Program, robot: pp.Robot, unroll: bool, **arguments: Any) -> Any:
    """The result of a program; arrays are called with, the rest is compiled."""
    fixed = {k: v for k, v in arguments.items() if not isinstance(v, np.ndarray)}
    called = {k: v for k, v in arguments.items() if k not in fixed}
    how: dict[str, Any] = {"backend": "numpy", "dtype": "longdouble"}
    kernel = program.compile(robot, unroll=unroll, **how, **fixed)
    assert not (unroll and loops(kernel.graph))
    return kernel(**called)


# ---- compliance: Alg UPS ------------------------------------------------------------------------


def compliance(k: Any, parent: Any) -> dict[str, Any]:
    """Υ = τ̄*φ*Υφτ̄ + H*D⁻¹H   [SOA] Application 2"""
    return {"Ups": parent.Ups.carried(k.phi).through(k.G, k.H)}


def compliant(x: Forest) -> Forest:
    return outward(compliance, inward(riccati, x), Ups=Compliance.zero())


@pp.program
def compliances(robot: pp.Robot, q: Any) -> Any:
    return stack(compliant(forest(robot, q)), "Ups", (6, 6))


def dense_compliances(robot: pp.Robot, q: Any, on: Any = True) -> tuple[np.ndarray, float]:
    """J 𝓜⁻¹ J* of every body, of the freedoms that are on; and how well it can be known."""
    x, on = system(robot, q), np.full(robot.nv, True) & on
    J = np.stack(np.split(matrix(phi.T @ H.T, x), robot.nb))[:, :, on]
    whole = matrix(mass, x)[np.ix_(on, on)]
    scale = 1e-14 * np.linalg.cond(whole) if on.any() else 0.0
    return J @ np.linalg.inv(whole) @ J.swapaxes(1, 2), scale + 1e-11


@forms
@some
@given(forests())
def test_compliances_are_those_of_the_dense_operators(unroll: bool, robot: pp.Robot) -> None:
    q = State(robot).q
    found = run(compliances, robot, unroll, q=q)
    close(found, *dense_compliances(robot, q))
    assert (found == found.swapaxes(1, 2)).all()


# ---- passive and active hinges ------------------------------------------------------------------


def passive(k: Any) -> dict[str, Any]:
    """H_p = diag(p) H,  A_p = A p + (1 − p)   [UA] (4.6)"""
    return {"H": k.H.masked(k.p), "A": k.A * k.p + (1.0 - k.p)}


def underactuated(robot: pp.Robot, q: Any, p: Any) -> Any:
    x = compliant(local(passive, forest(robot, q, p=p)))
    return stack(x, "Ups", (6, 6)), columns(x, "G")


@forms
@pytest.mark.parametrize("traced", [True, False], ids=["traced", "constant"])
@some
@given(forests(), st.integers(0, 2**30))
def test_passive_freedoms_alone_yield(
    unroll: bool, traced: bool, robot: pp.Robot, bits: int
) -> None:
    q, on = State(robot).q, np.array([bits >> i & 1 for i in range(robot.nv)], bool)
    if traced:
        program, p = pp.program(shapes={"p": ("nv",)})(underactuated), on.astype(float)
    else:
        program, p = pp.program(static=("p",))(underactuated), tuple(on.astype(float))
    found, G = run(program, robot, unroll, q=q, p=p)
    close(found, *dense_compliances(robot, q, on))
    assert not G[:, ~on].any()


# ---- vectors of bodies --------------------------------------------------------------------------


def collect(k: Any, children: Any) -> dict[str, Any]:
    """f = Σ φf,  T = Hf"""
    f = children.sum(lambda c: c.phi @ c.f, k.f)
    return {"f": f, "T": k.H @ f}


def spread(k: Any, parent: Any) -> dict[str, Any]:
    """V = φ*V_p + u"""
    return {"V": k.phi.T @ parent.V + k.u}


@pp.program(shapes={"f": ("nb", 6), "u": ("nb", 6)})
def placed(robot: pp.Robot, q: Any, f: Any, u: Any) -> Any:
    """T = H φ f and the power f* φ* u"""
    x = outward(spread, forest(robot, q).placed(Force, f=f).placed(Motion, u=u), V=Motion.zero())
    power = total(local(lambda k: {"power": k.V.dot(k.f)}, x), "power", 0.0)
    back = {"f": stack(x, "f"), "u": stack(x, "u")}
    return {"T": gather(inward(collect, x), "T"), "power": power, **back}


@forms
@some
@given(forests())
def test_vectors_are_placed_where_people_see_them(unroll: bool, robot: pp.Robot) -> None:
    s = State(robot)
    f, u, x = s.external, State(robot, seed=8).external, system(robot, s.q)
    for same in (robot, robot.equivalent):
        found = run(placed, same, unroll, q=s.q, f=f, u=u)
        close(found["T"], matrix(H @ phi, x) @ f.reshape(-1))
        close(found["power"], f.reshape(-1) @ matrix(phi.T, x) @ u.reshape(-1))
    found = run(placed, robot, unroll, q=s.q, f=f, u=u)
    np.testing.assert_array_equal(found["f"], f)
    np.testing.assert_array_equal(found["u"], u)


def test_vectors_of_a_part_of_the_forest() -> None:
    robot = pp.robots.chain(4)
    x = forest(robot, robot.neutral().astype(object))
    rows = np.arange(24.0).reshape(4, 6)
    part = x.chain(1).placed(Force, f=rows)
    assert [k.f.array.tolist() for k in part.records] == rows[:2].tolist()
    with pytest.raises(ValueError, match="zip"):
        x.placed(Motion, u=rows[:3])


# ---- siblings -----------------------------------------------------------------------------------


def report(k: Any) -> dict[str, Any]:
    """f and its moment about the parent's origin"""
    return {"f_others": k.f, "moment": (k.phi @ k.f).angular}


@pp.program(shapes={"f": ("nb", 6)})
def siblings(robot: pp.Robot, q: Any, f: Any) -> Any:
    x = over_siblings(
        report, forest(robot, q).placed(Force, f=f), f_others=Force.zero(), moment=np.zeros(3)
    )
    x = local(lambda k: {"moment": Force(k.moment, np.zeros(3))}, x)
    return stack(x, "f_others"), stack(x, "moment")[:, :3]


def sums_over_siblings(robot: pp.Robot, rows: np.ndarray) -> np.ndarray:
    parents, n = np.array(robot.parents), np.arange(robot.nb)
    beside = (parents[:, None] == parents) & (n[:, None] != n)
    return beside.astype(float) @ rows


@forms
@some
@given(forests(max_bodies=9))
def test_sums_over_siblings(unroll: bool, robot: pp.Robot) -> None:
    s = State(robot)
    found, moments = run(siblings, robot, unroll, q=s.q, f=s.external)
    close(found, sums_over_siblings(robot, s.external), 1e-15)
    x = forest(robot, s.q.astype(object)).placed(Force, f=s.external)
    own = np.array([(k.phi @ k.f).angular.tolist() for k in x.records])
    close(moments, sums_over_siblings(robot, own), 1e-14)


def star(n: int) -> pp.Robot:
    """A free body with n others on it."""
    builder = pp.Builder("star").body("hub", 1.0, inertia=np.eye(3))
    builder.hinge("base", "free", "world", "hub")
    for i in range(n):
        builder.body(f"ray{i}", 1.0, com=(0.5, 0.0, 0.0), inertia=np.eye(3))
        builder.hinge(f"hinge{i}", "revolute", "hub", f"ray{i}", axis=(0.0, 0.0, 1.0))
    return builder.build()


@forms
def test_a_large_message_spoils_no_sum(unroll: bool) -> None:
    """Nobody sums all and takes its own away."""
    robot = star(5)
    f = np.arange(36.0).reshape(6, 6)
    f[2] = 1e30
    found, _ = run(siblings, robot, unroll, q=robot.neutral(), f=f)
    assert found[2].tolist() == f[[1, 3, 4, 5]].sum(0).tolist()


def test_sums_over_siblings_are_linear_in_their_number() -> None:
    @pp.program(shapes={"f": ("nb", 6)})
    def summed(robot: pp.Robot, f: Any) -> Any:
        x = forest(robot, robot.neutral()).placed(Force, f=f)
        return stack(over_siblings(lambda k: {"sum": k.f}, x, sum=Force.zero()), "sum")

    assert summed.graph(star(40), unroll=True).operations <= 3 * 6 * 40
    graphs = [summed.graph(star(n), unroll=False) for n in (100, 200)]
    assert inside(graphs[0]) == inside(graphs[1]) > 0
    assert "siblings <lambda>" in summed.show(star(2))


# ---- the dual articulated inertia: Alg DUAL -----------------------------------------------------

UNIT = SpatialInertia.of(1.0, inertia=np.eye(3)).articulated
"""What a free root hangs on: any inertia will do, for it is not felt."""


def felt(k: Any) -> dict[str, Any]:
    """φP⁺φ*"""
    return {"siblings": k.phi.congruence(k.P_plus)}


def dual(k: Any, parent: Any) -> dict[str, Any]:
    """S⁺ = φ⁻¹(M_p + S_p + Σ φP⁺φ*)φ⁻*,  S = S⁺ − S⁺H*(HS⁺H* + A)⁻¹HS⁺   [BI] Alg 3.1, repaired"""
    S_plus = k.phi.inv.congruence(parent.rest + k.siblings)
    S = S_plus.released(S_plus.gain(k.H, k.A))
    return {"S": S, "rest": k.M.articulated + S}


def inverse(k: Any) -> dict[str, Any]:
    """Υ = (P + S)⁻¹, and the Υ of that   [BI] Lemma 4.1"""
    units = [Force.of(e) for e in np.eye(6)]
    inertia = (k.P + k.S).inv
    Y = np.stack([(inertia @ f).array for f in units], axis=1)
    Ups = Compliance(Y[:3, :3], Y[:3, 3:], Y[3:, 3:])
    again = Ups.inv
    return {"Ups": Ups, "one": sum((again @ (Ups @ f) for f in units), Force.zero())}


@pp.program
def base_invariant(robot: pp.Robot, q: Any) -> Any:
    zero = SpatialInertia.zero().articulated
    x = over_siblings(felt, inward(riccati, forest(robot, q)), siblings=zero)
    x = local(inverse, outward(dual, x, S=zero, rest=UNIT))
    return stack(x, "Ups", (6, 6)), stack(x, "one"), stack(x, "S", (6, 6))


@forms
@some
@given(forests(max_bodies=7, roots=("free",), massless=False))
def test_dual_articulated_inertias_on_a_free_base(unroll: bool, robot: pp.Robot) -> None:
    roots = [h for h, p in zip(robot.hinges, robot.parents, strict=True) if p < 0]
    robot = robot.with_parameters({f"armature:{h.name}": np.zeros(6) for h in roots})
    q = State(robot).q
    found, one, S = run(base_invariant, robot, unroll, q=q)
    close(found, *dense_compliances(robot, q))
    close(one, np.ones((robot.nb, 6)))
    assert not S[np.array(robot.parents) < 0].any()


@pytest.mark.parametrize("program", [base_invariant, compliances])
def test_machine_code(program: pp.Program) -> None:
    """Looped machine code on a batch."""
    robot = star(4)
    q, _ = robot.random_state(0, (5,))
    found = program.compile(robot, unroll=False)(q)
    expected = program.compile(robot, unroll=True, backend="numpy")(q)
    for x, y in zip(flat(found), flat(expected), strict=True):
        close(x, y, 1e-11)
