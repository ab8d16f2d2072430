"""Under-actuated robots against dense elimination, Pinocchio, differences and what is conserved."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import phipsi as pp
from phipsi.conventions import Reference
from phipsi.operators.algebra import symbols as o
from phipsi.operators.algebra.system import WEIGHTS
from phipsi.operators.dense import matrix, system
from tests.agreement.peers import SWAP, with_normal_z
from tests.agreement.test_hinges import pin
from tests.algorithms.test_base_invariant import flyer, runge_kutta
from tests.zoo import MOVING, State, close, forests, random_forest

law = settings(max_examples=settings().max_examples // 16)
references = pytest.mark.parametrize("reference", ["local", "world", "aligned"])
ROBOTS = {
    "tree": random_forest(176, 6),
    "forest": random_forest(16, 6),
    "bare": random_forest(39, 5, kinds=MOVING, armature=False),
}
"""Together they have every hinge kind, branches, roots, massless bodies, armature and none."""
robots = pytest.mark.parametrize("robot", ROBOTS.values(), ids=ROBOTS)
FRAME = "body4"
"""A body far from the world."""


pytestmark = pytest.mark.usefixtures("interpreted")


# ---- oracles ------------------------------------------------------------------------------------


class Dense:
    """The blocks of [UA] Lemma 5.1, by elimination from 𝓜; (nv, nv), zero elsewhere."""

    def __init__(self, mass: np.ndarray, active: np.ndarray) -> None:
        self.mass, self.active, p = mass, active, ~active
        self.S_pp = np.zeros_like(mass)
        self.S_pp[np.ix_(p, p)] = np.linalg.inv(mass[np.ix_(p, p)])
        self.J_D = -(self.S_pp @ mass) * active
        self.S_ap = -self.J_D.T
        self.S_aa = (mass + mass @ self.J_D) * np.outer(active, active)

    @classmethod
    def of(cls, robot: pp.Robot, q: np.ndarray, active: np.ndarray) -> Dense:
        return cls(matrix(o.mass, system(robot, q)), active)

    def J_G(self, J: np.ndarray) -> np.ndarray:
        return (J + J @ self.J_D) * self.active

    def exchange(self, tau: np.ndarray, qdd: np.ndarray, bias: np.ndarray) -> Any:
        """T and β̇, with T_p of tau and β̇_a of qdd."""
        known = np.where(self.active, qdd, 0.0)
        found = known + self.J_D @ known + self.S_pp @ (tau - bias)
        return self.mass @ found + bias, found

    @property
    def tolerance(self) -> float:
        return 1e-10 + 1e-14 * float(np.linalg.cond(self.mass))


class Peer:
    """A robot in Pinocchio at a state, its results in our layout."""

    def __init__(self, robot: pp.Robot, s: State) -> None:
        self.robot, self.s, self.model = robot, s, pp.interop.to_pinocchio_model(robot)
        self.data = self.model.createData()
        self.q, self.v = pp.interop.to_pinocchio(robot, s.q, s.v, joints=self.model)

    def _ours(self, x: np.ndarray) -> np.ndarray:
        rows = [pp.interop.from_pinocchio(self.robot, self.q, tau=row, joints=self.model)[1]
                for row in np.atleast_2d(x)]  # fmt: skip
        return np.array(rows).reshape(x.shape)

    def inverse_dynamics(self, qdd: np.ndarray) -> np.ndarray:
        a = pp.interop.to_pinocchio(self.robot, self.s.q, a=qdd, joints=self.model)[1]
        forces = [pin.Force.Zero(), *(pin.Force(f[3:], f[:3]) for f in self.s.external)]
        at = self.model, self.data, self.q, self.v, a
        return self._ours(pin.rnea(*at, pin.StdVec_Force(forces)))

    def mass_matrix(self) -> np.ndarray:
        upper = np.triu(pin.crba(self.model, self.data, self.q))
        return self._ours(self._ours(upper + np.triu(upper, 1).T).T)

    def jacobian(self, body: str, reference: str) -> np.ndarray:
        own = {"local": "LOCAL", "world": "WORLD", "aligned": "LOCAL_WORLD_ALIGNED"}[reference]
        pin.computeJointJacobians(self.model, self.data, self.q)
        i = self.robot.body_index(body) + 1
        J = pin.getJointJacobian(self.model, self.data, i, getattr(pin.ReferenceFrame, own))
        return self._ours(J[SWAP])


def along(robot: pp.Robot, q: Any, v: Any, qdd: Any, f: Callable[[Any, Any], Any]) -> Any:
    """d/dt of f(q, v) as q moves with v and v with qdd, by differences of order h⁸."""
    h = 5e-3 / max(1.0, float(np.linalg.norm(v)))
    t = h * np.arange(1, 5)[:, None]
    ahead, behind = (f(robot.integrate(q, x * v), v + x * qdd) for x in (t, -t))
    return np.tensordot(WEIGHTS, np.asarray(ahead) - np.asarray(behind), 1) / h


def coordinate_rates(robot: pp.Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """q̇ of joint rates v, whatever the hinges."""
    return along(robot, q, v, 0 * v, lambda q, v: q)


def still(robot: pp.Robot) -> pp.Robot:
    return robot.with_gravity((0.0, 0.0, 0.0))


# ---- hybrid dynamics ----------------------------------------------------------------------------


@law
@given(forests())
def test_hybrid_dynamics_eliminates_the_passive_accelerations(robot: pp.Robot) -> None:
    """Masks mixed within hinges, gravity, armature, massless bodies, external forces; what is not
    asked for is not read, what is given comes back bit for bit."""
    s = State(robot)
    dense = Dense.of(robot, s.q, s.active)
    bias = pp.bias_force(robot, s.q, s.v, external=s.external)
    T, b = dense.exchange(s.tau, s.a, bias)
    known, wanted = np.where(s.active, np.nan, s.tau), np.where(s.active, s.a, np.nan)
    tau, qdd = pp.hybrid_dynamics(robot, s.q, s.v, known, wanted, s.active, external=s.external)
    assert (tau[~s.active] == s.tau[~s.active]).all()
    assert (qdd[s.active] == s.a[s.active]).all()
    close(qdd, b, dense.tolerance)
    close(tau, T, dense.tolerance)
    close(pp.inverse_dynamics(robot, s.q, s.v, qdd, external=s.external), tau, 1e-9)


@law
@given(forests())
def test_all_passive_is_forward_and_all_active_inverse_dynamics(robot: pp.Robot) -> None:
    s = State(robot)
    at, lost = (robot, s.q, s.v), np.full(robot.nv, np.nan)
    every = np.ones(robot.nv, bool)
    free = pp.hybrid_dynamics(*at, s.tau, lost, ~every, external=s.external)
    close(free.qdd, pp.forward_dynamics(*at, s.tau, external=s.external), 1e-9)
    assert (free.tau == s.tau).all()
    led = pp.hybrid_dynamics(*at, lost, s.a, every, external=s.external)
    close(led.tau, pp.inverse_dynamics(*at, s.a, external=s.external))
    assert (led.qdd == s.a).all()


def test_external_forces_by_name_are_forces_on_bodies() -> None:
    robot = ROBOTS["tree"]
    s, wrench = State(robot), np.arange(6.0)
    pulled = s.tau + pp.jacobian(robot, s.q, "tool").T @ wrench
    at, free = (robot, s.q, s.v), ~s.active
    found = pp.hybrid_dynamics(*at, s.tau, s.a, s.active, external={"tool": wrench})
    expected = pp.hybrid_dynamics(*at, pulled, s.a, s.active)
    close(found.qdd, expected.qdd, 1e-11)
    close((found.tau - expected.tau + pulled - s.tau)[s.active], 0 * s.tau[s.active], 1e-10)
    drift = pp.drift_accelerations(*at, s.tau, FRAME, s.active, external={"tool": wrench})
    other = pp.drift_accelerations(*at, pulled, FRAME, s.active)
    close(drift.frame, other.frame, 1e-11)
    close(drift.joints[free], other.joints[free], 1e-11)


@cache
def peer(base: str) -> Peer:
    robots = {
        "fixed": lambda: random_forest(33, 5, kinds=MOVING, massless=False),
        "free": lambda: flyer(10, 5, kinds=MOVING, massless=False),
        "space_arm": pp.robots.space_arm,
    }
    robot = with_normal_z(robots[base]())
    return Peer(robot, State(robot))


@pytest.mark.parametrize("base", ["fixed", "free", "space_arm"])
def test_pinocchio_returns_the_forces(base: str) -> None:
    robot, s = peer(base).robot, peer(base).s
    rng = np.random.default_rng(0)
    for _ in range(4):
        active = rng.random(robot.nv) < 0.5
        tau, qdd = pp.hybrid_dynamics(
            robot, s.q, s.v, s.tau, s.a, active, external=s.external
        )  # fmt: skip
        close(peer(base).inverse_dynamics(qdd), tau)
        T, b = Dense(peer(base).mass_matrix(), active).exchange(
            s.tau, s.a, peer(base).inverse_dynamics(0 * s.a)
        )
        close(tau, T)
        close(qdd, b)


@robots
def test_every_row_of_a_batch_has_its_own_split_in_one_kernel(robot: pp.Robot) -> None:
    s = State(robot, (2, 3))
    at = s.q, s.v, s.tau, s.a
    first = pp.hybrid_dynamics(robot, *at, s.active)
    kernels = list(pp.hybrid_dynamics._kernels.values())
    for i in np.ndindex(2, 3):
        one = pp.hybrid_dynamics(robot, s.q[i], s.v[i], s.tau[i], s.a[i], s.active[i])
        close(first.tau[i], one.tau, 1e-12)
        close(first.qdd[i], one.qdd, 1e-12)
    spread = pp.hybrid_dynamics(robot, s.q[0, 0], s.v[0, 0], s.tau[0, 0], s.a[0, 0], s.active)
    assert spread.tau.shape == (2, 3, robot.nv)
    close(spread.qdd[0, 0], first.qdd[0, 0], 1e-12)
    whole = pp.hybrid_dynamics(robot, *at, s.active[0, 0])
    close(whole.tau[0, 0], first.tau[0, 0], 1e-12)
    again = list(pp.hybrid_dynamics._kernels.values())
    assert len(again) == len(kernels)
    assert all(a is b for a, b in zip(kernels, again, strict=True))


@robots
def test_truth_values_of_any_type_are_the_same(robot: pp.Robot) -> None:
    s = State(robot)
    at = robot, s.q, s.v, s.tau, s.a
    expected = pp.hybrid_dynamics(*at, s.active)
    for active in (s.active.astype(int), s.active.astype(float), s.active.tolist(),
                   tuple(s.active.tolist()), s.active.astype(np.float32)):  # fmt: skip
        found = pp.hybrid_dynamics(*at, active)
        assert (found.tau == expected.tau).all() and (found.qdd == expected.qdd).all()


@pytest.mark.parametrize(
    "names", ["hinge1", ["hinge3"], ("hinge0", "hinge4"), [], (), ["hinge2", "hinge2"]], ids=repr
)
def test_names_of_hinges_are_their_mask(names: Any) -> None:
    robot = ROBOTS["tree"]
    s = State(robot)
    mask = robot.mask(*((names,) if isinstance(names, str) else names))
    at = robot, s.q, s.v, s.tau, s.a
    found, expected = (pp.hybrid_dynamics(*at, active) for active in (names, mask))
    close(found.tau, expected.tau, 1e-11)
    close(found.qdd, expected.qdd, 1e-11)


def test_names_are_masks_of_all_programs() -> None:
    robot, names = random_forest(39, 3, kinds=MOVING), ["hinge1", "hinge2"]
    s = State(robot)
    mask, at = robot.mask(*names), (robot, s.q)
    for f, more in (
        (pp.active_mass_matrix, ()),
        (pp.coupling, ()),
        (pp.passive_mass_inverse, ()),
        (pp.disturbance_jacobian, ()),
        (pp.generalized_jacobian, ("tool",)),
        (pp.passive_rates, (s.v,)),
        (pp.disturbance_jacobian_product, (s.w,)),
        (pp.generalized_jacobian_product, (s.w, "tool")),
    ):
        program: Any = f
        close(program(*at, *more, names), program(*at, *more, mask), 1e-11)
    drift = (pp.drift_accelerations(*at, s.v, s.tau, "tool", active) for active in (names, mask))
    for x, y in zip(*drift, strict=True):
        close(x, y, 1e-11)
    x, y = (pp.manipulability(*at, "tool", active).values for active in (names, mask))
    close(x, y, 1e-11)


def test_names_and_masks_may_alternate_in_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHIPSI_BACKEND", "llvm")
    robot = pp.robots.chain(2, "helical")
    s = State(robot)
    at = robot, s.q, s.v, s.tau, s.a
    expected = {i: pp.hybrid_dynamics.compile(robot, backend="numpy")(*at[1:], np.arange(2) == i)
                for i in range(2)}  # fmt: skip
    for _ in range(2):
        for i, name in enumerate(("joint1", "joint2")):
            for active in (name, np.arange(2) == i, [name], (np.arange(2) == i).astype(float)):
                close(pp.hybrid_dynamics(*at, active).tau, expected[i].tau, 1e-13)
                close(pp.hybrid_dynamics(*at, active=active).qdd, expected[i].qdd, 1e-13)


# ---- edges --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MOVING)
def test_one_body(kind: str) -> None:
    robot = random_forest(3, 1, kinds=(kind,))
    s = State(robot)
    rng = np.random.default_rng(1)
    masks = [np.ones(robot.nv, bool), np.zeros(robot.nv, bool), rng.random(robot.nv) < 0.5]
    for active in masks:
        dense = Dense.of(robot, s.q, active)
        T, b = dense.exchange(s.tau, s.a, pp.bias_force(robot, s.q, s.v))
        tau, qdd = pp.hybrid_dynamics(robot, s.q, s.v, s.tau, s.a, active)
        close(tau, T)
        close(qdd, b)
        close(pp.active_mass_matrix(robot, s.q, active), dense.S_aa)
        J = pp.jacobian(robot, s.q, "tool")
        close(pp.generalized_jacobian(robot, s.q, "tool", active), dense.J_G(J))


@robots
def test_no_active_and_no_passive_joint(robot: pp.Robot) -> None:
    s = State(robot)
    every, none = np.ones(robot.nv, bool), np.zeros((robot.nv, robot.nv))
    mass, frame = pp.mass_matrix(robot, s.q), FRAME
    J = pp.jacobian(robot, s.q, frame)
    close(pp.active_mass_matrix(robot, s.q, every), mass)
    close(pp.generalized_jacobian(robot, s.q, frame, every), J)
    close(pp.passive_mass_inverse(robot, s.q, ~every), np.linalg.inv(mass), 1e-9)
    for active in (every, ~every):
        for f in (pp.coupling, pp.disturbance_jacobian):
            assert (f(robot, s.q, active) == none).all()
    assert (pp.active_mass_matrix(robot, s.q, ~every) == none).all()
    assert (pp.passive_mass_inverse(robot, s.q, every) == none).all()
    assert (pp.generalized_jacobian(robot, s.q, frame, ~every) == 0.0).all()
    assert (pp.passive_rates(robot, s.q, s.v, every) == s.v).all()
    assert (pp.disturbance_jacobian_product(robot, s.q, s.w, every) == 0.0).all()
    assert (pp.passive_rates(robot, s.q, s.v, ~every) == 0.0).all()
    drift = pp.drift_accelerations(robot, s.q, s.v, s.tau, frame, ~every)
    close(drift.joints, pp.forward_dynamics(robot, s.q, s.v, s.tau), 1e-9)
    held = pp.drift_accelerations(robot, s.q, s.v, s.tau, frame, every)
    assert (held.joints == 0.0).all()
    close(held.frame, pp.frame_acceleration(robot, s.q, s.v, 0 * s.v, frame))


def test_an_active_joint_may_move_what_has_no_mass() -> None:
    """D = 0 along it: nothing to divide by, for masks that are known and unknown."""
    builder = pp.Builder("tip").body("arm", mass=1, com=(0.3, 0, 0), inertia=(0.1, 0.1, 0.1))
    builder.hinge("swing", "revolute", "world", "arm", axis=(0, 0, 1))
    builder.body("tip", mass=1, inertia=(1, 1, 1))
    builder.hinge("turn", "spherical", "arm", "tip", position=(1, 0, 0))
    robot = builder.build().with_parameters({"inertia:tip": np.zeros(10)})
    q, v = robot.random_state(0)
    a, tau = np.array([np.nan, 1.0, 2.0, 3.0]), np.array([2.0, np.nan, np.nan, np.nan])
    swing = (2.0 - pp.bias_force(robot, q, v)[0]) / 0.19  # 0.1 + 1 · 0.3²
    for active in ("turn", ~robot.mask("swing")):
        found = pp.hybrid_dynamics(robot, q, v, tau, a, active)
        close(found.qdd, [swing, 1, 2, 3])
        close(found.tau, [2, 0, 0, 0])
        close(pp.active_mass_matrix(robot, q, active), np.zeros((4, 4)))


def polar() -> pp.Robot:
    """A point mass on a turning slide: T = mr²θ̈ + 2mrṙθ̇, F = mr̈ − mrθ̇²."""
    builder = pp.Builder("polar", gravity=(0, 0, 0)).body("arm", mass=0)
    builder.hinge("turn", "revolute", "world", "arm", axis=(0, 0, 1))
    builder.body("mass", mass=2).hinge("slide", "prismatic", "arm", "mass", axis=(1, 0, 0))
    return builder.frame("tool", "mass").build()


@pytest.mark.parametrize("r", [1.0, 1e-3, 1e-6, 1e-9])
def test_small_inertia_is_still_right(r: float) -> None:
    """D = mr² of the passive turn down to 10⁻¹⁸, beside the closed form."""
    robot, q = polar(), np.array([0.4, r])
    v, tau, qdd = np.array([3.0, 0.5]), np.array([0.7, np.nan]), np.array([np.nan, 1.1])
    tau, qdd = pp.hybrid_dynamics(robot, q, v, tau, qdd, robot.mask("slide"))
    expected = (0.7 - 2 * 2.0 * r * 0.5 * 3.0) / (2.0 * r * r)
    assert qdd[0] == pytest.approx(expected, rel=1e-10)
    assert tau[1] == pytest.approx(2.0 * 1.1 - 2.0 * r * 9.0, rel=1e-10)


def test_a_passive_joint_without_inertia_gives_no_numbers() -> None:
    """At r = 0 nothing resists the turn: no wrong answer; active, it is no trouble."""
    robot, q, one = polar(), np.array([0.4, 0.0]), np.ones(2)
    with np.errstate(all="ignore"):
        assert not np.isfinite(
            pp.hybrid_dynamics(robot, q, one, one, one, robot.mask("slide")).qdd[0]
        )
    close(pp.hybrid_dynamics(robot, q, one, one, one, robot.mask("turn")).qdd, [1.0, 0.5])


NEEDS = "hybrid_dynamics: active needs truth values or names of hinges"


@pytest.mark.parametrize(
    ("active", "error", "words"),
    [
        ([True] * 10, ValueError, "hybrid_dynamics: active has shape (10,), needs (..., 11)"),
        ([1] * 12, ValueError, "hybrid_dynamics: active has shape (12,), needs (..., 11)"),
        (True, ValueError, "hybrid_dynamics: active has shape (), needs (..., 11)"),
        ([0, 1, 2], ValueError, f"{NEEDS}, got positions [0, 1, 2]"),
        (None, TypeError, f"{NEEDS}, got None"),
        (["hinge0", 1], TypeError, f"{NEEDS}, got ['hinge0', 1]"),
        ({"hinge0"}, TypeError, f"{NEEDS}, got {{'hinge0'}}"),
        (
            ["hinge0", "hinge9"],
            pp.ModelError,
            "robot 'zoo' has no hinge 'hinge9'; did you mean",
        ),
        ("arm", pp.ModelError, "robot 'zoo' has no hinge 'arm'; it has 'hinge0', 'hinge1'"),
    ],
    ids=["short", "long", "one", "positions", "None", "mixed", "set", "typo", "name"],
)
def test_masks_that_are_none_are_refused_in_one_sentence(
    active: Any, error: type[Exception], words: str
) -> None:
    robot = ROBOTS["tree"]
    s = State(robot)
    with pytest.raises(error) as caught:
        pp.hybrid_dynamics(robot, s.q, s.v, s.tau, s.a, active)
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    "program",
    [pp.active_mass_matrix, pp.coupling, pp.passive_mass_inverse, pp.disturbance_jacobian],
    ids=lambda program: program.name,
)
def test_every_program_checks_its_mask(program: Any) -> None:
    robot = ROBOTS["tree"]
    q, _ = robot.random_state(0)
    with pytest.raises(ValueError, match=rf"^{program.name}: active has shape \(3,\), needs"):
        program(robot, q, [True] * 3)
    with pytest.raises(ValueError, match=rf"^{program.name}: active needs truth values or names"):
        program(robot, q, np.arange(robot.nv))
    with pytest.raises(pp.ModelError, match="has no hinge 'elbow'"):
        program(robot, q, "elbow")


def test_truth_is_the_same_on_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers but zero are true, whole ones but 1 are refused, whatever was called before."""
    monkeypatch.setenv("PHIPSI_BACKEND", "llvm")
    robot = pp.robots.chain(2, "prismatic")
    s = State(robot)
    expected = pp.hybrid_dynamics(robot, s.q, s.v, s.tau, s.a, [True, True])
    for _ in range(3):
        found = pp.hybrid_dynamics(robot, s.q, s.v, s.tau, s.a, np.array([2.0, 0.5]))
        np.testing.assert_array_equal(found, expected)
        with pytest.raises(ValueError, match="needs truth values or names of hinges, got pos"):
            pp.hybrid_dynamics(robot, s.q, s.v, s.tau, s.a, np.array([2, 0]))

    @pp.program
    def inside(robot: pp.Robot, q: Any) -> Any:
        return pp.active_mass_matrix(robot, q, np.array([2, 5]))

    with pytest.raises(ValueError, match="needs truth values or names of hinges, got positions"):
        inside(robot, s.q)
    for odd in (None, {"slide0"}, np.array(["a", "b"]), ["joint0", 1]):
        with pytest.raises(TypeError, match="active needs truth values or names of hinges, got"):
            pp.active_mass_matrix(robot, s.q, odd)  # type: ignore[arg-type]


