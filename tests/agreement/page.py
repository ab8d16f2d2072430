"""Every URDF of example-robot-data, fixed and free, beside Pinocchio: the text of
docs/agreement.md."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Literal

from tests.agreement.pinocchio import STATES, TOLERANCE, Agreement, compare
from tests.model.urdf_files import ROBOTS

PAGE = Path(__file__).parents[2] / "docs" / "agreement.md"
COLUMNS = {
    "forward_dynamics": "FD",
    "inverse_dynamics": "ID",
    "mass_matrix": "𝓜",
    "mass_matrix_inverse": "𝓜⁻¹",
    "bias_force": "bias",
    "jacobian": "J, all links",
    "center_of_mass": "COM",
    "momentum": "momentum",
    "potential_energy": "potential",
}
Job = tuple[Path, Literal["fixed", "free"]]


def jobs() -> list[Job]:
    """Every file with each base."""
    bases: tuple[Literal["fixed", "free"], ...] = ("fixed", "free")
    return [(path, base) for path in sorted(ROBOTS.rglob("*.urdf")) for base in bases]


def compared(job: Job) -> Agreement:
    """One row of the table, measured."""
    return compare(*job, ROBOTS)


def row(a: Agreement) -> str:
    """One line of the table."""
    if a.refused:
        cells = ["–"] * len(COLUMNS)
    else:
        cells = [f"{a.errors[name]:.0e}" if name in a.errors else "–" for name in COLUMNS]
    return f"| `{a.file}` | {a.base} | {a.nv} | {' | '.join(cells)} | {a.notes} |"


def report(results: list[Agreement]) -> str:
    """The whole page."""
    compared = [a for a in results if not a.refused]
    within = sum(max(a.errors.values(), default=0.0) <= TOLERANCE for a in compared)
    head = f"""# Agreement with Pinocchio

Written by `python -m tests.validation` (`make validation`); not edited by hand.

Every URDF of the PyPI package example-robot-data {version("example-robot-data")}, with a fixed and
with a free base, at {STATES} random states: phipsi (float64) against Pinocchio
{version("pin")}, joints matched by name. A number is the largest difference over the largest value
of the quantity. Where one exceeds {TOLERANCE:.0e}, the algorithm run over long double scalars
decides who is nearer to the truth, and the note says so.

Of {len(results)} runs, {len(compared)} could be compared (the notes say why the others could not),
{within} of them within {TOLERANCE:.0e} in every quantity; the notes judge the rest.

| file | base | nv | {" | ".join(COLUMNS.values())} | note |
|---|---|---|{"---|" * len(COLUMNS)}---|
"""
    return head + "\n".join(map(row, results)) + "\n"
