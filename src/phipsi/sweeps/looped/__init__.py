"""Looped lowering: each sweep one loop over the bodies, its step traced once per kind of body.

The code does not grow with the number of bodies. What differs from body to body is read from tables
(constants), from the joint vectors, or from the memory of this sweep and of those before; what is
the same for all bodies of a kind is folded as in the unrolled form. A value of an earlier sweep is
kept in memory if a later one needs it and it takes more than a few operations to compute again.
"""

from phipsi.sweeps.looped.forest import LoopedForest
from phipsi.sweeps.looped.traces import uniform

__all__ = ["LoopedForest", "uniform"]
