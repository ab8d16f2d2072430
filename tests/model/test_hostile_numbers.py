"""Whatever is given in the place of a number is read or refused in one sentence, without warnings
of NumPy: by the loaders, the builder, and changes of robots."""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import phipsi as pp
from phipsi.model.json import to_json
from phipsi.model.robot import from_json
from phipsi.model.urdf import from_urdf
from tests.each import each

INF, NAN = float("inf"), float("nan")
DEEP: list[Any] = [1.0]
for _ in range(100_000):
    DEEP = [DEEP]

EXTREME = [0.0, 1e308, -1e308, 5e-324, 1e-200, 1e154, -1.0]
"""Numbers that may be read."""
MASKED: Any = np.ma.masked_equal([1.0, 2.0, 3.0], 2.0)
NO_NUMBERS = [
    NAN, INF, -INF, 10**400, -(10**400), 10**5000, True, False, "1", "1" * 5000, b"1", None, [],
    {}, [[]], [[1.0], [1.0, 2.0]], [1.0, None, 2.0], ["1", "2", "3"], [1.0, NAN, 0.0], 1j,
    np.complex128(1j), np.full(3, 1j), np.ma.masked, MASKED,
    np.datetime64(0, "s"), np.array(["1"]), np.array([True]), np.longdouble("1e4000"), object(),
    DEEP, np.zeros((2, 2)), range(4), lambda: 1.0, [10**400] * 3, np.float64(NAN),
]  # fmt: skip
"""What is refused everywhere, but infinite limits."""
Y = (0, 1, 0)
MATRIX = [[2, 0, 0], [0, 2, 0], [0, 0, 2]]


@functools.cache
def base() -> pp.Robot:
    root = pp.Builder("hostile").body("base", 1.0, (0, 0, 0.1), (1, 1, 1))
    return root.hinge("root", "free", "world", "base").build()


def builder() -> pp.Builder:
    return base().edit()


def hinged(kind: Any = "revolute", **given: Any) -> Callable[[], pp.Robot]:
    options = {"axis": Y, **given}
    return lambda: (
        builder().body("tip", 1.0, inertia=(1, 1, 1)).hinge("joint", kind, "base", "tip", **options)
        .build()
    )  # fmt: skip


def body(**given: Any) -> Callable[[], pp.Robot]:
    options = {"mass": 1.0, "com": (0, 0, 0.1), "inertia": MATRIX, **given}
    return lambda: builder().body("tip", **options).hinge("joint", "free", "base", "tip").build()


@functools.cache
def sound() -> pp.Robot:
    return hinged()()


LIMITS = ("lower", "upper", "velocity", "effort")
PLAIN = ("rest", "armature", "damping", "stiffness", "friction", "backlash", "friction_speed")
WORDS: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "gravity": lambda x: pp.Builder("a", gravity=x).build,
    "gravity[1]": lambda x: pp.Builder("a", gravity=(0, x, 0)).build,
    "mass": lambda x: body(mass=x),
    "com": lambda x: body(com=x),
    "com[1]": lambda x: body(com=(0, x, 0)),
    "mass and com": lambda x: body(mass=x, com=(0, x, 0)),
    "mass and origin": lambda x: lambda: from_urdf(far(x if isinstance(x, float) else NAN)),
    "inertia": lambda x: body(inertia=x),
    "inertia[1]": lambda x: body(inertia=(1, x, 1)),
    "inertia[0, 1]": lambda x: body(inertia=[[2, x, 0], [x, 2, 0], [0, 0, 2]]),
    "position": lambda x: hinged(position=x),
    "position[1]": lambda x: hinged(position=(0, x, 0)),
    "rpy": lambda x: hinged(rpy=x),
    "rpy[1]": lambda x: hinged(rpy=(0, x, 0)),
    "axis": lambda x: hinged(axis=x),
    "axis[1]": lambda x: hinged(axis=(0, x, 1)),
    "two axes": lambda x: hinged("universal", axis=[[0, x, 1], [1, 0, 0]]),
    "pitch": lambda x: hinged("helical", pitch=x),
    "placement": lambda x: hinged(placement=pp.Transform.of(np.eye(3), [0, 0, 1]) if x is None
                                  else x),
    "placement position": lambda x: hinged(
        placement=pp.Transform(pp.Transform.identity().R, x)),
    "frame": lambda x: builder().frame("f", "base", position=(0, x, 0)).build,
    "mimic": lambda x: hinged(mimic=pp.Mimic("root", x)),
    "offset": lambda x: hinged(mimic=pp.Mimic("root", 1.0, x)),
    **{key: lambda x, key=key: hinged(**{key: x}) for key in (*LIMITS, *PLAIN)},
    **{f"{key} of two": lambda x, key=key: hinged("cylindrical", **{key: (0.1, x)})
       for key in (*LIMITS, *PLAIN[:-1])},
    **{f"edit {key}": lambda x, key=key: lambda: sound().edit().replace_hinge(
        "joint", **{key: x}).build() for key in (*LIMITS, *PLAIN, "pitch")},
    **{f"parameter {name}": lambda x, name=name: lambda: sound().with_parameters({name: x})
       for name in ("gravity", "inertia:tip", "armature:joint", "placement:joint")},
    "locked": lambda x: lambda: sound().locked("joint", x),
    "armature of a URDF": lambda x: lambda: from_urdf(URDF, armature=x),
    "armature of a joint": lambda x: lambda: from_urdf(URDF, armature={"joint": x}),
    "spring": lambda x: lambda: pp.Spring("a", "b", stiffness=x),
    "grasp": lambda x: lambda: pp.Grasp("a", "b", "point", friction=x),
    "loop": lambda x: lambda: pp.Loop("a", "b", free=x),
    "loop axis": lambda x: lambda: pp.Loop("a", "b", free="revolute", axis=x),
    "loop pitch": lambda x: lambda: pp.Loop("a", "b", free="helical", pitch=x),
}  # fmt: skip
URDF = """<robot name="a"><link name="base"/><link name="b"><inertial><mass value="1"/>
<origin xyz="0 0 1" rpy="0 1 0"/><inertia ixx="1" ixy="0.1" ixz="0" iyy="1" iyz="0" izz="1"/>
</inertial></link><joint name="joint" type="revolute"><parent link="base"/><child link="b"/>
<origin xyz="0 0 1" rpy="0 0 1"/><axis xyz="0 1 0"/><dynamics damping="1" friction="1"/>
<limit lower="-2" upper="2" effort="1" velocity="1"/></joint></robot>"""


