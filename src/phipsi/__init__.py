"""phipsi: multibody and robot dynamics by the spatial operator algebra.

    import phipsi as pp
    robot = pp.robots.space_arm()
    q, v = robot.random_state(0)
    qdd = pp.forward_dynamics(robot, q, v, tau)

Conventions are in `phipsi.conventions`. Everything is imported when first used; the list of public
names and their homes is the stub `__init__.pyi`.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

importlib.import_module("phipsi.forks")  # so that forks wait for the imports below

__version__ = "0.1.0"


def _homes() -> dict[str, str]:
    """The module of each public name, read from the stub."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = (node for node in stub.body if isinstance(node, ast.ImportFrom))
    return {name.name: str(node.module) for node in imports for name in node.names}


_HOMES = _homes()
_EXTRAS = {"jax", "torch"}  # need what may not be installed, so that no * imports them
# type checkers read the stub instead
__all__ = ["__version__", *sorted(set(_HOMES) - _EXTRAS)]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'phipsi' has no attribute {name!r}")
    home = _HOMES[name]
    if home == __name__:
        return importlib.import_module(f"{home}.{name}")
    module = importlib.import_module(home)
    value = getattr(module, name, None) or importlib.import_module(f"{home}.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *_EXTRAS]
