"""A reader of untrusted TOML into dataclasses. Every error is one sentence that names the file, the
line and the key.

The class of a table is a dataclass with fields `name: Annotated[type, check]`, one for each key,
and `read` checks a TOML table against them. A check is a function of a value and of its place
(`At`); it returns the value to keep or raises `at.wrong(…)`.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, time
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, get_type_hints

from phipsi.arguments import a_class
from phipsi.model.names import meant
from phipsi.model.untrusted import quoted

MAX_BYTES = 256_000
"""The longest file that is read."""
MAX_LINE = 2_000
"""The longest line: tomllib takes time quadratic in the length of a dotted key."""
MAX_DEPTH = 12
"""The deepest nesting of tables and lists."""
MAX_WORK = 2_000_000
"""The most characters that are parsed to find the lines of keys."""
LARGEST = 1e100
"""The largest absolute value of a number."""
SHOWN, SHOWN_KEY = 40, 200
"""The most characters of a name, and of a key with all tables around it, in a message."""

if TYPE_CHECKING:
    TomlValue: TypeAlias = (
        str | float | date | time | Sequence["TomlValue"] | dict[str, "TomlValue"] | None
    )
else:
    TomlValue = object  # `get_type_hints` resolves no recursive type of another module
"""A value of a TOML file (int and bool are floats to type checkers); None: no value is given."""
Path: TypeAlias = tuple[str | int, ...]
"""The keys and the indices of lists that lead to a value."""
T = TypeVar("T")
Check: TypeAlias = Callable[[TomlValue, "At"], T]


class ScenarioError(ValueError):
    """A scenario is wrong; the message names the file, the line, the key, and what to do.

    `path` is the key that is wrong, empty if there is none, and `problem` what is wrong with it.
    """

    def __init__(self, message: str, path: Path = (), problem: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.problem = problem or message


class ScenarioNotFoundError(ScenarioError):
    """There is no such file, and no such scenario ships."""


@dataclass(frozen=True)
class At:
    """A place in a scenario file."""

    file: str
    text: str = field(repr=False, default="")
    """The text of the file, in which lines are found."""
    path: Path = ()

    def __truediv__(self, step: str | int) -> At:
        return replace(self, path=(*self.path, step))

    @property
    def key(self) -> str:
        """The key as errors show it, such as `events[2].hinge`, with indices from 0."""
        shown = ""
        for step in self.path:
            if isinstance(step, int):
                shown += f"[{step}]"
            else:
                shown += "." * bool(shown) + _shown(step)
        return shown if len(shown) <= SHOWN_KEY else f"{shown[: SHOWN_KEY - 3]}..."

    def wrong(self, problem: str) -> ScenarioError:
        """The error that the value here has a problem: what follows the key in the sentence."""
        line = line_of(self.text, self.path)
        where = f"{self.file}, line {line}" if line else self.file
        problem = " ".join(problem.split())
        message = " ".join(f"{where}: {self.key} {problem}".split())
        return ScenarioError(message, self.path, problem)


def _shown(name: str) -> str:
    """A name in a message: as it is if it is a short word, else quoted."""
    word = name.replace("_", "").replace("-", "").isalnum() and name.isascii()
    return name if word and len(name) <= SHOWN else quoted(name, SHOWN)


# ---- text ---------------------------------------------------------------------------------------


def parse(content: bytes, file: str) -> tuple[dict[str, TomlValue], At]:
    """The tables of a TOML text, within bounds, and without types that no scenario needs."""
    if len(content) > MAX_BYTES:
        raise ScenarioError(f"{file} has more than {MAX_BYTES:,} bytes, which no scenario needs")
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ScenarioError(
            f"{file} is not UTF-8 text (byte {error.start}); save it as UTF-8"
        ) from None
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MAX_LINE:
            raise ScenarioError(
                f"{file}, line {number}: has more than {MAX_LINE:,} characters; break it"
            )
    try:
        tables: dict[str, TomlValue] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{file} is not TOML: {quoted(str(error), 150)[1:-1]}") from None
    except RecursionError:
        raise ScenarioError(f"{file} nests too deeply") from None
    except ValueError as error:
        raise ScenarioError(f"{file} has a wrong number: {quoted(str(error))}") from None
    at = At(file, text)
    for path, value in walk(tables):
        _plain(value, replace(at, path=path))
    return tables, at


def walk(value: TomlValue) -> Iterator[tuple[Path, TomlValue]]:
    """All values in tables and lists with their paths, down to one level below the deepest allowed,
    so that nesting that is too deep is noticed."""
    stack: list[tuple[Path, TomlValue]] = [((), value)]
    while stack:
        path, value = stack.pop()
        yield path, value
        if len(path) > MAX_DEPTH:
            continue
        if isinstance(value, dict):
            stack.extend(((*path, name), item) for name, item in value.items())
        elif isinstance(value, list):
            stack.extend(((*path, k), item) for k, item in enumerate(value))


def _plain(value: TomlValue, at: At) -> None:
    """Refuse all but tables, lists, texts, truth values, and numbers that are finite, not huge."""
    if len(at.path) > MAX_DEPTH:
        raise replace(at, path=at.path[:2]).wrong(f"nests more than {MAX_DEPTH} tables or lists")
    if isinstance(value, float) and not math.isfinite(value):
        raise at.wrong(f"is {value}, but every number must be finite")
    if isinstance(value, (int, float)) and abs(value) > LARGEST:
        raise at.wrong("is too large a number")
    if not isinstance(value, (dict, list, str, bool, int, float)):
        raise at.wrong(f"is {a_class(value)}, which no scenario needs")
    if at.path and isinstance(at.path[-1], str) and not at.path[-1].isprintable():
        raise at.wrong("is a key with characters that cannot be printed")


def line_of(text: str, path: Path) -> int | None:
    """The line (from 1) of a key, or of the innermost table around it; None if there is none."""
    lines = _lines(text)
    return next((lines[path[:k]] for k in range(len(path), 0, -1) if path[:k] in lines), None)


@lru_cache(maxsize=4)
def _lines(text: str) -> dict[Path, int]:
    """The line of every key. Lines are collected until they parse, and are then one statement."""
    found: dict[Path, int] = {}
    counts: Counter[Path] = Counter()
    chunk: list[str] = []
    table: Path = ()
    work = 0
    for number, line in enumerate(text.split("\n"), 1):
        chunk.append(line)
        work += sum(map(len, chunk))
        if work > MAX_WORK:
            break
        try:
            statement = tomllib.loads("\n".join(chunk))
        except ValueError:
            continue
        first, head = number - len(chunk) + 1, chunk[0].lstrip()
        chunk = []
        inner = [path for path, _ in walk(statement)]
        if head.startswith("["):
            names = [step for step in inner[-1] if isinstance(step, str)]
            table, inner = _header(names, head.startswith("[["), counts), [()]
        for path in inner:
            whole = (*table, *path)
            for k in range(len(whole)):
                found.setdefault(whole[: k + 1], first)
    return found


def _header(names: list[str], array: bool, counts: Counter[Path]) -> Path:
    """The path of the table that a header begins; `counts` has the length of each array of tables
    so far."""
    path: Path = ()
    for name in names[:-1]:
        path = (*path, name)
        path = (*path, counts[path] - 1) if path in counts else path
    path = (*path, names[-1])
    if array:
        counts[path] += 1
    return (*path, counts[path] - 1) if path in counts else path


# ---- tables -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """A table of a scenario, and its place in the file."""

    where: At


REST = object()
"""Marks the field that takes all keys without a field of their own."""


@lru_cache
def _checks(kind: type[Any]) -> tuple[dict[str, Check[Any]], str | None]:
    """The check of every key of a class, and the field that takes the other keys."""
    hints = get_type_hints(kind, include_extras=True)
    marked = {name: x.__metadata__[0] for name, x in hints.items() if hasattr(x, "__metadata__")}
    more = next((name for name, mark in marked.items() if mark is REST), None)
    return {name: mark for name, mark in marked.items() if mark is not REST}, more


def read(kind: type[T], value: TomlValue, at: At) -> T:
    """A table as an object of the class `kind`, its keys checked."""
    if not isinstance(value, dict):
        raise at.wrong(f"is {quoted(value)}, needs a table")
    checks, more = _checks(kind)
    unknown = {name: x for name, x in value.items() if name not in checks}
    if unknown and more is None:
        name = next(iter(unknown))
        raise (at / name).wrong(f"is not known; {hint(name, checks)}")
    found: dict[str, Any] = {} if more is None else {more: unknown}
    for name, check in checks.items():
        if name in value:
            found[name] = check(value[name], at / name)
        elif not hasattr(kind, name):  # no default
            raise (at / name).wrong("is missing")
    make: Any = kind
    return make(at, **found)


def hint(name: object, known: Iterable[str]) -> str:
    """The known name that is most like `name`, or else what is known, for the end of a sentence."""
    known = list(known)
    shown = ", ".join(map(_shown, known[:12])) + (
        f" and {len(known) - 12} more" if len(known) > 12 else ""
    )
    return meant(name, known).rstrip() or f"known are {shown or 'none'}"


# ---- checks -------------------------------------------------------------------------------------


def text(value: TomlValue, at: At) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value.strip() or len(value) > 10_000:
        raise at.wrong(f"is {quoted(value)}, needs a text")
    if not all(line.isprintable() for line in re.split(r"[\n\t]", value)):
        raise at.wrong("has characters that cannot be printed")
    return value


def flag(value: TomlValue, at: At) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise at.wrong(f"is {quoted(value)}, needs true or false")
    return value


def number(least: float = -math.inf, *, above: float = -math.inf, unit: str = "") -> Check[float]:
    """A number that is not less than `least` and more than `above`."""
    words = "a positive number" if above == 0 else "a number"
    words += f" ≥ {least:g}" * (least > -math.inf) + f" [{unit}]" * bool(unit)

    def check(value: TomlValue, at: At) -> float:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if math.isfinite(value) and value >= least and value > above:
                return float(value)
        raise at.wrong(f"is {quoted(value)}, needs {words}")

    return check


def whole(least: int, most: int) -> Check[int]:
    """A whole number."""

    def check(value: TomlValue, at: At) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise at.wrong(f"is {quoted(value)}, needs a whole number from {least} to {most}")
        return value

    return check


def numbers(*sizes: int, each: Check[float] | None = None) -> Check[tuple[float, ...]]:
    """A list of numbers, as many as one of the sizes."""

    def check(value: TomlValue, at: At) -> tuple[float, ...]:
        found = many(each or number(), max(sizes))(value, at)
        if len(found) not in sizes:
            raise at.wrong(f"has {len(found)} numbers, needs {' or '.join(map(str, sizes))}")
        return found

    return check


def choice(*known: str) -> Check[str]:
    """One of these texts."""

    def check(value: TomlValue, at: At) -> str:
        if not isinstance(value, str) or value not in known:
            raise at.wrong(f"is {quoted(value)}; {hint(value, known)}")
        return value

    return check


def many(check: Check[T], most: int = 100) -> Check[tuple[T, ...]]:
    """A list of at most so many values, each checked."""

    def check_all(value: TomlValue, at: At) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise at.wrong(f"is {quoted(value)}, needs a list")
        if len(value) > most:
            raise at.wrong(f"has {len(value)} entries, but at most {most} are allowed")
        return tuple(check(item, at / k) for k, item in enumerate(value))

    return check_all


def one_or_many(check: Check[T], most: int) -> Check[tuple[T, ...]]:
    """A table, or a list of them."""
    every = many(check, most)
    return lambda value, at: every(value, at) if isinstance(value, list) else (check(value, at),)


def table(kind: type[T]) -> Check[T]:
    """A table as an object of the class `kind`."""
    return lambda value, at: read(kind, value, at)


def variants(kinds: Mapping[str, type[T]], by: str) -> Check[T]:
    """A table whose key `by` names its class."""

    def check(value: TomlValue, at: At) -> T:
        if not isinstance(value, dict):
            raise at.wrong(f"is {quoted(value)}, needs a table")
        if by not in value:
            raise (at / by).wrong(f"is missing; {hint('', kinds)}")
        kind = choice(*kinds)(value[by], at / by)
        return read(kinds[kind], {k: x for k, x in value.items() if k != by}, at)

    return check


def named(check: Check[T], most: int = 1000) -> Check[dict[str, T]]:
    """A table with any keys, its values checked."""

    def check_all(value: TomlValue, at: At) -> dict[str, T]:
        if not isinstance(value, dict):
            raise at.wrong(f"is {quoted(value)}, needs a table")
        if len(value) > most:
            raise at.wrong(f"has {len(value)} keys, but at most {most} are allowed")
        return {name: check(item, at / name) for name, item in value.items()}

    return check_all
