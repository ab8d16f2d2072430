"""Formulas: they equal the kernels, and those of a double pendulum are the textbook's."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pytest

import phipsi as pp
from phipsi.compile.ops import OPS
from phipsi.compile.to_sympy import meanings

sympy: Any = import_module("sympy")  # whose own types are too narrow

PENDULUM = pp.robots.double_pendulum()
SHAPE = ("inertia:link1", "inertia:link2", "placement:joint2")


def real(names: str) -> Any:
    return sympy.symbols(names, real=True)


def evaluated(results: Any, definitions: Any, values: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Expressions as numbers, by SymPy's own translation to NumPy."""
    results = results if isinstance(results, (list, tuple)) else [results]
    numbers = {
        sympy.Symbol("_".join((name, *(str(i + 1) for i in at))), real=True): x[at]
        for name, x in values.items()
        for at in np.ndindex(x.shape)
    }
    made = sympy.lambdify(
        list(numbers),
        [list(r) if hasattr(r, "shape") else r for r in results],
        modules="numpy",
        cse=(lambda es: (definitions, es)) if definitions else True,
    )
    return [np.array(x, float).reshape(-1) for x in made(*numbers.values())]


class Kicked(NamedTuple):
    q: Any
    energy: Any


@pp.program(shapes={"k": ()})
def kicked(robot, q, v, k):
    """Every operation there is, and a loop."""
    tau = pp.where(q > k, np.tanh(q), -np.abs(v)) + np.minimum(q, 2.0) + np.exp(-v * v)
    tau = tau + np.maximum(v, -0.1) + np.floor(3.0 * q) + np.arctan2(q, v + 2.0) + np.log(3 + q * q)
    chosen = ((q[0] < v[1]) & (q[1] <= 0.3)) | ~(v[0] == q[0])
    tau = tau + pp.where(chosen, 1.0, np.sqrt(q[0] ** 2 + 1.0)) + (q < v) * 0.1

    def step(state, row):
        q, v = state
        v = v + 0.01 * pp.forward_dynamics(robot, q, v, tau)
        return (q + 0.01 * row * v, v), pp.kinetic_energy(robot, q, v)

    (q, v), energy = pp.repeat(2, step, (q, v))
    return Kicked(q + v, energy)


CASES = [
    (pp.mass_matrix, PENDULUM, {}),
    (pp.forward_dynamics, PENDULUM, {}),
    (pp.inverse_dynamics, PENDULUM, {"simplify": False}),
    (pp.forward_dynamics, pp.robots.chain(1, "spherical"), {}),
    (pp.mass_matrix, pp.robots.planar_chain(3), {"shared": True}),
    (pp.forward_dynamics, pp.robots.humanoid(), {"shared": True}),
    (pp.christoffel, PENDULUM, {}),
    (kicked, PENDULUM, {"k": 0.0}),
    (kicked, PENDULUM, {"k": 0.0, "shared": True}),
]


@pytest.mark.parametrize(
    ("program", "robot", "how"), CASES, ids=lambda x: getattr(x, "name", None) or "".join(x)
)
def test_formulas_equal_kernels(program: Any, robot: pp.Robot, how: dict[str, Any]) -> None:
    written = program.symbolic(robot, **how)
    definitions, results = written if "shared" in how else ((), written)
    given = {name: x for name, x in how.items() if name == "k"}
    kernel = program.compile(robot, backend="numpy", **given)
    rng = np.random.default_rng(1)
    q, v = robot.random_state(1)
    values = {leaf.name: rng.normal(size=leaf.shape) for leaf in kernel._inputs}
    values |= {name: x for name, x in (("q", q), ("v", v)) if name in values}
    wanted = kernel(**values)
    assert type(results) is not tuple or isinstance(wanted, tuple)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for got, want in zip(evaluated(results, definitions, values), wanted, strict=True):
        scale = np.abs(want).max()
        np.testing.assert_allclose(got, want.reshape(-1), rtol=1e-11, atol=1e-12 * scale)


