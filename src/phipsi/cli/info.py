"""`phipsi info` and `phipsi robots`."""

from __future__ import annotations

import json
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import phipsi as pp
from phipsi.cli.app import BadUsage

Base = Literal["fixed", "free"]


def run(name: str, base: Base | None, as_json: bool) -> None:
    """Print a robot: its tree and sizes, or JSON."""
    robot = find(name, base)
    if as_json:
        print(json.dumps(summary(robot), indent=2, ensure_ascii=False))
    else:
        print(robot)


def list_robots() -> None:
    """Print the packaged robots, one line each."""
    width = max(map(len, pp.robots.ROBOTS))
    for name in pp.robots.ROBOTS:
        print(f"{name:{width}}  {_first_line(getattr(pp.robots, name))}")


def find(name: str, base: Base | None = None) -> pp.Robot:
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


def summary(robot: pp.Robot) -> dict[str, Any]:
    """What `phipsi info --json` prints."""
    return {
        "name": robot.name,
        "nb": robot.nb,
        "nq": robot.nq,
        "nv": robot.nv,
        "mass": float(robot.mass),
        "gravity": [float(x) for x in robot.gravity],
        "bodies": [{"name": b.name, "mass": float(b.mass)} for b in robot.bodies],
        "hinges": [
            {
                "name": h.name,
                "kind": h.kind.name,
                "parent": h.parent,
                "child": h.child,
                "q": [h.q.start, h.q.stop],
                "v": [h.v.start, h.v.stop],
            }
            for h in robot.hinges
        ],
        "frames": {f.name: f.body for f in robot.frames.values()},
    }


def _first_line(thing: Any) -> str:
    return (thing.__doc__ or "").strip().partition("\n")[0]
