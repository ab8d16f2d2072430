"""Work that grows with the number of bodies and no faster: counted in calls of functions, which
unlike times are the same on every machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

import phipsi as pp
from phipsi.model.json import to_json
from phipsi.model.robot import from_json
from phipsi.model.untrusted import MAX_PARTS
from phipsi.model.urdf import from_urdf
from tests.each import each

Y = (0, 1, 0)
SOLID, NOTHING = [1.0, 0, 0, 0, 1, 0, 0, 1, 0, 1], [0.0] * 10
BODY = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'


def described(
    n: int, parent: Callable[[int], int] = lambda i: i - 1, massless: Callable[[int], bool] = bool,
    **also: Any,
) -> str:  # fmt: skip
    """The JSON of n bodies; bodies have no inertia where `massless` of the number is false."""
    bodies = [{"name": f"b{i}", "inertia": SOLID if massless(i + 1) else NOTHING} for i in range(n)]
    hinges = [
        {"name": f"h{i}", "kind": "revolute", "parent": f"b{parent(i)}" if i else "world",
         "child": f"b{i}", "axes": [Y], "placement": {"position": [0, 0, 1]}} for i in range(n)
    ]  # fmt: skip
    return json.dumps({"phipsi": 1, "name": "large", "bodies": bodies, "hinges": hinges} | also)


def urdf(n: int, kind: str = "revolute") -> str:
    joint = '<joint name="h{0}" type="{1}"><parent link="b{2}"/><child link="b{0}"/></joint>'
    links = "".join(f'<link name="b{i}">{BODY}</link>' for i in range(-1, n))
    joints = "".join(joint.format(i, kind, i - 1) for i in range(n))
    return f'<robot name="large">{links}{joints}</robot>'


def ring(n: int) -> pp.Builder:
    builder = pp.Builder()
    for i in range(n):
        builder.body(f"b{i}", 1.0, inertia=(1, 1, 1))
        builder.hinge(f"h{i}", "revolute", f"b{(i + 1) % n}", f"b{i}", axis=Y)
    return builder


def chain(n: int) -> pp.Robot:
    return from_json(described(n))


def floating(n: int) -> pp.Robot:
    builder = pp.Builder().add(chain(n)).body("root", 1.0, inertia=(1, 1, 1))
    builder.hinge("root", "free", "world", "root").replace_hinge("h0", parent="root")
    return builder.build()


def refused(builder: pp.Builder) -> None:
    with pytest.raises(pp.ModelError, match="cycle"):
        builder.build()


def framed(n: int) -> str:
    return described(1, frames=[{"name": f"f{i}", "body": "b0"} for i in range(n)])


def names(n: int, kind: str, step: int = 1) -> list[str]:
    return [f"{kind}{i}" for i in range(0, n, step)]


TASKS: dict[str, tuple[Callable[[int], Any], Callable[[Any, int], Any]]] = {
    "JSON": (described, lambda x, n: from_json(x)),
    "JSON of a star": (lambda n: described(n, lambda i: 0), lambda x, n: from_json(x)),
    "JSON of frames": (framed, lambda x, n: from_json(x)),
    "one massless": (lambda n: described(n, massless=lambda i: i != n // 2),
                     lambda x, n: from_json(x)),
    "half massless": (lambda n: described(n, massless=lambda i: i % 2 == 0),
                      lambda x, n: from_json(x)),
    "URDF": (urdf, lambda x, n: from_urdf(x, base="free")),
    "URDF of welds": (lambda n: urdf(n, "fixed"), lambda x, n: from_urdf(x, base="free")),
    "armature by name": (urdf, lambda x, n: from_urdf(x, armature=dict.fromkeys(names(n, "h"), 1))),
    "armature": (urdf, lambda x, n: from_urdf(x, armature=0.1)),
    "replaced hinges": (
        ring, lambda x, n: [x.replace_hinge(h, armature=[0.1]) for h in names(n, "h")]),
    "builder": (int, lambda x, n: ring(n)),
    "cycle": (ring, lambda x, n: refused(x)),
    "text": (chain, lambda x, n: to_json(x)),
    "equivalent": (chain, lambda x, n: x.equivalent),
    "edit": (chain, lambda x, n: x.edit().build()),
    "locked": (chain, lambda x, n: x.locked(names(n, "h", 2))),
    "mask": (chain, lambda x, n: x.mask(*names(n, "h"))),
    "hinges": (chain, lambda x, n: [x.hinge_of(i) for i in range(n)]),
    "trees": (chain, lambda x, n: x.freedoms("b0")),
    "random state": (chain, lambda x, n: x.random_state(0)),
    "parameters": (chain, lambda x, n: [x.parameter(f"inertia:{b}") for b in names(n, "b")]),
    "new inertias": (
        chain, lambda x, n: x.with_parameters({f"inertia:{b}": SOLID for b in names(n, "b")})),
    "new armatures": (
        chain, lambda x, n: x.with_parameters({f"armature:{h}": [0.1] for h in names(n, "h")})),
    "rebase": (floating, lambda x, n: pp.rebase(x, f"b{n - 1}")),
    "combine": (chain, lambda x, n: pp.combine({str(i): chain(4) for i in range(n // 4)})),
    "attach": (chain, lambda x, n: x.attach(x, at=f"b{n - 1}", prefix="more/")),
}  # fmt: skip


def calls(what: str, n: int) -> int:
    """The number of calls of functions, written in Python or not, that a task makes."""
    prepare, run = TASKS[what]
    given, count = prepare(n), 0

    def event(frame: Any, kind: str, argument: Any) -> None:
        nonlocal count
        count += kind in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(event)
    try:
        run(given, n)
    finally:
        sys.setprofile(before)
    return count


@each("what", TASKS)
def test_work_is_linear_in_the_number_of_bodies(what: str):
    calls(what, 8)  # imports and tables that are made once
    few, many = calls(what, 30), calls(what, 120)
    assert many <= 4.2 * few + 500


def test_a_massless_body_adds_no_work_for_the_others():
    assert calls("one massless", 100) < 1.3 * calls("JSON", 100)


def test_too_many_parts_are_refused_before_they_are_read():
    n = MAX_PARTS + 1
    flat = described(1, frames=[{"name": "f", "body": "b0"}] * n)
    links = "".join(f'<link name="{i}"/>' for i in range(4))
    joints = '<joint name="a"/>' * n
    for make, what in (
        (lambda: from_json(flat), "frames"),
        (lambda: from_urdf(f'<robot name="x">{links}{joints}</robot>'), "joints"),
    ):
        with pytest.raises(pp.ModelError, match=f"has 50,001 {what}; at most 50,000 are read"):
            make()
