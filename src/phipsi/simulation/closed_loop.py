"""The closed loop: controller, plant and integrator, step after step in one kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from phipsi.algorithms import grasp_dynamics
from phipsi.algorithms.constraints import solved
from phipsi.algorithms.cut import cut, wrenches
from phipsi.compile import repeat
from phipsi.model import Grasp, Robot
from phipsi.programs import program
from phipsi.simulation.clock import Seconds
from phipsi.simulation.controller import BoundController
from phipsi.simulation.coordinates import COORDINATES, CoordinatesName
from phipsi.simulation.methods import METHODS, FixedStepMethod, State
from phipsi.simulation.plant import ControlledRobot, Plant
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


def controlled_robot(robot: Robot, loop: ClosedLoop, inputs: LoopInputs) -> ControlledRobot:
    """The robot under its controller during one step, in which the memory is constant."""

    def command(
        t: Seconds, q: Configuration, v: JointVector
    ) -> tuple[JointVector, ExternalForces | None]:
        out = commanded(robot, loop, inputs, t, q, v)
        return out["tau"], out["external"]

    return ControlledRobot(robot, loop.plant, command, inputs.locked)


def commanded(
    robot: Robot, loop: ClosedLoop, inputs: LoopInputs,
    t: Seconds, q: Configuration, v: JointVector,
) -> dict[str, Any]:  # fmt: skip
    """What the controller returns, by name; "tau" as the motors give it."""
    dt, memory, active, locked, parameters = inputs
    active = robot.driven * 1.0 if active is None else active
    braked = np.zeros(robot.nv) if locked is None else locked
    out = loop.controller(
        robot, parameters, t=t, dt=dt, q=q, v=v, memory=memory, active=active, locked=braked
    )
    return {**out, "tau": loop.plant.motors(robot, out["tau"], active)}


@program(static=("loop",))
def advance(
    robot: Robot, q: Configuration, v: JointVector, t: Seconds, dt: Seconds,
    p: JointVector | None = None, memory: Array | None = None,
    active: JointVector | None = None, locked: JointVector | None = None,
    parameters: Array | None = None,
    *, loop: ClosedLoop, count: int, every: int,
) -> tuple[Array, ...]:  # fmt: skip
    """`count` times `every` steps of a closed loop from the time t on.

    Returns q, v, and if they are given the momentum p and the memory, at the start and after every
    `every` steps, (…, count + 1, n) each. Cost that of all steps. The loop over samples contains
    one over the steps between them: the reverse derivative keeps the samples as checkpoints and
    computes the steps between them again.
    """
    method, coordinates = METHODS[loop.method], COORDINATES[loop.coordinates]
    has_p, has_memory = p is not None, memory is not None

    def step(state: State, k: Seconds) -> State:
        q, v, *rest = state
        momentum = rest[:1] if has_p else []
        kept = rest[-1] if has_memory else None
        now, inputs = t + k * dt, LoopInputs(dt, kept, active, locked, parameters)
        system = controlled_robot(robot, loop, inputs)
        with unrolling(loop.unroll):
            moved = method.step(system, coordinates, now, dt, q, v, *momentum)
            if has_memory:
                moved = (*moved, commanded(robot, loop, inputs, now, q, v)["memory"])
        return moved

    def sample(state: State, k: Seconds) -> tuple[State, State]:
        def inner(state: State, j: Seconds) -> tuple[State, Array]:
            return step(state, every * k + j), np.zeros(0)

        if every == 1:
            return step(state, k), state
        last, _ = repeat(every, inner, state)
        return last, state

    start = tuple(x for x in (q, v, p, memory) if x is not None)
    last, kept = repeat(count, sample, start)
    ends = (np.reshape(y, (1, *np.shape(y))) for y in last)
    return tuple(np.concatenate(both) for both in zip(kept, ends, strict=True))


@program(static=("loop",))
def observe(
    robot: Robot, q: Configuration, v: JointVector, t: Seconds, dt: Seconds,
    memory: Array | None = None, active: JointVector | None = None,
    locked: JointVector | None = None, parameters: Array | None = None, *, loop: ClosedLoop,
) -> dict[str, Array]:  # fmt: skip
    """The forces of the motors and the signals in a state.

    Signals are what the controller returns besides, and the forces of closures (n, 6) on their
    first frames; of grasps also the internal forces.
    """
    inputs = LoopInputs(dt, memory, active, locked, parameters)
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
            out |= {"contact_forces": held.forces, "internal_forces": held.internal}
        else:
            x = cut(robot, closures, q, v)
            lam = solved(robot, x, q, v, tau, external, rate)[1]
            out["closure_forces"] = wrenches(x.forces(lam))
    return out


@program(static=("loop",))
def derivative(
    robot: Robot, q: Configuration, v: JointVector, t: Seconds, dt: Seconds,
    memory: Array | None = None, active: JointVector | None = None,
    locked: JointVector | None = None, parameters: Array | None = None, *, loop: ClosedLoop,
) -> Annotated[Array, "nq+nv"]:  # fmt: skip
    """[q̇; v̇] of a closed loop, for integrators of other libraries."""
    system = controlled_robot(robot, loop, LoopInputs(dt, memory, active, locked, parameters))
    with unrolling(loop.unroll):
        return np.concatenate([robot.flow(q, v), system.accelerate(t, q, v)])
