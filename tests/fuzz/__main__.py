"""The command: python -m tests.fuzz [--only NAME ...] [--minutes N | --count N | --whole].

Fuzzes the targets in turn. Failing inputs are made smaller and written to a folder; `--whole` uses
all inputs of a target and writes its row of docs/fuzzing.md as soon as it ends.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.fuzz import page
from tests.fuzz.campaign import Tally, Tell, fuzz, kept
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS
from tests.fuzz.worker import Result, Worker

MINUTES = 5.0
"""Of a run for which neither time nor number of inputs is given."""
FOLDER = Path("build/fuzz")


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz what is asked for; 0 if nothing failed."""
    given = _parser().parse_args(arguments)
    chosen = [TARGETS[name] for name in given.only or TARGETS]
    if given.case is not None or given.input:
        return _one(chosen, given)
    if given.whole:
        tallies = campaign(chosen, lambda text: print(text, flush=True), given.jobs, given.folder)
        return 1 if any(tally.failures for tally in tallies) else 0
    minutes = given.minutes or (0.0 if given.count else MINUTES)
    print(f"seed {given.seed}", flush=True)
    failed = False
    for target in chosen:
        cases = range(given.count or sys.maxsize)
        tally = fuzz(target, given.seed, cases, given.jobs, minutes / len(chosen))
        print(told(tally), flush=True)
        kept(tally, given.folder, lambda text: print(text, flush=True))
        failed = failed or bool(tally.failures)
    return 1 if failed else 0


def campaign(
    targets: Iterable[Target], tell: Tell, jobs: int | None = None, folder: Path = FOLDER
) -> list[Tally]:
    """Targets with all of their inputs, and their rows of the page; what fails is written to the
    folder."""
    from tests.validation.page import here

    run = here()
    tallies: list[Tally] = []
    for target in targets:
        started = time.monotonic()
        tallies.append(fuzz(target, 0, range(target.count), jobs or os.cpu_count() or 1))
        tell(told(tallies[-1]))
        kept(tallies[-1], folder, tell)
        minutes = (time.monotonic() - started) / 60
        rows = page.read(page.PAGE.read_text(encoding="utf-8"))
        rows[target.name] = page.row(tallies[-1], f"{run}, seed 0, {minutes:.0f} minutes")
        page.PAGE.write_text(page.report(rows), encoding="utf-8")
    return tallies


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=main.__doc__)
    say = parser.add_argument
    say("--only", nargs="+", choices=list(TARGETS), metavar="NAME", help=", ".join(TARGETS))
    say("--minutes", type=float, help=f"time for all targets together, by default {MINUTES:g}")
    say("--count", type=int, help="inputs of each target")
    say("--whole", action="store_true", help="all inputs of each target, and docs/fuzzing.md")
    say("--seed", type=int, default=0, help="another seed, other inputs")
    say("--jobs", type=int, default=os.cpu_count() or 1, help="processes, by default one per core")
    say("--case", type=int, help="one input by its number, for one target")
    say("--input", type=Path, help="one input from a file, for one target")
    say("--folder", type=Path, default=FOLDER, help=f"for inputs that fail, by default {FOLDER}")
    return parser


def told(tally: Tally) -> str:
    """A line about a target."""
    target, worst = tally.target, tally.worst
    inputs = tally.inputs * target.batch
    return (
        f"{target.name}: {inputs} inputs, {tally.accepted * target.batch} accepted, "
        f"{tally.refusals} different refusals, {inputs / max(tally.seconds, 1e-9):.0f}/s, "
        f"slowest {worst.seconds if worst else 0.0:.2f} s (case {worst.case if worst else 0}), "
        f"peak {tally.peak >> 20} MB, {len(tally.failures)} kinds of failure"
    )


def _one(chosen: list[Target], given: argparse.Namespace) -> int:
    """Use one input, and print what came of it."""
    if len(chosen) != 1:
        print("--case and --input need --only with one target", file=sys.stderr)
        return 2
    (target,) = chosen
    content = given.input.read_bytes() if given.input else target.content(given.seed, given.case)
    with Worker() as worker:
        result: Result = worker.use(target, content)
    found = result.outcome
    sys.stdout.buffer.write(content[:2000] + b"\n")
    print(f"{found.kind}\n{result.seconds:.2f} s, {result.peak >> 20} MB")
    if found.failure:
        print(f"FAILED: {found.failure}\n{found.details}")
    return 1 if found.failure else 0


if __name__ == "__main__":
    sys.exit(main())