# ---- in programs, number types, loops, costs ----------------------------------------------------

LAST = np.array([*[False] * 6, *[True] * 7])


@pp.program
def constant(robot: pp.Robot, q: Any, v: Any, tau: Any, qdd: Any) -> Any:
    return pp.hybrid_dynamics(robot, q, v, tau, qdd, LAST)


@pp.program
def decided(robot: pp.Robot, q: Any, v: Any, tau: Any, qdd: Any) -> Any:
    return pp.hybrid_dynamics(robot, q, v, tau, qdd, v > 0.0)


@pp.program(shapes={"qdd": ("nv",), "mask": ("nv",)})
def handed(robot: pp.Robot, q: Any, v: Any, tau: Any, qdd: Any, mask: Any) -> Any:
    return pp.hybrid_dynamics(robot, q, v, tau, qdd, active=mask)


def test_masks_in_programs_of_users() -> None:
    """Constants fold; what is computed or handed in decides where it runs."""
    robot = pp.robots.space_arm()
    s = State(robot, (3,))
    at = s.q, s.v, s.tau, s.a
    for found, mask in (
        (constant(robot, *at), LAST),
        (decided(robot, *at), s.v > 0.0),
        (handed(robot, *at, s.active), s.active),
    ):
        expected = pp.hybrid_dynamics(robot, *at, mask)
        close(found.tau, expected.tau, 1e-12)
        close(found.qdd, expected.qdd, 1e-12)
    names = [h.name for h in robot.hinges[1:]]
    folded = constant.graph(robot, qdd=s.a[0]).operations
    assert folded == pp.hybrid_dynamics.graph(robot, active=names).operations
    traced = pp.hybrid_dynamics.graph(robot).operations
    assert handed.graph(robot).operations == traced
    assert folded < 0.8 * traced
    with pytest.raises(ValueError, match=r"active has shape \(13,\), needs \(6,\)"):
        constant(pp.robots.puma560(), *(np.zeros(6) for _ in range(4)))


