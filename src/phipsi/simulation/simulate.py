"""`simulate` and `rollout`: closed loops run over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from phipsi.model import Robot
from phipsi.simulation.clock import Number
from phipsi.simulation.controller import Controller
from phipsi.simulation.events import Event
from phipsi.simulation.options import SimulationKeywords, options_of, with_options
from phipsi.simulation.simulator import Progress, Simulator
from phipsi.simulation.trajectory import Trajectory
from phipsi.typing import ArrayLike, ConfigurationLike, JointVectorLike, SpatialVectorLike


@with_options
def simulate(
    robot: Robot,
    q0: ConfigurationLike,
    v0: JointVectorLike | None = None,
    controller: Controller | None = None,
    *,
    duration: Number,
    parameters: Mapping[str, Any] | None = None,
    memory: ArrayLike | None = None,
    external: Mapping[str, SpatialVectorLike] | None = None,
    events: Event | Iterable[Event] = (),
    frames: str | Sequence[str] = (),
    progress: Progress | None = None,
    **options: Unpack[SimulationKeywords],
) -> Trajectory:
    """The motion from (q0, v0) under a controller, sampled every `every` steps of `dt` [s].

    Parameters
    ----------
    robot
        The robot.
    q0 : (…, nq)
        Configuration at the start; may be a batch.
    v0 : (…, nv), optional
        Joint velocities at the start [rad/s or m/s]; default at rest.
    controller : optional
        A program (or a function that can be traced) of the robot and of any of t, q, v, dt, active,
        locked, memory, which it is given, and of its own `parameters`. It returns tau, or a dict
        with "tau", and if it likes "memory" (kept from step to step), "external" ({frame: wrench})
        and signals to record. It is asked at every stage of a step; its memory changes once a step.
        It is traced when it is first used: numbers that change from call to call belong into its
        parameters. Default: no forces.
    duration
        How long the motion lasts [s].
    **options
        Method of integration, forces and constraints besides the controller's: see
        `phipsi.simulation.options.SimulationOptions`.
    parameters : optional
        Parameters of the controller by name; arrays may have the batch of q0 in front.
    memory : (…, m), optional
        The memory of the controller at the start, if it has one.
    external : {frame: (…, 6)}, optional
        Constant forces on frames, [moment; force] [N·m, N].
    events
        `pp.Failure`, `pp.Capture`, `pp.Release` and `pp.Change`.
    frames
        Frames and bodies whose poses are recorded.
    progress : optional
        Called with the fraction that is done.

    Returns
    -------
    Trajectory
        The samples: q, v, the motors' forces, poses of `frames`, signals and events.

    Raises
    ------
    Diverged
        The motion has numbers that are not finite; the error has the trajectory before.
    Interrupted
        Ctrl-C was pressed; the error has what was computed.
    EventError
        An event cannot happen; the error has the trajectory until then.

    Examples
    --------
    >>> import phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> motion = pp.simulate(robot, [1.0, 0.0], duration=1.0, dt=0.01)
    >>> motion
    <Trajectory of 'double_pendulum': 101 samples from 0 to 1 s, rk4, dt = 0.01 s>
    >>> bool(abs(motion.energy - motion.energy[0]).max() < 1e-5)
    True
    """
    how = options_of("simulate", duration, options)
    simulator = Simulator(robot, controller, how, memory=memory, external=external)
    return simulator.simulate(q0, v0, parameters, events, frames, progress)


@with_options
def rollout(
    robot: Robot,
    q0: ConfigurationLike,
    v0: JointVectorLike | None = None,
    controller: Controller | None = None,
    *,
    duration: Number,
    parameters: Mapping[str, Any] | None = None,
    memory: ArrayLike | None = None,
    external: Mapping[str, SpatialVectorLike] | None = None,
    signals: bool = False,
    **options: Unpack[SimulationKeywords],
) -> Trajectory:
    """Many motions at once: controller, dynamics and integrator, steps and all, in one kernel.

    A long motion is several calls of it, each of a bounded time. The batch is that of q0, v0 and
    the parameters, any of which may have one value per row. A motion that diverges is NaN from
    there on.

    Parameters
    ----------
    robot
        The robot.
    q0 : (…, nq)
        Configurations at the start.
    v0 : (…, nv), optional
        Joint velocities at the start [rad/s or m/s]; default at rest.
    controller : optional
        As in `simulate`.
    duration
        How long the motions last [s].
    **options
        As in `simulate`: see `phipsi.simulation.options.SimulationOptions`.
    parameters : optional
        Parameters of the controller by name, each with or without the batch in front.
    memory : (…, m), optional
        The memory of the controller at the start, if it has one.
    external : {frame: (…, 6)}, optional
        Constant forces on frames, [moment; force] [N·m, N].
    signals
        Whether tau and signals are computed; else tau is NaN and there are no signals.

    Returns
    -------
    Trajectory
        One trajectory with arrays (…, N, n).

    Raises
    ------
    Interrupted
        Ctrl-C was pressed; the error has the samples until then.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q0 = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    >>> pp.rollout(robot, q0, duration=1.0, dt=0.01).q.shape
    (100, 101, 2)
    """
    how = options_of("rollout", duration, options)
    simulator = Simulator(robot, controller, how, memory=memory, external=external)
    return simulator.rollout(q0, v0, parameters, signals)
