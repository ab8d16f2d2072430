"""Programs: functions of a robot and arrays that are traced, compiled and batched as a whole."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from phipsi.compile import BACKENDS, ArraySpec
from phipsi.model import Robot
from phipsi.programs.compiled import CompiledFunction, Verify
from phipsi.programs.parameters import Parameter, parameters_of
from phipsi.programs.request import robot_inputs
from phipsi.sweeps.log import logged_sweeps
from phipsi.typing import Shape

P = ParamSpec("P")
R = TypeVar("R")


class Program(CompiledFunction[P, R]):
    """A function f(robot, *arrays, **options) that runs traced.

    Call it with arrays of any leading batch shape; the kernel for this robot, these options and
    shapes is made at first use and kept. Inside another program it becomes a part of that one.

    `program` makes one of a function's own signature; here the parameters are given, the robot
    first. The function is called with every argument, those that are not keyword-only by position.
    `name` and `doc` are the function's own unless given; `content_key` is a text that says what the
    function computes, so that its traces may be remembered on disk; the others are as in `program`.
    """

    def __init__(
        self,
        function: Callable[P, R],
        parameters: Iterable[Parameter],
        *,
        name: str | None = None,
        doc: str | None = None,
        joint_space: bool = False,
        equation: Any = None,
        verify: Verify | None = None,
        content_key: str | None = None,
    ) -> None:
        super().__init__(
            function, parameters, name=name, doc=doc,
            joint_space=joint_space, verify=verify, content_key=content_key,
        )  # fmt: skip
        self.equation = equation
        """The operator expression that it is, if it is one."""

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
        from phipsi.programs.derivative import derived

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
        from phipsi.programs.symbolic import robot_symbols, written

        static, leaves = self.example(robot, arguments)
        given = robot_symbols(robot, inputs)
        extra = tuple(ArraySpec(name, (len(values),)) for name, values in given.items())
        request = self.request(robot, static, leaves, extra=extra)
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
        from phipsi.programs.source import written

        static, leaves = self.example(robot, arguments)
        extra = robot_inputs(robot, inputs)
        graph, results = self.request(robot, static, leaves, extra=extra, unroll=unroll).traced()
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
    masks: Sequence[str] = (),
) -> Callable[[Callable[P, R]], Program[P, R]]: ...
def program(
    function: Callable[..., Any] | None = None,
    *,
    shapes: Mapping[str, Shape] | None = None,
    static: Sequence[str] = (),
    joint_space: bool = False,
    equation: Any = None,
    verify: Verify | None = None,
    masks: Sequence[str] = (),
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
    verdict it is computed in double precision. `masks` are inputs of truth values that may be given
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

    def made(f: Callable[P, R]) -> Program[P, R]:
        parameters = parameters_of(f, shapes, static, masks)
        return Program(f, parameters, joint_space=joint_space, equation=equation, verify=verify)

    return made if function is None else made(function)
