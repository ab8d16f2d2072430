"""Rollouts as programs, which can be compiled, differentiated and used in other programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, NamedTuple, Unpack

import numpy as np

from phipsi.algorithms import mass_matrix_product
from phipsi.model import Robot
from phipsi.programs import ROBOT, Parameter, Program
from phipsi.simulation.clock import Number
from phipsi.simulation.closed_loop import ClosedLoop, advance
from phipsi.simulation.controller import (
    SUPPLIED,
    BoundController,
    Controller,
    check_sequences,
    grouped,
    program_of,
)
from phipsi.simulation.methods import METHODS
from phipsi.simulation.options import SimulationKeywords, options_of, with_options
from phipsi.simulation.sequences import joined
from phipsi.typing import Array, Configuration, JointVector


class StateHistory(NamedTuple):
    """The states at N + 1 times, the start included."""

    q: Annotated[Array, "samples nq"]
    """Configurations, (…, N + 1, nq)."""
    v: Annotated[Array, "samples nv"]
    """Joint velocities, (…, N + 1, nv)."""


@with_options
def motion(
    controller: Controller | None = None,
    *,
    duration: Number,
    **options: Unpack[SimulationKeywords],
) -> Program[..., StateHistory]:
    """The rollout of a controller as a program of (robot, q, v, parameters of the controller).

    What it is for: gradients through time, `motion(…).derivative(…)` or pp.torch and pp.jax;
    rollouts on a GPU; costs of motions in programs of one's own. In reverse the samples kept are
    checkpoints, so a long motion of many steps wants an `every` near their square root.

    Parameters
    ----------
    controller : optional
        As in `simulate`. Default: no forces.
    duration
        How long the motion lasts [s].
    **options
        As in `rollout`: see `phipsi.simulation.options.SimulationOptions`.

    Returns
    -------
    Program
        A program that returns the states (`StateHistory`) at N + 1 times, the start included. If
        the controller has a memory, its value at the start is the argument after v.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> swing = pp.motion(duration=0.5, dt=0.01)
    >>> @pp.program
    ... def height(robot, q, v):
    ...     end = swing(robot, q, v)
    ...     return pp.potential_energy(robot, end.q[-1])
    >>> robot, q, v = pp.robots.double_pendulum(), np.array([1.0, 0.5]), np.zeros(2)
    >>> height.derivative(wrt="v")(robot, q, v).shape
    (2,)
    """
    how, own = options_of("motion", duration, options), program_of(controller)
    how.check_method(bool(how.plant.closures))
    how.check_fixed_steps("motion")
    if how.verify:
        raise ValueError("motion: verify is for simulate and rollout; a program has no warnings")
    clock, method = how.clock, METHODS[how.method]
    title = "motion" if own is None else f"motion_of_{own.name}"
    known = {} if own is None else own.parameters
    parameters = [p for name, p in known.items() if name not in SUPPLIED]
    has_memory = "memory" in known
    over_time = how.over_time
    check_sequences(own, over_time)

    def run(robot: Robot, q: Configuration, v: JointVector, **values: Any) -> StateHistory:
        memory = values.pop("memory") if has_memory else None
        constants: list[tuple[str, Any]] = []
        arrays: dict[str, Array] = {}
        rows: dict[str, Array] = {}
        shapes: dict[str, tuple[int, ...]] = {}
        for name, x in values.items():
            if own is not None and own.is_option(name, x):
                if known[name].kind == "array" and x is not known[name].default:
                    raise TypeError(f"{title}: {name} is {x!r}, needs numbers")
                constants.append((name, x))
            elif name in over_time:
                shapes[name] = np.shape(x)[1:]
                rows[name] = np.reshape(x, (len(x), -1))
            else:
                arrays[name] = np.asanyarray(x)
        layout = tuple((name, x.shape) for name, x in arrays.items())
        packed = [x.reshape(-1) for x in arrays.values()]
        p = None
        if method.carries_momentum:
            p = robot.inboard(q, mass_matrix_product(robot, q, v))
        bound = BoundController(own, tuple(constants), layout, *grouped(shapes, over_time))
        steps, held, knots = clock.samples * clock.every, None, None
        if rows:
            held, knots = joined(rows, over_time, steps, clock.every).vectors
        loop = ClosedLoop(bound, how.plant, method.name, how.coordinates, how.unroll)
        q, v, *_ = advance(
            robot, q, v, 0.0, clock.dt, p, memory,
            parameters=np.concatenate(packed) if packed else None, held=held, knots=knots,
            loop=loop, count=clock.samples, every=clock.every,
        )  # fmt: skip
        return StateHistory(q, v)

    def verify(result: StateHistory, args: tuple[Any, ...], kwargs: dict[str, Any]) -> StateHistory:
        """The result, if the parameters keep the rules of the controller."""
        if own is not None:
            own.check_rules({name: x for name, x in kwargs.items() if name != "memory"})
        return result

    first = [ROBOT, Parameter("q", ("nq",)), Parameter("v", ("nv",))]
    asked = [Parameter("memory", known["memory"].shape)] if has_memory else []
    by_name = {"rule": None, "keyword_only": True, "positional_only": False}
    return Program(
        run,
        [*first, *(_with_rows(replace(p, **by_name), over_time) for p in (*asked, *parameters))],
        name=title,
        doc=f"{clock.samples * clock.every} steps of {clock.dt:g} s by {method.name}.",
        verify=verify if any(p.rule for p in parameters) else None,
        made_by=(partial(motion, controller, duration=duration, **options), ()),
    )


def _with_rows(parameter: Parameter, over_time: Mapping[str, object]) -> Parameter:
    """The parameter, with an axis of rows before its own if it is a sequence over time."""
    if parameter.name not in over_time:
        return parameter
    own = ("length",) if parameter.shape is None else parameter.shape
    return replace(parameter, shape=("rows", *own))
