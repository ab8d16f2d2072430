"""The JSON format: lossless, canonical, and strict about what it reads."""

import json
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phipsi as pp
from phipsi.model import KINDS
from phipsi.model.json import to_json
from phipsi.model.robot import from_json
from tests.model.urdf_files import SOUND

numbers = st.floats(-10, 10)
positive = st.floats(0.01, 10)
triples = st.tuples(numbers, numbers, numbers)
limits = st.one_of(st.just(np.inf), positive)
names = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=9)


@st.composite
def robots(draw: st.DrawFn) -> pp.Robot:
    """Any tree of any hinges, with every number drawn."""
    builder = pp.Builder(draw(names), gravity=draw(triples))
    count = draw(st.integers(1, 5))
    called = [draw(names) + str(i) for i in range(count)]
    for i in range(count):
        earlier = st.sampled_from(called[: max(i, 1)])
        m = draw(positive)
        builder.body(f"b{i}", m, draw(triples), np.diag(draw(st.tuples(*[st.floats(1, 1.9)] * 3))))
        name = draw(st.sampled_from(sorted(KINDS)))
        kind = KINDS[name]
        parent = draw(st.sampled_from(["world", *(f"b{k}" for k in range(i))]))
        axis = ((0.6, 0.0, 0.8), (0.0, 1.0, 0.0))[: kind.axes] if kind.axes else None
        builder.hinge(
            called[i], name, parent, f"b{i}",
            position=draw(triples), rpy=draw(triples), axis=axis, pitch=draw(numbers),
            lower=-draw(limits), upper=draw(limits), velocity=draw(limits), effort=draw(limits),
            armature=draw(positive), damping=draw(positive), stiffness=draw(positive),
            friction=draw(positive), backlash=draw(positive), friction_speed=draw(positive),
            mimic=draw(
                st.one_of(st.none(), st.builds(pp.Mimic, earlier, numbers, numbers))
            ) if i else None,
        )  # fmt: skip
        builder.frame(f"f{i}", f"b{i}", position=draw(triples), rpy=draw(triples))
    return builder.build()


def same_numbers(a: pp.Robot, b: pp.Robot) -> None:
    for x, y in zip(a.bodies, b.bodies, strict=True):
        assert x.name == y.name
        assert list(x.inertia.parameters) == list(y.inertia.parameters)
    for h, k in zip(a.hinges, b.hinges, strict=True):
        assert (h.name, h.kind, h.parent, h.child) == (k.name, k.kind, k.parent, k.child)
        assert (h.pitch, h.friction_speed, h.mimic) == (k.pitch, k.friction_speed, k.mimic)
        assert (h.placement.matrix == k.placement.matrix).all()
        assert [list(u) for u in h.axes] == [list(u) for u in k.axes]
        assert (h.q, h.v) == (k.q, k.v)
        for key in ("lower", "upper", "velocity", "effort", "armature", "damping", "stiffness",
                    "rest", "friction", "backlash"):  # fmt: skip
            assert list(getattr(h, key)) == list(getattr(k, key))
    assert list(a.frames) == list(b.frames)
    for f, g in zip(a.frames.values(), b.frames.values(), strict=True):
        assert f.body == g.body
        assert (f.placement.matrix == g.placement.matrix).all()
    assert list(a.gravity) == list(b.gravity)


@given(robots())
def test_round_trip_is_exact(robot: pp.Robot):
    text = to_json(robot)
    again = from_json(text)
    assert to_json(again) == text
    assert again.key == robot.key
    assert again == robot
    same_numbers(robot, again)


@pytest.mark.parametrize("name", ["ur5_robot", "panda", "talos_reduced", "g1_29dof_rev_1_0"])
def test_round_trip_of_real_robots(name: str):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pp.ModelWarning)
        robot = pp.load(SOUND[name], base="free")
        same_numbers(robot, from_json(to_json(robot)))


def pendulum() -> dict[str, Any]:
    robot = (
        pp.Builder("pendulum")
        .body("bob", 1.0, (0, 0, -0.5), (0.02, 0.02, 0.001))
        .hinge("pivot", "revolute", "world", "bob", axis=(0, 1, 0))
        .frame("tip", "bob", position=(0, 0, -1))
        .build()
    )
    return json.loads(to_json(robot))


def test_text_is_plain_json_that_people_can_read():
    text = to_json(pp.load(to_json(from_json(json.dumps(pendulum())))))
    assert text.startswith('{"phipsi": 1,\n "name": "pendulum",\n "gravity": [0.0, 0.0, -9.81],\n')
    assert text.isascii()
    assert all(len(line) < 600 for line in text.splitlines())


