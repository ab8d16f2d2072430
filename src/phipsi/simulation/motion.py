"""Rollouts as programs: to be compiled, derived, and made part of other programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import numpy as np

from phipsi.algorithms import mass_matrix_product
from phipsi.model import Robot
from phipsi.programs import ROBOT, Parameter, Program
from phipsi.simulation.clock import Number
from phipsi.simulation.closed_loop import ClosedLoop, advance
from phipsi.simulation.controller import SUPPLIED, BoundController, program_of
from phipsi.simulation.methods import METHODS
from phipsi.simulation.options import SimulationKeywords, options_of, with_options


class StateHistory(NamedTuple):
    """The states at N + 1 times, the start included: q (…, N + 1, nq), v (…, N + 1, nv)."""

    q: Any
    v: Any


@with_options
def motion(
    controller: Any = None,
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
    how, law = options_of("motion", duration, options), program_of(controller)
    how.check_method(bool(how.plant.closures))
    how.check_fixed_steps("motion")
    clock = how.clock
    title = "motion" if law is None else f"motion_of_{law.name}"
    known = {} if law is None else law.parameters
    own = [p for name, p in known.items() if name not in SUPPLIED]
    has_memory = "memory" in known

    def run(robot: Robot, q: Any, v: Any, **values: Any) -> StateHistory:
        memory = values.pop("memory") if has_memory else None
        options, arrays = [], {}
        for name, x in values.items():
            if law is not None and law.is_option(name, x):
                if known[name].kind == "array" and x is not known[name].default:
                    raise TypeError(f"{title}: {name} is {x!r}, needs numbers")
                options.append((name, x))
            else:
                arrays[name] = np.asanyarray(x)
        layout = tuple((name, x.shape) for name, x in arrays.items())
        packed = [x.reshape(-1) for x in arrays.values()]
        p = None
        if METHODS[how.method].carries_momentum:
            p = robot.inboard(q, mass_matrix_product(robot, q, v))
        bound = BoundController(law, tuple(options), layout)
        loop = ClosedLoop(bound, how.plant, how.method, how.coordinates)
        q, v, *_ = advance(
            robot, q, v, 0.0, clock.dt, p, memory,
            parameters=np.concatenate(packed) if packed else None,
            loop=loop, count=clock.samples, every=clock.every,
        )  # fmt: skip
        return StateHistory(q, v)

    def verify(result: Any, args: Any, kwargs: Any) -> Any:
        """Where the controller refuses its parameters, so does the motion."""
        if law is not None:
            law.check_rules({name: x for name, x in kwargs.items() if name != "memory"})
        return result

    first = [ROBOT, Parameter("q", ("nq",)), Parameter("v", ("nv",))]
    asked = [Parameter("memory", known["memory"].shape)] if has_memory else []
    by_name = {"rule": None, "keyword_only": True, "positional_only": False}
    return Program(
        run,
        [*first, *(replace(p, **by_name) for p in (*asked, *own))],
        name=title,
        doc=f"{clock.samples * clock.every} steps of {clock.dt:g} s by {how.method}.",
        verify=verify if any(p.rule for p in own) else None,
    )
