"""Sweeps over the bodies of a robot, and the programs made of them."""

from phipsi.sweeps.forest import (
    Children,
    Forest,
    Record,
    external_forces,
    force_bases,
    forest,
    looped,
    may_loop,
    shared_paths,
)
from phipsi.sweeps.messages import messages
from phipsi.sweeps.program import Program, program
from phipsi.sweeps.results import (
    blocks,
    by_body,
    columns,
    coordinates,
    diagonal,
    gather,
    matrix,
    product,
    stack,
    symmetric,
    total,
)
from phipsi.sweeps.sweep import ascend, climb, inward, local, others, outward, path, reciprocal

__all__ = [
    "Children",
    "Forest",
    "Program",
    "Record",
    "ascend",
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
    "looped",
    "matrix",
    "may_loop",
    "messages",
    "others",
    "outward",
    "path",
    "product",
    "program",
    "reciprocal",
    "shared_paths",
    "stack",
    "symmetric",
    "total",
]
