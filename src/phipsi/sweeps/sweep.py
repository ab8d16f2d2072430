"""Sweeps: the only loops over bodies in the project.

A step sees a body and its neighbours' records, never an index and never the question whether there
is a parent: the world has a record too. It returns the new fields of the body's record.

    outward(step, x, **world)              step(k, parent)    base → tip, scattered to children
    inward(step, x)                        step(k, children)  tip → base, gathered from children
    local(step, x)                         step(k)            each body by itself
    over_siblings(message, x, **zero)      message(c)         summed over the siblings c of a body
    messages(x, up, sibling_message, down) all of these       both messages of every hinge
    along_root_path(step, x, body, value)  step(k, value)     from one body to the root, φ each time
    blocks_to_root(begin, x)               begin(k)           H φ X for X block diagonal
    fold_to_root(begin, step, x)           step(k, parts)     from every body to its root
    reciprocal(solve, common, x)           solve(chain)       a symmetric matrix by unit vectors
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from phipsi.model import Hinge
from phipsi.spatial import ForceBasis
from phipsi.sweeps.forest import (
    Blocks,
    Entry,
    Fields,
    Forest,
    InwardStep,
    LocalStep,
    OutwardStep,
    Record,
)
from phipsi.sweeps.log import note
from phipsi.typing import JointMatrix, JointVector, Real

T = TypeVar("T")
Block = TypeVar("Block")

BLOCKS = 100_000
"""Most blocks of a matrix that is traced."""


def outward(step: OutwardStep, x: Forest, **world: object) -> Forest:
    """Base to tip: step(k, parent) sees the parent's new fields; a root sees the world's."""
    note("outward", step)
    return x.outward(step, world)


def inward(step: InwardStep, x: Forest) -> Forest:
    """Tip to base: step(k, children) sees the children's new fields."""
    note("inward", step)
    return x.inward(step)


def local(step: LocalStep, x: Forest) -> Forest:
    """Each body by itself: step(k)."""
    note("local", step)
    return x.local(step)


def over_siblings(message: LocalStep, x: Forest, **zero: object) -> Forest:
    """Each body from its siblings: the fields that message(c) gives, summed over the other children
    c of the same parent (or of the world); `zero` has the sum over none for each of the fields.

    Sums over those before and those after, never a total less a body's own: nothing cancels. O(N).
    """
    note("siblings", message)
    return x.over_siblings(message, zero)


def along_root_path(step: Callable[[Record, T], Fields], x: Forest, body: str, value: T) -> Forest:
    """From a body to the root: step(k, φ(k, body) value) for every body k on the way.

    The value is whatever φ can multiply: forces, a basis of forces, a transform. Bodies off the
    path get no new fields; from the world there is no path.
    """
    note("to root", step)
    return x.along_root_path(step, body, value)


def blocks_to_root(begin: Callable[[Record], ForceBasis], x: Forest) -> Blocks:
    """The blocks of H φ X for X block diagonal, X(k) = begin(k).

    Each X(k) is carried from body k to the root by φ and read by H at every hinge: O(N · depth).
    """
    note("to root", begin)
    _check_size(x)
    return x.blocks_to_root(begin)


def fold_to_root(
    begin: Callable[[Record], tuple[Any, ...]],
    step: Callable[[Record, tuple[Any, ...]], tuple[Block, tuple[Any, ...]]],
    x: Forest,
) -> list[tuple[Hinge, Hinge, Block]]:
    """The blocks that each body i has with the bodies k between it and the root.

    The parts begin(i), whatever φ can multiply, are carried to the root: at each body k after i,
    step(k, φ parts) returns the block of (k, i) and the parts that are carried on. Blocks are
    (hinge of k, hinge of i, block), none of them on the diagonal. O(N · depth).
    """
    note("to root", step)
    _check_size(x)
    blocks: list[tuple[Hinge, Hinge, Block]] = []
    for i, start in enumerate(x.records):
        parts, below, i = begin(start), start, x.parents[i]
        while i >= 0:
            k = x.records[i]
            block, parts = step(k, tuple(below.phi @ part for part in parts))
            blocks.append((k.hinge, start.hinge, block))
            below, i = k, x.parents[i]
    return blocks


def reciprocal(
    solve: Callable[[Forest], Forest],
    common: Callable[[Record, Record], Real],
    x: Forest,
    p: JointVector | None = None,
    entry: Entry = lambda row, column, S: S,
) -> JointMatrix:
    """The joint-space matrix (nv, nv) of entry(p_i, p_j, S_ij), S symmetric; default S itself.

    Column j of S follows from the path of hinge j: `solve` sweeps over the chain of bodies between
    the world and hinge j, with the unit vector of column j as `x`; its field `y` is the column
    there. The entry (i, j) of hinges on two branches is common(a, b), a and b the records, in the
    solutions for i and j, of the last body that both paths share; zero where they share none. For
    zeros `entry` gives zeros. Cost O(N²).
    """
    note("reciprocal", common)
    _check_size(x)
    return x.reciprocal(solve, common, np.zeros(x.robot.nv) if p is None else p, entry)


def _check_size(x: Forest) -> None:
    """Refuse matrices of too many blocks, each of which has a place in the graph."""
    depth: list[int] = []
    for p in x.parents:
        depth.append(1 + (depth[p] if p >= 0 else 0))
    if sum(depth) > BLOCKS:
        raise ValueError(
            f"robot {x.robot.name!r}: a joint-space matrix of {x.robot.nb} bodies has "
            f"{sum(depth)} blocks, too large to be traced (at most {BLOCKS}); use what is O(N): "
            "mass_matrix_product, mass_matrix_solve, coriolis_product"
        )
