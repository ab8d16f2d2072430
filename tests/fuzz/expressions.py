"""The target of operator expressions: read, written and read again, simplified and explained."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from random import Random

from phipsi.operators import parse
from phipsi.operators.algebra.expression import Expression
from phipsi.operators.algebra.identities import TABLE
from phipsi.operators.algebra.spaces import SpaceError
from phipsi.operators.writing.explain import explain
from phipsi.operators.writing.parser import LONGEST, ParseError
from tests.fuzz.hostile import changed_number, havoc, name, number
from tests.fuzz.target import Target, Wrong, cut

TOKEN = re.compile(r"\s+|[0-9.]+|'[^']*'|\\?[A-Za-z_]+|.", re.DOTALL)
POSTFIX = (".T", ".inv", ".logdet", "*", "⁻¹", "⁻*", "^{*}", "^{-1}", " ** 2", " ** -1", " ** 0.5",
           " ** -0.5", " ** 99", "½")  # fmt: skip
BETWEEN = (" @ ", " + ", " - ", "", " ", " * ", " / ", "@-", "@ 2 * ")


def run(content: bytes, deep: bool) -> None:
    """Read an expression, write it and read that; then simplify it and explain it."""
    x = parse(content.decode("utf-8", "replace"))
    for written in (str(x), x.latex):
        if len(written) <= LONGEST and parse(written) is not x:
            raise Wrong("an expression is another one when it is written and read again")
    if deep:
        try:
            found = str(x.simplify()), explain(x).text, explain(x).markdown, explain(x).latex
        except ZeroDivisionError as error:
            if not str(error).endswith(" is zero, and has no inverse"):
                raise Wrong("a division by zero") from error
            raise
        if not all(text.strip() for text in found):
            raise Wrong("nothing is explained")


def seeds() -> list[bytes]:
    """The sides of every identity, in three notations."""
    sides = [x for row in TABLE for x in (row.left, row.right)]
    written = [text for x in sides for text in (str(x), x.latex)]
    more = [
        *("(I - H @ psi @ K).T @ D.inv", "0.5 * V.T @ M @ V", "J('tool') @ mass.inv @ J('tool').T"),
        *("mass.inv.inv", "I[joint rates]", "zero[body motions, joint rates]", "D ** -0.5"),
    ]
    return [text.encode() for text in dict.fromkeys([*written, *more])]


@cache
def _expression(text: str) -> Expression | None:
    try:
        return parse(text)
    except (ParseError, SpaceError):
        return None


@cache
def _fitting(texts: tuple[bytes, ...]) -> dict[str, tuple[str, ...]]:
    """For each text those that it can be applied to."""
    known = {x.decode(): _expression(x.decode()) for x in texts}
    typed = {text: x for text, x in known.items() if x is not None}
    return {
        text: tuple(other for other, y in typed.items() if y.codomain == x.domain)
        for text, x in typed.items()
    }


def mutate(rng: Random, texts: list[bytes]) -> bytes:
    """Seeds put together, mostly such that they fit, and then tokens of them changed."""
    fitting = _fitting(tuple(texts))
    text = rng.choice(list(fitting))
    last = text
    for _ in range(int(rng.expovariate(1.0))):
        match rng.randrange(5):
            case 0 | 1 if fitting[last]:
                last = rng.choice(fitting[last])
                text = f"({text}){rng.choice((' @ ', ''))}({last})"
            case 2:
                text = f"({text}){rng.choice(POSTFIX[:7])}"
            case 3:
                text = f"({text}) {rng.choice('+-')} {rng.choice(('', '2 * ', '0.5*'))}({text})"
            case _:
                text = f"I + ({text})"
    if rng.random() < 0.6:
        tokens = TOKEN.findall(text)
        for _ in range(1 + int(rng.expovariate(0.8))):
            rng.choice(CHANGES)(rng, tokens, TOKEN.findall(rng.choice(texts).decode()))
        text = "".join(tokens)
    content = text.encode("utf-8", "surrogatepass")
    return havoc(rng, content, texts) if rng.random() < 0.1 else content


def _drop(rng: Random, tokens: list[str], _: list[str]) -> None:
    if tokens:
        del tokens[rng.randrange(len(tokens))]


def _replace(rng: Random, tokens: list[str], other: list[str]) -> None:
    if tokens and other:
        tokens[rng.randrange(len(tokens))] = rng.choice(other)


def _insert(rng: Random, tokens: list[str], other: list[str]) -> None:
    tokens.insert(rng.randint(0, len(tokens)), rng.choice(other))


def _mark(rng: Random, tokens: list[str], _: list[str]) -> None:
    tokens.insert(rng.randint(0, len(tokens)), rng.choice(POSTFIX) * rng.choice((1, 1, 1, 20, 40)))


def _between(rng: Random, tokens: list[str], _: list[str]) -> None:
    tokens.insert(rng.randint(0, len(tokens)), rng.choice(BETWEEN))


def _number(rng: Random, tokens: list[str], _: list[str]) -> None:
    tokens.insert(rng.randint(0, len(tokens)), number(rng))


def _changed(rng: Random, tokens: list[str], _: list[str]) -> None:
    at = [k for k, x in enumerate(tokens) if x[:1].isdigit()]
    if at:
        tokens[k] = changed_number(rng, tokens[k := rng.choice(at)])


def _named(rng: Random, tokens: list[str], _: list[str]) -> None:
    tokens.insert(rng.randint(0, len(tokens)), f"J({name(rng)!r})")


def _brackets(rng: Random, tokens: list[str], _: list[str]) -> None:
    deep, (i, j) = rng.choice((1, 1, 5, 30, 31)), sorted(rng.choices(range(len(tokens) + 1), k=2))
    tokens[j:j], tokens[i:i] = [")" * deep], ["(" * deep]


def _again(rng: Random, tokens: list[str], _: list[str]) -> None:
    i, j = sorted(rng.choices(range(len(tokens) + 1), k=2))
    tokens[j:j] = tokens[i:j] * rng.choice((1, 1, 2, 10))


Change = Callable[[Random, list[str], list[str]], None]
CHANGES: tuple[Change, ...] = (
    _drop, _replace, _insert, _mark, _between, _number, _changed, _named, _brackets, _again,
)  # fmt: skip


TARGETS = (
    Target("expressions", "operator expressions: parse, simplify, explain", ".txt", seeds, mutate,
           run, (ParseError, SpaceError, ZeroDivisionError), cut, lines=3, deep=8),
)  # fmt: skip