def test_single_precision() -> None:
    robot = pp.robots.dual_space_arm()
    s = State(robot, (5,))
    at = s.q, s.v, s.tau, s.a
    expected = pp.hybrid_dynamics(robot, *at, s.active)
    q, v, tau, a = (x.astype(np.float32) for x in at)
    found = pp.hybrid_dynamics(robot, q, v, tau, a, s.active)
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == np.float32
        close(x, y, 1e-3)
    assert (found.qdd[s.active] == a[s.active]).all()


@pytest.mark.parametrize("robot", [ROBOTS["forest"], ROBOTS["bare"]], ids=["forest", "bare"])
def test_loops_give_the_same(robot: pp.Robot) -> None:
    s, frame = State(robot), FRAME
    looped, unrolled = (
        pp.hybrid_dynamics.compile(robot, unroll=unroll, external=s.external)(
            s.q, s.v, s.tau, s.a, s.active, s.external
        )
        for unroll in (False, True)
    )
    close(looped.tau, unrolled.tau)
    close(looped.qdd, unrolled.qdd)
    drift, other = (
        pp.drift_accelerations.compile(robot, unroll=unroll, frame=frame)(s.q, s.v, s.tau, s.active)
        for unroll in (False, True)
    )
    close(drift.frame, other.frame)


