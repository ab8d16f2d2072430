"""Kernels as source text: what a file of C or CUDA says about itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

from phipsi.compile import BACKENDS, ArraySpec, Graph
from phipsi.compile.c_file import FUNCTIONS, c_file, function_name, identifiers, is_taken
from phipsi.model import Robot

LANGUAGES = ("c", "cuda")
"""What a program can be written in."""

UNITS = {
    "q": "rad, m; quaternions (w, x, y, z)",
    "v": "rad/s, m/s",
    "a": "rad/s^2, m/s^2",
    "tau": "N m, N",
    "external": "[moment; force] on each body, N m, N",
    "gravity": "m/s^2",
}
"""Units of the arguments that every program shares."""


def written(
    language: str,
    graph: Graph,
    dtype: str,
    name: str | None,
    program: str,
    says: str,
    robot: Robot,
    leaves: Sequence[ArraySpec],
    results: Sequence[ArraySpec],
) -> str:
    """The text of a graph; `name` is the function's in C (default: much that of the program)."""
    if language not in LANGUAGES:
        raise ValueError(f"language {language!r} is not one of {', '.join(LANGUAGES)}")
    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype {dtype!r} is not float64 or float32")
    if language == "cuda":
        return BACKENDS[language].source(graph, dtype)
    if name is None:
        name = function_name(program)
    elif not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise ValueError(f"name {name!r} is no name of a function in C")
    elif is_taken(name) or name in FUNCTIONS:
        raise ValueError(
            f"name {name!r} is no name of a function in C: the language, <math.h> or the file has "
            f"it already; use another, as {'robot_' + name!r}"
        )
    about = [f"{says} Robot: {robot.name}. {graph.operations} operations. Written by phipsi.", ""]
    known = [leaf.name for leaf in leaves]
    names = [f"out {x.name}" if x.name in known else x.name for x in results]
    names = names if len(results) > 1 else ["out"]
    words = identifiers([*known, *names])
    about += [_array("in ", *both) for both in zip(words, leaves, strict=False)]
    about += [_array("out", *both) for both in zip(words[len(known) :], results, strict=True)]
    about += ["", "Hinges, and where they are in q and v:", *_hinges(robot)]
    about += ["", "Arrays may not overlap. Any number of threads may call it at once."]
    return c_file(graph, dtype, name, about, names)


def _array(way: str, word: str, leaf: ArraySpec) -> str:
    name, shape = leaf
    told = "" if word == name or way == "out" else f" = {name}"
    sizes = "" if len(shape) < 2 else f" ({' x '.join(map(str, shape))}, row by row)"
    unit = f" [{UNITS[name]}]" if name in UNITS else ""
    return f"{way} {word}{told}: {prod(shape)}{sizes}{unit}"


def _hinges(robot: Robot) -> Iterator[str]:
    for hinge in robot.hinges:
        q, v = (_range(s.start, s.stop) for s in (hinge.q, hinge.v))
        yield f"  {hinge.name} ({hinge.kind.name}): q[{q}], v[{v}]"


def _range(start: int, stop: int) -> str:
    return str(start) if stop == start + 1 else f"{start}..{stop - 1}"
