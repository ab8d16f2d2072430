"""Programs as SymPy expressions: symbols for their arguments and for constants of the robot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from phipsi.arguments import as_mapping, as_names
from phipsi.compile import ArraySpec
from phipsi.compile.formulas import arranged, formulas
from phipsi.compile.to_sympy import sympy, tidy
from phipsi.model import Robot
from phipsi.programs.arguments import is_mapping
from phipsi.programs.request import Request
from phipsi.spatial import SpatialInertia, Transform
from phipsi.typing import Array, ArrayLike

ROUNDING = 4e-15
"""A component of a vector or matrix of the robot that is smaller than this fraction of the largest
is a rounding error and is set to zero."""

_PRODUCTS = np.array([5, 6, 8])
"""The positions of the products of inertia among the ten inertia parameters."""


def symbolic_results(
    request: Request,
    specs: Sequence[ArraySpec],
    parameters: Mapping[str, Sequence[Any]],
    names: Mapping[str, Any],
    *,
    simplify: bool | None,
    shared: bool,
) -> Any:
    """The results of a program as SymPy expressions, packed as its arrays are: `specs` are its
    arguments, `names` the names or symbols given for them, `parameters` the expressions for
    constants of the robot, `simplify` and `shared` as in `Program.symbolic`."""
    name = request.name
    names = as_mapping(f"{name}: names", names)
    for unknown in set(names) - {spec.name for spec in specs}:
        known = ", ".join(spec.name for spec in specs)
        raise TypeError(f"{name}: names= has {unknown!r}, but its arguments are {known}")
    arguments = [symbols(spec, names.get(spec.name, spec.name)) for spec in specs]
    _check_distinct(name, [spec.name for spec in specs], arguments, parameters)

    def apply(robot: Robot, values: dict[str, Any]) -> Any:
        return request.apply(exact(robot), values)

    graph, results = replace(request, apply=apply).traced()
    leading = [x for values in arguments for x in values]
    inputs = [*arguments, *parameters.values()]
    definitions, outputs = formulas(name, graph, inputs, leading, simplify=simplify, shared=shared)
    shapes = (spec.shape for spec in results.leaves)
    packed = results.pack([arranged(*both) for both in zip(shapes, outputs, strict=True)])
    return (definitions, packed) if shared else packed


def _check_distinct(
    name: str,
    known: Sequence[str],
    arguments: Sequence[Sequence[Any]],
    parameters: Mapping[str, Sequence[Any]],
) -> None:
    """Raise ValueError if a symbol of an argument also denotes something else."""
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
    """The robot, and its `equivalent`, with rounding errors replaced by zeros."""
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
        replace(h, placement=_placed(h.placement), axes=tuple(map(_without_rounding, h.axes)))
        for h in robot.hinges
    )
    frames = {n: replace(f, placement=_placed(f.placement)) for n, f in robot.frames.items()}
    gravity = _without_rounding(robot.gravity)
    return replace(
        robot, bodies=tuple(bodies), hinges=tuple(hinges), frames=frames, gravity=gravity
    )


def _placed(placement: Transform) -> Transform:
    return Transform(_without_rounding(placement.rotation), _without_rounding(placement.position))


def _inertia_of(inertia: SpatialInertia) -> SpatialInertia:
    values: Array = np.array(inertia.parameters, object)
    if _traced(values):
        return inertia
    most: float = max(map(abs, values[4:]))
    values[1:4] = _without_rounding(values[1:4], np.sqrt(abs(values[0]) * most))
    values[_PRODUCTS] = _without_rounding(values[_PRODUCTS], most)
    return SpatialInertia.of_parameters(values.tolist())


def _without_rounding(values: ArrayLike, scale: float = 0.0) -> Array:
    """The numbers, with those that are rounding errors beside the largest (or beside the scale) set
    to zero; traced arrays are returned unchanged."""
    array: Array = np.asarray(values)
    if _traced(array):
        return array
    most = max(scale, *map(abs, array.flat))
    return np.where(np.abs(array.astype(float)) < ROUNDING * most, 0.0, array)


def _traced(values: Array) -> bool:
    return not all(isinstance(x, (int, float)) for x in values.flat)


def symbols(spec: ArraySpec, given: Any) -> list[Any]:
    """The real symbols of an argument: the given ones, or GIVEN_1, GIVEN_2, … for a given name."""
    s = sympy()
    if isinstance(given, str):
        indices = product(*(range(1, n + 1) for n in spec.shape))
        return [s.Symbol("_".join((given, *map(str, i))), real=True) for i in indices]
    chosen = list(np.array(given, object).reshape(-1))
    if np.shape(given) != spec.shape or not all(isinstance(x, s.Symbol) for x in chosen):
        raise TypeError(f"names= for {spec.name!r} needs a string or symbols {spec.shape}")
    return chosen


def robot_symbols(
    robot: Robot, inputs: str | Sequence[str] | Mapping[str, Any]
) -> dict[str, list[Any]]:
    """Expressions for constants of the robot, by the names of `Robot.parameter`: the values of a
    mapping, or symbols in the place of the numbers that are not zero."""
    if is_mapping(inputs):
        return {name: _given(robot, name, values) for name, values in inputs.items()}
    names = _all(robot) if isinstance(inputs, str) and inputs == "all" else inputs
    found = {name: _named(robot, name) for name in as_names("inputs", names)}
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
    """The names of all constants of the robot that its dynamics depend on."""
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
    """A symbol for each number that is not zero, and 0 for the others."""
    value = robot.parameter(name)
    what, _, target = name.partition(":")
    if what == "gravity":
        return _vector("g", "", value)
    if what == "inertia":
        bodies = [body.name for body in robot.bodies]
        number = str(1 + bodies.index(target)) if target in bodies else target
        return _inertia(number, value)
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


def _quaternion(value: Array) -> list[Any]:
    return [tidy(x) for x in _without_rounding(value).tolist()]


def _vector(letter: str, index: str, value: Array) -> list[Any]:
    """The symbols of a vector: one, with a sign, for a vector along an axis, else one per axis."""
    value = _without_rounding(value)
    if np.count_nonzero(value) == 1:
        return [_symbol(letter, index, x) * (1 if x > 0 else -1) for x in value]
    return [_symbol(letter, axis + index, x) for axis, x in zip("xyz", value, strict=True)]


def _inertia(index: str, value: Array) -> list[Any]:
    """The ten inertia parameters of a body as expressions in its mass m, centre of mass c, and
    inertia I about the centre of mass."""
    m = float(value[0])
    inertia = _inertia_of(SpatialInertia.of_parameters(value.tolist()))
    value = np.array(inertia.parameters, float)
    centre = value[1:4] / m if m else np.zeros(3)
    about = [value[4 + k] - m * float(_steiner(centre)[k]) for k in range(6)]
    scale = 1e-12 * float(np.abs(value[4:]).max())
    mass, c = _symbol("m", index, m), np.array(_vector("c", index, centre), object)
    moments = [
        _symbol("I", axes + index, 0.0 if abs(x) <= scale else x)
        for axes, x in zip(("xx", "xy", "xz", "yy", "yz", "zz"), about, strict=True)
    ]
    moved = (mass * x for x in _steiner(c))
    return [mass, *(mass * x for x in c), *(a + b for a, b in zip(moments, moved, strict=True))]


def _steiner(c: Array) -> list[Any]:
    """c² − c c*: the inertia xx, xy, xz, yy, yz, zz of a unit mass at c (Steiner's theorem)."""
    x, y, z = c
    return [y * y + z * z, -x * y, -x * z, x * x + z * z, -y * z, x * x + y * y]
