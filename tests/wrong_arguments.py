"""Calls of public functions with one argument of the wrong kind, to be refused in a sentence.

The valid calls are those of the examples in docstrings, and those of `MORE`.
`python -m tests.wrong_arguments` tries all of them with every wrong value; the tests try a sample.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import decimal
import doctest
import importlib
import inspect
import io
import linecache
import os
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

import phipsi
from phipsi.programs import Program
from phipsi.programs.compiled import CompiledFunction
from phipsi.simulation import SimulationKeywords
from tests import declared_types
from tests.declared_types import EXTRAS

PACKAGES = (
    "phipsi", "phipsi.control", "phipsi.simulation", "phipsi.compile.linalg", "phipsi.operators",
    "phipsi.scenarios",
)  # fmt: skip
SOURCES = os.path.dirname(phipsi.__file__)
FOREIGN = (
    AttributeError, AssertionError, IndexError, KeyError, NameError, OverflowError, RecursionError,
    RuntimeError, SystemError, UnicodeError, MemoryError,
)  # fmt: skip
"""Classes of errors that say nothing about an argument."""
OURS_TOO = (ValueError, TypeError, NotImplementedError, OSError, ImportError, ArithmeticError)
"""Classes of Python that are right if phipsi raises them, with a sentence."""
SECONDS = 10
DECLARED = declared_types.__file__
"""Where the tests compare calls that return with declared types."""


class Sparse:
    """What numpy.asarray makes an object array of no axes of."""

    shape = (2, 2)


def masked(shape: Any = 2) -> Any:
    """A masked array with one masked element."""
    array = np.ma.zeros(shape)
    array[(0,) * array.ndim] = np.ma.masked
    return array


class Unfit(NamedTuple):
    """A value of the wrong kind, made anew for every call."""

    name: str
    make: Callable[[Any], Any]
    """Of the valid value."""


WRONG = (
    Unfit("None", lambda _: None),
    Unfit("mapping", lambda _: {"a": 1.0, "b": [1.0]}),
    Unfit("empty mapping", lambda _: {}),
    Unfit("mapping of numbers to objects", lambda _: {1: object(), None: {}}),
    Unfit("text", lambda _: "no such name"),
    Unfit("empty text", lambda _: ""),
    Unfit("surrogate", lambda _: "\ud800"),
    Unfit("bytes", lambda _: b"\xff\x00"),
    Unfit("object", lambda _: object()),
    Unfit("class", lambda _: Sparse),
    Unfit("instance", lambda _: Sparse()),
    Unfit("function", lambda _: lambda: None),
    Unfit("module", lambda _: os),
    Unfit("set", lambda _: {1.0, 2.0}),
    Unfit("generator", lambda _: (x for x in (1.0, 2.0))),
    Unfit("range", lambda _: range(2)),
    Unfit("ragged", lambda _: [[1.0], [1.0, 2.0]]),
    Unfit("list of None", lambda _: [None, None]),
    Unfit("list of texts", lambda _: ["base", "x"]),
    Unfit("list of objects", lambda _: [object()]),
    Unfit("list of mappings", lambda _: [{}, {}]),
    Unfit("empty list", lambda _: []),
    Unfit("empty tuple", lambda _: ()),
    Unfit("huge", lambda _: 10**400),
    Unfit("list of huge", lambda _: [10**400, 1]),
    Unfit("negative", lambda _: -1),
    Unfit("nan", lambda _: float("nan")),
    Unfit("infinity", lambda _: float("inf")),
    Unfit("denormal", lambda _: 1e-320),
    Unfit("large", lambda _: 1e308),
    Unfit("true", lambda _: True),
    Unfit("complex", lambda _: 1j),
    Unfit("decimal", lambda _: decimal.Decimal("1.5")),
    Unfit("date", lambda _: datetime.datetime(2020, 1, 1)),
    Unfit("array of dates", lambda _: np.array(["2020-01-01"], "datetime64[s]")),
    Unfit("array of complex", lambda _: np.zeros(2, complex)),
    Unfit("array of texts", lambda _: np.array(["a", "b"])),
    Unfit("array of objects", lambda _: np.array([object(), None])),
    Unfit("array of records", lambda _: np.zeros(2, [("a", float)])),
    Unfit("array without axes", lambda _: np.array(1.0)),
    Unfit("array without elements", lambda _: np.zeros((0, 3))),
    Unfit("array of 64 axes", lambda _: np.zeros((1,) * 63 + (2,))),
    Unfit(
        "masked", lambda x: masked(np.shape(x)) if isinstance(x, (list, np.ndarray)) else masked()
    ),
    Unfit("list of masked", lambda _: [masked(), masked()]),
    Unfit("robot", lambda _: phipsi.robots.double_pendulum()),
    Unfit("program", lambda _: phipsi.mass_matrix),
    Unfit("nested", lambda x: [[x]]),
    Unfit("longer", lambda x: [*x, *x] if hasattr(x, "__len__") else [x, x, x]),
)
"""Wrong values; some are right for some arguments, and then the call may return."""


class Call(NamedTuple):
    """A valid call: a public function or method, and its arguments by name."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]

    def options(self) -> Iterator[str]:
        """The names of its arguments, with those of `SimulationKeywords` that it takes."""
        known = {*self.arguments, *SimulationKeywords.__annotations__} - {"self", "cls"}
        return (name for name in inspect.signature(self.function).parameters if name in known)

    def run(self, **changed: Any) -> Any:
        """Call it with some arguments changed."""
        given = {**self.arguments, **self.arguments.get("options", {}), **changed}
        given.pop("options", None)
        signature = inspect.signature(self.function)
        args: list[Any] = []
        for parameter in list(signature.parameters.values()):
            name, kind = parameter.name, parameter.kind
            if kind is parameter.VAR_POSITIONAL:
                value = given.pop(name, ())
                args += value if isinstance(value, tuple) else [value]
            elif kind is parameter.VAR_KEYWORD:
                value = given.pop(name, {})
                given |= value if isinstance(value, dict) else {}
            elif kind is not parameter.KEYWORD_ONLY and name in given:
                args.append(given.pop(name))
        if isinstance(self.function, Program):
            return _unchecked(self.function, *args, **given)
        return self.function(*args, **given)


