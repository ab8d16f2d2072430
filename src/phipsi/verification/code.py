"""Checks of the code that phipsi makes of a robot, and of other descriptions of the same robot."""

from __future__ import annotations

import warnings

import numpy as np

from phipsi.algorithms import forward_dynamics, inverse_dynamics, mass_matrix, rebase
from phipsi.compile import BackendName, Dtype
from phipsi.model import ModelError, Robot
from phipsi.model.json import to_json
from phipsi.model.robot import from_json
from phipsi.typing import Array
from phipsi.verification.dynamics import floats
from phipsi.verification.states import DENSE, EPS, SAFETY, USUAL, States, relative
from phipsi.verification.table import LeftOut, Outcome, check, moves

EPS32 = float(np.finfo(np.float32).eps)
CRUDE = 0.1
"""The largest tolerance of single precision."""


def exact(x: States, which: slice) -> Array:
    """Forward dynamics in long double, by Python: no tracer and no compiler."""
    rows: list[Array] = []
    for state in zip(x.q[which], x.v[which], x.tau[which], strict=True):
        numbers = (np.array(y, np.longdouble).astype(object) for y in state)
        rows.append(np.asarray(forward_dynamics.function(x.robot, *numbers)).astype(np.longdouble))
    return np.array(rows)


def _run(x: States, backend: BackendName | None, dtype: Dtype = "float64") -> Array:
    """Forward dynamics on a backend; None: the one that calls run on."""
    kernel = forward_dynamics.compile(x.robot, backend=backend, dtype=dtype)
    return np.asarray(kernel(*(y.astype(dtype) for y in (x.q, x.v, x.tau))))


@check("machine code", "forward dynamics against long double, not compiled", moves)
def machine_code(x: States) -> Outcome:
    """The code that calls run, against Python over long double."""
    which = slice(None) if x.few else slice(USUAL, USUAL + 1)
    return Outcome(relative(x.a[which], exact(x, which), x.scale[which]), x.solving)


@check("interpreter", "forward dynamics against the interpreter in double precision", moves)
def interpreter(x: States) -> Outcome:
    """The living definition of the graph."""
    return Outcome(relative(x.a, _run(x, "numpy"), x.scale), x.solving)


@check("single precision", "forward dynamics in single against double precision", moves)
def single_precision(x: States) -> Outcome:
    """Rounding grows with the condition number."""
    tolerance = max(x.sums, SAFETY * EPS * x.condition) * EPS32 / EPS
    if tolerance > CRUDE:
        raise LeftOut(f"condition {x.condition:.0e}: single precision has no digits left")
    return Outcome(relative(_run(x, None, "float32"), x.a, x.scale), tolerance)


@check("CUDA", "forward dynamics on the GPU against this processor", moves)
def on_gpu(x: States) -> Outcome:
    """Where there is one."""
    try:
        found = _run(x, "cuda")
    except (ImportError, RuntimeError) as error:
        raise LeftOut(str(error)) from None
    return Outcome(relative(found, x.a, x.scale), x.solving)


@check("loops", "forward dynamics with loops over bodies against unrolled ones", moves)
def loops(x: States) -> Outcome:
    """The two lowerings of the same sweeps."""
    if x.robot.nb > DENSE:
        raise LeftOut(f"{x.robot.nb} bodies are not unrolled")
    kernel = forward_dynamics.compile(x.robot, unroll=False)
    return Outcome(relative(np.asarray(kernel(x.q, x.v, x.tau)), x.a, x.scale), x.solving)


@check("batches", "rows of a batch against single states, to the bit", moves)
def batches(x: States) -> Outcome:
    """Vector code and scalar code give the same numbers."""
    single = [inverse_dynamics(x.robot, *state) for state in zip(x.q, x.v, x.push, strict=True)]
    both = np.asarray(inverse_dynamics(x.robot, x.q, x.v, x.push)), np.array(single)
    return Outcome(float(np.count_nonzero(both[0] != both[1])), 0.0)


# ---- other descriptions --------------------------------------------------------------------------


@check("quaternions", "their norms after a displacement against 1", moves)
def quaternions(x: States) -> Outcome:
    """`integrate` keeps them unit."""
    places = [
        h.q.start + h.kind.quaternion for h in x.robot.hinges if h.kind.quaternion is not None
    ]
    if not places:
        raise LeftOut("no quaternions")
    q = np.asarray(x.robot.integrate(x.q, x.w))
    norms = np.linalg.norm(np.stack([q[:, i : i + 4] for i in places], axis=1), axis=-1)
    return Outcome(float(np.abs(norms - 1.0).max()), 16.0 * EPS)


@check("JSON", "the robot written and read again, to the bit", lambda x: "")
def json(x: States) -> Outcome:
    """The file says all that the robot is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is doubtful was said when the robot was made
        again = from_json(to_json(x.robot))
    return Outcome(0.0 if again == x.robot and again.key == x.robot.key else 1.0, 0.0)


@check("equivalent robot", "inverse dynamics in turned frames, as traces use them", moves)
def equivalent(x: States) -> Outcome:
    """`Robot.equivalent` has the same joint forces, in Python over long double."""
    return Outcome(
        relative(_forces(x.robot.equivalent, x), _forces(x.robot, x), 1 / x.scale), x.sums
    )


def _forces(robot: Robot, x: States) -> Array:
    """Inverse dynamics of one state, by Python."""
    state = (np.array(y[-1], np.longdouble).astype(object) for y in (x.q, x.v, x.push))
    found = inverse_dynamics.function(robot, *state)
    return np.broadcast_to(np.asarray(found).astype(float), x.v.shape)


@check("another base", "inverse dynamics with the last body as base", floats)
def another_base(x: States) -> Outcome:
    """`rebase` changes the description and nothing else."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other = rebase(x.robot, x.robot.bodies[-1].name)
    except ModelError as error:
        raise LeftOut(str(error)) from None
    q, v = other.state(x.q, x.v)
    tau, a = other.force(x.q, x.tau), other.acceleration(x.q, x.v, x.a)
    found = np.asarray(inverse_dynamics(other.robot, q, v, a))
    if not x.few:
        return Outcome(relative(found, np.asarray(tau)), 4.0 * x.solving)
    inertia = np.einsum("...ii->...i", np.asarray(mass_matrix(other.robot, q)))
    # the force on a small body that is the base is a small difference of large ones
    error = relative(found, np.asarray(tau), 1.0 / np.sqrt(inertia), inertia * a)
    return Outcome(error, 4.0 * x.solving)  # states are mapped, too
