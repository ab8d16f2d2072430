"""A robot as a readable tree, for the terminal and for notebooks.

Only branches are indented: an only child is shown below its parent with an arrow, at the same
indentation, so that a long serial arm is as narrow as a short one.
"""

from __future__ import annotations

from html import escape

import numpy as np

from phipsi.conventions import WORLD
from phipsi.model.description import RobotDescription
from phipsi.model.parts import Hinge
from phipsi.typing import Real, Vector3

HEAD, TAIL = 70, 10
"""Of a robot with more than HEAD + TAIL bodies, only the first HEAD and the last TAIL are shown."""
WIDTH = 40
"""The maximum number of characters of a name, and of an indentation."""

COLUMNS = ("hinge", "kind", "axis", "q", "body", "mass", "frames")


def tree(robot: RobotDescription) -> str:
    """The robot as text: a line with its sizes, then the tree with one line for each body."""
    header, rows = _summary(robot), _rows(robot)
    widths = [max(len(row[k]) for row in rows) for k in range(len(COLUMNS))]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([header, *lines])


def html(robot: RobotDescription) -> str:
    """The robot as an HTML table; every name is escaped."""
    head = "".join(f"<th style='text-align:left'>{escape(c)}</th>" for c in COLUMNS)
    cell = "<td style='text-align:left;white-space:pre;font-family:monospace'>{}</td>"
    body = "".join(
        f"<tr>{''.join(cell.format(escape(text)) for text in row)}</tr>" for row in _rows(robot)
    )
    summary = f"<summary>{escape(_summary(robot))}</summary>"
    return f"<details open>{summary}<table><tr>{head}</tr>{body}</table></details>"


def _summary(robot: RobotDescription) -> str:
    gravity = ", ".join(map(_number, robot.gravity))
    bodies = "1 body" if robot.nb == 1 else f"{robot.nb} bodies"
    return (
        f"{_name(robot.name)}: {bodies}, nq = {robot.nq}, nv = {robot.nv}, "
        f"mass {_number(robot.mass)} kg, gravity ({gravity}) m/s²"
    )


def _rows(robot: RobotDescription) -> list[tuple[str, ...]]:
    """The cells of the tree: one row for each body that is shown."""
    frames: dict[str, list[str]] = {}
    mass = {w.name: _number(w.inertia.mass) for body in robot.bodies for w in body.welded}
    for frame in robot.frames.values():
        welded = mass.get(frame.name, "0")
        load = "" if welded == "0" else f" ({welded} kg)"
        frames.setdefault(frame.body, []).append(_name(frame.name) + load)
    children: list[list[int]] = [[] for _ in range(robot.nb + 1)]
    for i, parent in enumerate(robot.parents):
        children[parent].append(i)
    order = _depth_first(children)
    hidden = len(order) - HEAD - TAIL
    shown = order if hidden <= 0 else [*order[:HEAD], -1, *order[-TAIL:]]
    rows: list[tuple[str, ...]] = [(WORLD, *[""] * 5, _listed(frames.get(WORLD, [])))]
    for i in shown:
        if i < 0:
            rows.append((f"… {hidden} more …", *[""] * 6))
            continue
        h, body = robot.hinges[i], robot.bodies[i]
        rows.append((
            _lead(robot, children, i) + _name(h.name), h.kind.name, _axes(h), _indices(h.q),
            _name(body.name), f"{_number(body.mass)} kg", _listed(frames.get(body.name, [])),
        ))  # fmt: skip
    return rows


def _depth_first(children: list[list[int]]) -> list[int]:
    order: list[int] = []
    stack = children[-1][::-1]
    while stack:
        order.append(stack.pop())
        stack.extend(reversed(children[order[-1]]))
    return order


def _lead(robot: RobotDescription, children: list[list[int]], i: int) -> str:
    """The characters drawn before body i: its own branch, and branches of ancestors that continue
    below it."""
    parts: list[str] = []
    tip, length = i, 0
    while i >= 0 and length < WIDTH:
        parent = robot.parents[i]
        siblings = children[parent]
        if parent < 0 or len(siblings) > 1:
            last = i == siblings[-1]
            part = ("└─ " if last else "├─ ") if i == tip else ("   " if last else "│  ")
        elif i == tip:
            part = "↳ "
        else:
            part = "  " if len(children[i]) > 1 else ""
        parts.append(part)
        length += len(part)
        i = parent
    return "".join(reversed(parts)) if i < 0 else "…" + "".join(reversed(parts[:-1]))


def _axes(h: Hinge) -> str:
    given = h.axes[: h.kind.axes]
    return " ".join(_axis(np.array([_float(x) for x in axis])) for axis in given)


def _axis(axis: Vector3) -> str:
    k = int(np.argmax(np.abs(axis)))
    if abs(axis[k]) > 1 - 1e-9:
        return ("-" if axis[k] < 0 else "") + "xyz"[k]
    return "(" + ", ".join(f"{x:.2f}" for x in axis) + ")"


def _indices(q: slice) -> str:
    return f"q[{q.start}]" if q.stop == q.start + 1 else f"q[{q.start}:{q.stop}]"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more


def _name(name: str) -> str:
    """The name without control characters, shortened to WIDTH."""
    plain = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in name[: WIDTH + 1])
    return plain if len(plain) <= WIDTH else plain[: WIDTH - 1] + "…"


def _float(x: Real) -> float:
    """The number as a float, nan if it is traced."""
    try:
        return float(x)
    except (TypeError, ValueError):
        return float("nan")


def _number(x: Real) -> str:
    value = _float(x)
    return "?" if np.isnan(value) else f"{value:.6g}"
