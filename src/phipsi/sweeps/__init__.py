"""Sweeps over the bodies of a robot, and the programs made of them."""

from phipsi.sweeps.forest import Children, Forest, Record, external_forces, force_bases, forest
from phipsi.sweeps.messages import messages
from phipsi.sweeps.program import Program, program
from phipsi.sweeps.results import (
    blocks,
    by_body,
    columns,
    coordinates,
    diagonal,
    gather,
    stack,
    symmetric,
    total,
)
from phipsi.sweeps.sweep import climb, inward, local, others, outward, path, reciprocal

__all__ = [
    "Children",
    "Forest",
    "Program",
    "Record",
    "blocks",
    "by_body",
    "climb",
    "columns",
    "coordinates",
    "diagonal",
    "external_forces",
    "force_bases",
    "forest",
    "gather",
    "inward",
    "local",
    "messages",
    "others",
    "outward",
    "path",
    "program",
    "reciprocal",
    "stack",
    "symmetric",
    "total",
]
