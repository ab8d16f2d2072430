"""The small compiler: scalar graphs, how they are traced from NumPy code, and how they are run.

Knows nothing of robots.
"""

from phipsi.compile.arrays import Traced, is_traced, lift, where, zeros
from phipsi.compile.backends import (
    BACKENDS,
    DTYPES,
    BackendName,
    Dtype,
    backend_named,
    default_backend,
)
from phipsi.compile.device import as_device_array, as_host_array, on_device
from phipsi.compile.graph import Case, Graph, Instruction, LoopNode, MemoryPlace, Recalled
from phipsi.compile.kernel import Kernel
from phipsi.compile.loops import LoopBuilder, array_of
from phipsi.compile.node import Builder, Node, TraceError, current, tracing
from phipsi.compile.numbers import as_number, as_numbers, as_operand
from phipsi.compile.repeat import Gathered, repeat
from phipsi.compile.signature import ArraySpec, Structure, flatten
from phipsi.compile.trace import Tracer

__all__ = [
    "BACKENDS",
    "DTYPES",
    "ArraySpec",
    "BackendName",
    "Builder",
    "Case",
    "Dtype",
    "Gathered",
    "Graph",
    "Instruction",
    "Kernel",
    "LoopBuilder",
    "LoopNode",
    "MemoryPlace",
    "Node",
    "Recalled",
    "Structure",
    "TraceError",
    "Traced",
    "Tracer",
    "array_of",
    "as_device_array",
    "as_host_array",
    "as_number",
    "as_numbers",
    "as_operand",
    "backend_named",
    "current",
    "default_backend",
    "flatten",
    "is_traced",
    "lift",
    "on_device",
    "repeat",
    "tracing",
    "where",
    "zeros",
]
