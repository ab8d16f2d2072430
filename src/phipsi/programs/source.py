"""Programs as source text in C or CUDA, with a comment that documents the arrays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod
from typing import Literal, get_args

from phipsi.compile import BACKENDS, ArraySpec, Dtype, Graph
from phipsi.compile.c_file import FUNCTIONS, c_file, function_name, identifiers, is_taken
from phipsi.model import Robot

Language = Literal["c", "cuda"]
"""The languages of `Program.source`."""
LANGUAGES: tuple[Language, ...] = get_args(Language)

UNITS = {
    "q": "rad, m; quaternions (w, x, y, z)",
    "v": "rad/s, m/s",
    "a": "rad/s^2, m/s^2",
    "tau": "N m, N",
    "external": "[moment; force] on each body, N m, N",
    "gravity": "m/s^2",
}
"""Units of the arguments that every program shares."""


def source_text(
    language: Language,
    graph: Graph,
    dtype: Dtype,
    name: str | None,
    program: str,
    summary: str,
    robot: Robot,
    inputs: Sequence[ArraySpec],
    results: Sequence[ArraySpec],
) -> str:
    """The source text of a graph. `name` is the name of the C function (default: the name of the
    program, made valid in C), `summary` a sentence for the comment."""
    if language not in LANGUAGES:
        raise ValueError(f"language {language!r} is not one of {', '.join(LANGUAGES)}")
    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype {dtype!r} is not float64 or float32")
    if language == "cuda":
        return BACKENDS[language].source(graph, dtype)
    if name is None:
        name = function_name(program)
    elif not (isinstance(name, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name)):
        raise ValueError(f"name {name!r} is no name of a function in C")
    elif is_taken(name) or name in FUNCTIONS:
        raise ValueError(
            f"name {name!r} is no name of a function in C: the language, <math.h> or the file has "
            f"it already; use another, as {'robot_' + name!r}"
        )
    about = [
        f"{summary} Robot: {robot.name}. {graph.operations} operations. Written by phipsi.",
        "",
    ]
    known = [spec.name for spec in inputs]
    names = [f"out {x.name}" if x.name in known else x.name for x in results]
    names = names if len(results) > 1 else ["out"]
    words = identifiers([*known, *names])
    about += [_array("in ", *both) for both in zip(words, inputs, strict=False)]
    about += [_array("out", *both) for both in zip(words[len(known) :], results, strict=True)]
    about += ["", "Hinges, and where they are in q and v:", *_hinges(robot)]
    about += ["", "Arrays may not overlap. Any number of threads may call it at once."]
    return c_file(graph, dtype, name, about, names)


def _array(way: str, word: str, spec: ArraySpec) -> str:
    name, shape = spec
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
