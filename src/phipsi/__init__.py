"""phipsi: multibody and robot dynamics by the spatial operator algebra.

    import phipsi as pp
    robot = pp.robots.space_arm()
    q, v = robot.random_state(0)
    qdd = pp.forward_dynamics(robot, q, v, tau)

Conventions are in `phipsi.conventions`. Everything is imported when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_MODULES = {
    "robots": "phipsi.model.robots",
    "linalg": "phipsi.compile.linalg",
    "interop": "phipsi.interop",
    "conventions": "phipsi.conventions",
}
_NAMES = {
    "phipsi.model": (
        "Body", "Builder", "Frame", "Hinge", "Mimic", "ModelError", "ModelWarning", "Robot",
        "combine",
    ),
    "phipsi.model.load": ("load", "save"),
    "phipsi.spatial": ("Transform",),
    "phipsi.compile": ("Kernel", "TraceError", "repeat", "where"),
    "phipsi.sweeps": ("Program", "program"),
    "phipsi.algorithms": (
        "Articulated", "accelerations", "articulated_inertias", "bias_force", "center_of_mass",
        "coriolis_matrix", "coriolis_product", "forward_dynamics", "frame_pose", "frame_velocity",
        "gravity_force", "inverse_dynamics", "jacobian", "jacobian_derivative", "kinetic_energy",
        "mass_matrix", "mass_matrix_inverse", "mass_matrix_logdet", "mass_matrix_product",
        "mass_matrix_solve", "mass_matrix_sqrt_product", "momentum", "momentum_matrix",
        "passive_forces", "poses", "potential_energy", "regressor", "velocities",
    ),
}  # fmt: skip
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted([*_MODULES, *_HOME, "__version__"])  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = importlib.import_module(_MODULES[name])
    elif name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'phipsi' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
