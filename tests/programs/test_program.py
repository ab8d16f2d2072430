"""Programs: calling, batching, compiling, showing, and what wrong arguments get."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

import phipsi as pp
from tests.zoo import State, close, random_forest

ROBOT = pp.robots.double_pendulum()
S = State(ROBOT)


def test_lists_integers_strides_and_read_only_arrays_are_arrays() -> None:
    a = pp.forward_dynamics(ROBOT, S.q, S.v, S.tau)
    close(pp.forward_dynamics(ROBOT, S.q.tolist(), tuple(S.v), S.tau), a)
    wide = np.stack([S.q, 0 * S.q], axis=-1)
    close(pp.forward_dynamics(ROBOT, wide[:, 0], S.v, S.tau), a)
    frozen = S.q.copy()
    frozen.flags.writeable = False
    close(pp.forward_dynamics(ROBOT, frozen, S.v, S.tau), a)
    fortran = np.asfortranarray(np.tile(S.q, (3, 1)))
    close(pp.forward_dynamics(ROBOT, fortran, S.v, S.tau), np.tile(a, (3, 1)))
    zeros = pp.forward_dynamics(ROBOT, [0, 0], [0, 0], [1, 0])
    close(zeros, pp.forward_dynamics(ROBOT, np.zeros(2), np.zeros(2), np.array([1.0, 0.0])))


def test_batches_broadcast() -> None:
    q = np.tile(S.q, (4, 1, 1))
    tau = np.random.default_rng(0).normal(size=(3, 2))
    a = pp.forward_dynamics(ROBOT, q, S.v, tau)
    assert a.shape == (4, 3, 2)
    close(a[2, 1], pp.forward_dynamics(ROBOT, S.q, S.v, tau[1]))
    assert pp.forward_dynamics(ROBOT, np.zeros((0, 2)), S.v, S.tau).shape == (0, 2)
    assert pp.kinetic_energy(ROBOT, q, S.v).shape == (4, 1)
    assert isinstance(pp.kinetic_energy(ROBOT, S.q, S.v), float)


def test_single_precision_in_single_precision_out() -> None:
    a = pp.forward_dynamics(ROBOT, *(x.astype(np.float32) for x in (S.q, S.v, S.tau)))
    assert a.dtype == np.float32
    close(a, pp.forward_dynamics(ROBOT, S.q, S.v, S.tau), 1e-5)
    exact = pp.forward_dynamics(ROBOT, *(x.astype(np.longdouble) for x in (S.q, S.v, S.tau)))
    assert exact.dtype == np.longdouble


def test_a_nan_stays_in_its_row() -> None:
    q = np.tile(S.q, (5, 1))
    q[2, 0] = np.nan
    a = pp.forward_dynamics(ROBOT, q, S.v, S.tau)
    assert np.isnan(a[2]).all()
    assert np.isfinite(a[[0, 1, 3, 4]]).all()


def test_a_quaternion_of_any_length_is_the_rotation_it_means() -> None:
    robot = random_forest(5, 3, kinds=("spherical", "free"), massless=False)
    s = State(robot)
    longer = s.q.copy()
    for h in robot.hinges:
        start = h.q.start + (h.kind.quaternion or 0)
        longer[start : h.q.stop] *= -3.7
    close(
        pp.forward_dynamics(robot, longer, s.v, s.tau), pp.forward_dynamics(robot, s.q, s.v, s.tau)
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(3), S.v, S.tau), r"q has shape \(3,\), needs \(..., 2\)"),
        ((S.q, np.zeros((2, 1)), S.tau), r"v has shape \(2, 1\), needs \(..., 2\)"),
        ((S.q, 1.0, S.tau), r"v has shape \(\), needs"),
        ((np.zeros((3, 2)), np.zeros((4, 2)), S.tau), r"batch shapes do not go together: q \(3,\)"),
        ((S.q + 0j, S.v, S.tau), "q has dtype complex128, needs real numbers"),
        ((["a", "b"], S.v, S.tau), "q has dtype .*, needs real numbers"),
        (([[1.0], [1.0, 2.0]], S.v, S.tau), "q is a ragged sequence"),
        ((S.q, S.v), "missing a required argument: 'tau'"),
        ((S.q, S.v, S.tau, S.tau), "too many positional"),
    ],
)
def test_wrong_arguments_get_one_sentence(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        pp.forward_dynamics(ROBOT, *arguments)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("forward_dynamics")


def test_wrong_names_get_one_sentence() -> None:
    with pytest.raises(pp.ModelError, match="no frame 'hand'; it has"):
        pp.jacobian(ROBOT, S.q, "hand")
    with pytest.raises(ValueError, match="reference 'global' is not one of"):
        pp.jacobian(ROBOT, S.q, ROBOT.bodies[0].name, reference="global")  # type: ignore[arg-type]
    for program in (pp.jacobian, pp.frame_pose):
        assert program(ROBOT, S.q, "world").shape[-1] in (ROBOT.nv, 4)
    with pytest.raises(ValueError, match="reference 'global' is not one of"):
        pp.jacobian(ROBOT, S.q, "world", reference="global")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="needs a Robot first"):
        pp.forward_dynamics(S.q, S.q, S.v, S.tau)  # type: ignore[arg-type]
    with pytest.raises(pp.ModelError, match="fixed to the world"):
        pp.forward_dynamics(ROBOT, S.q, S.v, S.tau, external={"world": np.zeros(6)})
    with pytest.raises(ValueError, match="needs 6 numbers"):
        pp.forward_dynamics(ROBOT, S.q, S.v, S.tau, external={ROBOT.bodies[0].name: np.zeros(3)})
    with pytest.raises(TypeError, match=r"external\['link1'\] has dtype .*, needs real numbers"):
        wrong: Any = {"link1": "x"}
        pp.forward_dynamics(ROBOT, S.q, S.v, S.tau, external=wrong)
    with pytest.raises(TypeError, match="q has dtype object, needs real numbers"):
        pp.forward_dynamics(ROBOT, None, S.v, S.tau)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="frame is 3, needs a str"):
        pp.jacobian(ROBOT, S.q, 3)  # type: ignore[arg-type]
    with pytest.raises(pp.ModelError, match="did you mean 'tool'"):
        pp.jacobian(ROBOT, S.q, "tol")
    with pytest.raises(ValueError, match="factor 'x' is not one of"):
        pp.mass_matrix_sqrt_product(ROBOT, S.q, S.v, factor="x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="about 'x' is not one of"):
        pp.momentum(ROBOT, S.q, S.v, about="x")  # type: ignore[arg-type]


def test_kernels() -> None:
    kernel = pp.forward_dynamics.compile(ROBOT)
    a = pp.forward_dynamics(ROBOT, S.q, S.v, S.tau)
    close(kernel(S.q, S.v, S.tau), a)
    close(kernel(S.q, tau=S.tau, v=S.v), a)
    out = np.empty(2)
    assert kernel(S.q, S.v, S.tau, out=out) is out
    close(out, a)
    assert "q, v, tau" in repr(kernel)
    for wrong, message in (
        ({"out": np.empty(3)}, "needs"),
        ({"out": np.empty(2, np.float32)}, "float32"),
        ({"out": [1.0, 2.0]}, "results"),
        ({"speed": 1.0}, "'speed' is not an argument"),
        ({"q": S.q}, "given twice"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            kernel(S.q, S.v, S.tau, **wrong)
    with pytest.raises(TypeError, match="misses 'tau'"):
        kernel(S.q, S.v)
    with pytest.raises(TypeError, match="takes 3 arrays"):
        kernel(S.q, S.v, S.tau, S.tau)
    single = pp.forward_dynamics.compile(ROBOT, dtype="float32")(S.q, S.v, S.tau)
    assert single.dtype == np.float32
    with pytest.raises(ValueError, match="dtype 'float16' is not one of"):
        pp.forward_dynamics.compile(ROBOT, dtype="float16")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="backend 'abacus' is not in this version"):
        pp.forward_dynamics.compile(ROBOT, backend="abacus")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one thread"):
        pp.forward_dynamics.compile(ROBOT, backend="numpy", threads=4)
    with pytest.raises(TypeError, match="has no argument 'speed'"):
        pp.forward_dynamics.compile(ROBOT, speed=1.0)


def test_results_may_be_nested() -> None:
    @pp.program
    def drift(robot: pp.Robot, q: Any, v: Any) -> Any:
        carry, seen = pp.repeat(3, lambda c, k: ((c[0] + c[1], c[1]), c[0]), (q, v))
        return {"end": carry, 1: (seen,)}

    result = drift(ROBOT, S.q, S.v)
    q, v = result["end"]
    close(q, S.q + 3 * S.v)
    close(v, S.v)
    close(result[1][0], S.q + np.arange(3)[:, None] * S.v)


def test_python_numbers_follow_the_arrays() -> None:
    @pp.program(shapes={"dt": ()})
    def scaled(robot: pp.Robot, q: Any, dt: Any) -> Any:
        return q * dt

    assert scaled(ROBOT, S.q.astype(np.float32), 0.5).dtype == np.float32
    assert scaled(ROBOT, S.q.astype(np.float32), np.float64(0.5)).dtype == np.float64
    assert scaled(ROBOT, S.q.tolist(), 0.5).dtype == np.float64


def test_several_results_come_named_and_in_place() -> None:
    kernel = pp.articulated_inertias.compile(ROBOT)
    result = kernel(S.q)
    assert result._fields == ("P", "D", "G")
    outs = [np.empty_like(x) for x in result]
    kernel(S.q, out=outs)
    for x, y in zip(result, outs, strict=True):
        close(y, x)


def test_constants_become_inputs() -> None:
    robot = pp.robots.space_arm()
    s, body, hinge = State(robot, (3,)), robot.bodies[-1].name, robot.hinges[-1].name
    names = ("gravity", f"inertia:{body}", f"armature:{hinge}", f"placement:{hinge}")
    kernel = pp.inverse_dynamics.compile(robot, inputs=names)
    same = kernel(s.q, s.v, s.a, *map(robot.parameter, names))
    close(same, pp.inverse_dynamics(robot, s.q, s.v, s.a))
    g = np.random.default_rng(0).normal(size=(3, 3))
    rows = kernel(s.q, s.v, s.a, g, *map(robot.parameter, names[1:]))
    for i in range(3):
        close(rows[i], pp.inverse_dynamics(robot.with_gravity(g[i]), s.q[i], s.v[i], s.a[i]))
    heavy = robot.parameter(names[1]) * 2
    other = robot.with_parameters({names[1]: heavy})
    values = {**{n: robot.parameter(n) for n in names}, names[1]: heavy}
    close(kernel(s.q, s.v, s.a, **values), pp.inverse_dynamics(other, s.q, s.v, s.a))
    with pytest.raises(pp.ModelError, match="no parameter 'colour'"):
        pp.inverse_dynamics.compile(robot, inputs=("colour",))
    with pytest.raises(pp.ModelError, match="no body 'nobody'"):
        pp.inverse_dynamics.compile(robot, inputs=("inertia:nobody",))


def test_external_forces_in_a_kernel() -> None:
    robot = pp.robots.space_arm()
    s = State(robot)
    kernel = pp.forward_dynamics.compile(robot, external={"tool": np.zeros(6)})
    wrench = np.arange(6.0)
    a = pp.forward_dynamics(robot, s.q, s.v, s.tau, external={"tool": wrench})
    close(kernel(s.q, s.v, s.tau, {"tool": wrench}), a)
    with pytest.raises(TypeError, match="must be a mapping with keys"):
        kernel(s.q, s.v, s.tau, wrench)


@pp.program(shapes={"gain": ("nv", "nv"), "t": ()}, static=("steps",))
def drive(robot: pp.Robot, q: Any, v: Any, target: Any, gain: Any, t: Any, steps: int = 1) -> Any:
    """A closed loop of a user."""
    tau = gain @ robot.difference(q, target) - 2.0 * v + pp.gravity_force(robot, q) * np.cos(t)
    tau = pp.where(np.abs(tau) > 5.0, 5.0 * np.sign(tau), tau)
    return {"tau": tau, "a": pp.forward_dynamics(robot, q, v, tau) * steps}


def test_users_programs_compile_whole() -> None:
    gain, target, t = np.array([[10.0, 1.0], [1.0, 8.0]]), np.ones((6, 2)), np.arange(6.0)
    result = drive(ROBOT, S.q, S.v, target, gain, t, steps=2)
    assert result["a"].shape == (6, 2)
    for i in range(6):
        tau = gain @ (target[i] - S.q) - 2 * S.v + pp.gravity_force(ROBOT, S.q) * np.cos(t[i])
        tau = np.clip(tau, -5, 5)
        close(result["tau"][i], tau)
        close(result["a"][i], 2 * pp.forward_dynamics(ROBOT, S.q, S.v, tau))
    kernel = drive.compile(ROBOT, target=np.zeros(2))
    close(kernel(S.q, S.v, target, gain, t)["tau"], result["tau"])
    with pytest.raises(TypeError, match="cannot know the shape of 'target'"):
        drive.compile(ROBOT)
    with pytest.raises(ValueError, match=r"q has shape \(5,\), needs \(2,\)"):
        pp.forward_dynamics.compile(ROBOT, q=np.zeros(5))
    with pytest.raises(TypeError, match=r"needs the option frame=\.\.\."):
        pp.jacobian.compile(ROBOT)
    with pytest.raises(TypeError, match="the option target is a dict, needs a constant"):
        drive(ROBOT, S.q, S.v, {"a": "b"}, gain, t)


def test_a_program_inside_a_program_checks_shapes_too() -> None:
    @pp.program
    def wrong(robot: pp.Robot, q: Any) -> Any:
        return pp.gravity_force(robot, q[:1])

    with pytest.raises(ValueError, match=r"gravity_force: q has shape \(1,\), needs \(2,\)"):
        wrong(ROBOT, S.q)

    @pp.program
    def nothing(robot: pp.Robot, q: Any) -> Any:
        pp.gravity_force(robot, q)

    with pytest.raises(TypeError, match="returned nothing"):
        nothing(ROBOT, S.q)


def test_show_at_every_stage() -> None:
    assert "D⁻¹" in pp.forward_dynamics.show(ROBOT, stage="operators")
    sweeps = pp.forward_dynamics.show(ROBOT)
    heads = [line for line in sweeps.splitlines()[1:] if line[0] != " "]
    assert [line.split()[0] for line in heads] == [
        "outward", "inward", "outward"]  # fmt: skip
    assert "forward_dynamics = [" in pp.forward_dynamics.show(ROBOT, stage="graph")
    with pytest.raises(ValueError, match="stage 'soup' is not in this version"):
        pp.forward_dynamics.show(ROBOT, stage="soup")  # type: ignore[arg-type]


def test_a_robot_that_cannot_move_has_empty_results() -> None:
    still = ROBOT.locked([h.name for h in ROBOT.hinges])
    q, v = still.random_state(0)
    assert still.nv == 0
    assert pp.forward_dynamics(still, q, v, v).shape == (0,)
    assert pp.mass_matrix(still, q).shape == (0, 0)
    assert pp.mass_matrix_inverse(still, q).shape == (0, 0)
    assert pp.poses(still, q).shape == (0, 4, 4)
    assert pp.velocities(still, q, v).shape == (0, 6)
    assert pp.kinetic_energy(still, q, v) == 0.0
    assert pp.passive_forces(still, q, v).shape == (0,)
    with pytest.raises(pp.ModelError, match="no moving mass"):
        pp.center_of_mass(still, q)


def test_a_step_that_asks_too_early_is_told_what_is_known() -> None:
    from phipsi.sweeps import forest, local

    with pytest.raises(AttributeError, match=r"no sweep has given body .* a field 'P'"):
        local(lambda k: {"x": k.P}, forest(ROBOT, S.q))


def test_a_replaced_kernel_is_another_kernel() -> None:
    kernel = pp.forward_dynamics.compile(ROBOT)
    expected = kernel(S.q, S.v, S.tau)
    other = replace(kernel, backend="numpy")
    assert other.backend == "numpy" and other.__call__ == other._call
    close(other(S.q, S.v, S.tau), expected)


def test_a_matrix_of_too_many_bodies_is_refused() -> None:
    with pytest.raises(ValueError, match=r"too large to be traced.*mass_matrix_product"):
        pp.mass_matrix(pp.robots.chain(500), np.zeros(500))


def test_a_program_keeps_no_array_it_was_called_with() -> None:
    q = np.zeros((1000, ROBOT.nv))
    ref = weakref.ref(q)
    pp.mass_matrix(ROBOT, q)
    pp.mass_matrix(ROBOT, q)
    del q
    gc.collect()
    assert ref() is None


def test_a_remembered_trace_is_that_of_the_same_promise() -> None:
    robot = random_forest(11, 5, kinds=("revolute",), massless=False)
    fewer = pp.forward_dynamics.compile(robot, backend="llvm")
    plain = pp.program(pp.forward_dynamics.function).compile(robot, backend="llvm")
    assert plain.code.operations > fewer.code.operations
    again = pp.forward_dynamics.compile(robot, backend="llvm")
    assert again.code.operations == fewer.code.operations == again.graph.operations


def test_arrays_that_are_not_aligned() -> None:
    raw = np.zeros(8 * 3 * 20 + 1, np.uint8)[1:].view(float).reshape(3, 20)[:, :18]
    q, v, tau = (raw[:, i * 2 : i * 2 + 2] for i in range(3))
    q[...], v[...], tau[...] = np.random.default_rng(0).normal(size=(3, 3, 2))
    assert not q.flags.aligned
    kernel = pp.forward_dynamics.compile(ROBOT)
    expected = kernel(q.copy(), v.copy(), tau.copy())
    out = raw[:, 10:12]
    assert kernel(q, v, tau, out=out) is out
    close(out, expected, 0.0)
    close(kernel(q.astype(">f8"), v, tau), expected, 0.0)


def test_options_by_place_or_name_as_lists_or_tuples_are_told_apart() -> None:
    @pp.program(static=("factors",))
    def scaled(robot: pp.Robot, factors: Any, q: Any) -> Any:
        return q * sum(factors)

    robot = pp.robots.double_pendulum()
    q = np.array([1.0, 2.0])
    for _ in range(3):  # learnt, then short
        assert scaled(robot, [1.0, 2.0], q).tolist() == [3.0, 6.0]
        assert scaled(robot, (2.0, 3.0), q).tolist() == [5.0, 10.0]
        assert scaled(robot, factors=[4.0], q=q).tolist() == [4.0, 8.0]
        assert scaled(robot, [1.0, 2.0], q[None]).shape == (1, 2)


def test_verify_sees_every_call_but_those_inside_a_trace() -> None:
    seen = []

    def verify(result: Any, args: Any, kwargs: Any) -> Any:
        seen.append((len(args), kwargs))
        if np.ndim(result) == 1 and np.isnan(result).any():
            raise pp.SingularError("no root")
        return result

    @pp.program(verify=verify)
    def root(robot: pp.Robot, q: Any, *, twice: bool = False) -> Any:
        return np.sqrt(q) * (2.0 if twice else 1.0)

    @pp.program
    def outer(robot: pp.Robot, q: Any) -> Any:
        return root(robot, q)

    robot = pp.robots.double_pendulum()
    assert root(robot, np.array([4.0, 9.0]), twice=True).tolist() == [4.0, 6.0]
    assert seen == [(2, {"twice": True})]
    with pytest.raises(pp.SingularError, match="no root"):
        root(robot, np.array([4.0, -9.0]))
    assert np.isnan(root(robot, np.array([[4.0, -9.0]])))[0, 1]
    assert np.isnan(outer(robot, np.array([4.0, -9.0])))[1]


def test_extremes_and_truth_of_arrays_inside_a_program() -> None:
    @pp.program(shapes={"x": (2, 3)})
    def found(robot: pp.Robot, x: Any) -> Any:
        whole = [np.max(x), np.min(x), np.any(x > 4.0), np.all(x > 4.0)]
        return np.concatenate([np.array(whole), np.max(x, axis=0), np.min(x, axis=1)])

    x = np.arange(6.0).reshape(2, 3) * np.array([[1.0], [-1.0]])
    expected = [2.0, -5.0, 0.0, 0.0, *x.max(0), *x.min(1)]
    assert found(pp.robots.double_pendulum(), x).tolist() == expected


def test_keywords_find_their_places() -> None:
    robot = pp.robots.double_pendulum()

    @pp.program
    def placed(robot: pp.Robot, /, a: Any, b: Any = None, c: Any = None) -> Any:
        return a + (0 if b is None else 10 * b) + (0 if c is None else 100 * c)

    one = np.ones(2)
    for _ in range(2):
        assert placed(robot, one, c=one).tolist() == [101, 101]
        assert placed(robot, one, b=one).tolist() == [11, 11]
        assert placed(robot, one, None, one).tolist() == [101, 101]
        assert placed(robot, one, one, None).tolist() == [11, 11]
        assert placed(robot, c=one, a=one, b=one).tolist() == [111, 111]
        assert placed(robot, one, one, one).tolist() == [111, 111]

    @pp.program
    def scaled(robot: pp.Robot, /, q: Any, v: Any, scale: int = 2) -> Any:
        return (q + v) * scale

    for _ in range(2):
        assert scaled(robot, one, one, 3).tolist() == [6, 6]
        assert scaled(robot, one, scale=4, v=one).tolist() == [8, 8]
        assert scaled(robot, v=one, q=one).tolist() == [4, 4]
        assert np.isfinite(pp.forward_dynamics(robot, one, one, one, external={})).all()


def test_shortcuts_take_no_array_for_another() -> None:
    """What is a constant in one call may be an array in the next, and what is a number a vector."""
    home, one = np.array([1.0, 2.0]), np.ones(2)

    @pp.program
    def pull(robot: pp.Robot, q: Any, target: Any = "home", gain: Any = np.array([10.0, 10.0])):  # noqa: B008
        return gain * ((home if isinstance(target, str) else target) - q)

    @pp.program
    def scale(robot: pp.Robot, q: Any, gain: Any) -> Any:
        return q * gain

    @pp.program(static=("s",))
    def told(robot: pp.Robot, q: Any, s: Any) -> Any:
        return q * (2.0 if s is True else 3.0)

    batch = np.array([[1.0, 2.0], [3.0, 4.0]])
    for _ in range(3):
        assert pull(ROBOT, 0 * one, "home").tolist() == [10, 20]
        assert pull(ROBOT, 0 * one, np.array([5.0, 6.0])).tolist() == [50, 60]
        assert scale(ROBOT, batch, 2.0).tolist() == [[2, 4], [6, 8]]
        assert scale(ROBOT, batch, np.array([10.0, 100.0])).tolist() == [[10, 200], [30, 400]]
        assert told(ROBOT, one, 1).tolist() == [3, 3]
        assert told(ROBOT, one, True).tolist() == [2, 2]


def test_parameters_without_number_are_refused() -> None:
    def many(robot: pp.Robot, *rest: Any) -> Any:
        return rest[0]

    with pytest.raises(TypeError, match=r"program many: \*rest: .* is no parameter"):
        pp.program(many)


def test_a_kernel_knows_the_defaults_of_its_program() -> None:
    @pp.program(shapes={"gain": ()})
    def pulled(robot: pp.Robot, q: Any, gain: Any = 2.0) -> Any:
        return -gain * q

    robot, q = pp.robots.double_pendulum(), np.array([1.0, -2.0])
    assert np.array_equal(pulled.compile(robot)(q), pulled(robot, q))
    assert np.array_equal(pulled.compile(robot, gain=0.0)(q, 3.0), -3.0 * q)


def test_one_number_of_the_robot_may_be_named_alone_and_out_must_be_arrays():
    robot = pp.robots.double_pendulum()
    kernel = pp.gravity_force.compile(robot, inputs="gravity", backend="numpy")
    np.testing.assert_array_equal(kernel(np.ones(2), np.zeros(3)), np.zeros(2))
    with pytest.raises(TypeError, match="out= is an int, needs an array, or a list of arrays"):
        kernel(np.ones(2), np.zeros(3), out=3)


POISON = """
import functools, numpy as np, phipsi as pp
robot = pp.robots.double_pendulum()
@pp.program
@functools.wraps(pp.gravity_force)
def heavier(robot, q):
    return pp.gravity_force(robot, q) + 5.0