def test_a_long_chain_in_loops_is_right_to_rounding() -> None:
    robot = pp.robots.chain(200, kind="spherical")
    s = State(robot)
    v = 0.1 * s.v
    tau, qdd = pp.hybrid_dynamics(robot, s.q, v, s.tau, s.a, s.active)
    size = np.abs(pp.bias_force(robot, s.q, v)).max()  # what cancels on the way back
    assert np.abs(pp.inverse_dynamics(robot, s.q, v, qdd) - tau).max() <= 1e-11 * size


COUNTED = {
    "puma560": pp.robots.puma560, "space_arm": pp.robots.space_arm, "snake": pp.robots.snake,
    "humanoid": pp.robots.humanoid, "chain": lambda: pp.robots.chain(16),
    "tree": lambda: ROBOTS["tree"], "forest": lambda: ROBOTS["forest"],
}  # fmt: skip


@pytest.mark.parametrize("robot", [pytest.param(robot, id=name) for name, robot in COUNTED.items()])
def test_no_dearer_than_forward_and_inverse_dynamics(robot: Callable[[], pp.Robot]) -> None:
    own, forward, inverse = (
        program.graph(robot()).operations
        for program in (pp.hybrid_dynamics, pp.forward_dynamics, pp.inverse_dynamics)
    )
    assert own <= forward + inverse


