"""Descriptions of what no robot can be, and arguments of the wrong kind: one sentence for each, in
messages of bounded length, with warnings at the caller's line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.model.json import to_json
from phipsi.model.robot import from_json
from phipsi.model.urdf import from_urdf
from phipsi.operators import H, M, phi
from phipsi.operators.dense import matrix, system
from tests.each import each

Y = (0, 1, 0)
HEAVY: Any = "heavy"
LONG_KIND: Any = "x" * 10**7
BODY = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'


def pair(**hinge: Any) -> pp.Builder:
    """Two bodies; keywords change the hinge "b" of the second."""
    builder = pp.Builder("pair").body("one", 1.0, inertia=(1, 1, 1))
    builder.body("two", 1.0, inertia=(1, 1, 1)).hinge("a", "revolute", "world", "one", axis=Y)
    given: dict[str, Any] = {"axis": Y, **hinge}
    return builder.hinge("b", "revolute", "one", "two", **given)


def hinged(**parts: Any) -> pp.Robot:
    """A robot of one hinge, with keywords in the place of its name, kind, parent or child."""
    given: dict[str, Any] = {"name": "h", "kind": "free", "parent": "world", "child": "b", **parts}
    return pp.Builder().body("b", 1, inertia=(1, 1, 1)).hinge(**given).build()


def urdf(inside: str, other: str = "") -> str:
    joints = (("a", "base", "one", other), ("b", "one", "two", inside))
    return "<robot name='pair'><link name='base'/>" + "".join(
        f"<link name='{child}'>{BODY}</link><joint name='{name}' type='revolute'>"
        f"<parent link='{parent}'/><child link='{child}'/>{part}</joint>"
        for name, parent, child, part in joints
    ) + "</robot>"  # fmt: skip


def changed(**hinge: Any) -> str:
    """The JSON of `pair` with other values of the hinge "b"."""
    document = json.loads(to_json(pair().build()))
    document["hinges"][1] |= hinge
    return json.dumps(document)


def inertial(parameters: list[float]) -> str:
    document = json.loads(to_json(pair().build()))
    document["bodies"][1]["inertia"] = parameters
    return json.dumps(document)


def mimic(**joints: str) -> list[Callable[[], Any]]:
    """The makers of a robot in which each hinge mimics another, by every loader."""
    parts = {name: f"<mimic joint='{leader}'/>" for name, leader in joints.items()}
    document = json.loads(to_json(pair().build()))
    for hinge in document["hinges"]:
        if hinge["name"] in joints:
            hinge["mimic"] = {"joint": joints[hinge["name"]]}
    builder = pair()
    for name, leader in joints.items():
        builder.replace_hinge(name, mimic=pp.Mimic(leader))
    text = urdf(parts.get("b", ""), parts.get("a", ""))
    return [lambda: from_urdf(text), lambda: from_json(json.dumps(document)), builder.build]


LIMIT = '<limit lower="-1" upper="1" effort="{}" velocity="{}"/>'
IMPOSSIBLE: dict[str, tuple[list[Callable[[], Any]], str]] = {
    **{
        f"negative {key}": (
            [
                lambda key=key: from_json(changed(**{key: [-50.0]})),
                lambda key=key: from_json(changed(**{key: [-50.0]}), strict=True),
                lambda key=key: from_urdf(
                    urdf(LIMIT.format(*((-50, 1) if key == "effort" else (1, -50))))
                ),
                lambda key=key: pair(**{key: -50}).build(),
                lambda key=key: pair().replace_hinge("b", **{key: -50}).build(),
                lambda key=key: pair().build().edit().replace_hinge("b", **{key: [-50]}).build(),
            ],
            f"^hinge 'b' has a negative {key}; give zero or more$",
        )
        for key in ("effort", "velocity")
    },
    "mimic of an unknown joint": (mimic(a="ghost")[1:], "'a' mimics 'ghost', but no hinge"),
    "mimic of itself": (mimic(a="a"), "mimic relations form a cycle: 'a' → 'a'$"),
    "mimic in a cycle": (mimic(a="b", b="a"), "mimic relations form a cycle: '.' → '.' → '.'$"),
    "first moment without mass": (
        [
            lambda: from_json(inertial([0.0, 0.1, 0, 0, 1, 0, 0, 1, 0, 1])),
            lambda: pair().build().with_parameters(
                {"inertia:two": [0.0, 0.1, 0, 0, 1, 0, 0, 1, 0, 1]}),
        ],
        "first moment of mass",
    ),
    "welded bodies heavier than the whole": (
        [lambda: from_json(json.dumps(heavy(5.0)))],
        "^body 'one' has the mass 1 kg, less than the 5 kg of the bodies welded to it",
    ),
    "negative mass of a welded body": (
        [lambda: from_json(json.dumps(heavy(-5.0)))], "^body 'pad' has negative mass -5 kg$",
    ),
    "negative friction as a parameter": (
        [lambda: pair().build().with_parameters({"friction:b": [-1.0]})],
        "^parameter 'friction:b' is negative; give zero or more$",
    ),
    "the version true": ([lambda: from_json('{"phipsi": true}')], "format version True"),
}  # fmt: skip


def heavy(mass: float) -> dict[str, Any]:
    document = json.loads(to_json(pair().build()))
    inertia = [mass, 0, 0, 0, 1, 0, 0, 1, 0, 1]
    document["bodies"][0]["welded"] = [{"name": "pad", "inertia": inertia}]
    return document


@pytest.mark.filterwarnings("ignore::phipsi.ModelWarning")
@each("what", IMPOSSIBLE)
def test_what_no_robot_can_be_is_refused(what: str):
    makers, message = IMPOSSIBLE[what]
    for make in makers:
        with pytest.raises(pp.ModelError, match=message) as caught:
            make()
        assert "\n" not in str(caught.value)


def test_a_mimic_relation_of_a_urdf_to_no_joint_is_left_out_with_a_warning():
    """As those of the right hand of `alex_psyonic_hands` are in example-robot-data."""
    text = urdf("<mimic joint='ghost'/>")
    message = r"has no joints that its mimic relations name \(1: 'b'\)"
    with pytest.warns(pp.ModelWarning, match=message):
        assert from_urdf(text).hinge("b").mimic is None


def test_a_mimic_relation_goes_with_the_joint_that_it_follows():
    robot = pair(mimic=pp.Mimic("a", 2.0)).build()
    assert robot.hinge("b").mimic == pp.Mimic("a", 2.0)
    alone = robot.locked("a")
    assert alone.hinge("b").mimic is None
    assert from_json(to_json(alone)) == alone
    both = pp.combine({"l": robot, "r": robot})
    assert both.hinge("r/b").mimic == pp.Mimic("r/a", 2.0)


# ---- inertias ------------------------------------------------------------------------------------


def loaded(mass: float, moments: tuple[float, float, float], *also: float) -> pp.Robot:
    builder = pp.Builder("odd").body("part", mass, (0, 0, 0), np.diag(moments))
    builder.hinge("free", "free", "world", "part", armature=1.0)
    for i, moment in enumerate(also):
        builder.body(f"more{i}", 1.0, inertia=(moment,) * 3).hinge(
            f"h{i}", "free", "part", f"more{i}"
        )
    return builder.build(strict=True)


@each(
    "mass, moments, also",
    [
        (1.0, (1e-3, 1e-3, -2e-22), ()),  # beside the largest moment of the body
        (1e-3, (-2e-22, 1e-22, 1e-22), ()),  # within an atom's radius of gyration
        (0.0, (-2e-22, 1e-22, 1e-22), (1e-3,)),  # beside the inertia of the robot
        (1e-3, (5e-324, 1e-320, 3e-310), ()),
        (0.0, (5e-324, 5e-324, 5e-324), ()),
        (1e-320, (1e-320, 1e-320, 1e-320), ()),
        (1e-30, (1e-310, 1e-310, -1e-310), ()),  # a radius of gyration of 1e-140 m
        (1e300, (1e300, 1e300, 1e300), ()),
    ],
)
def test_rounding_of_an_inertia_is_no_doubt(mass: float, moments: Any, also: tuple[float, ...]):
    loaded(mass, moments, *also)


@each(
    "mass, moments",
    [
        (1.0, (1.0, 1.0, -1e-6)), (1e-9, (1e-9, 1e-9, -1e-15)), (0.0, (-2e-22, 1e-22, 1e-22)),
        (0.0, (1e-300, 1e-300, 3e-300)), (1e-320, (1e-310, 1e-310, 3e-310)), (1e9, (1, 1, 3)),
        (1e300, (1e300, 1e300, 3e300)),
    ],
)  # fmt: skip
def test_an_inertia_that_no_body_has_is_doubted_at_any_scale(mass: float, moments: Any):
    with pytest.raises(pp.ModelError, match=r"'part' has an inertia that (is not pos|violates)"):
        loaded(mass, moments)


def test_a_massless_hinge_is_found_wherever_it_is():
    """Random trees, of which some bodies have no or no full inertia: refused if 𝓜 is singular."""
    rng, counts = np.random.default_rng(0), {True: 0, False: 0}
    for _ in range(120):
        builder, bodies = pp.Builder("tree"), int(rng.integers(2, 7))
        for i in range(bodies):
            m, full, central = rng.random(3) < (0.7, 0.4, 0.4)
            com = np.zeros(3) if central else rng.normal(size=3)
            builder.body(f"b{i}", float(m), com, np.eye(3) * float(m and full))
            kind = ("revolute", "prismatic", "universal", "spherical")[rng.integers(4)]
            axis = rng.normal(size=(2, 3)) if kind == "universal" else rng.normal(size=3)
            parent = f"b{rng.integers(i)}" if i else "world"
            builder.hinge(f"h{i}", kind, parent, f"b{i}", axis=axis, position=rng.normal(size=3))
        try:
            robot, sound = builder.build(), True
        except pp.ModelError as error:
            assert "no inertia along it" in str(error)
            for i in range(bodies):
                builder.replace_hinge(f"h{i}", armature=1.0)
            robot, sound = builder.build(), False
        q, _ = robot.random_state(1)
        least = np.linalg.eigvalsh(matrix(H @ phi @ M @ phi.T @ H.T, system(robot, q)))[0]
        assert least > 1e-7 if sound else abs(least) < 1e-12
        counts[sound] += 1
    assert min(counts.values()) > 20


# ---- messages ------------------------------------------------------------------------------------

LONG = "n" * 900


def ring(count: int) -> pp.Builder:
    builder = pp.Builder("ring")
    for i in range(count):
        builder.body(f"{LONG}{i}", 1.0, inertia=(1, 1, 1))
        builder.hinge(f"{LONG}{i}", "weld", f"{LONG}{(i + 1) % count}", f"{LONG}{i}")
    return builder


MESSAGES: dict[str, tuple[Callable[[], Any], str]] = {
    "cycle of bodies": (lambda: ring(200).build(), "196 more → "),
    "unknown keyword": (
        lambda: pair(**{f"{LONG}{i}": 1.0 for i in range(100)}), "and 97 more; known are",
    ),
    "name of a part": (lambda: pp.Builder().body("x" * 10**7).build(), "at most 1000 characters"),
    "mass": (lambda: pp.Builder().body("x" * 10**7, HEAVY), "mass is 'heavy', needs numbers"),
    "kind": (lambda: pp.Builder().hinge("a", LONG_KIND, "world", "b"), "unknown kind 'xxx"),
    "parent": (lambda: pair().hinge("c", "weld", "x" * 10**7, "one").build(), "unknown parent"),
    "loop": (lambda: pp.Loop("x" * 10**7, "b", free=LONG_KIND), "no joint that can close it"),
    "parameter": (lambda: pair().build().parameter("x" * 10**7), "no parameter 'xxx"),
}  # fmt: skip


@each("what", MESSAGES)
def test_messages_are_bounded(what: str):
    make, message = MESSAGES[what]
    with pytest.raises(pp.ModelError, match=message) as caught:
        make()
    assert len(str(caught.value)) < 500


# ---- arguments of the wrong kind -----------------------------------------------------------------

ODD: list[Any] = [
    5,
    None,
    1.5,
    "base",
    [],
    {},
    ["base"],
    {"a": "base"},
    object(),
    b"x",
    [[]],
    ("a",),
]


def calls() -> Iterator[tuple[str, Callable[[Any], Any]]]:
    robot = pair().build()
    yield "combine", pp.combine
    yield "combine mapping", lambda x: pp.combine({"a": x})
    yield "combine sequence", lambda x: pp.combine([robot, x])
    yield "add", lambda x: pp.Builder().add(x)
    yield "add at", lambda x: pp.Builder().add(robot, at=x).build()
    yield "add prefix", lambda x: pp.Builder().add(robot, prefix=x).build()
    yield "add placement", lambda x: pp.Builder().add(robot, placement=x)
    yield "attach", lambda x: robot.attach(x, at="two")
    yield "attach at", lambda x: robot.attach(robot, at=x, prefix="p/")
    yield "attach prefix", lambda x: robot.attach(robot, at="two", prefix=x)
    yield "attach placement", lambda x: robot.attach(robot, at="two", prefix="p/", placement=x)
    yield "locked", robot.locked
    yield "mask", robot.mask
    yield "parameter", robot.parameter
    yield "with_parameters", robot.with_parameters
    yield "with_parameters key", lambda x: robot.with_parameters(dict([(x, 1.0)]))
    yield "with_gravity", robot.with_gravity
    yield "body_index", robot.body_index
    yield "hinge", robot.hinge
    yield "frame", robot.frame
    yield "root", robot.root
    yield "freedoms", robot.freedoms
    yield "joint_data", robot.joint_data
    yield "replace_hinge", lambda x: robot.edit().replace_hinge(x)
    for key in ("kind", "parent", "child", "placement", "axes", "mimic", "q", "colour"):
        yield (
            f"replace {key}",
            lambda x, key=key: robot.edit().replace_hinge("b", **{key: x}).build(),
        )
    yield "builder name", lambda x: pp.Builder(x).build()
    yield "body name", lambda x: pp.Builder().body(x).build()
    for key in ("name", "kind", "parent", "child"):
        yield f"hinge {key}", lambda x, key=key: hinged(**{key: x})
    yield "hinge placement", lambda x: pair(placement=x).build()
    yield "hinge mimic", lambda x: pair(mimic=x).build()
    yield "mimic joint", lambda x: pair(mimic=pp.Mimic(x)).build()
    yield "frame name", lambda x: pair().frame(x).build()
    yield "frame body", lambda x: pair().frame("f", x).build()
    yield "frame placement", lambda x: pair().frame("f", "one", placement=x).build()
    yield "load", pp.load
    yield "load base", lambda x: pp.load(urdf(""), base=x)
    yield "load format", lambda x: pp.load(urdf(""), format=x)
    yield "load armature", lambda x: pp.load(urdf(""), armature=x)
    yield "load armature of JSON", lambda x: pp.load(to_json(robot), armature=x)
    yield "from_json", from_json
    yield "from_urdf", from_urdf
    yield "save", lambda x: pp.save(x, "/nonexistent/file")
    yield "loop", lambda x: pp.Loop("a", "b", x)
    yield "grasp", lambda x: pp.Grasp("a", "b", x)


ACCEPTED = (FileNotFoundError,)
"""Of `load`, where a path leads nowhere."""


@each("what, call", list(calls()))
def test_arguments_of_the_wrong_kind_are_a_model_error(what: str, call: Callable[[Any], Any]):
    for odd in ODD:
        try:
            call(odd)
        except pp.ModelError as error:
            assert "\n" not in str(error) and len(str(error)) < 500
        except ACCEPTED:
            assert what == "load"
        except TypeError as error:
            assert "unhashable" in str(error) and what == "with_parameters key"  # of the test


# ---- warnings ------------------------------------------------------------------------------------

DOUBTFUL = """
import sys, warnings
warnings.simplefilter("always")
import phipsi as pp
from phipsi.model.robot import from_json
from phipsi.model.urdf import from_urdf
from phipsi.model.json import to_json
text = open(sys.argv[1]).read()
odd = pp.Builder("odd").body("a", 1.0, inertia=(1, 1, 9)).hinge("h", "free", "world", "a")
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    pp.load(sys.argv[1])
    pp.load(text)
    from_urdf(text)
    robot = odd.build()
    from_json(to_json(robot))
    pp.load(to_json(robot))
    loose = odd.replace_hinge("h", lower=-1.0).body("b", 1.0, inertia=(1, 1, 1))
    loose.hinge("j", "revolute", "a", "b", axis=(0, 1, 0))
    robot = loose.build()
    pp.rebase(robot, "b")
for w in said:
    print(w.filename == sys.argv[0], w.lineno, w.category.__name__)
"""


def test_a_warning_points_at_the_line_of_the_caller(tmp_path: Path):
    script, robot = tmp_path / "script.py", tmp_path / "robot.urdf"
    script.write_text(DOUBTFUL)
    robot.write_text(urdf("<mimic joint='a'/>"))
    run = [sys.executable, str(script), str(robot)]
    said = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()
    lines = DOUBTFUL.splitlines()
    places = [line.split() for line in said]
    assert all(ours == "True" for ours, _, _ in places), said
    assert [lines[int(number) - 1].strip().split("(")[0] for _, number, _ in places] == [
        "pp.load", "pp.load", "from_urdf", "robot = odd.build", "from_json", "pp.load",
        "robot = loose.build", "pp.rebase",
    ]  # fmt: skip
