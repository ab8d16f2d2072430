"""Forward dynamics timed through the public functions, and checked in the same run."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import phipsi as pp
from benchmarks.gpu.cases import Case, states
from benchmarks.gpu.limits import instructions, median
from phipsi.compile import Dtype
from phipsi.compile.cuda_code import OPTIONS, compiled
from phipsi.compile.to_cuda import NAME

SAMPLE = 2000
"""Rows compared with the interpreter, from all over the batch."""


@dataclass(frozen=True)
class Rate:
    """One robot in one precision."""

    name: str
    dtype: Dtype
    rate: float
    """Evaluations a second."""
    error: float
    """The largest error of a row over its largest element, the worst of the sample."""
    typical: float
    """The same, the median of the sample."""
    registers: int
    local: int
    """Bytes of a thread's own memory: what does not fit into registers."""
    instructions: int
    bytes: int
    """Bytes of a row, read and written."""
    seconds: float
    """Time to trace, emit and compile."""

    @property
    def wrong(self) -> bool:
        """Is it more than rounding?"""
        return not self.typical < {"float32": 1e-4, "float64": 1e-12}[self.dtype]


def rate(cp: Any, case: Case, dtype: Dtype, batch: int) -> Rate:
    """Measure one."""
    robot = case.robot
    start = time.perf_counter()
    kernel = pp.forward_dynamics.compile(robot, backend="cuda", dtype=dtype)
    seconds = time.perf_counter() - start
    values = states(cp, robot, batch, dtype)
    out = cp.full((batch, robot.nv), cp.nan, dtype)
    taken = median(cp, lambda: kernel(*values, out=out))
    rows = np.linspace(0, batch - 1, SAMPLE).astype(int)
    exact = pp.forward_dynamics.compile(robot, backend="numpy")(
        *(cp.asnumpy(x[rows]).astype(float) for x in values)
    )
    errors = np.abs(cp.asnumpy(out[rows]) - exact).max(1) / np.abs(exact).max(1)
    if not bool(cp.isfinite(out).all()):
        raise AssertionError(f"{case.name}: not every row was written")
    capability = cp.cuda.Device().compute_capability
    text = pp.forward_dynamics.source(robot, language="cuda", dtype=dtype)
    code = compiled(text, (f"-arch=sm_{capability}", *OPTIONS[dtype]))
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        function = cp.RawModule(path=file.name).get_function(NAME)
    return Rate(
        case.name, dtype, batch / taken, float(errors.max()), float(np.median(errors)),
        function.num_regs, function.local_size_bytes, instructions(code, NAME),
        sum(x.shape[1] * x.itemsize for x in (*values, out)), seconds,
    )  # fmt: skip