def test_known_splits_of_wide_hinges_are_no_dearer() -> None:
    """An unknown mask hides what forward dynamics knows of D and G there; a known one does not."""
    robot = pp.robots.chain(8, "spherical")
    whole = sum(p.graph(robot).operations for p in (pp.forward_dynamics, pp.inverse_dynamics))
    names = [h.name for h in robot.hinges]
    for active in (names[::2], names[1::2], names[:4], names[4:]):
        assert pp.hybrid_dynamics.graph(robot, active=active).operations <= whole
    assert pp.hybrid_dynamics.graph(robot).operations <= 1.5 * whole


def test_loops_over_bodies_do_not_grow() -> None:
    graphs = [pp.hybrid_dynamics.graph(pp.robots.chain(n, "spherical")) for n in (100, 200)]
    small, large = (len([x for x in g.nodes if x.op == "where"]) for g in graphs)
    assert small == large


def test_known_splits_cost_what_they_are() -> None:
    for robot in (pp.robots.puma560(), pp.robots.space_arm(), ROBOTS["tree"]):
        names = [h.name for h in robot.hinges]
        own = pp.hybrid_dynamics.graph
        inverse = pp.inverse_dynamics.graph(robot).operations
        assert own(robot, active=names).operations == inverse
        forward = pp.forward_dynamics.graph(robot).operations
        assert own(robot, active=[]).operations <= 1.02 * forward
        assert own(robot, active=names[1:]).operations < forward


