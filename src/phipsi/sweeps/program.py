"""Programs: functions of a robot and arrays that are traced, compiled and batched as a whole."""

from __future__ import annotations

import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

from phipsi.compile import (
    BACKENDS,
    ArraySpec,
    Graph,
    Kernel,
    as_device_array,
    as_host_array,
    current,
    default_backend,
    is_traced,
    lift,
    on_device,
)
from phipsi.model import Robot
from phipsi.sweeps.arguments import (
    as_truths,
    common_dtype,
    flatten,
)
from phipsi.sweeps.forest import simplest
from phipsi.sweeps.inputs import Inputs, Shape
from phipsi.sweeps.log import logged_sweeps
from phipsi.sweeps.request import Request
from phipsi.sweeps.shortcut import Places, Shortcuts

P = ParamSpec("P")
R = TypeVar("R")
Verify = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]

CACHED = 256
"""Kernels a program keeps, least recently used dropped first."""


class Program(Inputs, Generic[P, R]):
    """A function f(robot, *arrays, **options) that runs traced.

    Call it with arrays of any leading batch shape; the kernel for this robot, these options and
    shapes is made at first use and kept. Inside another program it becomes a part of that one.
    """

    def __init__(
        self,
        function: Callable[P, R],
        shapes: Mapping[str, Shape] | None = None,
        static: Sequence[str] = (),
        joint_space: bool = False,
        equation: Any = None,
        verify: Verify | None = None,
        named: Sequence[str] = (),
    ) -> None:
        functools.update_wrapper(self, function)
        super().__init__(function, shapes, static, named)
        self.joint_space = joint_space
        self.equation = equation
        """The operator expression that it is, if it is one."""
        self.verify = verify
        self._kernels: OrderedDict[Any, Kernel] = OrderedDict()
        places = Places.of(
            list(self.signature.parameters.values()), self.options, self.named, self.shapes
        )
        self._shortcuts = Shortcuts(self._general, places)

    # ---- calling -------------------------------------------------------------------------------

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run on arrays; see the function's own documentation for its arguments."""
        if current() is not None:
            return self._general(args, kwargs)
        result = self._shortcuts.call(args, kwargs)
        return result if self.verify is None else self._verified(result, args, kwargs)

    def _general(self, args: Any, kwargs: Any) -> Any:
        """Run on arguments of any kind."""
        robot, arguments = self.bind(args, kwargs)
        if current() is not None:
            return self._inline(robot, arguments)
        static, leaves, values = self.sort(robot, arguments)
        dtype = common_dtype(_leaves(arguments))
        if self.verify is not None and dtype == "float32":
            dtype = "float64"
        backend = "cuda" if any(map(on_device, values)) else None
        key = (robot.key, dtype, backend, static, tuple(type(x) for _, x in static), leaves)
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = _kernel(self._request(robot, static, leaves), dtype, backend)
            self._kernels[key] = kernel
            if len(self._kernels) > CACHED:
                self._kernels.popitem(last=False)
        else:
            with suppress(KeyError):  # another thread may have dropped it
                self._kernels.move_to_end(key)
        result = kernel.run(values)
        self._shortcuts.learn(kernel, args, kwargs)
        return result

    def _verified(self, result: Any, args: Any, kwargs: Any) -> Any:
        """The result as `verify` leaves it, which sees arrays here."""
        assert self.verify is not None
        if not any(on_device(x) for y in (*args, *kwargs.values()) for x in _members(y)):
            return self.verify(result, args, kwargs)
        leaves, pack = flatten(result, self.name)
        seen = pack([as_host_array(x) for _, x in leaves])
        named = {name: _brought(x) for name, x in kwargs.items()}
        final = self.verify(seen, tuple(map(_brought, args)), named)
        if final is seen:
            return result
        leaves, pack = flatten(final, self.name)
        return pack([as_device_array(x) for _, x in leaves])

    def compile(
        self,
        robot: Robot,
        *,
        backend: str | None = None,
        dtype: str = "float64",
        threads: int | None = None,
        unroll: bool | None = None,
        inputs: str | Sequence[str] = (),
        **arguments: Any,
    ) -> Kernel:
        """The kernel for one robot.

        `backend` is "llvm" (machine code; the default where llvmlite is installed), "numpy", or
        "cuda" (one thread of a CUDA device per row; see `Kernel`).
        Large batches are divided among `threads` (default: PHIPSI_NUM_THREADS, else every core).
        Sweeps over up to 64 bodies are unrolled, over more they become loops; `unroll` decides.
        Further keywords are the program's own arguments: options are taken as they are; of an
        array only the shape counts (needed only where the program cannot know it); what has a
        default and is not named here is a constant. `inputs` names constants of the robot that
        become arguments of the kernel, after the others, one value per
        batch row: see `Robot.parameter`.
        """
        static, leaves = self.example(robot, arguments)
        extra = _numbers(robot, inputs)
        request = self._request(robot, static, leaves, extra=extra, unroll=unroll)
        kernel = _kernel(request, dtype, backend, threads)
        kernel.prepare()
        return kernel

    def graph(self, robot: Robot, *, unroll: bool | None = None, **arguments: Any) -> Graph:
        """The traced scalar graph for one robot; arguments as in `compile`."""
        static, leaves = self.example(robot, arguments)
        return self._request(robot, static, leaves, unroll=unroll).traced()[0]

    def derivative(
        self, wrt: str | Sequence[str], of: str | None = None, mode: str | None = None
    ) -> Program[P, Any]:
        """The program of the derivatives by the arguments `wrt`: with the same arguments, and for
        each of its results, or for the one named `of`, an array (*result, *argument).

        Coordinates (arguments whose last axis is declared "nq") vary in the tangent space: an axis
        of nv, the displacement of `Robot.integrate`. Names of the numbers of the robot ("gravity",
        "inertia:BODY", …) are taken too. Of a sequence of names the result is a tuple, one part for
        each. It can be derived again. `mode` is "forward" (cost: so many evaluations as the
        arguments have numbers) or "reverse" (as the results have), by default the lesser; loops are
        derived as loops, in reverse with one checkpoint a round.

        >>> import numpy as np, phipsi as pp
        >>> robot = pp.robots.double_pendulum()
        >>> gradient = pp.potential_energy.derivative(wrt="q")
        >>> q = np.array([0.3, -0.5])
        >>> bool(np.allclose(gradient(robot, q), pp.gravity_force(robot, q)))
        True
        """
        from phipsi.sweeps.derivative import derived

        return derived(self, wrt, of, mode, Program)

    def symbolic(
        self,
        robot: Robot,
        *,
        inputs: Any = (),
        names: Mapping[str, Any] | None = None,
        simplify: bool | None = None,
        shared: bool = False,
        **arguments: Any,
    ) -> Any:
        """The results as SymPy expressions: a column or matrix (one result of no axis: an
        expression; of three or more: an array), packed as the arrays are. Arguments as in
        `compile`.

        Symbols are real numbers, named q_1, q_2, v_1, …; `names={"q": "theta"}`, or symbols of
        yours in the shape of the argument, name them otherwise. Constants of the robot are
        numbers, but for `inputs`: names as in `compile`, or "all", become symbols (m mass, c
        centre of mass, I inertia about it, l position of a hinge, g gravity, A armature; zeros
        stay zeros); a mapping of such names gives expressions of yours. Short formulas are
        simplified; `simplify` decides. `shared=True` returns (definitions, results) as
        `sympy.cse` does: for robots whose formulas are too long to be written out.

        >>> import phipsi as pp
        >>> pp.mass_matrix.symbolic(pp.robots.double_pendulum())[0, 0]
        9*cos(q_2)/100 + 3009/20000
        """
        from phipsi.sweeps.symbolic import parameters, written

        static, leaves = self.example(robot, arguments)
        given = parameters(robot, inputs)
        extra = tuple(ArraySpec(name, (len(values),)) for name, values in given.items())
        request = self._request(robot, static, leaves, extra=extra)
        own = [x for _, leaf in leaves for x in ((leaf,) if isinstance(leaf, ArraySpec) else leaf)]
        how: dict[str, Any] = {"simplify": simplify, "shared": shared}
        return written(request, own, given, names or {}, **how)

    def source(
        self,
        robot: Robot,
        *,
        language: str = "c",
        dtype: str = "float64",
        name: str | None = None,
        unroll: bool | None = None,
        inputs: str | Sequence[str] = (),
        **arguments: Any,
    ) -> str:
        """The program for one robot as source text; arguments as in `compile`.

        In "c": one file of C99 that needs nothing but <math.h> and allocates nothing, with a
        function `name` (default: the program's) that takes an array for each input, then one for
        each result, for one state of the robot. In "cuda": the kernel that the cuda backend runs.

        >>> import phipsi as pp
        >>> text = pp.kinetic_energy.source(pp.robots.double_pendulum())
        >>> "void kinetic_energy(const double *restrict q, const double *restrict v" in text
        True
        """
        from phipsi.sweeps.source import written

        static, leaves = self.example(robot, arguments)
        extra = _numbers(robot, inputs)
        graph, results = self._request(robot, static, leaves, extra=extra, unroll=unroll).traced()
        groups = ((leaf,) if isinstance(leaf, ArraySpec) else leaf for _, leaf in leaves)
        every = [*(leaf for group in groups for leaf in group), *extra]
        says = (inspect.getdoc(self) or f"{self.name}.").splitlines()[0]
        return written(language, graph, dtype, name, self.name, says, robot, every, results.leaves)

    def show(self, robot: Robot, stage: str = "sweeps", **arguments: Any) -> str:
        """What the program is at a stage: "operators" (its equation and source), "sweeps" (the
        order of its recursions on this robot), "graph" (every scalar operation), "llvm" (the
        vector code for this machine) or "cuda" (the kernel for CUDA devices)."""
        match stage:
            case "operators":
                own = [] if self.equation is None else [str(self.equation.simplify(trace=True))]
                return "\n\n".join([inspect.getdoc(self) or self.name, *own])
            case "sweeps":
                with logged_sweeps() as log:
                    operations = self.graph(robot, **arguments).operations
                head = f"{self.name} on {robot.name!r}: {operations} operations"
                return "\n".join([head, *log.lines()])
            case "graph":
                return str(self.graph(robot, **arguments))
            case "llvm" | "cuda":
                return BACKENDS[stage].source(self.graph(robot, **arguments))
            case _:
                raise ValueError(
                    f"stage {stage!r} is not in this version; "
                    "use 'operators', 'sweeps', 'graph', 'llvm' or 'cuda'"
                )

    def __repr__(self) -> str:
        return f"<program {self.usage}>"

    # ---- tracing -------------------------------------------------------------------------------

    def _inline(self, robot: Robot, arguments: dict[str, Any]) -> Any:
        """Run as a part of the program being traced."""
        traced: dict[str, Any] = {}
        for name, value in arguments.items():
            if self.is_option(name, value):
                traced[name] = value
            elif isinstance(value, Mapping):
                traced[name] = {k: lift(v) for k, v in value.items()}
            else:
                if name in self.named and not is_traced(value):
                    value = as_truths(f"{self.name}: {name}", value)
                traced[name] = lift(value)
                self.checked(robot, name, traced[name].shape)
        result = self.apply(robot, traced)
        leaves, pack = flatten(result, self.name)
        return pack([lift(x) if np.ndim(x) else lift(x)[()] for _, x in leaves])

    def apply(self, robot: Robot, arguments: dict[str, Any]) -> Any:
        """The function itself, on arguments by name."""
        positional, keywords = [], {}
        for name, parameter in self.parameters.items():
            if parameter.kind is parameter.KEYWORD_ONLY:
                keywords[name] = arguments[name]
            else:
                positional.append(arguments[name])
        function: Callable[..., Any] = self.function
        return function(simplest(robot) if self.joint_space else robot, *positional, **keywords)

    def _request(self, robot: Robot, static: Any, leaves: Any, **more: Any) -> Request:
        return Request(
            self.name, self.function, self.apply, robot, dict(static), tuple(leaves),
            joint_space=self.joint_space, **more,
        )  # fmt: skip


