"""The text of docs/papers.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import isinf
from pathlib import Path
from typing import Any

from tests.papers import misprints  # noqa: F401  (its rows are in MISPRINTS)
from tests.papers.base_invariant import BI
from tests.papers.diagonalized import DL
from tests.papers.mutations import MUTATIONS
from tests.papers.rows import MISPRINTS, Item, Misprint
from tests.papers.soa import SOA
from tests.papers.under_actuated import UA

PAGE = Path(__file__).parents[2] / "docs" / "papers.md"
PAPERS = (SOA, BI, UA, DL)
ITEMS = tuple(item for paper in PAPERS for item in paper.items)

BEYOND = {
    "[SOA], [DL]: links that bend, by modes": "out of scope for now: bodies are rigid; springs at "
    "joints are `pp.passive_forces`, and `pp.robots.flexible_link_arm` is a link in segments",
    "[SOA], [DL]: gear drives with rotor dynamics": "out of scope for now: a rotor is its inertia "
    "reflected at the joint, `armature`, without the gyroscopic forces of its spin",
    "[SOA] 6: non-holonomic grasps": "out of scope for now, but for a ball that rolls on a face, "
    '`pp.Grasp(…, contact="rolling")`',
    "[UA] (A.9)": "illegible in the copies at hand; nothing else in the paper needs it",
}
"""What has no row, and why."""


def report(measured: Mapping[str, Any]) -> str:
    """The whole page; an error for each item, a pair for each misprint."""
    tables = [_items(paper.tag, paper.title, paper.items, measured) for paper in PAPERS]
    return "\n".join([HEAD, *tables, _beyond(), _misprints(measured), FOOT])


def masked(text: str) -> str:
    """The page without its numbers."""
    return re.sub(r"(?<=\| )(\d[\d.]*(e[+-]?\d+)?|impossible)(?= \|)", "#", text)


HEAD = f"""# The four papers, item by item

Every numbered result of the papers that phipsi is made of: what it says, the function, controller
or operator that is it (`pp` is `phipsi`), what it is compared with, the check that does so, and
the largest relative error (largest difference over largest value, or over one if that is less).
What is measured is what users call, as machine code: functions and controllers, and operators
lowered to their recursions, both sides of every identity. Nothing is compared with itself: the
oracles are dense matrices ([system.py](../src/phipsi/operators/algebra/system.py)), elimination,
Gaussian conditioning, differences along a motion, Pinocchio, and quantities that are conserved.
Robots are random forests of five to nine bodies with every kind of hinge, branches, several roots,
free and fixed bases, armature, massless and welded bodies, and frames on the last body and inside
the tree, unless the item is about fewer.

The table is tried as well: [mutations.py](../tests/papers/mutations.py) breaks {len(MUTATIONS)}
places of phipsi one at a time, such as a sign, a sibling, an adjoint or a gain, and the rows that
it names for each of them fail.

[Misprints](#misprints) of the papers are listed below, each with a check that the printed form
fails and the corrected one holds; rows have the corrected form. There are {len(ITEMS)} items and
{len(MISPRINTS)} misprints.
"""

FOOT = """Written by `make validation`, not by hand; `tests/papers/test_papers.py` measures
every row again on the interpreter and on a share of the robots, and that this page has them all.
"""


def _items(tag: str, title: str, items: Iterable[Item], measured: Mapping[str, Any]) -> str:
    rows = [
        (x.item, x.what, _code(x.functions), x.oracle, _links(x), _number(measured.get(x.id, 0.0)))
        for x in items
    ]
    head = ("item", "what", "in phipsi", "compared with", "test", "max error")
    return f"## {tag} {title}\n\n{_table(head, rows)}"


def _beyond() -> str:
    return f"## Not covered\n\n{_table(('what', 'why'), BEYOND.items())}"


def _misprints(measured: Mapping[str, Any]) -> str:
    def row(x: Misprint) -> tuple[str, ...]:
        wrong, right = measured.get(x.id, (0.0, 0.0))
        off = "impossible" if isinf(wrong) else f"{wrong:.2g}" if wrong < 100 else f"{wrong:.0f}"
        return f"{x.paper} {x.item}", x.printed, x.correct, _links(x), off, _number(right)

    head = ("where", "printed", "correct", "test", "printed is off by", "correct is off by")
    note = (
        "A printed form is impossible where its sizes, or the spaces of its operators, do not fit."
    )
    return f"## Misprints\n\n{note}\n\n{_table(head, map(row, MISPRINTS))}"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head)]
    lines.append(["---"] * len(lines[0]))
    lines += [[_escaped(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _escaped(text: str) -> str:
    """Stars and tildes as they are, but for those in code."""
    parts = text.split("`")
    parts[::2] = (re.sub(r"([*~|])", r"\\\1", part) for part in parts[::2])
    return "`".join(parts)


def _code(functions: Iterable[str]) -> str:
    return ", ".join(f"`pp.{name}`" for name in functions)


def _links(x: Item | Misprint) -> str:
    file, name = x.test
    also = x.also if isinstance(x, Item) else ()
    links = [f"[`{name}`](../tests/papers/{file})"]
    links += [f"[{Path(path).stem}](../tests/{path})" for path in also]
    return ", ".join(links)


def _number(x: float) -> str:
    return f"{x:.0e}" if x else "0"
