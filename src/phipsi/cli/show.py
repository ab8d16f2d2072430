"""`phipsi show`: a program on a robot at each stage, from its operators down to machine code."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import phipsi as pp
from phipsi.cli.choices import Base, Stage
from phipsi.cli.errors import BadUsage
from phipsi.cli.lookup import find_program, find_robot, hint
from phipsi.model import KINDS, ModelError

TRUTHS = {"true": True, "yes": True, "false": False, "no": False}
CLOSURES = {
    "loops": "FRAME:FRAME:JOINT",
    "grasps": "FRAME:FRAME:CONTACT",
    "closures": "FRAME:FRAME:JOINT",
}
"""Options that are loops or grasps, and the syntax of one on the command line."""


def run(
    name: str, robot: str, base: Base | None, stage: Stage, options: list[str], as_json: bool
) -> None:
    """Print a stage of a program, or JSON with it and its operations."""
    program = find_program(name)
    arguments = dict(read_option(program, text) for text in options)
    on = find_robot(robot, base)
    try:
        text = program.show(on, stage, **arguments)
        graph = program.graph(on, **arguments) if as_json else None
    except ModelError:
        raise
    except (TypeError, ValueError, ImportError, ArithmeticError) as error:
        raise BadUsage(_advice(program, str(error))) from None
    if graph is None:
        print(text)
        return
    found = {
        "program": program.name,
        "usage": program.usage,
        "robot": on.name,
        "stage": stage,
        "options": options,
        "operations": graph.operations,
        "count": dict(sorted(graph.count().items())),
        "text": text,
    }
    print(json.dumps(found, indent=2, ensure_ascii=False))


def read_option(program: pp.Program[..., Any], text: str) -> tuple[str, Any]:
    """The name and value of an argument of a program, parsed from the text name=value."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name or not value:
        raise BadUsage(f"--option {text!r} is not of the form name=value")
    known = [x for x in program.parameters if _takes(program, x)]
    if name not in known:
        if name in program.parameters:
            raise BadUsage(f"{name} is an array of numbers, which need not be given")
        raise BadUsage(
            f"{program.name} has no option {name!r}; "
            + (hint(name, known) if known else "it has none")
        )
    words = [word.strip() for word in value.split(",")]
    if name == "external":
        return name, {frame: np.zeros(6) for frame in words}
    if program.is_mask(name):
        return name, words
    if name in CLOSURES:
        return name, tuple(map(_closure, words))
    kind = program.parameters[name].value_type
    if kind is bool:
        if value.lower() not in TRUTHS:
            raise BadUsage(f"{name} is {value!r}, needs true or false")
        return name, TRUTHS[value.lower()]
    if kind is int:
        if not value.isascii() or not value.isdigit() or len(value) > 9:
            raise BadUsage(f"{name} is {value!r}, needs a whole number")
        return name, int(value)
    return name, value if kind is str or len(words) == 1 else tuple(words)


def _takes(program: pp.Program[..., Any], name: str) -> bool:
    """Whether the parameter can be given as --option."""
    return program.parameters[name].kind != "array" or name == "external"


def _closure(text: str) -> pp.Loop | pp.Grasp:
    """The loop of A:B or of A:B:KIND (a kind of joint), or the grasp of A:B:CONTACT."""
    a, _, rest = text.partition(":")
    b, _, kind = rest.partition(":")
    how: Any = kind  # Loop and Grasp check the name
    if not a or not b:
        raise BadUsage(f"{text!r} is not of the form FRAME:FRAME or FRAME:FRAME:KIND")
    if not how:
        return pp.Loop(a, b)
    return pp.Loop(a, b, free=how) if how in KINDS else pp.Grasp(a, b, contact=how)


def _advice(program: pp.Program[..., Any], said: str) -> str:
    """An error message of a program, reworded for the command line."""
    for name in program.options:
        if said == f"{program.name}.compile needs the option {name}=...":
            return f"{program.name} needs --option {name}={CLOSURES.get(name, '...')}"
    return said.partition("\n")[0]
