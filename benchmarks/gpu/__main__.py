"""`python -m benchmarks.gpu`: measure on the GPU that is there, print, and write RESULTS.md."""

from __future__ import annotations

import argparse
import datetime
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import phipsi as pp
from benchmarks.gpu.cases import AIMS, OVERHEAD, PEERS, RATIO, SHARE, cases, saved
from benchmarks.gpu.limits import bandwidth, found, issue_rate, overhead
from benchmarks.gpu.rates import SAMPLE, Rate, rate
from phipsi.compile import Dtype

PATH = Path(__file__).with_name("RESULTS.md")

INTRODUCTION = """\
# Forward dynamics on a GPU

Written by `python -m benchmarks.gpu`; what stands behind the numbers is in
[docs/gpu.md](../../docs/gpu.md).

{device}, CUDA {cuda}, CuPy {cupy}, phipsi {phipsi}, {day}. Measured in the same run, at most:
{single:.1f}·10¹² multiply-adds/s in float32, {double:.1f}·10¹² in float64; copies of {copied:.2f}
TB/s.

{batch} robots with random states in ordinary (batch, n) arrays on the device, median of 20 times 10
calls of `pp.forward_dynamics.compile(robot, backend="cuda")`. Error: of a row, against the NumPy
interpreter in float64 on the same states, over the row's largest element; the median of {sample}
rows and the worst. Instructions: of the code, rare branches included. Issue: instructions times
rate over the float32 multiply-adds; memory: bytes of a row times rate over the copies."""

COLUMNS = ("robot", "dtype", "10⁹/s", "error (worst)", "registers", "bytes spilt", "instructions",
           "issue", "memory", "compiled in")  # fmt: skip


def main() -> None:
    """Time forward dynamics of many robots on the GPU."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=main.__doc__)
    parser.add_argument("--robots", type=Path, help="a folder of robots as JSON files")
    parser.add_argument("--save", type=Path, help="write such a folder, and no more")
    parser.add_argument("--batch", type=int, default=1 << 21, help="robots at once")
    parser.add_argument("--output", type=Path, default=PATH, help="where the results are written")
    options = parser.parse_args()
    if options.save:
        saved(options.save)
        return
    cp = found(parser)

    with tempfile.TemporaryDirectory() as cache:
        os.environ["PHIPSI_CACHE_DIR"] = cache  # every compile time is that of a first time
        lines = []
        for line in report(cp, options.robots, options.batch):
            print(line, flush=True)
            lines.append(line)
    options.output.write_text("\n".join(lines) + "\n")


def report(cp: Any, folder: Path | None, batch: int) -> Iterator[str]:
    """The page, line by line."""
    dtypes: tuple[Dtype, ...] = ("float32", "float64")
    most = {dtype: issue_rate(cp, dtype) for dtype in dtypes}
    copied = bandwidth(cp)
    version = cp.cuda.runtime.runtimeGetVersion()
    yield INTRODUCTION.format(
        device=cp.cuda.runtime.getDeviceProperties(cp.cuda.Device().id)["name"].decode(),
        cuda=f"{version // 1000}.{version % 1000 // 10}", cupy=cp.__version__,
        phipsi=pp.__version__, day=f"{datetime.date.today():%Y-%m-%d}",
        single=most["float32"] / 1e12, double=most["float64"] / 1e12, copied=copied / 1e12,
        batch=batch, sample=SAMPLE,
    )  # fmt: skip
    yield ""
    yield _row(*COLUMNS)
    yield _row(*["---"] * len(COLUMNS))
    rates: dict[tuple[str, str], Rate] = {}
    for case in cases(folder):
        for dtype in dtypes:
            r = rates[case.name, dtype] = rate(cp, case, dtype, batch)
            yield _row(
                r.name, dtype, f"{r.rate / 1e9:.3g}", f"{r.typical:.0e} ({r.error:.0e})",
                r.registers, r.local, r.instructions,
                f"{100 * r.rate * r.instructions / most['float32']:.0f} %",
                f"{100 * r.rate * r.bytes / copied:.0f} %", f"{r.seconds:.1f} s",
            )  # fmt: skip
    yield ""
    yield _row("aim", "found", "")
    yield _row("---", "---", "---")
    yield from _aims(cp, rates, next(iter(cases(folder))).robot)


def _aims(cp: Any, rates: dict[tuple[str, str], Rate], arm: pp.Robot) -> Iterator[str]:
    """What was to be reached, and whether it was."""
    for name, aim in AIMS.items():
        single, double = (rates[name, dtype].rate / 1e9 for dtype in ("float32", "float64"))
        yield _aim(f"{name}, float32: {aim:g}·10⁹/s", f"{single:.3g}", single >= aim)
        least, text = SHARE * aim, f"{double:.3g}, {100 * double / single:.0f} % of float32"
        yield _aim(f"{name}, float64: {least:g}·10⁹/s, {100 * SHARE:.0f} % of that", text,
                   double >= least)  # fmt: skip
    for name, theirs in PEERS.items():
        times = rates["UR5", "float32"].rate / 1e9 / theirs
        what = f"UR5, float32: {RATIO:g} × {name} ({theirs}·10⁹/s)"
        yield _aim(what, f"{times:.0f} ×", times >= RATIO)
    kernel = pp.forward_dynamics.compile(arm, backend="cuda", dtype="float32")
    q, v = arm.random_state(0, (64,))
    few = [cp.asarray(x, "float32") for x in (q, v, 0.5 * v)]
    calls = {"kernel": lambda: kernel(*few), "program": lambda: pp.forward_dynamics(arm, *few)}
    for name, call in calls.items():
        t = 1e6 * overhead(cp, call)
        yield _aim(f"a {name} called from Python: {OVERHEAD:g} µs", f"{t:.1f} µs", t <= OVERHEAD)
    wrong = [f"{r.name} {r.dtype}" for r in rates.values() if r.wrong]
    yield _aim("right to rounding in the same run", ", ".join(wrong) or "all", not wrong)


def _aim(aim: str, found: str, met: bool) -> str:
    return _row(aim, found, "met" if met else "not met")


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