def _kernel(
    request: Request, dtype: str, backend: str | None = None, threads: int | None = None
) -> Kernel:
    backend = backend or default_backend(dtype)
    graph, results = request.traced() if backend == "numpy" else request.recalled()
    return Kernel(request.name, graph, request.parameters, results, dtype, backend, threads)


def _numbers(robot: Robot, names: str | Sequence[str]) -> tuple[ArraySpec, ...]:
    """Numbers of the robot that become inputs."""
    given = (names,) if isinstance(names, str) else names
    return tuple(ArraySpec(name, robot.parameter(name).shape) for name in given)


def _leaves(arguments: dict[str, Any]) -> Iterator[Any]:
    for value in arguments.values():
        yield from _members(value)


def _members(value: Any) -> Iterable[Any]:
    """The values of a mapping, or the one value."""
    return value.values() if isinstance(value, Mapping) else (value,)


def _brought(value: Any) -> Any:
    """An argument with arrays on a device brought here."""
    if isinstance(value, Mapping):
        return {name: _brought(x) for name, x in value.items()}
    return as_host_array(value) if on_device(value) else value


@overload
def program(function: Callable[P, R], /) -> Program[P, R]: ...
@overload
def program(
    *,
    shapes: Mapping[str, Shape] | None = None,
    static: Sequence[str] = (),
    joint_space: bool = False,
    equation: Any = None,
    verify: Verify | None = None,
    named: Sequence[str] = (),
) -> Callable[[Callable[P, R]], Program[P, R]]: ...
def program(
    function: Callable[..., Any] | None = None,
    *,
    shapes: Mapping[str, Shape] | None = None,
    static: Sequence[str] = (),
    joint_space: bool = False,
    equation: Any = None,
    verify: Verify | None = None,
    named: Sequence[str] = (),
) -> Any:
    """Make a function of (robot, arrays...) a `Program`.

    Arguments that are arrays, lists or numbers become inputs; parameters annotated str, bool or
    int, strings, flags, None and the names in `static` are options of the trace. The last axis of
    an input is its own and the axes before it are the batch, unless `shapes` says otherwise:
    `shapes={"gain": ("nv", "nv"), "t": ()}`, where a string is a size of the robot. Known already:
    q, v, a, tau, external. `joint_space=True` promises that the result is the same for every robot
    with the same joint-space dynamics (no body's own frame, inertia or force is part of it): it is
    then traced on one that takes fewer operations (`Robot.equivalent`). `equation` is the operator
    expression that the program computes, for `show`. `verify(result, args, kwargs)` sees every call
    that is not part of a trace; it returns the result, amended if need be, or raises. For such a
    verdict it is computed in double precision. `named` are inputs of truth values that may be given
    as names instead (of hinges that are active), which are constants of the trace.

    >>> import numpy as np, phipsi as pp
    >>> @pp.program
    ... def drive(robot, q, v, target):
    ...     tau = 10.0 * robot.difference(q, target) - 2.0 * v + pp.gravity_force(robot, q)
    ...     return pp.forward_dynamics(robot, q, v, tau)
    >>> robot = pp.robots.double_pendulum()
    >>> drive(robot, np.zeros((5, 2)), np.zeros((5, 2)), np.ones(2)).shape
    (5, 2)
    """
    if function is None:
        return lambda f: Program(f, shapes, static, joint_space, equation, verify, named)
    return Program(function, shapes, static, joint_space, equation, verify, named)
