"""Springs with dampers between two points, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from phipsi.model import validate
from phipsi.model.errors import ModelError
from phipsi.model.untrusted import quoted
from phipsi.typing import Real


@dataclass(frozen=True)
class Spring:
    """A spring and a damper along the line between the origins of two frames.

    With the distance ℓ of the origins it pulls them together by the force k(ℓ − ℓ₀) + c ℓ̇, and
    pushes them apart where that is negative. Its energy is k(ℓ − ℓ₀)²/2. Where the origins coincide
    the line has no direction, and there is no force.

    Parameters
    ----------
    a, b
        Names of the frames; those of the world are allowed.
    stiffness : optional
        k ≥ 0 [N/m].
    damping : optional
        c ≥ 0 [N·s/m].
    rest_length : optional
        ℓ₀ ≥ 0 [m]. With ℓ₀ = 0 the force of the spring is linear, k times the vector between the
        origins. Inside programs all three may be traced numbers.

    Raises
    ------
    ModelError
        If a number is negative, not finite or no number.

    Examples
    --------
    >>> import phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> spring = pp.Spring("tool", "world", stiffness=100.0, damping=1.0, rest_length=0.2)
    >>> pp.spring_forces(robot, [spring], [0.3, -0.5], [0.0, 0.0]).round(3)
    array([ 0.  , -2.83])
    """

    a: str
    b: str
    stiffness: Real = 0.0
    damping: Real = 0.0
    rest_length: Real = 0.0

    def __post_init__(self) -> None:
        for name in ("stiffness", "damping", "rest_length"):
            given: Any = getattr(self, name)
            value: Any = given[()] if getattr(given, "shape", None) == () else given
            if not hasattr(value, "sqrt"):  # a traced number has it
                where = f"spring between {quoted(self.a)} and {quoted(self.b)}: {name}"
                value = validate.number(where, value)
                if value < 0:
                    raise ModelError(f"{where} is {value:g}, needs a finite number ≥ 0")
            object.__setattr__(self, name, value)