def test_every_operation_has_a_meaning() -> None:
    assert set(OPS) <= set(meanings())


def test_mass_matrix_of_the_double_pendulum_is_the_textbooks() -> None:
    m1, m2, l, c1, c2, i1, i2, q2 = real("m_1 m_2 l_2 c_1 c_2 I_yy1 I_yy2 q_2")
    across = i2 + m2 * (c2**2 + l * c2 * sympy.cos(q2))
    first = i1 + i2 + m1 * c1**2 + m2 * (l**2 + c2**2 + 2 * l * c2 * sympy.cos(q2))
    textbook = sympy.Matrix([[first, across], [across, i2 + m2 * c2**2]])
    M = pp.mass_matrix.symbolic(PENDULUM, inputs=SHAPE)
    assert sympy.simplify(M - textbook) == sympy.zeros(2, 2)
    assert str(M) == (
        "Matrix([[I_yy1 + I_yy2 + c_1**2*m_1 + c_2**2*m_2 + 2*c_2*l_2*m_2*cos(q_2) + l_2**2*m_2, "
        "I_yy2 + c_2**2*m_2 + c_2*l_2*m_2*cos(q_2)], "
        "[I_yy2 + c_2**2*m_2 + c_2*l_2*m_2*cos(q_2), I_yy2 + c_2**2*m_2]])"
    )


def test_what_is_printed_is_short() -> None:
    C = pp.coriolis_matrix.symbolic(PENDULUM, inputs="all")
    assert str(C) == (
        "Matrix([[-c_2*l_2*m_2*v_2*sin(q_2), -c_2*l_2*m_2*(v_1 + v_2)*sin(q_2)], "
        "[c_2*l_2*m_2*v_1*sin(q_2), 0]])"
    )
    G = pp.gravity_force.symbolic(PENDULUM, inputs="all", names={"q": "theta"})
    assert str(G[1]) == "c_2*g*m_2*sin(theta_1 + theta_2)"
    assert str(pp.mass_matrix.symbolic(PENDULUM)) == (
        "Matrix([[9*cos(q_2)/100 + 3009/20000, 9*cos(q_2)/200 + 1209/40000], "
        "[9*cos(q_2)/200 + 1209/40000, 1209/40000]])"
    )


def test_lagrange_gives_the_same_dynamics() -> None:
    """d/dt ∂T/∂v − ∂T/∂q + ∂U/∂q, taken by SymPy from our energies, is our inverse dynamics."""
    q, v, a = ([real(f"{x}_{i}") for i in (1, 2)] for x in "qva")
    T = pp.kinetic_energy.symbolic(PENDULUM, inputs="all")
    U = pp.potential_energy.symbolic(PENDULUM, inputs="all")
    tau = pp.inverse_dynamics.symbolic(PENDULUM, inputs="all")
    for i in range(2):
        momentum = T.diff(v[i])
        rate = sum(momentum.diff(q[j]) * v[j] + momentum.diff(v[j]) * a[j] for j in range(2))
        assert sympy.simplify(rate - T.diff(q[i]) + U.diff(q[i]) - tau[i]) == 0


def test_forward_dynamics_solves_the_inverse() -> None:
    tau = sympy.Matrix(real("tau_1 tau_2"))
    M = pp.mass_matrix.symbolic(PENDULUM)
    rest = pp.inverse_dynamics.symbolic(PENDULUM).subs(dict.fromkeys(real("a_1 a_2"), 0))
    residual = M * pp.forward_dynamics.symbolic(PENDULUM) + rest - tau
    assert sympy.simplify(residual) == sympy.zeros(2, 1)


