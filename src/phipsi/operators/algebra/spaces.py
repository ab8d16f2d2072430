"""The spaces between which operators act: forces and motions of joints, bodies and frames.

Forces and motions are dual: the adjoint of an operator that takes X and gives Y takes the dual of Y
and gives the dual of X. So φ, which carries forces, cannot be applied to motions, φ* can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Size = Literal["joint", "body", "active", "passive", "frame", "one", "any"]
"""What determines the length of the vectors of a space: the freedoms of all, of the active or of
the passive joints, the bodies, the frames; one number; or nothing yet."""


SHOWN = 120
"""The most characters of an expression in a message."""


class SpaceError(TypeError):
    """Operators that do not fit: one takes another space than the other gives."""


def brief(x: object) -> str:
    """An expression or a space as messages show it: a long one without its middle."""
    text = str(x)
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]} … {text[-SHOWN // 4 :]}"


@dataclass(frozen=True)
class Space:
    """A space of vectors; `size` says what determines their length."""

    name: str
    dual_name: str
    size: Size
    frames: tuple[str, ...] = ()

    @property
    def dual(self) -> Space:
        """The dual space: the product of vectors of the two is a power or a work."""
        return Space(self.dual_name, self.name, self.size, self.frames)

    @property
    def is_force(self) -> bool:
        """Whether its vectors are forces (else they are motions or plain numbers)."""
        return "forces" in self.name

    def __str__(self) -> str:
        at = " and ".join(repr(frame) for frame in self.frames)
        return f"{self.name} at {at}" if at else self.name


JOINT_FORCES = Space("joint forces", "joint rates", "joint")
JOINT_RATES = JOINT_FORCES.dual
BODY_FORCES = Space("body forces", "body motions", "body")
BODY_MOTIONS = BODY_FORCES.dual
ACTIVE_FORCES = Space("active joint forces", "active joint rates", "active")
ACTIVE_RATES = ACTIVE_FORCES.dual
PASSIVE_FORCES = Space("passive joint forces", "passive joint rates", "passive")
PASSIVE_RATES = PASSIVE_FORCES.dual
NORMAL = Space("normalised rates", "normalised rates", "joint")
"""The space in which 𝓜 = m m* is the identity: the coordinates of [DL], dual to itself."""
SCALARS = Space("numbers", "numbers", "one")
"""The space of one number: a vector is an operator on it."""


def frame_forces(*frames: str) -> Space:
    """Forces at named frames."""
    return Space("forces", "motions", "frame", frames)


SPACES = {
    space.name: space
    for space in (
        JOINT_FORCES, JOINT_RATES, BODY_FORCES, BODY_MOTIONS, ACTIVE_FORCES, ACTIVE_RATES,
        PASSIVE_FORCES, PASSIVE_RATES, NORMAL, SCALARS,
    )
}  # fmt: skip
"""The spaces without frames, by name."""
