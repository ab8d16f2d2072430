"""Sweeps: the only loops over bodies in the project.

A step sees a body and its neighbours' records, never an index and never the question whether there
is a parent: the world has a record too. It returns the new fields of the body's record.

    outward(step, x, **world)     step(k, parent)     base → tip, values scattered to children
    inward(step, x)               step(k, children)   tip → base, values gathered from children
    local(step, x)                step(k)             each body by itself
    others(message, x, **zero)    message(c)          summed over the siblings c of each body
    messages(x, up, sent, down)   all of these        both messages of every hinge, in any order
    path(step, x, body, value)    step(k, value)      from one body to the root, φ at each step
    climb(begin, x)               the blocks of H φ X for X block diagonal
    ascend(begin, meet, x)        meet(k, parts)      from every body to its root, step by step
    reciprocal(answer, meet, x)   a symmetric matrix by unit vectors, each along one path alone
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from phipsi.model import Hinge
from phipsi.sweeps.forest import Children, Forest
from phipsi.sweeps.log import note

BLOCKS = 20_000
"""Most blocks of a matrix that are traced one by one."""

Blocks = list[tuple[Hinge, Hinge, Any]]
"""Blocks of a matrix: (hinge of the rows, hinge of the columns, block)."""


def outward(step: Callable[[Any, Any], dict[str, Any]], x: Forest, **world: Any) -> Forest:
    """Base to tip: step(k, parent) sees the parent's new fields; a root sees the world's."""
    note("outward", step)
    return x.outward(step, world)


def inward(step: Callable[[Any, Children], dict[str, Any]], x: Forest) -> Forest:
    """Tip to base: step(k, children) sees the children's new fields."""
    note("inward", step)
    return x.inward(step)


def local(step: Callable[[Any], dict[str, Any]], x: Forest) -> Forest:
    """Each body by itself: step(k)."""
    note("local", step)
    return x.local(step)


def others(message: Callable[[Any], dict[str, Any]], x: Forest, **zero: Any) -> Forest:
    """Each body from its siblings: the fields that message(c) gives, summed over the other children
    c of the same parent (or of the world); `zero` has the sum over none for each of the fields.

    Sums over those before and those after, never a total less a body's own: nothing cancels. O(N).
    """
    note("others", message)
    return x.others(message, zero)


def path(step: Callable[[Any, Any], dict[str, Any]], x: Forest, body: str, value: Any) -> Forest:
    """From a body to the root: step(k, φ(k, body) value) for every body k on the way.

    The value is whatever φ can multiply: forces, a basis of forces, a transform. Bodies off the
    path get no new fields; from the world there is no path.
    """
    note("path", step)
    return x.path(step, body, value)


def climb(begin: Callable[[Any], Any], x: Forest) -> Blocks:
    """The blocks of H φ X for X block diagonal, X(k) = begin(k).

    Each X(k) is carried from body k to the root by φ and read by H at every hinge: O(N · depth).
    """
    note("climb", begin)
    _bearable(x)
    blocks: Blocks = []
    for i, start in enumerate(x.records):
        value = begin(start)
        while i >= 0:
            k = x.records[i]
            blocks.append((k.hinge, start.hinge, k.H @ value))
            value, i = k.phi @ value, x.parents[i]
    return blocks


def ascend(
    begin: Callable[[Any], tuple[Any, ...]],
    meet: Callable[[Any, tuple[Any, ...]], tuple[Any, tuple[Any, ...]]],
    x: Forest,
) -> Blocks:
    """What bodies find of what others send towards the root: begin(i) leaves body i, and each body
    k on the way sees φ times what comes; meet(k, parts) is what it finds, and what it lets on.

    The parts are whatever φ can multiply. Found blocks are (hinge of k, hinge of i, block): a body
    does not meet its own. O(N · depth).
    """
    note("ascend", meet)
    _bearable(x)
    found: Blocks = []
    for i, start in enumerate(x.records):
        parts, below, i = begin(start), start, x.parents[i]
        while i >= 0:
            k = x.records[i]
            seen, parts = meet(k, tuple(below.phi @ part for part in parts))
            found.append((k.hinge, start.hinge, seen))
            below, i = k, x.parents[i]
    return found


def reciprocal(
    answer: Callable[[Forest], Forest], meet: Callable[[Any, Any], Any], x: Forest
) -> Any:
    """The symmetric joint-space matrix (nv, nv) whose column j follows from the path of hinge j.

    `answer` sweeps over the chain of bodies between the world and hinge j, with the unit vector of
    column j as `x`; its field `y` is the column there. The entry (i, j) of hinges on two branches
    is meet(a, b), a and b the records, in the answers for i and j, of the last body that both paths
    share; zero where they share none. Cost O(N²).
    """
    note("reciprocal", meet)
    _bearable(x)
    out = np.full((x.robot.nv, x.robot.nv), 0.0, object)
    answers: list[tuple[int, Forest]] = []
    for i, k in enumerate(x.records):
        for j in range(k.hinge.v.start, k.hinge.v.stop):
            own = answer(x.chain(i).given(x=np.arange(x.robot.nv) == j))
            for a in own.records:
                out[a.hinge.v, j] = out[j, a.hinge.v] = a.y
            for other, known in answers:
                shared = sum(
                    a.name == b.name for a, b in zip(known.records, own.records, strict=False)
                )
                if 0 < shared < len(known.records):
                    a, b = known.records[shared - 1], own.records[shared - 1]
                    out[other, j] = out[j, other] = meet(a, b)
            answers.append((j, own))
    return out


def _bearable(x: Forest) -> None:
    """Matrices are traced block by block: not those of thousands of bodies in a row."""
    depth: list[int] = []
    for p in x.parents:
        depth.append(1 + (depth[p] if p >= 0 else 0))
    if sum(depth) > BLOCKS:
        raise ValueError(
            f"robot {x.robot.name!r}: a joint-space matrix of {x.robot.nb} bodies has "
            f"{sum(depth)} blocks, too large to be traced (at most {BLOCKS}); use what is O(N): "
            "mass_matrix_product, mass_matrix_solve, coriolis_product"
        )
