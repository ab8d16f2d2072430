"""Runs the long checks and writes docs/validation.md and the pages of its rows.

python -m tests.validation [--only NAME ...]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tests.validation.checks import CHECKS, Check, Result
from tests.validation.page import PAGE, line, read, report

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; 0 if nothing was wrong. After Ctrl-C the checks that had ended are on
    the page."""
    names = [check.name for check in CHECKS]
    parser = argparse.ArgumentParser(prog="python -m tests.validation", description=main.__doc__)
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    only = parser.parse_args(arguments).only
    chosen = [check for check in CHECKS if only is None or check.name in only]
    failed = False
    for k, check in enumerate(chosen):
        print(f"[{k + 1}/{len(chosen)}] {check.name}: {check.what}", flush=True)
        try:
            result, seconds = _run(check)
        except KeyboardInterrupt:
            kept = ", ".join(c.name for c in chosen[:k]) or "nothing"
            print(f"\ninterrupted during {check.name}; on the page: {kept}", file=sys.stderr)
            return INTERRUPTED
        text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        PAGE.write_text(report(read(text) | {check.name: line(check, result, seconds)}), "utf-8")
        for name in result.wrong:
            print(f"wrong: {name}", flush=True)
        failed = failed or bool(result.wrong)
        print(f"{check.name}: {result.cases} cases, {len(result.wrong)} wrong, {seconds:.0f} s")
    print(f"wrote {PAGE}")
    return 1 if failed else 0


def _run(check: Check) -> tuple[Result, float]:
    """The result of a check, which is wrong if it raises, and its seconds."""
    started = time.monotonic()
    try:
        result = check.run(lambda text: print(f"  {text}", flush=True))
    except Exception as error:
        result = Result(0, (f"{type(error).__name__}: {error}",))
    return result, time.monotonic() - started


if __name__ == "__main__":
    sys.exit(main())
