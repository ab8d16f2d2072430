"""Checks of hinges, over all hinges of a robot at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from phipsi.model import validate
from phipsi.model.errors import ModelError
from phipsi.model.hinges import HingeKind
from phipsi.model.parts import INF, Hinge, Mimic, PerCoordinate, PerFreedom
from phipsi.model.untrusted import quoted

PER_V: tuple[PerFreedom, ...] = get_args(PerFreedom)
"""The arrays of a hinge with nv numbers."""
PER_Q: tuple[PerCoordinate, ...] = get_args(PerCoordinate)
"""The arrays of a hinge with nq numbers."""
NO_LIMIT = {"lower": -INF, "upper": INF, "velocity": INF, "effort": INF}
"""For each limit the value that means no limit; all other numbers of a hinge are finite."""
NOT_NEGATIVE = ("velocity", "effort", "armature", "friction", "backlash")
"""The numbers of a hinge that are zero or more."""

_CLASSES: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("kind", (HingeKind,)), ("parent", (str,)), ("child", (str,)), ("axes", (tuple,)),
    ("mimic", (Mimic, type(None))),
)  # fmt: skip
"""The classes of fields of a hinge."""


def check(hinges: Sequence[Hinge]) -> None:
    """Check the numbers of hinges: lengths, signs, and that all but the limits are finite."""
    for h in hinges:
        for key, classes in _CLASSES:
            if not isinstance(getattr(h, key), classes):
                validate.of_class(f"{_where(h)}: {key}", getattr(h, key), *classes)
    validate.placements(lambda i: _where(hinges[i]), [h.placement for h in hinges])
    _directions(hinges)
    sizes = [h.kind.nv for h in hinges], [h.kind.nq for h in hinges]
    for keys, size in zip((PER_V, PER_Q), sizes, strict=True):
        owners = np.repeat(np.arange(len(hinges)), size)
        values = {key: _joined(hinges, key, size) for key in keys}
        for key, x in values.items():
            finite = np.isfinite(x) | (x == NO_LIMIT.get(key, 0.0))
            if not finite.all():
                h = hinges[int(owners[np.argmin(finite)])]
                given = quoted(getattr(h, key).tolist())
                raise ModelError(f"{_where(h)}: {key} is {given}, but every number must be finite")
            if key in NOT_NEGATIVE:
                _refuse(hinges, owners, x < 0, f"has a negative {key}; give zero or more")
        if keys is PER_Q:
            crossed = values["lower"] > values["upper"]
            _refuse(hinges, owners, crossed, "has a lower limit above the upper one; exchange them")
    pitch, speed = (
        validate.stacked(_named(hinges, key), [getattr(h, key) for h in hinges], ())
        for key in ("pitch", "friction_speed")
    )
    _refuse(hinges, range(len(pitch)), speed <= 0, "has a friction_speed that is not above zero")


def _where(h: Hinge) -> str:
    return f"hinge {quoted(h.name)}"


def _named(hinges: Sequence[Hinge], key: str) -> Callable[[int], str]:
    """The function that says which number of which hinge is wrong."""
    return lambda i: f"{_where(hinges[i])}: {key}"


def _refuse(
    hinges: Sequence[Hinge], owners: Sequence[int] | NDArray[np.int_], wrong: NDArray[np.bool_],
    message: str,
) -> None:  # fmt: skip
    """Raise an error about the hinge with the first number that is wrong."""
    if wrong.any():
        raise ModelError(f"{_where(hinges[int(owners[int(np.argmax(wrong))])])} {message}")


def _joined(hinges: Sequence[Hinge], key: str, sizes: Sequence[int]) -> validate.Floats:
    """The arrays of all hinges, one after the other; each must have its size."""
    parts = [getattr(h, key) for h in hinges]
    for i, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        if np.shape(part) != (size,):
            where = _named(hinges, key)(i)
            raise ModelError(f"{where} has shape {np.shape(part)}, needs ({size},)")
    return validate.array(f"the {key} of a hinge", np.concatenate([np.zeros(0), *parts]))


def _directions(hinges: Sequence[Hinge]) -> None:
    """Check that the stored axes of hinges are unit vectors, as many as their kinds have.

    The axes of a planar hinge are a right-handed triple.
    """
    stored: dict[int, list[Hinge]] = {}
    for h in hinges:
        count = 3 if "planar" in h.kind.name else h.kind.axes
        if len(h.axes) != count:
            raise ModelError(
                f"{_where(h)} has {len(h.axes)} axes, but a {h.kind.name} hinge stores {count}"
            )
        stored.setdefault(count, []).append(h)
    for count, some in stored.items():
        if not count:
            continue
        u = validate.stacked(_named(some, "axes"), [h.axes for h in some], (count, 3))
        bent = ~(np.abs(np.linalg.norm(u, axis=2) - 1.0).max(axis=1) <= 1e-9)
        every = range(len(some))
        _refuse(some, every, bent, "has an axis that is no unit vector; divide it by its length")
        if count == 2:
            parallel = np.linalg.norm(np.cross(u[:, 0], u[:, 1]), axis=1) < 1e-9
            _refuse(some, every, parallel, "is universal, but its two axes are parallel")
        if count == 3:
            turned = np.abs(np.cross(u[:, 1], u[:, 2]) - u[:, 0]).max(axis=1) > 1e-9
            _refuse(some, every, turned, "is planar, but its axes are no right-handed triple")
