"""Robots as text and as HTML: readable at every size, harmless whatever the names."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from phipsi.model import Builder, Robot, robots
from phipsi.model.display import HEAD, TAIL, WIDTH, html, tree

BALL = (0.1, 0.1, 0.1)


def branching() -> Robot:
    """Two trees in one world: a with a chain and a fork, b alone."""
    builder = Builder("forest", gravity=(0, 0, 0))
    parents = {"a": "world", "a1": "a", "a2": "a1", "f1": "a2", "f2": "a2", "b": "world"}
    for name, parent in parents.items():
        builder.body(name, 1.5, inertia=BALL)
        builder.hinge(f"to_{name}", "revolute", parent, name, axis=(1, 0, 0))
    return builder.frame("tip", "f2").frame("corner").build()


def comb(n: int) -> Robot:
    """A spine of n bodies with a rib on each: deep and branching."""
    builder, parent = Builder("comb"), "world"
    for i in range(n):
        for part in (f"spine{i}", f"rib{i}"):
            builder.body(part, 1.0, inertia=BALL)
            builder.hinge(part, "revolute", parent, part, axis=(0, 1, 0))
        parent = f"spine{i}"
    return builder.build()


def test_a_robot_as_it_is_printed() -> None:
    assert str(robots.double_pendulum()).splitlines() == [
        "double_pendulum: 2 bodies, nq = 2, nv = 2, mass 2 kg, gravity (0, 0, -9.81) m/s²",
        "world",
        "└─ joint1    revolute  y  q[0]  link1  1 kg",
        "   ↳ joint2  revolute  y  q[1]  link2  1 kg  tool",
    ]


def test_branches_indent_and_only_children_do_not() -> None:
    assert tree(branching()).splitlines() == [
        "forest: 6 bodies, nq = 6, nv = 6, mass 9 kg, gravity (0, 0, 0) m/s²",
        "world                                         corner",
        "├─ to_a        revolute  x  q[0]  a   1.5 kg",
        "│  ↳ to_a1     revolute  x  q[1]  a1  1.5 kg",
        "│  ↳ to_a2     revolute  x  q[2]  a2  1.5 kg",
        "│    ├─ to_f1  revolute  x  q[3]  f1  1.5 kg",
        "│    └─ to_f2  revolute  x  q[4]  f2  1.5 kg  tip",
        "└─ to_b        revolute  x  q[5]  b   1.5 kg",
    ]


def test_one_body_and_none() -> None:
    assert "1 body," in tree(robots.chain(1))
    assert tree(Builder("nothing").build()).splitlines()[1:] == ["world"]


def test_axes_and_indices_are_short() -> None:
    builder = Builder().body("a", 1.0, inertia=BALL).body("b", 1.0, inertia=BALL)
    builder.body("c", 1.0, inertia=BALL).hinge("i", "free", "world", "a")
    builder.hinge("j", "universal", "a", "b", axis=((0, -1, 0), (1, 1, 0)))
    builder.hinge("k", "planar", "b", "c", axis=(0, 0, 1))
    text = tree(builder.build())
    assert "q[0:7]" in text
    assert "-y (0.71, 0.71, 0.00)" in text
    assert re.search(r"planar +z +q\[9:12\]", text)


@pytest.mark.parametrize("name", robots.ROBOTS)
def test_every_packaged_robot_is_one_aligned_line_per_body(name: str) -> None:
    robot = robots.ROBOTS[name]()
    lines = tree(robot).splitlines()
    assert len(lines) == robot.nb + 2
    starts = {line.index("  q[") for line in lines[2:]}
    assert len(starts) == 1
    for body, hinge in zip(robot.bodies, robot.hinges, strict=True):
        assert any(body.name in line and hinge.name in line for line in lines)
    for frame in robot.frames:
        assert any(
            line.endswith(frame) or f"{frame}, " in line or f"{frame} (" in line for line in lines
        )


def test_many_frames_on_a_body_are_cut() -> None:
    builder = Builder().body("a", 1.0, inertia=BALL).hinge("i", "free", "world", "a")
    for i in range(30):
        builder.frame(f"f{i}", "a")
    assert "f0, f1, f2, f3 and 26 more" in tree(builder.build())


@pytest.mark.parametrize("make", [lambda: robots.chain(1200), lambda: comb(600)])
def test_large_robots_show_their_head_and_tail(make: Callable[[], Robot]) -> None:
    robot = make()
    lines = tree(robot).splitlines()
    assert len(lines) == HEAD + TAIL + 3
    assert f"… {robot.nb - HEAD - TAIL} more …" in lines
    assert max(map(len, lines)) < 160
    assert len(html(robot)) < 100_000


def test_a_chain_is_as_narrow_as_a_pendulum() -> None:
    lines = tree(robots.chain(60)).splitlines()
    assert max(map(len, lines[1:])) < 60


HOSTILE = '<script>alert("x")</script>&<b>'


def hostile() -> Robot:
    builder = Builder(HOSTILE).body(HOSTILE, 1.0, inertia=BALL)
    return builder.hinge(HOSTILE, "free", "world", HOSTILE).frame(HOSTILE + "f", HOSTILE).build()


def test_html_escapes_every_name() -> None:
    class Tags(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.tags: set[str] = set()
            self.text = ""

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.tags.add(tag)

        def handle_data(self, data: str) -> None:
            self.text += data

    parser = Tags()
    parser.feed(html(hostile()))
    assert parser.tags == {"details", "summary", "table", "tr", "th", "td"}
    assert parser.text.count(HOSTILE) == 4


def test_terminal_escapes_in_names_are_shown_not_sent() -> None:
    robot = branching()
    body = replace(robot.bodies[0], name="a\x1b[2J\n\u202e")
    text = tree(replace(robot, bodies=(body, *robot.bodies[1:]), name="x\x07"))
    assert r"a\u001b[2J\u000a\u202e" in text
    assert text.startswith(r"x\u0007:")


def test_long_names_are_cut() -> None:
    builder = Builder("n" * 500).body("b" * 500, 1.0, inertia=BALL)
    text = tree(builder.hinge("h" * 500, "free", "world", "b" * 500).build())
    assert "b" * (WIDTH - 1) + "…" in text
    assert max(map(len, text.splitlines())) < 200


class Unknown:
    """A scalar that can be added but is no number, as a traced one, whose root NumPy can take."""

    def sqrt(self) -> Unknown:
        return self

    def __add__(self, other: object) -> Unknown:
        return self

    __radd__ = __add__


def test_numbers_that_are_not_known_yet_are_question_marks() -> None:
    robot = robots.double_pendulum()
    unknown: Any = [Unknown()] * 10
    text = tree(robot.with_parameters({"inertia:link2": unknown, "gravity": unknown[:3]}))
    assert "? kg" in text
    assert "gravity (?, ?, ?)" in text
