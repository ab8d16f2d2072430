"""`phipsi explain`: the explanation of an operator expression."""

from __future__ import annotations

import re

from phipsi.cli.choices import Format, Language
from phipsi.cli.errors import BadUsage
from phipsi.cli.lookup import find_robot
from phipsi.model import ModelError
from phipsi.operators.writing.explain import Explanation, explain
from phipsi.operators.writing.parser import parse

SECTIONS = r"(?m)^(Derivation|Recursion|Symbols|Cost)$"
SOURCES = r"(?m)\[(?:SOA|BI|BI-c|UA|DL)\][^\n]*$"


def run(
    expression: str, robot: str | None, language: Language, form: Format, active: list[str] | None
) -> None:
    """Print the explanation."""
    if active and not robot:
        raise BadUsage("--active names hinges of a robot: name the robot too")
    on = find_robot(robot) if robot else None
    try:
        found = explain(parse(expression), on, language=language, active=active or None)
    except ModelError:
        raise
    except RecursionError:
        raise BadUsage("the expression is too long to be explained: take it apart") from None
    except (TypeError, ValueError, ArithmeticError) as error:
        said = str(error).partition("\n")[0]
        raise BadUsage(re.sub("pass active=.*", "name each with --active HINGE", said)) from None
    if form == "text":
        _show(found)
    else:
        print(getattr(found, form), end="")


def _show(found: Explanation) -> None:
    """Print the text: headings bold, sources dim, the form of the expression that is run green."""
    from rich.console import Console
    from rich.text import Text

    text = Text(found.text)
    text.highlight_regex(r"\A[^\n]*", "bold")
    text.highlight_regex(SECTIONS, "bold")
    text.highlight_regex(SOURCES, "dim")
    text.highlight_regex(r"(?m)^[^\n]*← [^\n]*$", "green")
    Console(highlight=False).print(text, end="", soft_wrap=True)