@pytest.mark.parametrize(
    ("program", "options"),
    [
        (pp.hybrid_dynamics, {}),
        (pp.drift_accelerations, {"frame": "tool"}),
        (pp.generalized_jacobian, {"frame": "tool"}),
        (pp.generalized_jacobian_product, {"frame": "tool"}),
        (pp.disturbance_jacobian_product, {}),
        (pp.passive_rates, {}),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_cost_is_linear(program: Any, options: dict[str, Any]) -> None:
    first, second, third = (
        program.graph(pp.robots.chain(n, base="free"), **options).operations for n in (8, 16, 32)
    )
    assert third - second == pytest.approx(2 * (second - first), rel=0.03)


# ---- matrices and Jacobians ---------------------------------------------------------------------


@law
@given(forests())
def test_blocks_and_jacobians_by_elimination(robot: pp.Robot) -> None:
    s = State(robot)
    dense = Dense.of(robot, s.q, s.active)
    at, scale = (robot, s.q), dense.tolerance
    S_aa, S_pp = (f(*at, s.active) for f in (pp.active_mass_matrix, pp.passive_mass_inverse))
    close(S_aa, dense.S_aa, scale)
    close(S_pp, dense.S_pp, scale)
    assert (S_aa == S_aa.T).all() and (S_pp == S_pp.T).all()
    close(pp.coupling(*at, s.active), dense.S_ap, scale)
    J_D = pp.disturbance_jacobian(*at, s.active)
    close(J_D, dense.J_D, scale)
    assert not J_D[s.active].any() and not J_D[:, ~s.active].any()
    unread = np.where(s.active, s.w, np.nan)
    close(pp.disturbance_jacobian_product(*at, unread, s.active), dense.J_D @ s.w, scale)
    rates = pp.passive_rates(*at, unread, s.active)
    assert (rates[s.active] == s.w[s.active]).all()
    close((pp.mass_matrix(*at) @ rates)[~s.active], np.zeros((~s.active).sum()), 10 * scale)
    J_G, expected = (
        pp.generalized_jacobian(*at, "tool", s.active),
        dense.J_G(pp.jacobian(*at, "tool")),
    )
    close(J_G, expected, scale)
    assert not J_G[:, ~s.active].any()
    found = pp.generalized_jacobian_product(*at, unread, "tool", s.active)
    close(found, expected @ s.w, scale)


@references
@pytest.mark.parametrize("robot", [ROBOTS["tree"], ROBOTS["bare"]], ids=["tree", "bare"])
def test_references(robot: pp.Robot, reference: Reference) -> None:
    """J_G = J_a + J_pJ_D in every reference."""
    s = State(robot, (2,))
    J = pp.jacobian(robot, s.q, FRAME, reference=reference)
    found = pp.generalized_jacobian(robot, s.q, FRAME, s.active, reference=reference)
    product = pp.generalized_jacobian_product(robot, s.q, s.w, FRAME, s.active, reference=reference)
    for i in range(2):
        expected = Dense.of(robot, s.q[i], s.active[i]).J_G(J[i])
        close(found[i], expected)
        close(product[i], expected @ s.w[i])


def test_frames_on_the_world_do_not_move() -> None:
    builder = ROBOTS["tree"].edit()
    robot = builder.frame("post", "world", position=(1, 2, 3), rpy=(0.1, 0.2, 0.3)).build()
    s = State(robot)
    cases: list[tuple[str, Reference]]
    cases = [("post", "local"), ("post", "aligned"), ("world", "world")]
    for frame, reference in cases:
        at = frame, s.active
        J_G = pp.generalized_jacobian(robot, s.q, *at, reference=reference)
        assert (J_G == np.zeros((6, robot.nv))).all()
        x = pp.generalized_jacobian_product(robot, s.q, s.w, *at, reference=reference)
        assert (x == np.zeros(6)).all()
        drift = pp.drift_accelerations(robot, s.q, s.v, s.tau, *at, reference=reference)
        assert not drift.frame.any() and drift.joints.any()


@references
@pytest.mark.parametrize("base", ["free", "space_arm"])
def test_free_flyers_beside_pinocchio(base: str, reference: Reference) -> None:
    """J_D = −𝓜_pp⁻¹𝓜_pa and J_G = J_a + J_pJ_D with their 𝓜 and J, the base passive."""
    robot, s = peer(base).robot, peer(base).s
    roots = [h.name for h, p in zip(robot.hinges, robot.parents, strict=True) if p < 0]
    active = ~robot.mask(*roots)
    dense = Dense(peer(base).mass_matrix(), active)
    close(pp.disturbance_jacobian(robot, s.q, active), dense.J_D)
    close(pp.active_mass_matrix(robot, s.q, active), dense.S_aa)
    for body in (robot.bodies[-1].name, robot.bodies[0].name):
        expected = dense.J_G(peer(base).jacobian(body, reference))
        found = pp.generalized_jacobian(robot, s.q, body, active, reference=reference)
        close(found, expected)


# ---- accelerations ------------------------------------------------------------------------------


@robots
def test_frame_accelerations_are_derivatives_of_velocities(robot: pp.Robot) -> None:
    s = State(robot)
    frames = ("tool", FRAME)
    for frame in frames:
        views: dict[Reference, bool] = {"local": False, "world": False, "aligned": True}
        for reference, classical in views.items():

            def velocity(
                q: Any, v: Any, frame: str = frame, reference: Reference = reference
            ) -> Any:
                return pp.frame_velocity(robot, q, v, frame, reference=reference)

            found = pp.frame_acceleration(
                robot, s.q, s.v, s.a, frame, reference=reference, classical=classical
            )
            close(found, along(robot, s.q, s.v, s.a, velocity), 1e-8)
    own, i = (
        pp.frame_acceleration(robot, s.q, s.v, s.a, FRAME, reference="aligned"),
        robot.body_index(FRAME),
    )
    close(own, pp.accelerations(robot, s.q, s.v, s.a, reference="aligned")[i], 1e-12)
    for classical in (False, True):
        rest = pp.frame_acceleration(robot, s.q, s.v, s.a, "world", classical=classical)
        assert (rest == 0.0).all()


@pytest.mark.parametrize(
    ("robot", "reference", "classical"),
    [*zip(ROBOTS.values(), ("local", "world", "aligned"), (False, True, True), strict=True)],
    ids=ROBOTS,
)
def test_accelerations_are_linear_in_the_active_ones(
    robot: pp.Robot, reference: Reference, classical: bool
) -> None:
    """α = J_Gβ̇_a + drift and β̇_p = J_Dβ̇_a + drift, the motion by dense elimination."""
    s, frame = State(robot), FRAME
    seen: dict[str, Reference] = {"reference": reference}
    unread = np.where(s.active, np.nan, s.tau)
    drift = pp.drift_accelerations(
        robot, s.q, s.v, unread, frame, s.active, external=s.external, classical=classical, **seen
    )
    J_G = pp.generalized_jacobian(robot, s.q, frame, s.active, **seen)
    J_D = pp.disturbance_jacobian(robot, s.q, s.active)
    assert not drift.joints[s.active].any()
    bias = pp.bias_force(robot, s.q, s.v, external=s.external)
    dense = Dense.of(robot, s.q, s.active)
    for a in (s.a, s.w, 0 * s.a):
        _, qdd = dense.exchange(s.tau, a, bias)
        close((J_D @ a + drift.joints)[~s.active], qdd[~s.active], 1e-9)
        alpha = pp.frame_acceleration(robot, s.q, s.v, qdd, frame, classical=classical, **seen)
        close(J_G @ a + drift.frame, alpha, 1e-9)


def test_a_tip_follows_while_the_base_floats() -> None:
    """β̇_a = J_G⁺(α − drift) gives α ([UA] 6.2), in the classical sense too."""
    robot = pp.robots.space_arm()
    s, active = State(robot), ~robot.mask("base")
    wanted = np.array([0.1, -0.2, 0.3, 1.0, 2.0, -1.0])
    for classical in (False, True):
        how = {"reference": "aligned", "classical": classical}
        drift = pp.drift_accelerations(robot, s.q, s.v, s.tau, "tool", active, **how)
        J_G = pp.generalized_jacobian(robot, s.q, "tool", active, reference="aligned")
        push = np.linalg.pinv(J_G) @ (wanted - drift.frame)
        tau, qdd = pp.hybrid_dynamics(robot, s.q, s.v, s.tau, push, active)
        close(tau[:6], s.tau[:6], 0.0)
        close(pp.forward_dynamics(robot, s.q, s.v, tau), qdd, 1e-9)
        close(pp.frame_acceleration(robot, s.q, s.v, qdd, "tool", **how), wanted)


# ---- momentum -----------------------------------------------------------------------------------


@law
@given(forests())
def test_passive_rates_have_the_given_momenta(robot: pp.Robot) -> None:
    """β_p = J_Dβ_a + 𝓜_pp⁻¹p, so that p = (𝓜β)_p."""
    s = State(robot)
    dense = Dense.of(robot, s.q, s.active)
    v, p = np.where(s.active, s.v, np.nan), np.where(s.active, np.nan, s.tau)
    found = pp.passive_rates(robot, s.q, v, s.active, p)
    assert (found[s.active] == s.v[s.active]).all()
    expected = (dense.J_D @ s.v + dense.S_pp @ s.tau)[~s.active]
    close(found[~s.active], expected, dense.tolerance)
    back = pp.passive_rates(robot, s.q, v, s.active, dense.mass @ s.v)
    close(back, s.v, dense.tolerance)


@pytest.mark.parametrize("base", ["free", "space_arm"])
def test_momentum_changes_by_the_base_force_gravity_and_external_forces(base: str) -> None:
    """d/dt of the momentum about the world's origin is φT_base and the wrench of all else."""
    robot = flyer(10, 5, massless=False) if base == "free" else pp.robots.space_arm()
    robot = robot.with_gravity((1.0, 2.0, -9.0))
    s = State(robot)
    roots = [h for h, p in zip(robot.hinges, robot.parents, strict=True) if p < 0]
    active = ~robot.mask(*(h.name for h in roots))
    _, qdd = pp.hybrid_dynamics(robot, s.q, s.v, s.tau, s.a, active, external=s.external)
    rate = along(robot, s.q, s.v, qdd, lambda q, v: pp.momentum(robot, q, v))
    wrench = np.zeros(6)
    forces = s.external.copy()
    for h in roots:
        forces[robot.body_index(h.child)] += s.tau[h.v]
    for X, force in zip(pp.poses(robot, s.q), forces, strict=True):
        moment, linear = X[:3, :3] @ force[:3], X[:3, :3] @ force[3:]
        wrench += [*(moment + np.cross(X[:3, 3], linear)), *linear]
    weight = robot.mass * np.asarray(robot.gravity, float)
    wrench += [*np.cross(pp.center_of_mass(robot, s.q), weight), *weight]
    close(rate, wrench, 1e-8)


def swinging(robot: pp.Robot, active: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The rate of (t, q, v) in one row: active joints swing, passive ones are left alone."""
    kernel = pp.hybrid_dynamics.compile(robot, backend="llvm")
    rng = np.random.default_rng(5)
    size, pace, phase = rng.uniform(-2, 2, robot.nv), rng.uniform(1, 6, robot.nv), rng.normal()
    none = np.zeros(robot.nv)

    def rate(x: np.ndarray) -> np.ndarray:
        q, v = x[1 : 1 + robot.nq], x[1 + robot.nq :]
        qdd = kernel(q, v, none, size * np.sin(pace * x[0] + phase), active).qdd
        return 0.4 * np.concatenate(([1.0], coordinate_rates(robot, q, v), qdd))

    return rate


@pytest.mark.parametrize("moving", [False, True], ids=["at rest", "tumbling"])
@pytest.mark.parametrize("base", ["free", "space_arm"])
def test_swinging_joints_keep_momentum(base: str, moving: bool) -> None:
    """0.4 s of it: what the base does is J_Dβ_a and what the momentum, which stays, adds."""
    robot = flyer(12, 4, massless=False) if base == "free" else pp.robots.space_arm()
    robot = still(robot)
    roots = [h.name for h, p in zip(robot.hinges, robot.parents, strict=True) if p < 0]
    assert len(roots) == 1
    passive = robot.mask(*roots)
    s = State(robot)
    v = 0.5 * s.v if moving else pp.passive_rates(robot, s.q, 0.5 * s.v, ~passive)
    start = pp.momentum(robot, s.q, v)
    assert moving == (np.abs(start).max() > 1e-9)
    end = runge_kutta(swinging(robot, ~passive), np.concatenate(([0.0], s.q, v)), 100)
    q, v = end[1 : 1 + robot.nq], end[1 + robot.nq :]
    assert np.abs(q - s.q).max() > 0.05
    assert np.abs(pp.momentum(robot, q, v) - start).max() <= 1e-9 * robot.mass
    J_D = pp.disturbance_jacobian(robot, q, ~passive)
    if not moving:
        close((J_D @ v)[passive], v[passive], 1e-9)
        return
    about = np.zeros(robot.nv)
    about[passive] = pp.momentum(robot, q, v, about="base")
    close(pp.passive_rates(robot, q, v, ~passive, about), v, 1e-10)
    assert np.abs((J_D @ v - v)[passive]).max() > 1e-3


# ---- singularities ------------------------------------------------------------------------------


@robots
def test_manipulability_is_the_singular_values_of_the_dense_jacobian(robot: pp.Robot) -> None:
    s, frame = State(robot, (3,)), FRAME
    J = pp.jacobian(robot, s.q, frame, reference="aligned")
    cases: list[Any] = [
        (None, range(6)),
        ("angular", range(3)),
        ("linear", range(3, 6)),
        ((5, 0), (5, 0)),
        ([2], [2]),
    ]
    for rows, own in cases:
        found = pp.manipulability(robot, s.q, frame, s.active, rows=rows, reference="aligned")
        m = len(own)
        assert found.rates.shape == (3, m, robot.nv) and found.directions.shape == (3, m, m)
        for i in range(3):
            J_G = Dense.of(robot, s.q[i], s.active[i]).J_G(J[i])[list(own)]
            values = np.linalg.svd(J_G, compute_uv=False)
            close(found.values[i], values)
            close(found.measure[i] ** 2, np.linalg.det(J_G @ J_G.T), 1e-9)
            close(J_G @ found.rates[i].T, found.directions[i] * values)
            assert np.abs(found.rates[i][values > 1e-9][:, ~s.active[i]]).max(initial=0.0) < 1e-10


def test_manipulability_of_few_joints_and_none() -> None:
    """Rows that fewer joints cannot span vanish; all active it is the ordinary Jacobian's."""
    robot = pp.robots.planar_chain(3)
    q, _ = robot.random_state(0)
    J = pp.jacobian(robot, q, "tool")
    found = pp.manipulability(robot, q, "tool", np.ones(3, bool))
    assert found.values.shape == (6,) and found.rates.shape == (6, 3)
    close(found.values[:3], np.linalg.svd(J, compute_uv=False))
    assert (found.values[3:] == 0.0).all() and found.measure == 0.0
    assert (pp.manipulability(robot, q, "tool", []).values == 0.0).all()
    assert (pp.manipulability(robot, q, "world", ["joint1"]).values == 0.0).all()


@pytest.mark.parametrize("rows", ["lin", (), (0, 0), (6,), (-1,), (0.5,), (True,), 6], ids=repr)
def test_rows_that_are_none(rows: Any) -> None:
    robot = pp.robots.planar_chain(2)
    q = np.zeros(2)
    for f in (pp.manipulability, pp.dynamic_singularities):
        with pytest.raises(ValueError) as caught:
            f(robot, q, "tool", "joint1", rows=rows)
        needs = "needs 'angular', 'linear' or different numbers below 6"
        assert str(caught.value) == f"{f.__name__}: rows is {rows!r}, {needs}"


def test_manipulability_is_no_part_of_programs() -> None:
    @pp.program
    def inside(robot: pp.Robot, q: Any) -> Any:
        return pp.manipulability(robot, q, "tool", "joint1").values

    with pytest.raises(TypeError, match="use generalized_jacobian inside"):
        inside(pp.robots.planar_chain(2), np.zeros(2))


def skater() -> pp.Robot:
    """A body that floats in the plane, with an arm of two links."""
    builder = pp.Builder("skater", gravity=(0, 0, 0))
    builder.body("base", mass=4, inertia=(1, 1, 0.6))
    builder.hinge("base", "planar", "world", "base", axis=(0, 0, 1))
    builder.body("upper", mass=2, com=(0.5, 0, 0), inertia=(0.1, 0.2, 0.2))
    builder.hinge("shoulder", "revolute", "base", "upper", axis=(0, 0, 1), position=(0.5, 0, 0))
    builder.body("lower", mass=2, com=(0.5, 0, 0), inertia=(0.1, 0.2, 0.2))
    builder.hinge("elbow", "revolute", "upper", "lower", axis=(0, 0, 1), position=(1, 0, 0))
    return builder.frame("tool", "lower", position=(1, 0, 0)).build()


def test_dynamic_singularities_are_not_those_of_the_arm() -> None:
    """Where the floating arm loses a direction, the same arm on the ground does not."""
    robot, rows = skater(), (3, 4)
    active, rng = ~robot.mask("base"), np.random.default_rng(2)
    q = np.zeros((24, 5))
    q[:, 3:] = rng.uniform(-3, 3, (24, 2))
    found = pp.dynamic_singularities(robot, q, "tool", active, rows=rows)
    assert found.q.shape == q.shape and found.value.shape == found.found.shape == (24,)
    assert found.found.sum() >= 12
    assert (found.q[:, :3] == 0.0).all()  # moved along the active joints alone
    apart = 0
    for at, value, singular in zip(found.q, found.value, found.found, strict=True):
        J = pp.jacobian(robot, at, "tool")
        J_G = Dense.of(robot, at, active).J_G(J)[[3, 4]]
        values = np.linalg.svd(J_G, compute_uv=False)
        close(value, values[-1])
        if singular:
            assert values[-1] <= 1e-9 * values[0]
            apart += np.linalg.svd(J[3:5, 3:], compute_uv=False)[-1] > 0.05
    assert apart >= 6
    one = pp.dynamic_singularities(robot, q[0], "tool", ["shoulder", "elbow"], rows=rows)
    close(one.q, found.q[0], 1e-9)


def test_passive_joints_stay_where_they_are() -> None:
    """Though the singular values depend on them; another split for every row."""
    robot, rng = pp.robots.planar_chain(3), np.random.default_rng(0)
    q = rng.uniform(0.3, 2.5, (6, 3))
    active = np.array([[True, False, True], [True, True, False]])[np.arange(6) % 2]
    found = pp.dynamic_singularities(robot, q, "tool", active, rows=(3, 5))
    assert found.found.any() and (found.q[~active] == q[~active]).all()
    for i in np.flatnonzero(found.found):
        J = pp.jacobian(robot, found.q[i], "tool")
        values = np.linalg.svd(Dense.of(robot, found.q[i], active[i]).J_G(J)[[3, 5]])[1]
        assert values[-1] <= 1e-9 * values[0]


def test_where_there_is_no_singularity_none_is_found() -> None:
    """Sliders move their tip the same everywhere; one alone spans no plane at all."""
    builder = pp.Builder("sliders", gravity=(0, 0, 0)).body("x", mass=1).body("y", mass=2)
    builder.hinge("x", "prismatic", "world", "x", axis=(1, 0, 0))
    builder.hinge("y", "prismatic", "x", "y", axis=(0, 1, 0))
    robot = builder.frame("tool", "y").build()
    none = pp.dynamic_singularities(robot, np.zeros(2), "tool", [True, True], rows=(3, 4))
    assert not none.found
    close(none.value, 1.0)
    with pytest.raises(ValueError, match="1 active freedoms never move 2 rows"):
        pp.dynamic_singularities(robot, np.zeros(2), "tool", "x", rows=(3, 4))


@pytest.mark.parametrize("active", [[True] * 3, [3, 4, 0, 1, 2]], ids=["short", "positions"])
def test_searches_check_their_mask(active: Any) -> None:
    with pytest.raises(ValueError, match=r"active (has shape|needs truth values)"):
        pp.dynamic_singularities(skater(), np.ones(5), "tool", active, rows=(3, 4))


def test_a_search_needs_as_many_joints_as_rows() -> None:
    with pytest.raises(ValueError, match="2 active freedoms never move 6 rows"):
        pp.dynamic_singularities(skater(), np.ones(5), "tool", [False] * 3 + [True] * 2)
    with pytest.raises(ValueError, match=r"q has shape \(3,\), needs \(..., 5\)"):
        pp.dynamic_singularities(skater(), np.ones(3), "tool", [True] * 5, rows=(3, 4))


def test_rows_that_are_not_numbers_spoil_no_other() -> None:
    robot = pp.robots.space_arm()
    driven = ~robot.mask("base")
    q, _ = robot.random_state(3, (4,))
    whole = pp.manipulability(robot, q, "tool", driven)
    q[2, 9] = np.nan
    found = pp.manipulability(robot, q, "tool", driven)
    for x, y in zip(found, whole, strict=True):
        assert np.isnan(x[2]).all()
        np.testing.assert_array_equal(x[[0, 1, 3]], y[[0, 1, 3]])
    ended = pp.dynamic_singularities(robot, q, "tool", driven)
    assert not ended.found[2]
    assert np.isfinite(ended.value[[0, 1, 3]]).all()


def test_passive_joints_that_nothing_holds_leave_zeros_alone() -> None:
    """D of a massless arm without reach is zero: what is not asked for is zero all the same."""
    arm = pp.Builder("arm").body("boom", mass=0)
    arm = arm.hinge("turn", "revolute", "world", "boom", axis=(0, 0, 1))
    arm = arm.body("load", mass=2).hinge("slide", "prismatic", "boom", "load", axis=(1, 0, 0))
    robot = arm.build()
    S = pp.active_mass_matrix(robot, np.zeros(2), ["slide"])
    np.testing.assert_array_equal(S[0], 0.0)
    np.testing.assert_array_equal(S[:, 0], 0.0)