def test_everything_after_child_may_be_left_out():
    document = pendulum()
    (hinge,) = document["hinges"]
    document["hinges"] = [{k: hinge[k] for k in ("name", "kind", "parent", "child", "axes")}]
    del document["frames"][0]["placement"]
    robot = from_json(json.dumps(document))
    assert robot.hinges[0].upper[0] == np.inf
    assert robot.frame("tip").placement.position[2] == 0.0


def test_negative_zero_is_zero():
    document = pendulum()
    document["hinges"][0]["placement"]["position"] = [-0.0, 0, 0]
    assert from_json(json.dumps(document)).key == from_json(json.dumps(pendulum())).key


def changed(*path: Any, to: Any) -> str:
    document: Any = pendulum()
    target = document
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = to
    return json.dumps(document)


WRONG = {
    "version": (changed("phipsi", to=2), "version 2"),
    "no version": ("{}", "version None"),
    "unknown key": (changed("colour", to="red"), "unknown key 'colour'"),
    "unknown hinge key": (changed("hinges", 0, "colour", to=1), r"hinges\[0\] has the unknown key"),
    "name": (changed("bodies", 0, "name", to=7), r"bodies\[0\].name has no name"),
    "long name": (changed("name", to="x" * 10**6), "at most 1000 characters"),
    "odd name": (changed("name", to="a\nb"), "printable"),
    "surrogate": ('{"phipsi": 1, "name": "\\ud800"}', "printable"),
    "world": (changed("bodies", 0, "name", to="world"), "is the root"),
    "inertia": (changed("bodies", 0, "inertia", to=[1, 2]), r"bodies\[0\].inertia .* 10 numbers"),
    "welded": (
        changed("bodies", 0, "welded", to=[{"name": "w", "inertia": [1]}]),
        r"bodies\[0\].welded\[0\].inertia .* 10 numbers",
    ),
    "welded name": (
        changed("bodies", 0, "welded", to=[{"name": "bob", "inertia": [0] * 10}]),
        "two bodies are named 'bob'",
    ),
    "text": (changed("bodies", 0, "inertia", 3, to="1"), r"inertia has '1', which is not a number"),
    "bool": (changed("bodies", 0, "inertia", 3, to=True), "True, which is not a number"),
    "null": (changed("hinges", 0, "armature", to=[None]), "None, which is not a number"),
    "nan": (changed("gravity", 0, to=float("nan")), "'NaN', but every number must be finite"),
    "infinity": (changed("gravity", 0, to=float("inf")), "must be finite"),
    "huge": (to_json(from_json(json.dumps(pendulum()))).replace("-9.81", "1e400"), "finite"),
    "huge integer": (json.dumps(pendulum()).replace("-9.81", "9" * 9999), "finite"),
    "rotation": (changed("hinges", 0, "placement", "rotation", 0, to=2), "no rotation"),
    "axes": (changed("hinges", 0, "axes", to=[]), "0 axes, but a revolute hinge stores 1"),
    "axis": (changed("hinges", 0, "axes", 0, to=[1, 1, 1]), "no unit vector"),
    "limits": (changed("hinges", 0, "lower", to=[1, 2]), r"hinges\[0\].lower .* list of 1"),
    "armature": (changed("hinges", 0, "armature", to=[-1]), "negative armature"),
    "kind": (changed("hinges", 0, "kind", to="ball"), "'ball'; known are"),
    "parent": (changed("hinges", 0, "parent", to="nobody"), "unknown parent"),
    "mimic": (changed("hinges", 0, "mimic", to=[1]), r"hinges\[0\].mimic is .* JSON object"),
    "frame": (changed("frames", 0, "body", to="nobody"), "unknown body"),
    "list": ("[1]", "needs a JSON object"),
    "bodies": (changed("bodies", to={}), "bodies is {}, needs a list"),
    "mass": (changed("bodies", 0, "inertia", 0, to=-1), "negative mass"),
    "twice": ('{"phipsi": 1, "name": "a", "name": "b"}', "the key 'name' twice"),
    "not json": ('{"phipsi": 1,', "not JSON"),
    "deep": ('{"phipsi": ' + "[" * 10**6, "nested too deeply"),
    "many": ('{"phipsi": [' + "0," * 9_000_000, "more than 8,000,000 values"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_said(what: str):
    text, message = WRONG[what]
    with pytest.raises(pp.ModelError, match=message) as caught:
        from_json(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
paths = st.sampled_from(
    [(a,) for a in pendulum()]
    + [("bodies", 0, k) for k in pendulum()["bodies"][0]]
    + [("hinges", 0, k) for k in pendulum()["hinges"][0]]
    + [("frames", 0, k) for k in pendulum()["frames"][0]]
)


@given(paths, json_values)
def test_any_value_anywhere_is_read_or_refused(path: tuple[Any, ...], value: Any):
    try:
        from_json(changed(*path, to=value))
    except pp.ModelError as error:
        assert "\n" not in str(error)
