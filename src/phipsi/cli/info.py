"""`phipsi info`, `phipsi robots` and `phipsi cache`."""

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


def list_robots(as_json: bool) -> None:
    """Print the packaged robots, one line each, or JSON."""
    if as_json:
        listed = [
            {"name": name, "summary": _first_line(getattr(pp.robots, name))} | _sizes(make())
            for name, make in pp.robots.ROBOTS.items()
        ]
        print(json.dumps(listed, indent=2, ensure_ascii=False))
        return
    width = max(map(len, pp.robots.ROBOTS))
    for name in pp.robots.ROBOTS:
        print(f"{name:{width}}  {_first_line(getattr(pp.robots, name))}")


def show_cache(clear: bool, as_json: bool) -> None:
    """Print the state of the cache of compiled code, emptied first on request."""
    removed = pp.clear_cache() if clear else 0
    found = pp.cache_info()
    if as_json:
        directory = None if found.directory is None else str(found.directory)
        print(json.dumps(found._asdict() | {"directory": directory, "removed": removed}, indent=2))
        return
    if clear:
        print(f"removed {removed} entries")
    print(found)


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
        **_sizes(robot),
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


def _sizes(robot: pp.Robot) -> dict[str, Any]:
    sizes = {"nb": robot.nb, "nq": robot.nq, "nv": robot.nv}
    return sizes | {"mass": float(robot.mass)}


def _first_line(thing: Any) -> str:
    return (thing.__doc__ or "").strip().partition("\n")[0]
