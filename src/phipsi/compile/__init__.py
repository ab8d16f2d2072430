"""The small compiler: scalar graphs, how they are traced from NumPy code, and how they are run.

Knows nothing of robots.
"""

from phipsi.compile.arrays import Traced, is_traced, lift, where
from phipsi.compile.graph import Graph, Instruction, Loop
from phipsi.compile.kernel import BACKENDS, DTYPES, Kernel, Leaf, Structure, as_numbers
from phipsi.compile.repeat import repeat
from phipsi.compile.trace import Node, TraceError, Tracer, current, loop, tracing

__all__ = [
    "BACKENDS",
    "DTYPES",
    "Graph",
    "Instruction",
    "Kernel",
    "Leaf",
    "Loop",
    "Node",
    "Structure",
    "TraceError",
    "Traced",
    "Tracer",
    "as_numbers",
    "current",
    "is_traced",
    "lift",
    "loop",
    "repeat",
    "tracing",
    "where",
]
