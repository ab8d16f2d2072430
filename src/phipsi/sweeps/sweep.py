"""Sweeps: the only loops over bodies in the project.

A step sees a body and its neighbours' records, never an index and never the question whether there
is a parent: the world has a record too. It returns the new fields of the body's record.

    outward(step, x, **world)     step(k, parent)     base → tip, values scattered to children
    inward(step, x)               step(k, children)   tip → base, values gathered from children
    local(step, x)                step(k)             each body by itself
    path(step, x, body, value)    step(k, value)      from one body to the root, φ at each step
    climb(begin, x)               the blocks of H φ X for X block diagonal
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phipsi.model import Hinge
from phipsi.sweeps.forest import Forest, Record
from phipsi.sweeps.log import note

Blocks = list[tuple[Hinge, Hinge, Any]]
"""Blocks of a matrix: (hinge of the rows, hinge of the columns, block)."""


def outward(step: Callable[[Any, Any], dict[str, Any]], x: Forest, **world: Any) -> Forest:
    """Base to tip: step(k, parent) sees the parent's new fields; a root sees the world's."""
    note("outward", step)
    root = Record(world)
    done: list[Record] = []
    fields: list[dict[str, Any]] = []
    for k, p in zip(x.records, x.robot.parents, strict=True):
        new = step(k, done[p] if p >= 0 else root)
        done.append(k.extended(new))
        fields.append(new)
    return x.extended(fields)


def inward(step: Callable[[Any, list[Any]], dict[str, Any]], x: Forest) -> Forest:
    """Tip to base: step(k, children) sees the children's new fields."""
    note("inward", step)
    waiting: list[list[Record]] = [[] for _ in x.records]
    fields: list[dict[str, Any]] = [{}] * len(x.records)
    for i in reversed(range(len(x.records))):
        fields[i] = step(x.records[i], waiting[i][::-1])
        if x.robot.parents[i] >= 0:
            waiting[x.robot.parents[i]].append(x.records[i].extended(fields[i]))
    return x.extended(fields)


def local(step: Callable[[Any], dict[str, Any]], x: Forest) -> Forest:
    """Each body by itself: step(k)."""
    note("local", step)
    return x.extended([step(k) for k in x.records])


def path(step: Callable[[Any, Any], dict[str, Any]], x: Forest, body: str, value: Any) -> Forest:
    """From a body to the root: step(k, φ(k, body) value) for every body k on the way.

    The value is whatever φ can multiply: forces, a basis of forces, a transform. Bodies off the
    path get no new fields; from the world there is no path.
    """
    note("path", step)
    fields: list[dict[str, Any]] = [{}] * len(x.records)
    i = x.robot.body_index(body)
    while i >= 0:
        k = x.records[i]
        fields[i] = step(k, value)
        value, i = k.phi @ value, x.robot.parents[i]
    return x.extended(fields)


def climb(begin: Callable[[Any], Any], x: Forest) -> Blocks:
    """The blocks of H φ X for X block diagonal, X(k) = begin(k).

    Each X(k) is carried from body k to the root by φ and read by H at every hinge: O(N · depth).
    """
    note("climb", begin)
    blocks: Blocks = []
    for i, start in enumerate(x.records):
        value = begin(start)
        while i >= 0:
            k = x.records[i]
            blocks.append((k.hinge, start.hinge, k.H @ value))
            value, i = k.phi @ value, x.robot.parents[i]
    return blocks
