"""Sweeps over the bodies of a robot: the only loops over bodies."""

from phipsi.sweeps.forest import (
    Children,
    Entry,
    Forest,
    Record,
    external_forces,
    force_bases,
    shared_paths,
)
from phipsi.sweeps.lowering import forest, looped, may_loop
from phipsi.sweeps.messages import messages
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
from phipsi.sweeps.sweep import (
    along_root_path,
    blocks_to_root,
    fold_to_root,
    inward,
    local,
    outward,
    over_siblings,
    reciprocal,
)

__all__ = [
    "Children",
    "Entry",
    "Forest",
    "Record",
    "along_root_path",
    "blocks",
    "blocks_to_root",
    "by_body",
    "columns",
    "coordinates",
    "diagonal",
    "external_forces",
    "fold_to_root",
    "force_bases",
    "forest",
    "gather",
    "inward",
    "local",
    "looped",
    "matrix",
    "may_loop",
    "messages",
    "outward",
    "over_siblings",
    "product",
    "reciprocal",
    "shared_paths",
    "stack",
    "symmetric",
    "total",
]
