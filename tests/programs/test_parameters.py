"""Programs made of described parameters, and what tells their content."""

from __future__ import annotations

import inspect
import pydoc
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.programs import ROBOT, Parameter, Program, parameters_of

ARM = pp.robots.double_pendulum()


@dataclass(frozen=True)
class Below:
    """A number below a limit."""

    limit: float

    @property
    def needs(self) -> str:
        return f"a number below {self.limit:g}"

    def allows(self, x: np.ndarray) -> bool:
        return bool((x < self.limit).all())


def scaled(robot: pp.Robot, *arrays: Any, **options: Any) -> Any:
    q, gain = arrays
    return q * gain * (2.0 if options["twice"] else 1.0)


def described(**how: Any) -> Program[..., Any]:
    parameters = [
        ROBOT,
        Parameter("q", ("nq",)),
        Parameter("gain", (), rule=Below(10.0), default=1.0),
        Parameter("twice", kind="option", value_type=bool, default=False, keyword_only=True),
    ]
    return Program(scaled, parameters, **how)


def test_a_program_of_described_parameters() -> None:
    program = described(name="scale", doc="q times a gain.")
    assert repr(program) == "<program scale(robot, q, gain=1.0, *, twice=False)>"
    assert str(inspect.signature(program)) == "(robot, q, gain=1.0, *, twice=False) -> 'Any'"
    assert inspect.getdoc(program) == "q times a gain."
    q = np.array([[0.1, 0.2], [0.3, 0.4]])
    np.testing.assert_array_equal(program(ARM, q), q)
    np.testing.assert_array_equal(program(ARM, q, [2.0, 3.0], twice=True), q * [[4.0], [6.0]])
    with pytest.raises(TypeError, match="scale: twice is 1, needs a bool"):
        program(ARM, q, twice=1)
    with pytest.raises(TypeError, match=r"scale: .* use scale\(robot, q, gain=1.0, \*, twice"):
        program(ARM, q, 1.0, True)


def test_rules_hold_for_numbers_of_calls() -> None:
    program = described()
    with pytest.raises(ValueError, match=r"scaled: gain is 11.0, needs a number below 10"):
        program(ARM, np.zeros(2), 11.0)
    with pytest.raises(ValueError, match=r"scaled: gain is 12.0, needs a number below 10"):
        program.check_rules({"gain": 12.0, "q": np.zeros(2)})
    slope = program.derivative("gain")
    with pytest.raises(ValueError, match=r"scaled: gain is 11.0"):
        slope(ARM, np.ones(2), 11.0)
    np.testing.assert_array_equal(slope(ARM, np.ones(2), 9.0, twice=True), [2.0, 2.0])
    assert program(ARM, np.zeros(2, np.float32), np.float32(1.0)).dtype == np.float64


def test_parameters_are_read_from_functions() -> None:
    def f(robot: Any, q: Any, /, frame: str, *, active: Any = None, tasks: Any = ()) -> Any: ...

    robot, q, frame, active, tasks = parameters_of(f, {"active": ("nv",)}, ["tasks"], ["active"])
    assert robot.positional_only and q.positional_only and q.required
    assert (q.kind, q.shape) == ("array", ("nq",))
    assert (frame.kind, frame.value_type) == ("option", str)
    assert (active.kind, active.shape, active.default) == ("mask", ("nv",), None)
    assert (tasks.kind, tasks.value_type, tasks.keyword_only) == ("option", object, True)


def test_signatures_and_help_are_those_of_the_function() -> None:
    program: Any = pp.forward_dynamics
    assert inspect.signature(program) == inspect.signature(program.function)
    assert "parameters" in inspect.signature(pp.Program).parameters
    assert "forward_dynamics" in pydoc.render_doc(program)


def test_what_tells_the_content_of_a_program() -> None:
    home = "phipsi.algorithms.articulated_body.forward_dynamics"
    assert pp.forward_dynamics.content_key == home
    assert pp.forward_dynamics.derivative("q").content_key == f"{home}.derivative('q', None, None)"
    plain = pp.program(pp.forward_dynamics.function)  # another promise, other derivatives
    assert plain.content_key is None and plain.derivative("q").content_key is None
    assert described().content_key is None
    assert described(content_key="scaled, 1").content_key == "scaled, 1"
    again = described(content_key="scaled, 1").derivative(["q"], mode="reverse")
    assert again.content_key == "scaled, 1.derivative(('q',), None, 'reverse')"
