"""Looped lowering: each sweep one loop over the bodies, its step traced once per kind of body.

The size of the code does not depend on the number of bodies. Scalars that differ from body to body
are read from tables of constants, from the joint vectors, or from the memory of this sweep and of
earlier ones; scalars that are the same for all bodies of a kind are folded as in the unrolled form.
A value of an earlier sweep is stored in memory if a later sweep needs it and computing it again
would take more than a few operations.
"""

from phipsi.sweeps.looped.forest import LoopedForest
from phipsi.sweeps.looped.traces import uniform

__all__ = ["LoopedForest", "uniform"]
