"""Measures every row and writes docs/papers.md.

python -m tests.papers
"""

from __future__ import annotations

import sys
from typing import Any

from tests.papers.page import ITEMS, PAGE, report
from tests.papers.rows import MISPRINTS


def main() -> int:
    """Measure all, write the page, say what is wrong."""
    measured: dict[str, Any] = {}
    wrong: list[str] = []
    for row in (*ITEMS, *MISPRINTS):
        found: Any = row.measured()
        measured[row.id] = found
        wrong += [] if row.holds(found) else [row.id]
        print(row.id, found, flush=True)
    PAGE.write_text(report(measured), encoding="utf-8")
    print(f"wrote {PAGE.name}: {len(measured)} rows, {len(wrong)} wrong {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
