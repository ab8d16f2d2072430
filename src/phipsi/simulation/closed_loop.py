"""The closed loop: controller, plant and integrator, step after step in one kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from phipsi.algorithms import grasp_dynamics
from phipsi.algorithms.constraints import solved
from phipsi.algorithms.cut import cut, wrenches
from phipsi.compile import lift, repeat
from phipsi.model import Grasp, Robot
from phipsi.programs import program
from phipsi.simulation.clock import Seconds
from phipsi.simulation.controller import RESIDUAL, BoundController
from phipsi.simulation.coordinates import COORDINATES, CoordinatesName
from phipsi.simulation.methods import METHODS, FixedStepMethod, State
from phipsi.simulation.plant import ControlledRobot, Plant
from phipsi.simulation.sequences import StepValues, rounds
from phipsi.sweeps.lowering import unrolling
from phipsi.typing import Array, Configuration, ExternalForces, JointVector


@dataclass(frozen=True)
class ClosedLoop:
    """The constants of the kernel of a simulation; hashable, for kernels are kept by them.

    Duration and step are inputs of the kernel, so that simulations of any length share it.
    """

    controller: BoundController
    plant: Plant
    method: FixedStepMethod = "rk4"
    coordinates: CoordinatesName = "minimal"
    unroll: bool | None = None
    """Whether sweeps over bodies are unrolled; None: as costs less."""


class LoopInputs(NamedTuple):
    """The numbers that a closed loop depends on besides time and state."""

    dt: Seconds
    """The step [s], for controllers that ask for it."""
    memory: Array | None
    """The memory of the controller, (m,)."""
    active: JointVector | None
    """1 where a motor works, else 0; None: those of the robot."""
    locked: JointVector | None
    """1 where a brake holds a hinge, else 0; None: nowhere."""
    parameters: Array | None
    """The parameters of the controller, packed into one vector."""
    sequences: Array | None = None
    """The values of its sequences over time, packed likewise."""


def controlled_robot(
    robot: Robot, loop: ClosedLoop, inputs: LoopInputs, values: StepValues | None = None,
    start: Seconds = 0.0,
) -> ControlledRobot:  # fmt: skip
    """The robot under its controller during one step, in which the memory is constant; `values` are
    those of its sequences in the step that begins at the time `start`."""

    def command(
        t: Seconds, q: Configuration, v: JointVector
    ) -> tuple[JointVector, ExternalForces | None]:
        out = commanded(robot, loop, _at(inputs, values, (t - start) / inputs.dt), t, q, v)
        return out["tau"], out["external"]

    return ControlledRobot(robot, loop.plant, command, inputs.locked)


def _at(inputs: LoopInputs, values: StepValues | None, part: Seconds) -> LoopInputs:
    """The inputs after a part of a step has passed, 0 to 1."""
    return inputs if values is None else inputs._replace(sequences=values.at(part))


def commanded(
    robot: Robot, loop: ClosedLoop, inputs: LoopInputs,
    t: Seconds, q: Configuration, v: JointVector,
) -> dict[str, Any]:  # fmt: skip
    """What the controller returns, by name; "tau" as the motors give it."""
    dt, memory, active, locked, parameters, sequences = inputs
    active = robot.driven * 1.0 if active is None else active
    braked = np.zeros(robot.nv) if locked is None else locked
    out = loop.controller(
        robot,
        parameters,
        sequences,
        t=t,
        dt=dt,
        q=q,
        v=v,
        memory=memory,
        active=active,
        locked=braked,
    )
    return {**out, "tau": loop.plant.motors(robot, out["tau"], active)}


@program(static=("loop",))
def advance(
    robot: Robot, q: Configuration, v: JointVector, first: Seconds, dt: Seconds,
    p: JointVector | None = None, memory: Array | None = None,
    active: JointVector | None = None, locked: JointVector | None = None,
    parameters: Array | None = None, held: Array | None = None, knots: Array | None = None,
    *, loop: ClosedLoop, count: int, every: int,
) -> tuple[Array, ...]:  # fmt: skip
    """`count` times `every` steps of a closed loop, the first of which begins at `first` times dt:
    the times of steps do not depend on how many of them one call makes.

    `held` and `knots` are the sequences of the controller, as in `Sequences`, in one vector each.

    Returns q, v, and if they are given the momentum p and the memory, at the start and after every
    `every` steps, (…, count + 1, n) each. Cost that of all steps. The loop over samples contains
    one over the steps between them: the reverse derivative keeps the samples as checkpoints and
    computes the steps between them again.
    """
    method, coordinates = METHODS[loop.method], COORDINATES[loop.coordinates]
    has_p, has_memory = p is not None, memory is not None

    over_time = loop.controller.over_time(held, knots, count * every)

    def step(state: State, k: Seconds, values: StepValues | None) -> State:
        q, v, *rest = state
        momentum = rest[:1] if has_p else []
        kept = rest[-1] if has_memory else None
        start = (first + k) * dt
        inputs = LoopInputs(dt, kept, active, locked, parameters)
        system = controlled_robot(robot, loop, inputs, values, start)
        with unrolling(loop.unroll):
            moved = method.step(system, coordinates, start, dt, q, v, *momentum)
            if has_memory:
                out = commanded(robot, loop, _at(inputs, values, 0.0), start, q, v)
                moved = (*moved, out["memory"])
        return moved

    def sample(state: State, row: tuple[Any, ...]) -> tuple[State, State]:
        k = row[0]
        window = None if over_time is None else over_time.window(*row[1:])

        def inner(state: State, row: tuple[Any, ...]) -> tuple[State, Array]:
            values = None if window is None else window.at_step(*row[1:])
            return step(state, every * k + row[0], values), np.zeros(0)

        if every == 1:
            return step(state, k, None if window is None else window.first()), state
        by_step = [] if window is None else window.by_step(every)
        last, _ = repeat(every, inner, state, rounds(every, by_step))
        return last, state

    start = tuple(x for x in (q, v, p, memory) if x is not None)
    by_sample = [] if over_time is None else over_time.by_sample(count, every)
    last, kept = repeat(count, sample, start, rounds(count, by_sample))
    ends = (np.reshape(y, (1, *np.shape(y))) for y in last)
    return tuple(np.concatenate(both) for both in zip(kept, ends, strict=True))


@program(static=("loop",))
def observe(
    robot: Robot, q: Configuration, v: JointVector, t: Seconds, dt: Seconds,
    memory: Array | None = None, active: JointVector | None = None,
    locked: JointVector | None = None, parameters: Array | None = None,
    sequences: Array | None = None, *, loop: ClosedLoop,
) -> dict[str, Array]:  # fmt: skip
    """The forces of the motors and the signals in a state.

    Signals are what the controller returns besides, and the forces of closures (n, 6) on their
    first frames, of grasps also the internal forces; "closure_residual" is the largest residual of
    the closures [rad/s² or m/s²].
    """
    inputs = LoopInputs(dt, memory, active, locked, parameters, sequences)
    with unrolling(loop.unroll):
        return _observed(robot, loop, inputs, t, q, v)


def _observed(
    robot: Robot, loop: ClosedLoop, inputs: LoopInputs,
    t: Seconds, q: Configuration, v: JointVector,
) -> dict[str, Array]:  # fmt: skip
    out = commanded(robot, loop, inputs, t, q, v)
    external = out.pop("external")
    out.pop("memory", None)
    closures = loop.plant.closures
    if closures:
        tau = out["tau"] + loop.plant.loads(robot, q, v)
        rate = loop.plant.stabilisation
        grasps = [c for c in closures if isinstance(c, Grasp)]
        if len(grasps) == len(closures):
            held = grasp_dynamics(
                robot, grasps, q, v, tau, external=external, stabilisation=rate, strict=False
            )
            residual = held.residual
            out |= {"contact_forces": held.forces, "internal_forces": held.internal}
        else:
            x = cut(robot, closures, q, v)
            _, lam, residual, _ = solved(robot, x, q, v, tau, external, rate)
            out["closure_forces"] = wrenches(x.forces(lam))
        out[RESIDUAL] = np.max(np.abs(lift(residual)))
    return out


@program(static=("loop",))
def derivative(
    robot: Robot, y: Annotated[Array, "nq+nv"], t: Seconds, dt: Seconds,
    memory: Array | None = None, active: JointVector | None = None,
    locked: JointVector | None = None, parameters: Array | None = None,
    sequences: Array | None = None, *, loop: ClosedLoop,
) -> Annotated[Array, "nq+nv"]:  # fmt: skip
    """ẏ = [q̇; v̇] of a closed loop in the state y = [q; v], for integrators of other libraries."""
    q, v = y[: robot.nq], y[robot.nq :]
    system = controlled_robot(
        robot, loop, LoopInputs(dt, memory, active, locked, parameters, sequences)
    )
    with unrolling(loop.unroll):
        return np.concatenate([robot.flow(q, v), system.accelerate(t, q, v)])


jacobian = derivative.derivative(wrt="y")
"""∂ẏ/∂y of `derivative`, (nq + nv, nq + nv); quaternions count as four plain numbers."""
