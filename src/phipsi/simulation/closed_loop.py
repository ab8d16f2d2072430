"""The closed loop: controller, plant and method, step after step in one kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from phipsi.algorithms import grasp_dynamics
from phipsi.algorithms.constraints import solved
from phipsi.algorithms.cut import cut, wrenches
from phipsi.compile import repeat
from phipsi.model import Grasp, Robot
from phipsi.programs import program
from phipsi.simulation.controller import BoundController
from phipsi.simulation.coordinates import COORDINATES
from phipsi.simulation.methods import METHODS
from phipsi.simulation.plant import ControlledRobot, Plant


@dataclass(frozen=True)
class ClosedLoop:
    """What is constant in the kernel of a simulation: controller, plant, method, coordinates."""

    controller: BoundController
    plant: Plant
    method: str = "rk4"
    coordinates: str = "minimal"


def controlled_robot(
    robot: Robot, loop: ClosedLoop, dt: Any, memory: Any, active: Any, locked: Any, parameters: Any
) -> ControlledRobot:
    """The closed loop of one step, during which memory stays as it is."""

    def command(t: Any, q: Any, v: Any) -> tuple[Any, Any]:
        out = commanded(robot, loop, t, dt, q, v, memory, active, locked, parameters)
        return out["tau"], out["external"]

    return ControlledRobot(robot, loop.plant, command, locked)


def commanded(
    robot: Robot, loop: ClosedLoop, t: Any, dt: Any, q: Any, v: Any,
    memory: Any, active: Any, locked: Any, parameters: Any,
) -> dict[str, Any]:  # fmt: skip
    """What the controller says, its forces as the motors give them."""
    active = robot.driven * 1.0 if active is None else active
    braked = np.zeros(robot.nv) if locked is None else locked
    out = loop.controller(
        robot, parameters, t=t, dt=dt, q=q, v=v, memory=memory, active=active, locked=braked
    )
    return {**out, "tau": loop.plant.motors(robot, out["tau"], active)}


SHAPES = {"t": (), "dt": (), "active": ("nv",), "locked": ("nv",), "p": ("nv",)}


@program(shapes=SHAPES, static=("loop",))
def advance(
    robot: Robot, q: Any, v: Any, t: Any, dt: Any, p: Any = None, memory: Any = None,
    active: Any = None, locked: Any = None, parameters: Any = None,
    *, loop: ClosedLoop, count: int, every: int,
) -> tuple[Any, ...]:  # fmt: skip
    """`count` times `every` steps of a closed loop from the time t: q, v, and if they are there the
    momentum and the memory, at the start and after every `every` steps, (count + 1, …) each. Cost
    that of all steps. A loop of loops: what is kept are the checkpoints of its reverse derivative,
    between which the steps are computed again."""
    method, coordinates = METHODS[loop.method], COORDINATES[loop.coordinates]
    has_p, has_memory = p is not None, memory is not None

    def step(state: Any, k: Any) -> Any:
        q, v, *rest = state
        own = rest[:1] if has_p else []
        kept = rest[-1] if has_memory else None
        now = t + k * dt
        system = controlled_robot(robot, loop, dt, kept, active, locked, parameters)
        moved = method.step(system, coordinates, now, dt, q, v, *own)
        if has_memory:
            told = commanded(robot, loop, now, dt, q, v, kept, active, locked, parameters)
            moved = (*moved, told["memory"])
        return moved

    def sample(state: Any, k: Any) -> tuple[Any, Any]:
        if every == 1:
            return step(state, k), state
        last, _ = repeat(every, lambda x, j: (step(x, every * k + j), np.zeros(0)), state)
        return last, state

    start = tuple(x for x in (q, v, p, memory) if x is not None)
    last, kept = repeat(count, sample, start)
    ends = (np.reshape(y, (1, *np.shape(y))) for y in last)
    return tuple(np.concatenate(both) for both in zip(kept, ends, strict=True))


@program(shapes=SHAPES, static=("loop",))
def observe(
    robot: Robot, q: Any, v: Any, t: Any, dt: Any, memory: Any = None,
    active: Any = None, locked: Any = None, parameters: Any = None, *, loop: ClosedLoop,
) -> dict[str, Any]:  # fmt: skip
    """The motors' forces and the signals of a state: what the controller returns, forces of
    closures (n, 6) on their first frames, of grasps the internal ones too."""
    out = commanded(robot, loop, t, dt, q, v, memory, active, locked, parameters)
    external = out.pop("external")
    out.pop("memory", None)
    closures = loop.plant.closures
    if closures:
        tau = out["tau"] + loop.plant.loads(robot, q, v)
        rate = loop.plant.stabilisation
        if all(isinstance(c, Grasp) for c in closures):
            held = grasp_dynamics(
                robot, closures, q, v, tau, external=external, stabilisation=rate, strict=False
            )
            out |= {"contact_forces": held.forces, "internal_forces": held.internal}
        else:
            x = cut(robot, closures, q, v)
            lam = solved(robot, x, q, v, tau, external, rate)[1]
            out["closure_forces"] = wrenches(x.forces(lam))
    return out


@program(shapes=SHAPES, static=("loop",))
def derivative(
    robot: Robot, q: Any, v: Any, t: Any, dt: Any, memory: Any = None,
    active: Any = None, locked: Any = None, parameters: Any = None, *, loop: ClosedLoop,
) -> Any:  # fmt: skip
    """[q̇; v̇] of a closed loop, for integrators from elsewhere."""
    system = controlled_robot(robot, loop, dt, memory, active, locked, parameters)
    return np.concatenate([robot.flow(q, v), system.accelerate(t, q, v)])
