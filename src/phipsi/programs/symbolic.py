"""Programs as formulas: the names of their symbols, and numbers of the robot as symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from phipsi.compile import ArraySpec
from phipsi.compile.formulas import arranged, formulas
from phipsi.compile.to_sympy import sympy, tidy
from phipsi.model import Robot
from phipsi.programs.request import Request
from phipsi.spatial import SpatialInertia, Transform

ROUNDING = 4e-15
"""Below this part of those beside it, a number of the robot is rounding of a zero."""

_CROSSED = np.array([5, 6, 8])
"""Which of the ten numbers of an inertia are its products."""


def written(
    request: Request,
    leaves: Sequence[ArraySpec],
    parameters: Mapping[str, Sequence[Any]],
    names: Mapping[str, Any],
    **how: Any,
) -> Any:
    """The results of a program as SymPy expressions, packed as its arrays are."""
    name = request.name
    for unknown in set(names) - {leaf.name for leaf in leaves}:
        known = ", ".join(leaf.name for leaf in leaves)
        raise TypeError(f"{name}: names= has {unknown!r}, but its arguments are {known}")
    arguments = [symbols(leaf, names.get(leaf.name, leaf.name)) for leaf in leaves]
    _told_apart(name, [leaf.name for leaf in leaves], arguments, parameters)
    apply = request.apply
    graph, results = replace(request, apply=lambda robot, x: apply(exact(robot), x)).traced()
    leading = [x for values in arguments for x in values]
    inputs = [*arguments, *parameters.values()]
    definitions, outputs = formulas(name, graph, inputs, leading, **how)
    shapes = (leaf.shape for leaf in results.leaves)
    packed = results.pack([arranged(*both) for both in zip(shapes, outputs, strict=True)])
    return (definitions, packed) if how["shared"] else packed


def _told_apart(
    name: str,
    known: Sequence[str],
    arguments: Sequence[Sequence[Any]],
    parameters: Mapping[str, Sequence[Any]],
) -> None:
    """Refuse a symbol of an argument that also stands for something else."""
    owners: dict[str, str] = {}
    for parameter, values in parameters.items():
        owners.update({x.name: parameter for e in values for x in e.free_symbols})
    for argument, values in zip(known, arguments, strict=True):
        for x in values:
            if x.name in owners:
                raise ValueError(
                    f"{name}: the symbol {x.name} would stand both for {owners[x.name]!r} and for "
                    f"{argument!r}; pass names= with another name for {argument!r}"
                )
            owners[x.name] = argument


def exact(robot: Robot) -> Robot:
    """The robot, and that of the same joint-space dynamics, with zeros in the place of rounding."""
    found = _rounded(robot)
    same = _rounded(found.equivalent)
    for one in (found, same):
        one.__dict__["equivalent"] = same
    return found


def _rounded(robot: Robot) -> Robot:
    bodies = (
        replace(b, inertia=_inertia_of(b.inertia), origin=_placed(b.origin)) for b in robot.bodies
    )
    hinges = (
        replace(h, placement=_placed(h.placement), axes=tuple(map(_rounding_out, h.axes)))
        for h in robot.hinges
    )
    frames = {n: replace(f, placement=_placed(f.placement)) for n, f in robot.frames.items()}
    gravity = _rounding_out(robot.gravity)
    return replace(
        robot, bodies=tuple(bodies), hinges=tuple(hinges), frames=frames, gravity=gravity
    )


def _placed(placement: Transform) -> Transform:
    return Transform(_rounding_out(placement.rotation), _rounding_out(placement.position))


def _inertia_of(inertia: SpatialInertia) -> SpatialInertia:
    values = np.array(inertia.parameters, object)
    if _traced(values):
        return inertia
    most = max(map(abs, values[4:]))
    values[1:4] = _rounding_out(values[1:4], np.sqrt(abs(values[0]) * most))
    values[_CROSSED] = _rounding_out(values[_CROSSED], most)
    return SpatialInertia.of_parameters(values.tolist())


def _rounding_out(values: Any, scale: float = 0.0) -> Any:
    """Numbers, those that are rounding beside the largest (or the scale) zero; traced ones as they
    are."""
    values = np.asarray(values)
    if _traced(values):
        return values
    most = max(scale, *map(abs, values.flat))
    return np.where(np.abs(values.astype(float)) < ROUNDING * most, 0.0, values)


def _traced(values: Any) -> bool:
    return not all(isinstance(x, (int, float)) for x in values.flat)


def symbols(leaf: ArraySpec, given: Any) -> list[Any]:
    """The symbols of an argument: those given, or NAME_1, NAME_2, … (real numbers)."""
    s = sympy()
    if isinstance(given, str):
        indices = product(*(range(1, n + 1) for n in leaf.shape))
        return [s.Symbol("_".join((given, *map(str, i))), real=True) for i in indices]
    chosen = list(np.array(given, object).reshape(-1))
    if np.shape(given) != leaf.shape or not all(isinstance(x, s.Symbol) for x in chosen):
        raise TypeError(f"names= for {leaf.name!r} needs a string or symbols {leaf.shape}")
    return chosen


def robot_symbols(robot: Robot, inputs: Any) -> dict[str, list[Any]]:
    """Numbers of the robot as expressions, by the names of `Robot.parameter`: as given by a
    mapping, or named here. Zeros stay zeros."""
    if isinstance(inputs, Mapping):
        return {name: _given(robot, name, values) for name, values in inputs.items()}
    if isinstance(inputs, str):
        inputs = _all(robot) if inputs == "all" else (inputs,)
    found = {name: _named(robot, name) for name in inputs}
    owners: dict[str, str] = {}
    for name, values in found.items():
        for x in sorted({x.name for e in values for x in e.free_symbols}):
            if owners.setdefault(x, name) != name:
                raise ValueError(
                    f"the symbol {x} would stand both for {owners[x]!r} and for {name!r}; pass "
                    "inputs= a mapping with symbols of your own for one of them"
                )
    return found


def _all(robot: Robot) -> list[str]:
    """Every number of the robot that shapes its motion."""
    bodies = (f"inertia:{body.name}" for body in robot.bodies)
    of_hinges = (f"{what}:{h.name}" for h in robot.hinges for what in ("placement", "armature"))
    return ["gravity", *bodies, *of_hinges]


def _given(robot: Robot, name: str, values: Any) -> list[Any]:
    s = sympy()
    shape = robot.parameter(name).shape
    entries = list(np.array(values, object).reshape(-1))
    if np.shape(values) != shape:
        raise ValueError(f"inputs= for {name!r} has shape {np.shape(values)}, needs {shape}")
    if not all(isinstance(x, (s.Expr, int, float, np.number)) for x in entries):
        raise TypeError(f"inputs= for {name!r} needs SymPy expressions and numbers")
    return [x if isinstance(x, s.Expr) else tidy(float(x)) for x in entries]


def _named(robot: Robot, name: str) -> list[Any]:
    """Symbols in the place of the numbers that are not zero."""
    what, _, target = name.partition(":")
    value = robot.parameter(name)
    if what == "gravity":
        return _vector("g", "", value)
    if what == "inertia":
        return _inertia(str(1 + robot.body_index(target)), value)
    if what == "frame":
        return [*_vector("p", target, value[:3]), *_quaternion(value[3:])]
    number = str(1 + [h.name for h in robot.hinges].index(target))
    if what == "placement":
        return [*_vector("l", number, value[:3]), *_quaternion(value[3:])]
    letter = {"armature": "A", "damping": "d", "stiffness": "k", "friction": "f"}[what]
    axes = [""] if len(value) == 1 else [f"_{i + 1}" for i in range(len(value))]
    return [_symbol(letter, number + axis, x) for axis, x in zip(axes, value, strict=True)]


def _symbol(letter: str, index: str, value: float) -> Any:
    s = sympy()
    word = "_".join(filter(None, (letter, index)))
    return s.Symbol(word, real=True) if value else s.Integer(0)


def _quaternion(value: np.ndarray) -> list[Any]:
    return [tidy(x) for x in _rounding_out(value).tolist()]


def _vector(letter: str, index: str, value: np.ndarray) -> list[Any]:
    """A vector's symbols: one with its sign where it lies along an axis, else one an axis."""
    value = _rounding_out(value)
    if np.count_nonzero(value) == 1:
        return [_symbol(letter, index, x) * (1 if x > 0 else -1) for x in value]
    return [_symbol(letter, axis + index, x) for axis, x in zip("xyz", value, strict=True)]


def _inertia(index: str, value: np.ndarray) -> list[Any]:
    """Mass m, centre of mass c, and the inertia I about it, as the ten numbers of a body."""
    m = float(value[0])
    value = np.array(_inertia_of(SpatialInertia.of_parameters(value.tolist())).parameters, float)
    centre = value[1:4] / m if m else np.zeros(3)
    about = [value[4 + k] - m * float(_steiner(centre)[k]) for k in range(6)]
    scale = 1e-12 * max(map(abs, value[4:]))
    mass, c = _symbol("m", index, m), np.array(_vector("c", index, centre), object)
    moments = [
        _symbol("I", axes + index, 0.0 if abs(x) <= scale else x)
        for axes, x in zip(("xx", "xy", "xz", "yy", "yz", "zz"), about, strict=True)
    ]
    moved = (mass * x for x in _steiner(c))
    return [mass, *(mass * x for x in c), *(a + b for a, b in zip(moments, moved, strict=True))]


def _steiner(c: Any) -> list[Any]:
    """c² − c c*: what a unit mass at c adds to xx, xy, xz, yy, yz, zz."""
    x, y, z = c
    return [y * y + z * z, -x * y, -x * z, x * x + z * z, -y * z, x * x + y * y]
