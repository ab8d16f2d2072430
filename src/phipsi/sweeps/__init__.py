"""Sweeps over the bodies of a robot, and the programs made of them."""

from phipsi.sweeps.forest import Children, Forest, Record, external_forces, forest
from phipsi.sweeps.program import Program, program
from phipsi.sweeps.results import by_body, columns, diagonal, gather, stack, symmetric, total
from phipsi.sweeps.sweep import climb, inward, local, others, outward, path, reciprocal

__all__ = [
    "Children",
    "Forest",
    "Program",
    "Record",
    "by_body",
    "climb",
    "columns",
    "diagonal",
    "external_forces",
    "forest",
    "gather",
    "inward",
    "local",
    "others",
    "outward",
    "path",
    "program",
    "reciprocal",
    "stack",
    "symmetric",
    "total",
]
