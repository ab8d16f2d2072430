"""Documents as trees, one form for XML, JSON and TOML, and their mutation by structure.

A tree is a list, a `Pairs` (the keys and values of an object, a table, or the attributes of an
element), an `Element` of XML, a text, or a `Literal`: a number or a word that is written as it is.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from random import Random
from typing import Any, TypeAlias
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

from tests.fuzz.hostile import changed_number, name, number, text

Tree: TypeAlias = Any
Slot: TypeAlias = tuple["list[Tree]", int]
"""A place of a tree: a list and the index in it."""


class Literal(str):
    """A number, a truth value or a date, which is written as it is."""


class Pairs(list[Any]):
    """Keys with values, in order and possibly repeated: pairs [key, value]."""


class Element(list[Any]):
    """An element of XML: its tag, its attributes, and its children, which are elements or texts."""


# ---- reading and writing -------------------------------------------------------------------------


def of_xml(source: str) -> Tree:
    """The tree of an XML text, without comments."""
    return _of_element(ElementTree.fromstring(source))


def _of_element(x: ElementTree.Element) -> Element:
    words = [x.text] if x.text and x.text.strip() else []
    return Element([x.tag, Pairs(map(list, x.attrib.items())), *words, *map(_of_element, x)])


def to_xml(tree: Tree) -> str:
    """A tree as XML."""
    if not isinstance(tree, Element) or len(tree) < 2:
        return escape(tree if isinstance(tree, str) else to_json(tree))
    tag, pairs, *children = tree
    attributes = "".join(f" {_plain(k)}={quoteattr(_plain(v))}" for k, v in pairs)
    inner = "".join(map(to_xml, children))
    return f"<{tag}{attributes}>{inner}</{tag}>" if inner else f"<{tag}{attributes}/>"


def _plain(tree: Tree) -> str:
    return tree if isinstance(tree, str) else to_json(tree)


def of_json(source: str) -> Tree:
    """The tree of a JSON text; numbers keep their digits."""
    return json.loads(
        source,
        parse_float=Literal,
        parse_int=Literal,
        parse_constant=Literal,
        object_pairs_hook=lambda pairs: Pairs(map(list, pairs)),
    )


def to_json(tree: Tree) -> str:
    """A tree as JSON."""
    if isinstance(tree, Pairs):
        return "{" + ", ".join(f"{json.dumps(str(k))}: {to_json(v)}" for k, v in tree) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(map(to_json, tree)) + "]"
    return tree if isinstance(tree, Literal) else json.dumps(tree)


def of_toml(source: str) -> Tree:
    """The tree of a TOML text, without comments."""
    return _of_value(tomllib.loads(source))


def _of_value(x: Any) -> Tree:
    if isinstance(x, dict):
        return Pairs([key, _of_value(value)] for key, value in x.items())
    if isinstance(x, list):
        return list(map(_of_value, x))
    return x if isinstance(x, str) else Literal(json.dumps(x))


def to_toml(tree: Tree) -> str:
    """A tree as TOML: tables and lists of tables under headers, all else in one line."""
    return "".join(_table(tree if isinstance(tree, Pairs) else Pairs([["x", tree]]), ()))


def _table(pairs: Pairs, path: tuple[str, ...]) -> Iterator[str]:
    inner: list[tuple[tuple[str, ...], Pairs, bool]] = []
    for key, value in pairs:
        here = (*path, _key(key))
        tables = isinstance(value, list) and value and all(isinstance(x, Pairs) for x in value)
        if len(path) < 3 and isinstance(value, Pairs):
            inner.append((here, value, False))
        elif len(path) < 3 and tables:
            inner.extend((here, x, True) for x in value)
        else:
            yield f"{_key(key)} = {_inline(value)}\n"
    for here, value, listed in inner:
        head = ".".join(here)
        yield f"[[{head}]]\n" if listed else f"[{head}]\n"
        yield from _table(value, here)


def _key(key: Tree) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


def _inline(value: Tree) -> str:
    if isinstance(value, Pairs):
        return "{" + ", ".join(f"{_key(k)} = {_inline(v)}" for k, v in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return "1" if value is None else value if isinstance(value, Literal) else json.dumps(value)


# ---- places --------------------------------------------------------------------------------------


def copied(tree: Tree) -> Tree:
    """A copy of a tree."""
    return type(tree)(map(copied, tree)) if isinstance(tree, list) else tree


def lists(tree: Tree) -> Iterator[tuple[list[Tree], int]]:
    """Every list whose parts can be dropped or moved, and where these begin."""
    if isinstance(tree, Element):
        yield tree[1], 0
        yield tree, 2
        for part in tree[2:]:
            yield from lists(part)
    elif isinstance(tree, Pairs):
        yield tree, 0
        for _, value in tree:
            yield from lists(value)
    elif isinstance(tree, list):
        yield tree, 0
        for part in tree:
            yield from lists(part)


def parts(tree: Tree) -> list[Slot]:
    """Every place of a list that can be dropped or moved."""
    return [(own, k) for own, first in lists(tree) for k in range(first, len(own))]


def values(tree: Tree) -> list[Slot]:
    """Every place of a text or a number."""
    found: list[Slot] = []
    for own, k in parts(tree):
        if isinstance(own, Pairs):
            own, k = own[k], 1
        if not isinstance(own[k], list):
            found.append((own, k))
    return found


def names(tree: Tree) -> list[Slot]:
    """Every place of a key, or the tag of an element."""
    found: list[Slot] = []
    for own, _ in lists(tree):
        found += [(pair, 0) for pair in own] if isinstance(own, Pairs) else []
        found += [(own, 0)] if isinstance(own, Element) else []
    return found


# ---- mutations -----------------------------------------------------------------------------------


def drop(rng: Random, tree: Tree, _: Tree) -> None:
    own, k = rng.choice(parts(tree))
    del own[k]


def duplicate(rng: Random, tree: Tree, _: Tree) -> None:
    own, k = rng.choice(parts(tree))
    times = rng.choice((1, 1, 1, 1, 2, 10, 200))
    own[k:k] = [copied(own[k]) for _ in range(times)]


def move(rng: Random, tree: Tree, _: Tree) -> None:
    own, k = rng.choice(parts(tree))
    part = copied(own[k])
    if rng.random() < 0.5:
        del own[k]
    into, at = rng.choice([x for x in lists(tree) if isinstance(x[0], Pairs) is _paired(own)])
    into.insert(rng.randint(at, len(into)), part)


def _paired(own: list[Tree]) -> bool:
    return isinstance(own, Pairs)


def swap(rng: Random, tree: Tree, _: Tree) -> None:
    own, k = rng.choice(parts(tree))
    _, first = next(x for x in lists(tree) if x[0] is own)
    j = rng.randrange(first, len(own))
    own[k], own[j] = own[j], own[k]


def nest(rng: Random, tree: Tree, _: Tree) -> None:
    own, k = rng.choice(parts(tree))
    if isinstance(own, Pairs):
        own, k = own[k], 1
    known = _known(rng, tree)
    for _ in range(rng.choice((1, 1, 1, 2, 20, 200))):
        part = own[k]
        match rng.randrange(2) if not isinstance(part, Element) else 2:
            case 0:
                own[k] = [part]
            case 1:
                own[k] = Pairs([[known, part]])
            case _:
                own[k] = Element([part[0], Pairs(), part])


def flatten(rng: Random, tree: Tree, _: Tree) -> None:
    """A part takes the place of what it is in."""
    own, k = rng.choice(parts(tree))
    if isinstance(own, Pairs):
        own, k = own[k], 1
    inner = parts(own[k])
    if inner:
        within, j = rng.choice(inner)
        own[k] = within[j][1] if isinstance(within, Pairs) else within[j]


def rename(rng: Random, tree: Tree, _: Tree) -> None:
    own, k = rng.choice(names(tree))
    own[k] = _known(rng, tree) if rng.random() < 0.6 else name(rng)


def _known(rng: Random, tree: Tree) -> str:
    own, k = rng.choice(names(tree) or [(["x"], 0)])
    return str(own[k])


def same(rng: Random, tree: Tree, donor: Tree) -> None:
    """A value takes the place of another: names that are equal, references to anything."""
    (own, k), (other, j) = rng.choice(values(tree)), rng.choice(values(rng.choice((tree, donor))))
    own[k] = other[j]


def hostile(rng: Random, tree: Tree, _: Tree) -> None:
    """A value that is a number becomes another one, a text another text."""
    own, k = rng.choice(values(tree))
    value = own[k]
    if isinstance(value, Literal):
        own[k] = Literal(changed_number(rng, value))
    elif isinstance(value, str) and re.search(r"\d", value):
        own[k] = changed_words(rng, value)
    else:
        own[k] = name(rng) if rng.random() < 0.5 else text(rng)


def changed_words(rng: Random, value: str) -> str:
    """A text of numbers with one of them changed, added or dropped."""
    words = value.split()
    at = rng.randrange(len(words))
    match rng.randrange(6):
        case 0:
            del words[at]
        case 1:
            words.insert(at, number(rng))
        case _:
            words[at] = changed_number(rng, words[at])
    return " ".join(words)


def other_kind(rng: Random, tree: Tree, _: Tree) -> None:
    """A value of another kind in the place of any."""
    own, k = rng.choice(parts(tree))
    if isinstance(own, Pairs):
        own, k = own[k], 1
    if not isinstance(own[k], Element):
        kinds = [], Pairs(), "", Literal("true"), Literal("null"), Literal(number(rng)), text(rng)
        own[k] = rng.choice(kinds)


def splice(rng: Random, tree: Tree, donor: Tree) -> None:
    """A part of another document."""
    own, k = rng.choice(parts(donor))
    fitting = [x for x in lists(tree) if isinstance(x[0], Pairs) is _paired(own)]
    if fitting:
        into, at = rng.choice(fitting)
        into.insert(rng.randint(at, len(into)), copied(own[k]))


Mutation = Callable[[Random, Tree, Tree], None]
MUTATIONS: tuple[tuple[Mutation, int], ...] = (
    (drop, 3), (duplicate, 2), (move, 2), (swap, 1), (nest, 1), (flatten, 1), (rename, 2),
    (same, 4), (hostile, 8), (other_kind, 1), (splice, 2),
)  # fmt: skip
"""Mutations and how often each is made."""


def mutated(rng: Random, seeds: Sequence[Tree]) -> Tree:
    """A copy of one of the documents with some mutations, mostly few."""
    tree, donor = copied(rng.choice(seeds)), rng.choice(seeds)
    kinds, weights = zip(*MUTATIONS, strict=True)
    for mutation in rng.choices(kinds, weights, k=1 + int(rng.expovariate(0.7))):
        with suppress(IndexError):  # there is nothing left to mutate
            mutation(rng, tree, donor)
    return tree


def smaller(tree: Tree) -> Iterator[Tree]:
    """Copies of a tree without one part, or with a shorter value; large parts first."""
    places = [k for k, _ in sorted(enumerate(parts(tree)), key=lambda x: -_size(x[1]))]
    for place in places:
        other = copied(tree)
        own, k = parts(other)[place]
        del own[k]
        yield other
    for place, (own, k) in enumerate(values(tree)):
        if isinstance(own[k], str) and not isinstance(own[k], Literal) and len(own[k]) > 1:
            other = copied(tree)
            there, k = values(other)[place]
            there[k] = there[k][: len(there[k]) // 2]
            yield other


def _size(slot: Slot) -> int:
    own, k = slot
    return len(str(own[k]))
