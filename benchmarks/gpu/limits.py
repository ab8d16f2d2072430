"""What the device can do at most: instructions issued, bytes copied; and what a call costs."""

from __future__ import annotations

import struct
import time
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

import numpy as np

from phipsi.compile.cuda_code import cupy_module

_FMA = """
extern "C" __global__ void __launch_bounds__(1024) multiply(T *x, int rounds) {
  T a[8];
  const T k = x[0], m = x[1];
  for (int j = 0; j < 8; ++j) a[j] = x[threadIdx.x] + j;
#pragma unroll 1
  for (int i = 0; i < rounds; ++i) {
#pragma unroll
    for (int j = 0; j < 128; ++j) a[j % 8] = fma(a[j % 8], k, m);
  }
  T sum = 0;
  for (int j = 0; j < 8; ++j) sum += a[j];
  if (sum == (T)1e30) x[0] = sum;
}
"""


def found(parser: ArgumentParser) -> Any:
    """CuPy, where there is a device for it; else one sentence, and the end."""
    try:
        return cupy_module()
    except (ImportError, RuntimeError) as error:
        parser.error(str(error))


def median(cp: Any, call: Callable[[], object], rounds: int = 20, calls: int = 10) -> float:
    """Seconds of a call on the device: the median of rounds of some calls, one right after the
    other, timed by the device's own events."""
    for _ in range(3):
        call()
    times = []
    for _ in range(rounds):
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        times.append(cp.cuda.get_elapsed_time(begin, end) / calls)
    return 1e-3 * float(np.median(times))


def issue_rate(cp: Any, dtype: str) -> float:
    """Multiply-adds a second, each thread's counted."""
    T = {"float32": "float", "float64": "double"}[dtype]
    kernel = cp.RawKernel(_FMA.replace("T ", f"{T} ").replace("(T)", f"({T})"), "multiply")
    blocks, rounds = 16 * cp.cuda.Device().attributes["MultiProcessorCount"], 500
    x = cp.zeros(1024, dtype)
    seconds = median(cp, lambda: kernel((blocks,), (1024,), (x, np.int32(rounds))))
    return blocks * 1024 * rounds * 128 / seconds


def bandwidth(cp: Any) -> float:
    """Bytes a second of a copy, read and written."""
    a = cp.random.default_rng(0).random(1 << 28, dtype=cp.float64)
    b = cp.empty_like(a)
    return 2 * a.nbytes / median(cp, lambda: cp.copyto(b, a))


def overhead(cp: Any, call: Callable[[], object]) -> float:
    """Seconds that a call takes from Python, the device not waited for: the best of some means."""
    issue_rate(cp, "float32")  # a device that was idle answers slowly
    best = np.inf
    for _ in range(20):
        cp.cuda.Device().synchronize()
        start = time.perf_counter()
        for _ in range(200):
            call()
        best = min(best, (time.perf_counter() - start) / 200)
    return float(best)


def instructions(cubin: bytes, name: str) -> int:
    """Machine instructions of a kernel: the size of its section, 16 bytes each."""
    (sections,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQ", cubin, sections + size * i) for i in range(count)]
    text = headers[names][4]
    for header in headers:
        start = text + header[0]
        if cubin[start : cubin.index(b"\0", start)].decode() == f".text.{name}":
            return header[5] // 16
    raise ValueError(f"the code has no kernel {name}")
