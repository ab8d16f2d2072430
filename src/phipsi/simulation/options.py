"""The options that `simulate`, `rollout`, `motion` and scenarios share, with their checks.

An option is added here alone: a field of `SimulationOptions` (default), its line in that class's
docstring, and its key in `SimulationKeywords` (the same type again, for editors and type
checkers, which read no other form of `**options`). Signatures and docstrings of the functions
decorated with `with_options` follow; a test compares the two classes. A key of scenario files is a
row of `phipsi.scenarios.schema.Simulation` besides.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from numbers import Real
from typing import Literal, ParamSpec, SupportsIndex, TypedDict, TypeVar, get_type_hints

from phipsi.cached import cached_property
from phipsi.model import Closure, Spring
from phipsi.model.names import meant
from phipsi.model.untrusted import quoted
from phipsi.simulation.adaptive import ADAPTIVE, AdaptiveMethod, Tolerances
from phipsi.simulation.clock import Clock, Number, clock_of
from phipsi.simulation.coordinates import COORDINATES, CoordinatesName
from phipsi.simulation.methods import METHODS, FixedStepMethod
from phipsi.simulation.plant import Limits, Plant, plant_of
from phipsi.simulation.sequences import Interpolation, SequenceNames, interpolations

MethodName = Literal[FixedStepMethod, AdaptiveMethod]
"""The methods of integration."""

P = ParamSpec("P")
R = TypeVar("R")


class SimulationKeywords(TypedDict, total=False):
    """The options with a default, as keyword arguments (PEP 692); see `SimulationOptions`."""

    dt: Number
    method: MethodName
    rtol: Number | None
    atol: Number | None
    every: SupportsIndex
    coordinates: CoordinatesName
    passive: bool
    limits: bool | Limits | None
    actuators: bool
    closures: Sequence[Closure]
    stabilisation: Number
    springs: Sequence[Spring]
    sequences: SequenceNames
    unroll: bool | None
    verify: bool


@dataclass(frozen=True, kw_only=True)
class SimulationOptions:
    """How a motion is integrated, and what acts on the robot besides its controller.

    Parameters
    ----------
    duration
        How long the motion lasts [s].
    dt
        Step of integration [s]. It is shortened if need be, so that samples divide the duration.
    method
        A fixed-step method of `pp.simulation.METHODS`, or "dop853", "rk45", "radau" or "lsoda",
        which choose their own steps (SciPy).
    rtol
        Of these, the error of a step relative to the state; default 1e-10.
    atol
        Of these, the error of a step besides [units of the state]; default 1e-12.
    every
        Steps from one sample to the next.
    coordinates
        What is integrated: "minimal", "diagonal" ([DL] Alg 8.1) or "non-minimal" ([BI] Alg 3.4,
        free bases) coordinates.
    passive
        Whether springs, dampers and friction act.
    limits
        Stops at joint limits: True, or `pp.Limits(…)` for stops of your own. Default none, with a
        `pp.SimulationWarning` if a joint passes its limits; False: none, and no warning.
    actuators
        Whether motors are bounded by their efforts.
    closures
        `pp.Loop`s and `pp.Grasp`s that hold.
    stabilisation
        The rate [1/s] at which errors of the closures decay.
    springs
        `pp.Spring`s between points of two bodies, or of a body and the world, that act.
    sequences
        Parameters of the controller that are given as sequences over time, with an axis of K rows
        before their own: a name, names, or {name: "hold" or "linear"}. "hold": each row for the
        K-th part of the duration; "linear": rows at K equidistant times from 0 to the duration.
    unroll
        Whether sweeps over bodies are unrolled, or loops (False); default: whichever costs less.
    verify
        Whether the balance of energy and momentum, the gaps of closures and the norms of
        quaternions are watched: signals "energy_error", "energy_error_explained" and
        "momentum_error", and a `pp.SimulationWarning` where something drifts by more than the
        method explains.
    """

    duration: Number
    dt: Number = 1e-3
    method: MethodName = "rk4"
    rtol: Number | None = None
    atol: Number | None = None
    every: SupportsIndex = 1
    coordinates: CoordinatesName = "minimal"
    passive: bool = True
    limits: bool | Limits | None = None
    actuators: bool = True
    closures: Sequence[Closure] = ()
    stabilisation: Number = 10.0
    springs: Sequence[Spring] = ()
    sequences: SequenceNames = ()
    unroll: bool | None = None
    verify: bool = False

    def __post_init__(self) -> None:
        _ = self.clock, self.plant, self.tolerances, self.over_time  # each refuses wrong values
        if not isinstance(self.unroll, bool | None):
            raise TypeError(f"unroll is {self.unroll!r}, needs True, False or None")
        if not isinstance(self.verify, bool):
            raise TypeError(f"verify is {self.verify!r}, needs True or False")

    @cached_property
    def clock(self) -> Clock:
        """The steps and samples."""
        return clock_of(self.duration, self.dt, self.every)

    @cached_property
    def plant(self) -> Plant:
        """Forces and constraints besides the controller's, as they are at the start."""
        return plant_of(
            self.passive, self.limits, self.actuators, self.closures, self.stabilisation,
            self.springs,
        )  # fmt: skip

    @cached_property
    def over_time(self) -> dict[str, Interpolation]:
        """The interpolation of each sequence."""
        return interpolations(self.sequences)

    @cached_property
    def tolerances(self) -> Tolerances:
        """The errors that an adaptive method allows."""
        given = {"relative": self.rtol, "absolute": self.atol}
        for name, value in zip(("rtol", "atol"), given.values(), strict=True):
            if value is None:
                continue
            if not isinstance(value, Real) or isinstance(value, bool):
                raise TypeError(f"{name} is {value!r}, needs a number")
            if self.method in METHODS:
                raise ValueError(
                    f"{name} is for methods that choose their own steps "
                    f"({', '.join(ADAPTIVE)}); {self.method!r} has the step dt"
                )
        return Tolerances(**{name: float(x) for name, x in given.items() if x is not None})

    def check_method(self, closed: bool, locking: bool = False) -> None:
        """Refuse an unknown method or unknown coordinates, and those that cannot integrate a robot
        with closures (`closed`) or with hinges that become locked (`locking`)."""
        method, coordinates = self.method, self.coordinates
        known = [*METHODS, *ADAPTIVE]
        if not isinstance(method, str) or method not in known:
            hint = meant(method, known)
            raise ValueError(f"no method {quoted(method)}; {hint}known are {', '.join(known)}")
        if not isinstance(coordinates, str) or coordinates not in COORDINATES:
            raise ValueError(f"no coordinates {quoted(coordinates)}; use {', '.join(COORDINATES)}")
        minimal = coordinates == "minimal"
        if not minimal and not (method in METHODS and METHODS[method].any_coordinates):
            able = [name for name, row in METHODS.items() if row.any_coordinates]
            raise ValueError(f"{coordinates} coordinates need a method of {', '.join(able)}")
        if closed and method in METHODS and METHODS[method].carries_momentum:
            raise ValueError(f"method {method!r} takes no closures; use 'rk4'")
        if (closed or locking) and not minimal:
            raise ValueError(f"{coordinates} coordinates take no closures and no locked hinges")
        if locking and self.springs and method == "implicit":
            raise ValueError(
                "method 'implicit' takes no springs where a hinge becomes locked; use 'rk4', or "
                "lock it in the model, robot.locked([name], q)"
            )

    def check_fixed_steps(self, function: str) -> None:
        """Refuse adaptive methods on behalf of `function`, which compiles all steps at once."""
        if self.method not in METHODS:
            known = ", ".join(map(repr, METHODS))
            raise ValueError(
                f"{function}: {self.method!r} chooses its own steps; use one of {known}"
            )


