"""Programs: functions of a robot and arrays that are traced, compiled and batched as a whole."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeVar, overload

from phipsi.compile import BACKENDS, ArraySpec, Dtype
from phipsi.model import Robot
from phipsi.programs.arguments import frozen
from phipsi.programs.compiled import CompiledFunction, Verify
from phipsi.programs.inputs import InputSpecs
from phipsi.programs.parameters import Parameter, parameters_of
from phipsi.programs.request import robot_inputs
from phipsi.sweeps.log import logged_sweeps
from phipsi.typing import Shape

if TYPE_CHECKING:
    from phipsi.programs.derivative import Mode
    from phipsi.programs.source import Language

P = ParamSpec("P")
R = TypeVar("R")
Stage = Literal["operators", "sweeps", "graph", "llvm", "cuda"]
"""The stages of `Program.show`."""


class OperatorEquation(Protocol):
    """An operator expression, as `phipsi.operators` has it."""

    def simplify(self, *, trace: Literal[True]) -> object:
        """The derivation of its simplest form."""
        ...


class Program(CompiledFunction[P, R]):
    """A function f(robot, *arrays, **options) that is traced and compiled.

    Call it with arrays of any leading batch shape. The kernel for the robot, the options and the
    shapes is compiled at the first call with them, and kept. Called inside another program, it
    becomes a part of that program.

    The decorator `program` makes one from the signature of a function. Here the parameters are
    given explicitly, the robot first.

    Parameters
    ----------
    function
        The function. It is called with all arguments, by position unless they are keyword-only.
    parameters
        Its parameters, the robot first.
    name, doc
        Name and docstring (default: the function's own).
    joint_space, equation, verify
        As in `program`.
    content_key
        A text that identifies what the function computes: its traces are stored in the disk cache
        under it. Without it they are not stored.
    made_by
        A function and its arguments that make the program again, which pickles store. Without it
        they store the program's name, and the module must have it.
    """

    def __init__(
        self,
        function: Callable[P, R],
        parameters: Iterable[Parameter],
        *,
        name: str | None = None,
        doc: str | None = None,
        joint_space: bool = False,
        equation: OperatorEquation | None = None,
        verify: Verify | None = None,
        content_key: str | None = None,
        made_by: tuple[Callable[..., Any], tuple[Any, ...]] | None = None,
    ) -> None:
        super().__init__(
            function, parameters, name=name, doc=doc, joint_space=joint_space, verify=verify,
            content_key=content_key, made_by=made_by,
        )  # fmt: skip
        self.equation = equation
        """The operator expression that the program computes, if there is one."""

    def derivative(
        self, wrt: str | Sequence[str], of: str | None = None, mode: Mode | None = None
    ) -> Program[P, Any]:
        """The program that computes derivatives of this one.

        It takes the same arguments and can be differentiated again. Loops are differentiated as
        loops, in reverse mode with one checkpoint per iteration.

        Parameters
        ----------
        wrt
            The argument, or arguments, with respect to which the results are differentiated.
            Configurations (arguments whose last axis is "nq") vary in the tangent space: their axis
            has nv entries, the displacement of `Robot.integrate`. Constants of the robot
            ("gravity", "inertia:BODY", …; see `Robot.parameter`) are named in the same way.
        of
            The name of the result that is differentiated (default: all results).
        mode
            "forward" (the cost of one evaluation for each number of the arguments) or "reverse"
            (for each number of the results). By default the cheaper one.

        Returns
        -------
        Program
            For each result an array (…, *result, *argument); for a sequence `wrt` a tuple with one
            part for each argument.

        Raises
        ------
        ValueError
            If there is no such argument, constant or result.

        Examples
        --------
        >>> import numpy as np, phipsi as pp
        >>> robot = pp.robots.double_pendulum()
        >>> gradient = pp.potential_energy.derivative(wrt="q")
        >>> q = np.array([0.3, -0.5])
        >>> bool(np.allclose(gradient(robot, q), pp.gravity_force(robot, q)))
        True
        """
        from phipsi.programs.derivative import derived

        def make(*args: Any, **named: Any) -> Program[P, Any]:
            return Program(*args, **named, made_by=(_derivative, (self, frozen(wrt), of, mode)))

        return derived(self, wrt, of, mode, make)

    def symbolic(
        self,
        robot: Robot,
        *,
        inputs: str | Sequence[str] | Mapping[str, Any] = (),
        names: Mapping[str, Any] | None = None,
        simplify: bool | None = None,
        shared: bool = False,
        **arguments: Any,
    ) -> Any:
        """The results of the program as SymPy expressions.

        Parameters
        ----------
        robot
            The robot.
        inputs
            Constants of the robot that become symbols, by the names of `Robot.parameter`, or "all":
            m mass, c centre of mass, I inertia about it, l position of a hinge, g gravity, A
            armature. Zeros stay zeros, other constants are numbers. A mapping gives expressions of
            your own for the named constants.
        names
            The names of arguments, {"q": "theta"}, or SymPy symbols in the shape of the argument.
            By default symbols are named q_1, q_2, v_1, …; all are real.
        simplify
            Whether the expressions are simplified (default: short ones are).
        shared
            Whether common subexpressions are kept as definitions, for robots whose expressions are
            too long to be written out.
        **arguments
            Arguments of the program, as in `compile`.

        Returns
        -------
        sympy.Matrix, sympy.Expr or sympy.Array
            A column or matrix; for a scalar result an expression, for three or more axes an array;
            several results are packed as the arrays are. With `shared=True` it is
            (definitions, results), as `sympy.cse` returns it.

        Examples
        --------
        >>> import phipsi as pp
        >>> pp.mass_matrix.symbolic(pp.robots.double_pendulum())[0, 0]
        9*cos(q_2)/100 + 3009/20000
        """
        from phipsi.programs.symbolic import robot_symbols, symbolic_results

        options, specs = self.example(robot, arguments)
        given = robot_symbols(robot, inputs)
        extra = tuple(ArraySpec(name, (len(values),)) for name, values in given.items())
        request = self.request(robot, options, specs, extra=extra)
        return symbolic_results(
            request, _flattened(specs), given, names or {}, simplify=simplify, shared=shared
        )

    def source(
        self,
        robot: Robot,
        *,
        language: Language = "c",
        dtype: Dtype = "float64",
        name: str | None = None,
        unroll: bool | None = None,
        inputs: str | Sequence[str] = (),
        **arguments: Any,
    ) -> str:
        """The program for one robot as source text.

        Parameters
        ----------
        robot
            The robot.
        language
            "c": one file of C99 that needs nothing but <math.h> and allocates no memory, with a
            function that takes an array for each input, then one for each result, for one state of
            the robot. "cuda": the kernel that the cuda backend runs.
        dtype
            "float64" or "float32".
        name
            The name of the C function (default: the program's).
        unroll, inputs
            As in `compile`.
        **arguments
            Arguments of the program, as in `compile`.

        Returns
        -------
        str
            The source text.

        Raises
        ------
        ValueError
            If the name is not valid in C, or taken by C or <math.h>.

        Examples
        --------
        >>> import phipsi as pp
        >>> text = pp.kinetic_energy.source(pp.robots.double_pendulum())
        >>> "void kinetic_energy(const double *restrict q, const double *restrict v" in text
        True
        """
        from phipsi.programs.source import source_text

        options, specs = self.example(robot, arguments)
        extra = robot_inputs(robot, inputs)
        graph, results = self.request(robot, options, specs, extra=extra, unroll=unroll).traced()
        every = [*_flattened(specs), *extra]
        summary = (inspect.getdoc(self) or f"{self.name}.").splitlines()[0]
        return source_text(
            language, graph, dtype, name, self.name, summary, robot, every, results.leaves
        )

    def show(self, robot: Robot, stage: Stage = "sweeps", **arguments: Any) -> str:
        """The program at one stage of its compilation, as text.

        Parameters
        ----------
        robot
            The robot.
        stage
            "operators" (docstring and equation, with its derivation), "sweeps" (the order of the
            recursions on this robot), "graph" (every scalar operation), "llvm" (the vector code for
            this machine) or "cuda" (the kernel for CUDA devices).
        **arguments
            Arguments of the program, as in `compile`.

        Returns
        -------
        str
            The text.
        """
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


def _derivative(
    program: Program[..., Any], wrt: str | Sequence[str], of: str | None, mode: Mode | None
) -> Program[..., Any]:
    """The derivative of a program; pickles call this."""
    return program.derivative(wrt, of, mode)


def _flattened(specs: InputSpecs) -> list[ArraySpec]:
    """All arrays of the parameters, those of mappings included."""
    groups = ((spec,) if isinstance(spec, ArraySpec) else spec for _, spec in specs)
    return [spec for group in groups for spec in group]


@overload
def program(function: Callable[P, R], /) -> Program[P, R]: ...
@overload
def program(
    *,
    shapes: Mapping[str, Shape] | None = None,
    static: Sequence[str] = (),
    joint_space: bool = False,
    equation: OperatorEquation | None = None,
    verify: Verify | None = None,
    masks: Sequence[str] = (),
) -> Callable[[Callable[P, R]], Program[P, R]]: ...
def program(
    function: Callable[..., Any] | None = None,
    *,
    shapes: Mapping[str, Shape] | None = None,
    static: Sequence[str] = (),
    joint_space: bool = False,
    equation: OperatorEquation | None = None,
    verify: Verify | None = None,
    masks: Sequence[str] = (),
) -> Any:
    """Make a function f(robot, *arrays, **options) a `Program`; to be used as a decorator.

    Arguments that are arrays, lists or numbers become inputs of the kernel. Strings, flags, None,
    arguments of parameters annotated str, bool, int or `Literal`, and those named in `static`
    are options: constants of the trace.

    The last axes of an input are its own, and the axes before them are the batch. Shapes are
    declared by the types of `phipsi.typing` (`gain: Annotated[ArrayLike, "nv nv"]`,
    `t: ScalarLike`, `active: MaskLike`) or by `shapes`; those of q, v, a, tau and external are
    known. An input of undeclared shape has one axis.

    Parameters
    ----------
    function
        The function. Its first parameter is the robot.
    shapes
        Shapes of inputs without the batch, `{"gain": ("nv", "nv"), "t": ()}`: lengths, or sizes of
        the robot ("nq", "nv", "nb").
    static
        Names of parameters that are options of the trace.
    joint_space
        A promise that the result is the same for every robot with the same joint-space dynamics
        (that it depends on no body's own frame, inertia or force). The program is then traced on
        such a robot that takes fewer operations (`Robot.equivalent`).
    equation
        The operator expression that the program computes, for `Program.show`.
    verify
        A function verify(result, args, kwargs) that sees every call outside of a trace and returns
        the result, amended if need be, or raises. Such programs compute in double precision.
    masks
        Names of inputs that are truth values and may be given as names of hinges instead, which
        are then constants of the trace (as are parameters annotated `MaskLike`).

    Returns
    -------
    Program
        The program, to be called like the function.

    Raises
    ------
    TypeError
        If the function has no parameter, or *args or **kwargs.

    Examples
    --------
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
