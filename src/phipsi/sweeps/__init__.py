"""Sweeps over the bodies of a robot, and the programs made of them."""

from phipsi.sweeps.forest import (
    Forest,
    Record,
    climb,
    forest,
    gather,
    inward,
    local,
    outward,
    stack,
    symmetric,
    total,
    walk,
)
from phipsi.sweeps.program import Program, program

__all__ = [
    "Forest",
    "Program",
    "Record",
    "climb",
    "forest",
    "gather",
    "inward",
    "local",
    "outward",
    "program",
    "stack",
    "symmetric",
    "total",
    "walk",
]