def test_own_expressions_take_the_place_of_numbers() -> None:
    g, alpha = real("g alpha")
    slope = {"gravity": [g * sympy.sin(alpha), 0, -g * sympy.cos(alpha)]}
    tau = pp.inverse_dynamics.symbolic(PENDULUM, inputs=slope)
    flat = pp.inverse_dynamics.symbolic(PENDULUM)
    rest = {g: sympy.Rational(981, 100), alpha: 0}
    assert sympy.simplify(tau.subs(rest) - flat) == sympy.zeros(2, 1)
    tilted = PENDULUM.with_parameters({"gravity": 9.81 * np.array([0.6, 0.0, -0.8])})
    state = dict(zip("qva", np.random.default_rng(0).normal(size=(3, 2)), strict=True))
    (got,) = evaluated(tau.subs({g: 9.81, alpha: sympy.asin(0.6)}), (), state)
    np.testing.assert_allclose(got, pp.inverse_dynamics(tilted, **state), rtol=1e-13)


def test_rounding_is_no_part_of_a_formula() -> None:
    """A hinge turned by a right angle has numbers of 6e-17 in its placement."""
    door = pp.Builder("door", gravity=(0.0, -9.81, 0.0)).body(
        "leaf", 2.0, (0.5, 0.0, 0.0), np.ones(3)
    )
    door = door.hinge("turn", "revolute", "world", "leaf", axis=(0, 1, 0), rpy=(0, np.pi / 2, 0))
    door = door.frame("edge", "leaf", position=(1.0, 0.0, 0.0)).build()
    assert str(pp.gravity_force.symbolic(door)) == "Matrix([[0]])"
    pose = pp.frame_pose.symbolic(door, frame="edge")
    assert str(pose[:, 3].T) == "Matrix([[-sin(q_1), 0, -cos(q_1), 1]])"


