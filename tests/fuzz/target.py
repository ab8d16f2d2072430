"""A target of fuzzing, and what came of one input."""

from __future__ import annotations

import re
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random

CORPUS = Path(__file__).with_name("corpus")
LONGEST = 1_000
"""The most characters that a message may have."""
SOURCE = Path(__file__).parents[2] / "src" / "phipsi"


@dataclass(frozen=True)
class Target:
    """What is fuzzed: its name, its inputs, and what is done with each."""

    name: str
    what: str
    suffix: str
    """Of the files of its corpus."""
    references: Callable[[], list[bytes]]
    """Inputs that are elsewhere in the repository: with the corpus they are the seeds."""
    mutate: Callable[[Random, list[bytes]], bytes]
    """An input made of seeds."""
    run: Callable[[bytes, bool], object]
    """Uses an input; `deep` means that what was read is used as well. Raises what it finds wrong as
    `Wrong`."""
    errors: tuple[type[Exception], ...]
    """The exceptions with which an input may be refused."""
    smaller: Callable[[bytes], Iterator[bytes]]
    """Inputs with a part less, large parts first."""
    lines: int = 1
    """The most lines of a message."""
    count: int = 100_000
    """Inputs of a whole campaign."""
    deep: int = 16
    """Of how many inputs one is used after it was read."""
    batch: int = 1
    """Cases in an input."""
    seconds: float = 10.0
    """The most seconds that an input may take."""

    @cached_property
    def corpus(self) -> dict[str, bytes]:
        """The files of its corpus by their names."""
        files = sorted((CORPUS / self.name).glob(f"*{self.suffix}"))
        return {file.stem: file.read_bytes() for file in files}

    @cached_property
    def seeds(self) -> list[bytes]:
        """The inputs that are mutated."""
        return [*self.references(), *self.corpus.values()]

    def content(self, seed: int, case: int) -> bytes:
        """The input of a case, which depends on these numbers and on the seeds alone."""
        return self.mutate(Random(f"{self.name} {seed} {case}"), self.seeds)


class Wrong(AssertionError):
    """Something that was read is not as it should be."""


@dataclass(frozen=True)
class Outcome:
    """What came of an input: a kind of outcome, and the failure if it is one."""

    kind: str
    """ "accepted", or the exception with its sentence, names and numbers left out."""
    failure: str = ""
    """What is wrong, the same for inputs that show the same."""
    details: str = ""


def outcome(target: Target, content: bytes, deep: bool) -> Outcome:
    """Use an input and judge what comes of it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            target.run(content, deep)
            found = Outcome("accepted")
        except target.errors as error:
            found = _judged(type(error).__name__, str(error), target.lines, error)
        except Exception as error:
            failure = f"{type(error).__name__} in {_place(error)}"
            if isinstance(error, Wrong | AssertionError):
                failure = f"{type(error).__name__}: {_general(str(error))}"
            found = Outcome(failure, failure, traceback.format_exc())
    for warning in caught:
        if not found.failure:
            found = _warned(found, warning)
    return found


def _judged(name: str, message: str, lines: int, error: object) -> Outcome:
    """The outcome that a message is; one that cannot be shown is a failure."""
    kind = f"{name}: {_general(message)}"
    rows = message.split("\n")
    if not message.strip():
        return Outcome(kind, f"{name} without a message", repr(error))
    if len(message) > LONGEST:
        return Outcome(kind, f"{len(message):,} characters in {kind}", message[:2000])
    if len(rows) > lines or not all(row.isprintable() for row in rows):
        return Outcome(kind, f"not printable in a line: {kind}", repr(message))
    return Outcome(kind)


def _warned(found: Outcome, warning: warnings.WarningMessage) -> Outcome:
    said, kind = str(warning.message), warning.category.__name__
    if warning.category.__module__.startswith("phipsi."):
        judged = _judged(kind, said, 1, warning)
        return Outcome(found.kind, judged.failure, judged.details)
    place = f"{Path(warning.filename).name}:{warning.lineno}"
    return Outcome(found.kind, f"{kind} in {place}: {_general(said)}", str(warning))


def _general(message: str) -> str:
    """A message without what was quoted, and without numbers."""
    short = message.partition("\n")[0][:400]
    short = re.sub(r"'(?:[^'\\]|\\.)*'?|\"(?:[^\"\\]|\\.)*\"?", "'…'", short)
    return re.sub(r"[-+]?(?:\d[\d,.]*(?:e[-+]?\d+)?|\binf\b|\bnan\b)", "0", short)[:160]


def _place(error: BaseException) -> str:
    """The innermost function of phipsi in a traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if Path(f.filename).is_relative_to(SOURCE)] or list(frames)
    last = own[-1]
    return f"{Path(last.filename).name}:{last.name}"


def cut(content: bytes) -> Iterator[bytes]:
    """The bytes without a run of them, long runs first."""
    size = len(content) // 2
    while size:
        for at in range(0, len(content), size):
            yield content[:at] + content[at + size :]
        size //= 2
