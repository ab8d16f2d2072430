"""Sweeps over the bodies of a robot, and the programs made of them."""

from phipsi.sweeps.forest import Forest, Record, forest
from phipsi.sweeps.program import Program, program
from phipsi.sweeps.results import by_body, columns, diagonal, gather, stack, symmetric, total
from phipsi.sweeps.sweep import climb, inward, local, outward, path

__all__ = [
    "Forest",
    "Program",
    "Record",
    "by_body",
    "climb",
    "columns",
    "diagonal",
    "forest",
    "gather",
    "inward",
    "local",
    "outward",
    "path",
    "program",
    "stack",
    "symmetric",
    "total",
]