SCALARS = pp.program(shapes={"x": (), "y": ()})
COS, SIN = float(np.cos(0.3)), float(np.sin(0.3))


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda robot, x, y: np.sqrt(np.sqrt(x)) ** 2, "sqrt(x)"),
        (lambda robot, x, y: x ** (1 / 3) * x ** (1 / 3), "x**(2/3)"),
        (lambda robot, x, y: (x ** (1 / 3)) ** 3 + np.sqrt(y) * np.sqrt(y), "x + y"),
        (lambda robot, x, y: 1 / np.sqrt(np.sqrt(x + 1)) ** 4, "1/(x + 1)"),
        (lambda robot, x, y: 1e-20 * x, "x/100000000000000000000"),
        (lambda robot, x, y: (x + 1e-15) * 1e15, "1000000000000000*x + 1"),
        (lambda robot, x, y: 1e13 * x + y, "10000000000000*x + y"),
        (
            lambda robot, x, y: (1e13 * x + y) / (x + 1e13 * y),
            "(10000000000000*x + y)/(x + 10000000000000*y)",
        ),
        (lambda robot, x, y: x * 12345.678901234567, "12345.6789012346*x"),
        (
            lambda robot, x, y: 1.2345678901234567e-19 * x + 2.345678901234567 * y,
            "1.23456789012346e-19*x + 2.34567890123457*y",
        ),
        # rounding, of terms that cancel, goes; what is smaller stays
        (lambda robot, x, y: (COS * x) ** 2 + (SIN * x) ** 2 - x * x + 1e-9 * y, "y/1000000000"),
        (
            lambda robot, x, y: (
                ((COS * x) ** 2 + (SIN * x) ** 2 - x * x) / (1 + COS * y) + 1e-24 * x
            ),
            "x/1000000000000000000000000",
        ),
    ],
)
def test_roots_and_numbers_of_any_size(function: Any, text: str) -> None:
    program = SCALARS(function)
    assert str(program.symbolic(PENDULUM)) == text
    values = {"x": np.array(0.3), "y": np.array(0.7)}
    (got,) = evaluated(program.symbolic(PENDULUM, simplify=False), (), values)
    np.testing.assert_allclose(got[0], program(PENDULUM, **values), rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize("scale", [1e-9, 1e-17, 1e20])
def test_robots_of_any_size(scale: float) -> None:
    names = ("inertia:link1", "inertia:link2")
    small = PENDULUM.with_parameters({n: scale * PENDULUM.parameter(n) for n in names})
    values = {"q": np.array([0.3, -0.8])}
    (got,) = evaluated(pp.mass_matrix.symbolic(small), (), values)
    np.testing.assert_allclose(got, pp.mass_matrix(small, **values).reshape(-1), rtol=1e-13)
    assert pp.mass_matrix.symbolic(small, inputs="all") == pp.mass_matrix.symbolic(
        PENDULUM, inputs="all"
    )


def test_shared_names_are_nobodys() -> None:
    @pp.program(shapes={"x0": (), "x1": ()})
    def twice(robot, x0, x1):
        a = np.sin(x1 + x0)
        b = np.exp(a * x1)
        return np.array([a * b * x0, a + b + x0])

    x0, x1, x2, x3 = real("x0 x1 x2 x3")
    definitions, result = twice.symbolic(PENDULUM, shared=True)
    assert definitions == [(x2, sympy.sin(x0 + x1)), (x3, sympy.exp(x1 * x2))]
    assert list(result) == [x0 * x2 * x3, x0 + x2 + x3]
    a = sympy.sin(x0 + x1)
    b = sympy.exp(a * x1)
    assert list(twice.symbolic(PENDULUM, simplify=False)) == [a * b * x0, a + b + x0]


def test_a_symbol_stands_for_one_thing() -> None:
    @pp.program(shapes={"m": ("nv",)})
    def moved(robot, q, m):
        return pp.mass_matrix(robot, q) @ m

    t, m = real("t m_1")
    own = {"gravity": [0, 0, m]}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"inputs": "all"}, "m_1 would stand both for 'inertia:link1' and for 'm'; pass names="),
        ({"inputs": "all", "names": {"m": "l"}}, "l_2 would stand both for 'placement:joint2'"),
        ({"inputs": own}, "m_1 would stand both for 'gravity' and for 'm'"),
        ({"names": {"q": "a", "m": "a"}}, "a_1 would stand both for 'q' and for 'm'"),
        ({"names": {"q": [t, t]}}, "t would stand both for 'q' and for 'q'"),
    ]
    for how, words in wrong:
        with pytest.raises(ValueError, match=words):
            moved.symbolic(PENDULUM, **how)
    written = moved.symbolic(PENDULUM, inputs="all", names={"m": "mu"})
    assert str(written[1]).startswith("mu_1*(I_yy2 + ")


def test_what_is_too_long_is_said_in_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"written out has 1\.8e\+19 symbols.*shared=True"):
        pp.forward_dynamics.symbolic(pp.robots.humanoid())

    @pp.program
    def long(robot, q):
        return pp.repeat(200_000, lambda q, _: (np.sin(q), q[0]), q, every=199_999)[0]

    with pytest.raises(ValueError, match=r"400000 operations, loops unrolled.*fewer rounds"):
        long.symbolic(PENDULUM)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"names": {"v": "w"}}, r"mass_matrix: names= has 'v', but its arguments are q"),
        ({"names": {"q": [1, 2]}}, r"names= for 'q' needs a string or symbols \(2,\)"),
        ({"inputs": {"gravity": [1, 2]}}, r"inputs= for 'gravity' has shape \(2,\), needs \(3,\)"),
        ({"inputs": {"gravity": ["g", 0, 0]}}, r"needs SymPy expressions and numbers"),
        ({"inputs": ["mass"]}, r"no parameter 'mass'"),
        ({"wrong": 1}, r"mass_matrix has no argument 'wrong'"),
    ],
)
def test_mistakes_are_said_in_a_sentence(how: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        pp.mass_matrix.symbolic(PENDULUM, **how)


def test_without_sympy_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sympy", None)
    with pytest.raises(ImportError, match=r'pip install "phipsi\[symbolic\]"'):
        pp.mass_matrix.symbolic(PENDULUM)
