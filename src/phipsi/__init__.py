"""phipsi: multibody and robot dynamics by the spatial operator algebra.

    import phipsi as pp
    robot = pp.robots.space_arm()
    q, v = robot.random_state(0)
    qdd = pp.forward_dynamics(robot, q, v, tau)

Conventions are in `phipsi.conventions`. Everything is imported when first used; the list of public
names and their homes is the stub `__init__.pyi`.
"""

from __future__ import annotations

import importlib
import os

importlib.import_module("phipsi.sources")  # before any other module, whose files it watches
importlib.import_module("phipsi.forks")  # forks wait for the imports that follow

__version__ = "0.1.0"


def _homes() -> dict[str, str]:
    """The module of each public name, read from the stub, whose lines are "from home import name as
    name"."""
    stub = __loader__.get_data(os.path.splitext(__file__)[0] + ".pyi")  # may be in an archive
    words = [line.split() for line in stub.decode().splitlines() if line.startswith("from ")]
    return {name: home for _, home, _, name, *_ in words}


_HOMES = _homes()
_EXTRAS = {"jax", "torch"}  # need what may not be installed, so that no * imports them
# type checkers read the stub instead
__all__ = ["__version__", *sorted(set(_HOMES) - _EXTRAS)]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'phipsi' has no attribute {name!r}")
    home = _HOMES[name]
    if home == __name__:
        return importlib.import_module(f"{home}.{name}")
    module = importlib.import_module(home)
    try:
        value = getattr(module, name, None) or importlib.import_module(f"{home}.{name}")
    except ImportError as error:
        if name not in _EXTRAS:
            raise
        raise AttributeError(str(error)) from error  # so that hasattr is False
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    from importlib.util import find_spec

    return [*__all__, *filter(find_spec, _EXTRAS)]