def far(x: float) -> str:
    """A URDF whose body has the mass x, far away."""
    return URDF.replace('value="1"', f'value="{x}"').replace('="0 0 1"', f'="0 0 {x}"')


def outcome(make: Callable[[], Any]) -> str | None:
    """The sentence with which something is refused; None if it is read."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", pp.ModelWarning)
        try:
            make()
        except pp.ModelError as error:
            said = str(error)
            assert "\n" not in said
            assert len(said) < 400, said
            return said
    return None


@each("word, value", [(w, x) for w in WORDS for x in EXTREME])
def test_an_extreme_number_is_read_or_refused(word: str, value: float):
    outcome(lambda: WORDS[word](value)())


def _allowed(word: str, value: Any) -> bool:
    """Whether a value has a meaning: no limit, no axis, a default."""
    if word == "placement":
        return value is None
    if word == "armature of a URDF" and value == {}:
        return True
    if value is None:
        return word in ("locked", "loop axis")
    if type(value) in (float, np.float64, np.longdouble) and float(value) in (INF, -INF):
        value = float(value)
        key = word.removeprefix("edit ").removesuffix(" of two")
        above, below = key in ("upper", "velocity", "effort"), key == "lower"
        return (above and value > 0) or (below and value < 0) or (word == "grasp" and value > 0)
    return False


@each("word, value", [(w, i) for w in WORDS for i in range(len(NO_NUMBERS))])
def test_what_is_no_number_is_refused(word: str, value: int):
    given = NO_NUMBERS[value]
    said = outcome(lambda: WORDS[word](given)())
    assert said is not None or _allowed(word, given), "it was read"


TOKENS = [
    "NaN", "-Infinity", "1e308", "-1e308", "5e-324", "1e400", "1" + "0" * 400, "1" * 5000, "true",
    '"1"', "null", "[[1.0]]", "{}", "0", "-1",
]  # fmt: skip
REFUSED = {"NaN", "-Infinity", "1e400", "true", '"1"', "[[1.0]]", "{}"}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to the numbers and nulls in a JSON value, of lists the first and the last."""
    if isinstance(value, dict | list):
        keys = value if isinstance(value, dict) else {0, len(value) - 1} - {-1}
        return [p for key in keys for p in places(value[key], (*path, key))]
    return [] if isinstance(value, str) else [path]


def document() -> dict[str, Any]:
    robot = (
        pp.Builder().body("tip", 1.0, inertia=(1, 1, 1)).body("pad", 0.1, inertia=(1, 1, 1))
        .hinge("joint", "helical", "world", "tip", axis=Y).hinge("glue", "weld", "tip", "pad")
        .frame("f", "tip").build()
    )  # fmt: skip
    return json.loads(to_json(robot))


@each("path, token", [(p, t) for p in places(document()) for t in TOKENS])
def test_any_number_of_json(path: tuple[Any, ...], token: str):
    changed = document()
    target: Any = changed
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = "HERE"
    said = outcome(lambda: from_json(json.dumps(changed).replace('"HERE"', token)))
    assert said is not None or token not in REFUSED


@each("place, token", [(i, t) for i in range(URDF.count('="')) for t in TOKENS])
def test_any_number_of_a_urdf(place: int, token: str):
    parts = URDF.split('="')
    old, rest = parts[place + 1].split('"', 1)
    words = old.split()
    for i in range(len(words)):
        given = " ".join([*words[:i], token.replace('"', ""), *words[i + 1 :]])
        text = '="'.join([*parts[: place + 1], f'{given}"{rest}', *parts[place + 2 :]])
        said = outcome(lambda text=text: from_urdf(text))
        assert said is not None or token not in REFUSED - {'"1"'} or not _is_number(words[i])


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
