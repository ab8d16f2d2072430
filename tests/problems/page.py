"""The text of docs/problems.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import fill

from phipsi.compile.native import host
from phipsi.simulation.adaptive import ADAPTIVE
from tests.problems.bricard import BRICARD
from tests.problems.four_bars import FOUR_BARS
from tests.problems.governor import GOVERNOR
from tests.problems.pendulum import PENDULUM
from tests.problems.rows import Measured, Problem, Run
from tests.problems.squeezer import SQUEEZER

PAGE = Path(__file__).parents[2] / "docs" / "problems.md"
PROBLEMS = (PENDULUM, FOUR_BARS, SQUEEZER, BRICARD, GOVERNOR)
RUNS = tuple(run for problem in PROBLEMS for run in problem.runs)

HEAD = """# Published problems

Written by `python -m tests.validation --only problems`; not edited by hand. The problems A01 to A05
of the [IFToMM library of computational benchmark problems](http://lim.ii.udc.es/mbsbenchmark), made
with `pp.Builder`, run by `pp.simulate`, and compared with references that are not phipsi: exact
solutions, published values, and equations of motion written by hand for each problem and integrated
by SciPy. An error is given with its limit. Compiling is the processor time that tracing and
compiling take (next to nothing where a run before has used the same program), running that of the
simulation.
"""


def report(measured: Mapping[str, Measured], machine: str = "") -> str:
    """The whole page; machine says where the times were measured."""
    parts = [_section(problem, measured) for problem in PROBLEMS]
    bits = 64 * host("float64").lanes
    vectors = {512: "AVX-512", 256: "AVX2"}.get(bits, f"vectors of {bits} bits")
    return "\n".join([HEAD, *parts, f"Times: {machine}; {vectors}.\n"])


def masked(text: str) -> str:
    """The page without measured numbers."""
    text = re.sub(r"\S+(?= \(≤)", "#", text)
    text = re.sub(r"\d[\d.]* (ms|s) \| \d[\d.]* (ms|s) \|\n", "# | # |\n", text)
    return re.sub(r"\nTimes: .*\n", "\nTimes: #\n", text)


def _section(problem: Problem, measured: Mapping[str, Measured]) -> str:
    head = ("run", "method", "step", *problem.columns, "compiling", "running")
    rows = [_row(run, measured.get(run.id)) for run in problem.runs]
    text = f"{problem.text} Model and reference are in"
    return f"""## {problem.name} {problem.title}

{fill(text, 100, break_on_hyphens=False)}
[`{problem.file}`](../tests/problems/{problem.file}).

{_table(head, rows)}"""


def _row(run: Run, found: Measured | None) -> tuple[str, ...]:
    step = "chosen" if run.how["method"] in ADAPTIVE else f"{1e3 * run.how['dt']:g} ms"
    errors = found.errors if found else dict.fromkeys(run.limits, 0.0)
    cells = (f"{errors[name]:.0e} (≤ {limit:.0e})" for name, limit in run.limits.items())
    times = (found.compiling, found.running) if found else (0.0, 0.0)
    return (run.name, run.how["method"], step, *cells, *map(_seconds, times))


def _seconds(x: float) -> str:
    return f"{1e3 * x:.0f} ms" if x < 1.0 else f"{x:.1f} s"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head)]
    lines.append(["---"] * len(lines[0]))
    lines += [list(row) for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