def _unchecked(program: Program[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The call of a program without the comparison with declared types of the tests."""
    return inspect.unwrap(CompiledFunction.__call__)(program, *args, **kwargs)


def public() -> Iterator[tuple[str, Callable[..., Any], str]]:
    """Public functions, programs, classes and methods, with the docstring that has an example."""
    seen: set[int] = set()
    for package in map(importlib.import_module, PACKAGES):
        own = [
            n for n, x in vars(package).items() if getattr(x, "__module__", "") == package.__name__
        ]
        for name in getattr(package, "__all__", [n for n in own if not n.startswith("_")]):
            value = None if name in EXTRAS else getattr(package, name)
            if id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, Program) or inspect.isfunction(value):
                yield name, value, inspect.getdoc(value) or ""
            elif inspect.isclass(value) and value.__module__.startswith("phipsi."):
                text = inspect.getdoc(value) or ""
                yield name, value, text
                for attribute, member in list(vars(value).items()):
                    if inspect.isfunction(member) and not attribute.startswith("_"):
                        own_text = inspect.getdoc(member) or ""
                        yield f"{name}.{attribute}", member, own_text if ">>>" in own_text else text


MORE = """
>>> robot, arm = pp.robots.double_pendulum(), pp.robots.space_arm()
>>> q, v = arm.random_state(rng=0, batch=(2,))
>>> identity, loops = pp.Transform(np.eye(3), np.ones(3)), [pp.Loop("a", "b")]
>>> arm.integrate(q, v), arm.difference(q, q), arm.difference_rate(v, v), arm.difference_force(v, v)
>>> arm.flow(q, v), arm.bracket(v, v), arm.coadjoint(v, v), arm.inboard(q, v), arm.outboard(q, v)
>>> arm.with_gravity([0, 0, -9.81]), arm.parameter("damping:wrist_pitch")
>>> arm.with_parameters({"damping:wrist_pitch": [0.1]})
>>> arm.locked("wrist_pitch", q=q[0]), arm.edit(name="other")
>>> arm.attach(robot, at="tool", prefix="p_", placement=identity)
>>> other = pp.rebase(arm, "wrist_roll_link")
>>> other.state(q, v), other.acceleration(q, v, v), other.force(q, v)
>>> pp.Body("a", arm.bodies[0].inertia, identity, ()), pp.Frame("a", "b", identity)
>>> pp.Mimic("a", 2.0, 1.0)
>>> pp.Limits(1e4, 1e2, 1e-2), pp.Grasp("tool", "base", "soft_finger", 0.5, 0.1, 0.01)
>>> pp.Capture(0.0, [pp.Loop("tool", "mount")], 0.5), pp.Failure(0.0, "wrist_pitch", "free")
>>> pp.Release(0.0, loops), pp.Change(0.0, {"kp": 1.0})
>>> motion = pp.simulate(robot, [0.1, 0.2], controller=None, duration=0.02, dt=0.01)
>>> motion.save("motion.npz"), motion.to_dataframe()
>>> motion.plot("q")
>>> pp.rollout(robot, np.zeros((3, 2)), duration=0.02, dt=0.01).row(0)
>>> kernel = pp.potential_energy.compile(robot)
>>> kernel.pullback("q"), kernel.pushforward("q")
>>> pp.mass_matrix.show(robot, "sweeps")
>>> mass, x = pp.operators.mass, np.zeros(2)
>>> mass.replaced({mass: mass}), mass.inv.simplify(trace=True, assume=())
>>> mass.inv.explain(robot, language="dynamics", active=None)
>>> mass.on(robot, x, x, active=None, dense=False), mass.inv.program(given=(), active=None)
>>> (mass @ pp.operators.beta).evaluate(robot, x, x, active=None, external=None)
>>> pp.operators.Equation(mass, mass).proved(())
>>> scenario = pp.scenarios.load("puma_diagonal")
>>> scenario.changed(duration=0.5)
"""
"""Calls of what has no example of its own."""


WITHIN = (
    "Transform.", "Body.", "Expression.as_", "Capture.check", "Failure.check", "Capture.happen",
    "Failure.happen", "Release.happen", "Change.happen", "Program",
)  # fmt: skip
"""How names begin that phipsi itself calls, within sweeps and simulations; of `Program` users call
the methods."""


def calls() -> Iterator[Call]:
    """The first call of each public function in the example of its docstring, or in `MORE`."""
    left: dict[str, Callable[..., Any]] = {}
    for name, function, text in public():
        if name.startswith(WITHIN) and not name.startswith("Program."):
            continue
        home = sys.modules[inspect.unwrap(function).__module__]
        found = recorded({name: function}, text, vars(home))
        if found:
            yield Call(name, function, found[name])
        else:
            left[name] = function
    for name, arguments in recorded(left, MORE, {"pp": phipsi, "np": np}).items():
        yield Call(name, left[name], arguments)


def cases() -> Iterator[tuple[Call, str, Unfit]]:
    """Each valid call, with each of its arguments and each wrong value."""
    for call in calls():
        for argument in call.options():
            for wrong in WRONG:
                yield call, argument, wrong


def recorded(
    functions: dict[str, Callable[..., Any]], text: str, known: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """The arguments of the first call of each function while the examples of a text run."""
    found: dict[str, dict[str, Any]] = {}
    signatures = {
        name: inspect.signature(x)
        for name, x in functions.items()
        if not (isinstance(x, type) and issubclass(x, (BaseException, dict)))
    }
    by_code: dict[CodeType | None, list[str]] = {}
    for name in signatures:
        by_code.setdefault(_code(functions[name]), []).append(name)

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or frame.f_code not in by_code:
            return
        local = frame.f_locals
        for name in by_code[frame.f_code]:
            function, signature = functions[name], signatures[name]
            if name in found:
                continue
            if isinstance(function, Program):
                if local.get("self") is function:
                    found[name] = dict(signature.bind(*local["args"], **local["kwargs"]).arguments)
            elif not isinstance(function, type) or type(local.get("self")) is function:
                found[name] = {n: copy.copy(local[n]) for n in signature.parameters if n in local}

    examples = doctest.DocTestParser().get_examples(text)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = dict(known)
        sys.setprofile(watch)
        try:
            for example in examples:
                with contextlib.suppress(Exception):  # doctest itself says which examples fail
                    exec(compile(example.source, "<example>", "single"), names)
        finally:
            sys.setprofile(None)
    return found


CALL = inspect.unwrap(CompiledFunction.__call__).__code__


def _code(function: Any) -> CodeType | None:
    if isinstance(function, Program):
        return CALL
    own = function.__init__ if isinstance(function, type) else inspect.unwrap(function)
    return getattr(inspect.unwrap(own), "__code__", None)


class Fault(NamedTuple):
    """A wrong argument that was not refused as it should be."""

    foreign: bool
    """Whether the class of the error says nothing about an argument; else the sentence is not
    phipsi's."""
    place: str
    told: str


def fault(call: Call, argument: str, wrong: Unfit) -> Fault | None:
    """How a call refuses a wrong argument, if that is not right; None if it is, or returns."""
    value = wrong.make(call.arguments.get(argument))
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            call.run(**{argument: value})
    except Exception as error:
        return _judged(error)
    return None


def _judged(error: Exception) -> Fault | None:
    """What is wrong with an error, which should be a sentence of phipsi about an argument."""
    message, kind = str(error), type(error)
    frames = traceback.extract_tb(error.__traceback__)
    where = frames[-1]
    if where.filename == "<example>":  # the user's own function
        return None
    if any((f.filename, f.name) == (DECLARED, "check") for f in frames):  # the call has returned
        return None
    place = f"{where.filename.removeprefix(SOURCES)}:{where.lineno}"
    told = f"{kind.__name__}: {message[:100]!r}"
    ours = kind.__module__.startswith("phipsi")
    line = linecache.getline(where.filename, where.lineno or 0)
    raised = where.filename.startswith(SOURCES) and "raise" in line
    if isinstance(error, IndexError) and raised:
        return None
    if (isinstance(error, FOREIGN) and not ours) or not isinstance(error, OURS_TOO):
        return Fault(True, place, told)
    bound = where.filename == __file__ and "argument" in message  # Python's own, of the call
    if not message or not (raised or bound):
        return Fault(False, place, told)
    return None


class Slow(BaseException):
    """Raised when a call takes too long."""


def main() -> None:
    """Try every call with every wrong value, and print the faults by their place."""

    def late(*_: object) -> None:
        raise Slow

    signal.signal(signal.SIGVTALRM, late)
    selected = sys.argv[1:]
    faults: dict[tuple[bool, str], list[str]] = {}
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for call, argument, wrong in cases():
            if selected and call.name not in selected:
                continue
            count += 1
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            try:
                found = fault(call, argument, wrong)
            except (Slow, MemoryError) as error:
                found = Fault(True, call.name, type(error).__name__)
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            if found:
                told = f"{call.name}({argument}={wrong.name}) {found.told}"
                faults.setdefault(found[:2], []).append(told)
    for (foreign, place), told in sorted(faults.items(), key=lambda x: (-x[0][0], -len(x[1]))):
        print("foreign class" if foreign else "not our sentence", place, len(told), told[0])
    foreign = sum(len(told) for (foreign, _), told in faults.items() if foreign)
    other = sum(map(len, faults.values())) - foreign
    print(f"{count} calls: {foreign} foreign classes, {other} sentences that are not ours")


if __name__ == "__main__":
    main()
