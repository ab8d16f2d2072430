"""Golden graphs and operation counts: what every kernel is made of.

A refactoring that changes no kernel leaves them as they are. Where a change is meant, write them
anew with `python -m tests.golden` and look at the difference: fewer operations are welcome.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

import phipsi as pp
from phipsi.programs.source import Language
from tests.model.urdf_files import URDFS

HERE = Path(__file__).parent
COUNTS = HERE / "operations.json"
WHOLE = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "mass_matrix_inverse")
PROGRAMS: dict[str, dict[str, Any]] = {
    **{name: {} for name in WHOLE},
    "mass_matrix_solve": {}, "mass_matrix_logdet": {}, "coriolis_product": {},
    "kinetic_energy": {}, "poses": {}, "velocities": {}, "center_of_mass": {},
    "operational_inertia_inverse": {}, "jacobian_gram": {}, "hybrid_dynamics": {},
    "passive_rates": {}, "total_rates": {}, "diagonal_coriolis": {},
    "diagonal_forward_dynamics": {}, "articulated_inertia_rates": {},
}  # fmt: skip
PACKAGED = ("double_pendulum", "puma560", "space_arm", "quadruped", "flexible_link_arm")
REAL: dict[str, tuple[str, Literal["fixed", "free"]]] = {
    "UR5": ("ur5_robot", "fixed"), "Panda": ("panda", "fixed"), "Solo12*": ("solo12", "free"),
    "G1*": ("g1_29dof_rev_1_0", "free"), "Talos*": ("talos_full_v2", "free"),
}  # fmt: skip


@cache
def robot(name: str) -> pp.Robot:
    """A robot of the tables by name."""
    if name not in REAL:
        return getattr(pp.robots, name)()
    file, base = REAL[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pp.ModelWarning)
        return pp.load(URDFS[file], base=base)


def operations(name: str) -> dict[str, int]:
    """Operations of each program on a robot."""
    graphs = ((p, getattr(pp, p).graph(robot(name), **kw)) for p, kw in PROGRAMS.items())
    return {program: graph.operations for program, graph in graphs}


def texts() -> Iterator[tuple[Path, str]]:
    """The graphs kept whole, numbers to 12 digits: those of a double pendulum, unrolled, and of a
    chain of spherical hinges, looped; one of them as C and as CUDA."""
    for name in WHOLE:
        yield HERE / f"{name}.txt", _rounded(str(getattr(pp, name).graph(robot("double_pendulum"))))
    chain = pp.robots.chain(100, kind="spherical")
    for name in ("forward_dynamics", "inverse_dynamics"):
        text = str(getattr(pp, name).graph(chain))
        body = re.sub(r"^(%\d+ = %\d+\[\d+\]|\w+ = \[.*\])\n?", "", text, flags=re.M)
        yield HERE / f"{name}_looped.txt", _rounded(body)
    languages: list[tuple[Language, str]] = [("c", "c"), ("cuda", "cu")]
    for language, ending in languages:
        source = pp.forward_dynamics.source(robot("double_pendulum"), language=language)
        yield HERE / f"forward_dynamics.{ending}", _rounded(source)


def _rounded(text: str) -> str:
    number = r"-?\d+\.\d+(?:e[-+]?\d+)?|-?\d+e[-+]?\d+"
    return re.sub(number, lambda m: f"{float(m[0]):.12g}", text).rstrip() + "\n"


def counted() -> dict[str, dict[str, int]]:
    """The table as it is kept."""
    return json.loads(COUNTS.read_text())
