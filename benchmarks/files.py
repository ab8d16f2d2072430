"""The five robots: their URDFs in example-robot-data, and as robots of phipsi."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Literal, NamedTuple

import phipsi as pp
from tests.model.urdf_files import URDFS


class File(NamedTuple):
    """A URDF and how the robot stands."""

    path: Path
    base: Literal["fixed", "free"]


FILES = {
    "UR5": File(URDFS["ur5_robot"], "fixed"),
    "Panda": File(URDFS["panda"], "fixed"),
    "Solo12*": File(URDFS["solo12"], "free"),
    "G1*": File(URDFS["g1_29dof_rev_1_0"], "free"),
    "Talos*": File(URDFS["talos_full_v2"], "free"),
}
"""By name, in order of size; a star says that the base is free."""


def robot(name: str) -> pp.Robot:
    """One of the five, loaded anew."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pp.ModelWarning)
        return pp.load(FILES[name].path, base=FILES[name].base)