print(heavier(robot, np.ones(2))[0], pp.gravity_force(robot, np.ones(2))[0])
"""


@pytest.mark.parametrize("order", ["theirs first", "ours first"])
def test_programs_made_of_ours_do_not_take_their_place_on_disk(order: str, tmp_path: Any):
    environment = {**os.environ, "PHIPSI_CACHE_DIR": str(tmp_path)}
    plain = "import numpy as np, phipsi as pp\nprint(pp.gravity_force(pp.robots.double_pendulum(), "
    plain += "np.ones(2))[0])"
    scripts = [POISON, plain] if order == "theirs first" else [plain, POISON]
    found = [
        subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True,
            check=True, timeout=120,
        ).stdout.split()
        for script in scripts
    ]  # fmt: skip
    (heavier, inside), (alone,) = found if order == "theirs first" else found[::-1]
    assert float(heavier) == pytest.approx(float(alone) + 5.0) and inside == alone


@pytest.mark.parametrize(
    "options, message",
    [
        ({"static": ("stpes",)}, "static names 'stpes', did you mean 'steps'. its parameters are"),
        ({"masks": "x"}, "masks names 'x', its parameters are robot, q, steps"),
        ({"shapes": {"p": (3,)}}, "shapes names 'p'"),
    ],
)
def test_options_that_name_no_parameter(options: dict[str, Any], message: str) -> None:
    def function(robot: pp.Robot, q: pp.typing.ConfigurationLike, steps: int = 3) -> Any:
        return q

    with pytest.raises(TypeError, match=f"program function: {message}"):
        pp.program(**options)(function)


def test_functions_that_are_no_programs() -> None:
    def nothing() -> None: ...
    def many(robot: pp.Robot, *q: float) -> None: ...

    for function, message in (
        (3, "program needs a function of a robot, got an int"),
        (nothing, "program nothing needs the robot as its first parameter"),
        (many, r"program many: \*q: 'float' is no parameter that can be traced"),
    ):
        with pytest.raises(TypeError, match=message):
            pp.program(cast("Any", function))