_DEFAULTS = {f.name: f.default for f in fields(SimulationOptions) if f.default is not MISSING}


def options_of(function: str, duration: Number, given: SimulationKeywords) -> SimulationOptions:
    """The options that `function` was called with."""
    for name in given:
        if name not in _DEFAULTS:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
    return SimulationOptions(duration=duration, **given)


def with_options(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function of `duration` and `**options: Unpack[SimulationKeywords]`: its signature
    and its docstring at run time name every option after the duration, with type and default."""
    hints = get_type_hints(SimulationOptions)
    shared = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name]
        )
        for name, default in _DEFAULTS.items()
    ]
    signature = inspect.signature(function)
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD:
            parameters += [parameter, *(shared if name == "duration" else ())]
    function.__signature__ = signature.replace(parameters=parameters)  # pyright: ignore[reportFunctionMemberAccess] - what `inspect.signature` looks for
    del function.__annotations__["options"]
    function.__annotations__.update({name: hints[name] for name in _DEFAULTS})
    if function.__doc__ and SimulationOptions.__doc__:  # there are none under python -OO
        entries = SimulationOptions.__doc__.partition("    dt\n")[1:]
        function.__doc__ = re.sub(
            r"    \*\*options\n(?: {8}.*\n)+",
            lambda _: "".join(entries).rstrip() + "\n",
            function.__doc__,
        )
    return function
