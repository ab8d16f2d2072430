"""Robots and programs by the names in arguments of the command line."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import phipsi as pp
from phipsi.cli.choices import Base
from phipsi.cli.errors import BadUsage


def find_robot(name: str, base: Base | None = None) -> pp.Robot:
    """The robot of a file, or the packaged robot of that name."""
    packaged = pp.robots.ROBOTS
    if Path(name).exists():
        return pp.load(name, base=base) if base else pp.load(name)
    if name in packaged:
        if base:
            raise BadUsage(f"--base is for files; the packaged robot {name!r} has its own base")
        return packaged[name]()
    close = get_close_matches(name, packaged)
    hint = f"did you mean {close[0]!r}?" if close else "`phipsi robots` lists the packaged ones"
    raise BadUsage(f"there is no file and no packaged robot {name!r}; {hint}")


def programs() -> dict[str, pp.Program[..., Any]]:
    """The public programs by name, controllers as "control.NAME"."""
    found = {name: getattr(pp, name) for name in pp.__all__}
    control = found.get("control")
    own = getattr(control, "__all__", ())
    found |= {f"control.{name}": getattr(control, name) for name in own}
    return {name: x for name, x in found.items() if isinstance(x, pp.Program)}


def find_program(name: str) -> pp.Program[..., Any]:
    """The public program of that name."""
    known = programs()
    name = name.removeprefix("pp.").removeprefix("phipsi.")
    if name in known:
        return known[name]
    if name in pp.__all__:
        raise BadUsage(f"{name} is no program but plain Python around programs; name one of those")
    raise BadUsage(f"there is no program {name!r}; {hint(name, known)}")


def hint(name: str, known: Iterable[str]) -> str:
    """The known name that is closest to a wrong one, else the known names."""
    names = list(known)
    near = get_close_matches(name, names, n=1)
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names[:12])}{more}"
