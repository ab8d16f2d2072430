"""Base-invariant dynamics against Pinocchio, dense algebra, and minimal coordinates in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.conventions import Reference
from phipsi.model.hinges import HingeName
from phipsi.operators.algebra.symbols import H, mass, phi
from phipsi.operators.dense import matrix, system
from phipsi.sweeps.messages import scheduled
from tests.agreement.peers import with_normal_z
from tests.agreement.test_hinges import pin
from tests.model.urdf_files import URDFS
from tests.sweeps.test_looped import flat
from tests.zoo import MOVING, State, close, random_forest

FREE = (
    "base_invariant_forward_dynamics", "decoupled_forward_dynamics", "dual_articulated_inertias",
    "link_accelerations", "minimal_state",
)  # fmt: skip
seeds = pytest.mark.parametrize("seed", range(4))


def flyer(seed: int, n: int = 6, **options: Any) -> pp.Robot:
    """A forest of free trees, with armature at inner hinges alone."""
    robot = random_forest(seed, n, roots=("free",), **options)
    builder = robot.edit()
    for h in robot.hinges:
        if h.parent == "world":
            builder.replace_hinge(h.name, armature=np.zeros(6))
    return builder.build()


def ways(program: Any, robot: pp.Robot, *arrays: Any, **external: Any) -> list[Any]:
    """The result unrolled, looped, and in a batch of two."""
    values = [*arrays, *external.values()]
    kernels = [program.compile(robot, unroll=u, backend="numpy", **external) for u in (True, False)]
    twice = kernels[0](*(np.stack((x, 0.5 * x)) for x in values))
    return [*(kernel(*values) for kernel in kernels), twice[0]]


@pytest.mark.parametrize("kinds", [*((kind,) for kind in MOVING), MOVING], ids="+".join)
def test_accelerations_of_every_body_are_pinocchios(kinds: tuple[str, ...]) -> None:
    """Armature, gravity, forces on the bodies and on the bases, velocities."""
    robot = with_normal_z(flyer(1, 6, kinds=kinds, massless=False))
    model = pp.interop.to_pinocchio_model(robot)
    data, s = model.createData(), State(robot)
    q, v, tau = pp.interop.to_pinocchio(robot, s.q, s.v, tau=s.tau, joints=model)
    forces = [pin.Force.Zero(), *(pin.Force(f[3:], f[:3]) for f in s.external)]
    qdd = pin.aba(model, data, q, v, tau, pin.StdVec_Force(forces))
    pin.forwardKinematics(model, data, q, v, qdd)
    alpha = np.array([[*data.a[i + 1].angular, *data.a[i + 1].linear] for i in range(robot.nb)])
    for found in ways(pp.link_accelerations, robot, s.q, s.v, s.tau, external=s.external):
        close(found, alpha)
    expected = pp.interop.from_pinocchio(robot, q, tau=qdd, joints=model)[1]
    bif = pp.base_invariant_forward_dynamics
    for found in ways(bif, robot, s.q, s.v, s.tau, external=s.external):
        close(found, expected)


@seeds
def test_dynamics_solve_the_equations_of_motion(seed: int) -> None:
    """𝓜β̇ + C = T with the dense 𝓜, massless bodies among them."""
    robot = flyer(seed)
    s = State(robot)
    bias = pp.bias_force(robot, s.q, s.v, external=s.external)
    expected = np.linalg.solve(matrix(mass, system(robot, s.q)), s.tau - bias)
    bif = pp.base_invariant_forward_dynamics
    for found in ways(bif, robot, s.q, s.v, s.tau, external=s.external):
        close(found, expected, 1e-9)


@pytest.mark.parametrize("reference", ["world", "aligned"])
def test_references_of_link_accelerations(reference: Reference) -> None:
    robot = flyer(5, 4)
    s = State(robot)
    local = pp.link_accelerations(robot, s.q, s.v, s.tau)
    found = pp.link_accelerations(robot, s.q, s.v, s.tau, reference=reference)
    for X, a, b in zip(pp.poses(robot, s.q), local, found, strict=True):
        turned = np.concatenate((X[:3, :3] @ a[:3], X[:3, :3] @ a[3:]))
        if reference == "world":
            turned[3:] += np.cross(X[:3, 3], turned[:3])
        close(b, turned)


@seeds
def test_dual_inertias_by_their_definitions(seed: int) -> None:
    """P + S = Υ⁻¹ and P⁺ + S⁺ = (φ*Υ_pφ)⁻¹ with the dense Υ = φ*H*𝓜⁻¹Hφ ([BI] Lemma 4.1)."""
    robot = flyer(seed, massless=False)
    s = State(robot)
    x = system(robot, s.q)
    J = matrix(phi.T @ H.T, x)
    Upsilon = J @ np.linalg.solve(matrix(mass, x), J.T)
    ab = pp.articulated_inertias(robot, s.q)
    for unroll in (True, False):
        kernel = pp.dual_articulated_inertias.compile(robot, backend="numpy", unroll=unroll)
        dual = kernel(s.q)
        for i, (h, p) in enumerate(zip(robot.hinges, robot.parents, strict=True)):
            own = np.s_[6 * i : 6 * i + 6]
            close(ab.P[i] + dual.S[i], np.linalg.inv(Upsilon[own, own]), 1e-9)
            G, D = dual.G_s[:, h.v], dual.D_s[h.v, h.v]
            if p < 0:
                close(np.array([dual.S[i], D]), np.zeros((2, 6, 6)))
                close(G, -np.eye(6))
                continue
            hinge = matrix(H, x)[h.v, own]
            up = np.s_[6 * p : 6 * p + 6]
            step = matrix(phi, x)[up, own]
            P_plus = ab.P[i] - ab.G[:, h.v] @ hinge @ ab.P[i]
            S_plus = np.linalg.inv(step.T @ Upsilon[up, up] @ step) - P_plus
            close(D, hinge @ S_plus @ hinge.T + np.diag(np.asarray(h.armature, float)), 1e-8)
            close(G @ D, -S_plus @ hinge.T, 1e-8)
            close(dual.S[i], S_plus + G @ hinge @ S_plus, 1e-8)


# ---- messages -----------------------------------------------------------------------------------


def edges(robot: pp.Robot) -> list[tuple[str, str]]:
    pairs = [(h.child, h.parent) for h in robot.hinges if h.parent != "world"]
    return [*pairs, *((b, a) for a, b in pairs)]


@seeds
def test_messages_may_go_in_any_order(seed: int) -> None:
    robot = flyer(seed, 7, kinds=("revolute", "spherical", "prismatic"))
    s, rng = State(robot), np.random.default_rng(seed)
    expected = pp.link_accelerations(robot, s.q, s.v, s.tau, external=s.external)
    order = edges(robot)
    for n in range(6):
        rng.shuffle(order)
        kernel = pp.link_accelerations.compile(
            robot, backend="numpy", unroll=n > 0, order=tuple(map(tuple, order)),
            external=s.external,
        )  # fmt: skip
        close(kernel(s.q, s.v, s.tau, s.external), expected, 1e-12)


def test_an_order_that_is_none_is_refused() -> None:
    robot = flyer(2, 4, branching=False, kinds=("revolute",), massless=False)
    s, order = State(robot), tuple(edges(robot))
    for wrong, words in (
        (order[1:], "is missing; each hinge between bodies has two, .* 6 in all"),
        ((*order, order[0]), "is there twice"),
        ((*order[1:], ("body0", "body3")), "no hinge connects 'body0' and 'body3'"),
    ):
        with pytest.raises(ValueError, match=words):
            pp.link_accelerations(robot, s.q, s.v, s.tau, order=wrong)


def test_orders_may_be_lists_or_tuples_of_pairs() -> None:
    robot = flyer(2, 4, branching=False, kinds=("revolute",), massless=False)
    s, order = State(robot), edges(robot)
    expected = pp.link_accelerations(robot, s.q, s.v, s.tau)
    lists: list[Any] = [list(edge) for edge in order]
    for given in (order, tuple(order), lists, tuple(lists)):
        close(pp.link_accelerations(robot, s.q, s.v, s.tau, order=given), expected, 1e-12)
        assert pp.link_accelerations.graph(robot, order=given).operations > 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (np.array([["body0", "body1"]]), "is an ndarray, needs"),
        ("abc", "is a str, needs a list of pairs"),
        (3, "is an int, needs a list of pairs"),
        ((edge for edge in [("body0", "body1")]), "is a generator, needs a list of pairs"),
        ([("body0", "body1", "body2")], r"\('body0', 'body1', 'body2'\) is no pair \(sender"),
        (["ab"], r"'ab' is no pair \(sender, receiver\) of body names"),
        ([(0, 1)], r"\(0, 1\) is no pair \(sender, receiver\) of body names"),
    ],
    ids=["array", "string", "number", "generator", "triple", "name", "numbers"],
)
def test_orders_of_other_types_are_refused_in_one_sentence(wrong: Any, words: str) -> None:
    robot = flyer(2, 4, branching=False, kinds=("revolute",), massless=False)
    s = State(robot)
    for call in (
        lambda: pp.link_accelerations(robot, s.q, s.v, s.tau, order=wrong),
        lambda: pp.link_accelerations.graph(robot, order=wrong),
    ):
        with pytest.raises(TypeError, match=f"order.* {words}"):
            call()


@seeds
def test_always_the_first_message_goes_that_can(seed: int) -> None:
    """Against the plain search: whose sender has heard all its neighbours but the receiver."""
    rng = np.random.default_rng(seed)
    pairs = [(i, int(rng.integers(i))) for i in range(1, 30)]
    order = [*pairs, *((b, a) for a, b in pairs)]
    rng.shuffle(order)
    waiting, expected = [(int(a), int(b)) for a, b in order], []
    while waiting:
        first = next((a, b) for a, b in waiting if {x for x, y in waiting if y == a} <= {b})
        waiting.remove(first)
        expected.append(first)
    assert [*scheduled([(int(a), int(b)) for a, b in order])] == expected


def test_messages_of_long_chains_and_wide_stars_are_all_sent() -> None:
    n = 50_000
    for pairs in ([(i + 1, i) for i in range(n)], [(i + 1, 0) for i in range(n)]):
        order = [*((b, a) for a, b in pairs), *pairs]
        assert sorted(scheduled(order)) == sorted(order)


def test_operations_of_a_star_grow_with_its_arms_alone() -> None:
    """Each arm hears of all others, yet no arm is added to all others one by one."""

    def operations(arms: int) -> int:
        builder = pp.Builder("star").body("hub", mass=1, inertia=(1, 1, 1))
        builder.hinge("float", "free", "world", "hub")
        for i in range(arms):
            builder.body(f"arm{i}", mass=1, com=(0.1, 0, 0), inertia=(1, 1, 1))
            builder.hinge(f"to arm{i}", "revolute", "hub", f"arm{i}", axis=(0, 0, 1))
        robot = builder.build()
        return pp.link_accelerations.graph(robot, order=edges(robot)).operations

    few, some, many = operations(8), operations(16), operations(32)
    assert many - some < 2.1 * (some - few)


# ---- bodies apart -------------------------------------------------------------------------------


@seeds
def test_decoupled_is_coupled_where_bodies_fit_together(seed: int) -> None:
    robot = flyer(seed)
    s = State(robot)
    X, V = pp.poses(robot, s.q), pp.velocities(robot, s.q, s.v)
    expected = pp.link_accelerations(robot, s.q, s.v, s.tau, external=s.external)
    decoupled = pp.decoupled_forward_dynamics
    for found in ways(decoupled, robot, X, V, s.tau, external=s.external)[:2]:
        close(found, expected, 1e-9)
    for unroll in (True, False):
        q, v = pp.minimal_state.compile(robot, backend="numpy", unroll=unroll)(X, V)
        close(v, s.v)
        close(pp.poses(robot, q), X)


def test_minimal_states_have_whole_turns_of_screws_alone() -> None:
    """A revolute hinge forgets its turns; a helical one tells them by how far it has moved."""
    builder = pp.Builder("screw").body("base", mass=1, inertia=(1, 1, 1))
    builder.hinge("float", "free", "world", "base")
    for kind in ("revolute", "helical"):
        builder.body(kind, mass=1, inertia=(1, 1, 1))
        builder.hinge(f"to {kind}", kind, "base", kind, axis=(0, 0, 1), pitch=0.1)
    robot = builder.build()
    q = robot.neutral()
    q[7:] = 1.0 + 4.0 * np.pi
    X, V = pp.poses(robot, q), np.zeros((robot.nb, 6))
    close(pp.minimal_state(robot, X, V)[0][7:], [1.0, 1.0 + 4.0 * np.pi])


def runge_kutta(rate: Callable[[Any], Any], x: np.ndarray, steps: int) -> np.ndarray:
    """One second in equal steps."""
    h = 1.0 / steps
    for _ in range(steps):
        a = rate(x)
        b = rate(x + 0.5 * h * a)
        c = rate(x + 0.5 * h * b)
        x = x + h / 6 * (a + 2 * b + 2 * c + rate(x + h * c))
    return x


def apart(robot: pp.Robot, tau: np.ndarray) -> Callable[[Any], Any]:
    """The rate of all poses and velocities in one row: Ẋ = X V^, V̇ = α."""
    kernel, n = pp.decoupled_forward_dynamics.compile(robot), robot.nb

    def rate(x: np.ndarray) -> np.ndarray:
        X, V = x[: 16 * n].reshape(n, 4, 4), x[16 * n :].reshape(n, 6)
        hat = np.zeros((n, 4, 4))
        (a, b, c), hat[:, :3, 3] = V[:, :3].T, V[:, 3:]
        hat[:, 2, 1], hat[:, 0, 2], hat[:, 1, 0] = a, b, c
        hat[:, 1, 2], hat[:, 2, 0], hat[:, 0, 1] = -a, -b, -c
        return np.concatenate(((X @ hat).ravel(), kernel(X, V, tau).ravel()))

    return rate


def together(robot: pp.Robot, tau: np.ndarray) -> Callable[[Any], Any]:
    """The rate of (q, v) in one row, for a free root and hinges of one freedom."""
    kernel, nq = pp.forward_dynamics.compile(robot), robot.nq

    def rate(x: np.ndarray) -> np.ndarray:
        q, v = x[:nq], x[nq:]
        w, x0, y, z = q[3:7]
        spin = 0.5 * np.array([[-x0, -y, -z], [w, -z, y], [z, w, -x0], [-y, x0, w]]) @ v[:3]
        turn = pp.poses(robot, q)[0, :3, :3]
        return np.concatenate((turn @ v[3:6], spin, v[6:], kernel(q, v, tau)))

    return rate


def test_decoupled_bodies_follow_the_joints_to_fourth_order() -> None:
    rng = np.random.default_rng(4)
    builder = pp.Builder("tree").body("base", mass=10, inertia=(1, 1.2, 1.5))
    builder.hinge("float", "free", "world", "base")
    rows: tuple[tuple[str, str, HingeName], ...] = (
        ("a", "base", "revolute"), ("b", "a", "revolute"), ("c", "a", "prismatic"),
        ("d", "base", "helical"),
    )  # fmt: skip
    for name, parent, kind in rows:
        builder.body(name, mass=2, com=rng.normal(0, 0.2, 3), inertia=(0.3, 0.2, 0.25))
        builder.hinge(f"to {name}", kind, parent, name, position=rng.normal(0, 0.5, 3),
                      axis=rng.normal(size=3), pitch=0.1)  # fmt: skip
    robot = builder.build()
    s = State(robot)
    v = 0.5 * s.v
    exact = runge_kutta(together(robot, s.tau), np.concatenate((s.q, v)), 800)
    q, v_end = exact[: robot.nq], exact[robot.nq :]
    X, V = pp.poses(robot, q), pp.velocities(robot, q, v_end)
    start = np.concatenate((pp.poses(robot, s.q).ravel(), pp.velocities(robot, s.q, v).ravel()))
    n, found = 16 * robot.nb, {}
    for steps in (100, 200):
        end = runge_kutta(apart(robot, s.tau), start, steps)
        found[steps] = np.abs(end - np.concatenate((X.ravel(), V.ravel()))).max()
        drifted = end[:n].reshape(-1, 4, 4), end[n:].reshape(-1, 6)
        q_end, v_found = pp.minimal_state(robot, *drifted)
        cured = pp.poses(robot, q_end)
        rotations = cured[:, :3, :3]
        close(rotations @ np.swapaxes(rotations, 1, 2), np.tile(np.eye(3), (robot.nb, 1, 1)))
        assert np.abs(cured - X).max() <= 3 * found[steps]
        assert np.abs(v_found - v_end).max() <= 30 * found[steps]
    assert found[100] < 1e-5
    assert 13 < found[100] / found[200] < 19


# ---- robots, costs, numbers ---------------------------------------------------------------------


def test_at_most_twice_the_operations_of_forward_dynamics() -> None:
    for robot in (pp.robots.space_arm(), pp.load(URDFS["ur5_robot"], base="free")):
        both = (pp.base_invariant_forward_dynamics, pp.forward_dynamics)
        ours, plain = (program.graph(robot).operations for program in both)
        assert ours <= 2.0 * plain


def test_long_doubles_and_machine_code_agree() -> None:
    robot = pp.robots.dual_space_arm()
    s = State(robot, batch=(5,))
    found = pp.base_invariant_forward_dynamics(robot, s.q, s.v, s.tau)
    long = (x.astype(np.longdouble) for x in (s.q, s.v, s.tau))
    close(found, pp.forward_dynamics(robot, *long).astype(float), 1e-12)


def test_a_long_chain_in_loops() -> None:
    robot = pp.robots.chain(100, base="free")
    q, v = robot.random_state(0)
    tau = np.random.default_rng(1).normal(size=robot.nv)
    expected = pp.forward_dynamics(robot, q, 0.1 * v, tau)
    close(pp.base_invariant_forward_dynamics(robot, q, 0.1 * v, tau), expected, 1e-9)


@pytest.mark.parametrize("name", FREE)
def test_loops_in_machine_code_and_single_precision(name: str) -> None:
    robot = pp.robots.dual_space_arm()
    s, program = State(robot, (11,)), getattr(pp, name)
    known = {"q": s.q, "v": s.v, "tau": s.tau, "poses": pp.poses(robot, s.q),
             "velocities": pp.velocities(robot, s.q, s.v)}  # fmt: skip
    called = {name: known[name] for name in program.parameters if name in known}
    expected = flat(program.compile(robot, backend="numpy", unroll=True)(**called))
    for dtype, tolerance in (("float64", 1e-11), ("float32", 2e-3)):
        found = flat(program.compile(robot, dtype=dtype, unroll=False)(**called))
        for x, y in zip(found, expected, strict=True):
            assert x.dtype == dtype
            close(x, y, tolerance)
