"""`phipsi info`, `phipsi robots` and `phipsi cache`."""

from __future__ import annotations

import json
from typing import Any

import phipsi as pp
from phipsi.cli.choices import Base
from phipsi.cli.lookup import find_robot


def run(name: str, base: Base | None, as_json: bool) -> None:
    """Print a robot: its tree and sizes, or JSON."""
    robot = find_robot(name, base)
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


def summary(robot: pp.Robot) -> dict[str, Any]:
    """The data that `phipsi info --json` prints."""
    return {
        "name": robot.name,
        **_sizes(robot),
        "gravity": [float(x) for x in robot.gravity],
        "bodies": [
            {
                "name": b.name,
                "mass": float(b.mass),
                "welded": [{"name": w.name, "mass": float(w.inertia.mass)} for w in b.welded],
            }
            for b in robot.bodies
        ],
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


def _sizes(robot: pp.Robot) -> dict[str, float]:
    """How many bodies, coordinates and freedoms there are, and the mass [kg]."""
    return {"nb": robot.nb, "nq": robot.nq, "nv": robot.nv, "mass": float(robot.mass)}


def _first_line(thing: object) -> str:
    """The first line of a docstring."""
    return (thing.__doc__ or "").strip().partition("\n")[0]
