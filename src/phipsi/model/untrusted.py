"""Untrusted input: sizes and content of text, names, numbers and XML are checked before use."""

from __future__ import annotations

import math
import os
import reprlib
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from phipsi.model.errors import ModelError

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element, TreeBuilder

MAX_BYTES = 64_000_000
"""The maximum length of a description."""
MAX_ELEMENTS = 500_000
"""The maximum number of elements in an XML document."""
MAX_ATTRIBUTES = 1_000_000
"""The maximum number of attributes in an XML document."""
MAX_PARTS = 50_000
"""The maximum number of bodies, hinges or frames that a description may list."""
MAX_DEPTH = 1_000
"""The maximum depth of nesting in a document."""
MAX_NAME = 1_000
"""The maximum length of a name."""


class _Bounded(reprlib.Repr):
    """Representations of bounded length and depth, whatever the value."""

    def repr_int(self, x: int, level: int) -> str:
        """The digits; of an integer with thousands of digits, which Python refuses to write, its
        size."""
        return repr(x) if x.bit_length() < 1_000 else f"an integer of {x.bit_length():,} bits"


_bounded = _Bounded()
_bounded.maxlist = _bounded.maxtuple = _bounded.maxdict = _bounded.maxarray = 12
_bounded.maxstring = _bounded.maxother = 1_000


def quoted(value: object, width: int = 60) -> str:
    """The value as it is shown in a message: one line of at most `width` characters."""
    if isinstance(value, str | bytes):
        shown = repr(value[:width])
        return shown if len(value) <= width >= len(shown) else shown[: width - 3] + "..."
    shown = " ".join(_bounded.repr(value).split())
    return shown if len(shown) <= width else shown[: width - 3] + "..."


def listed(names: Iterable[object], shown: int = 3, separator: str = ", ") -> str:
    """The first names, quoted, and how many more there are."""
    names = list(names)
    head = separator.join(map(quoted, names[:shown]))
    return head if len(names) <= shown else f"{head} and {len(names) - shown:,} more"


def name(where: str, value: object) -> str:
    """The value, if it is a name: a printable string of bounded length that is not empty."""
    if not isinstance(value, str) or not value:
        raise ModelError(f"{where} has no name; give it one")
    if len(value) > MAX_NAME or not value.isprintable():
        raise ModelError(
            f"{where} has the name {quoted(value)}; a name has at most {MAX_NAME} characters, all "
            "of them printable"
        )
    return value


def number(where: str, value: str) -> float:
    """The finite number that a text represents."""
    try:
        if not value.isascii() or "_" in value:
            raise ValueError
        result = float(value)
    except ValueError:
        raise ModelError(f"{where} is {quoted(value)}, which is not a number") from None
    if not math.isfinite(result):
        raise ModelError(f"{where} is {quoted(value)}, but every number must be finite")
    return result


def bounded(what: str, count: int) -> None:
    """Check that a description does not list too many parts."""
    if count > MAX_PARTS:
        raise ModelError(
            f"the description has {count:,} {what}; at most {MAX_PARTS:,} are read (build larger "
            "robots with phipsi.Builder)"
        )


def is_text(source: object) -> TypeGuard[str | bytes]:
    """Whether a source is the text of a description (XML or JSON), not the path of a file."""
    if isinstance(source, bytes):
        return True
    return isinstance(source, str) and source[:1_000].lstrip("\ufeff \t\r\n")[:1] in ("<", "{")


def read(path: str | os.PathLike[str]) -> bytes:
    """The content of a regular file of bounded size."""
    shown = quoted(str(path), 200)
    try:
        status = Path(path).stat()
        if stat.S_ISDIR(status.st_mode):
            raise ModelError(f"{shown} is a directory; give the file in it")
        if not stat.S_ISREG(status.st_mode):
            raise ModelError(f"{shown} is not a regular file")
        if status.st_size > MAX_BYTES:
            raise ModelError(
                f"{shown} has {status.st_size:,} bytes; at most {MAX_BYTES:,} are read"
            )
        with open(path, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {shown}") from None
    except OSError as error:
        raise ModelError(f"{shown} cannot be read: {error.strerror}") from None
    except ValueError as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{shown} is no path, and neither XML nor JSON text") from None


def decoded(source: str | bytes) -> str:
    """The text of a description: UTF-8, bounded, not empty and without null characters."""
    if not isinstance(source, str | bytes):
        raise ModelError(f"the description is {quoted(source)}, needs a text")
    if len(source) > MAX_BYTES:
        raise ModelError(
            f"the description has {len(source):,} characters; at most {MAX_BYTES:,} are read"
        )
    if isinstance(source, bytes):
        if source.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ModelError("the description is encoded in UTF-16; save it as UTF-8")
        try:
            source = source.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ModelError(
                f"the description is not UTF-8 text (byte {error.start}); save it as UTF-8"
            ) from None
    if "\0" in source:
        raise ModelError("the description has a null character and is not text; save it as UTF-8")
    if not source.strip():
        raise ModelError("the description is empty")
    return source


def xml(source: str | bytes) -> Element:
    """The root of an XML document without entities, of bounded size and depth."""
    text = decoded(source)
    if text.count("=") > MAX_ATTRIBUTES:
        raise ModelError(f"the description has more than {MAX_ATTRIBUTES:,} attributes")
    try:
        from defusedxml import DefusedXmlException
        from defusedxml.ElementTree import DefusedXMLParser, ParseError
    except ImportError:
        raise ModelError("XML needs defusedxml: pip install defusedxml") from None
    parser = DefusedXMLParser(target=_bounded_tree(), forbid_dtd=True)
    try:
        parser.feed(text)
        return parser.close()
    except ParseError as error:
        raise ModelError(f"the description is not well-formed XML: {error}") from None
    except DefusedXmlException:
        raise ModelError(
            "the description has a DOCTYPE, entities or external references; remove them"
        ) from None
    except (ValueError, UnicodeError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"the description is not XML: {quoted(str(error))}") from None


def _bounded_tree() -> TreeBuilder:
    """A tree builder that raises once there are too many elements or they are nested too deep."""
    from xml.etree.ElementTree import TreeBuilder

    class Bounded(TreeBuilder):
        depth = count = 0

        def start(self, tag: str, attrs: dict[str, str], /) -> Element:
            self.depth += 1
            self.count += 1
            if self.depth > MAX_DEPTH:
                raise ModelError(f"the description nests more than {MAX_DEPTH} elements")
            if self.count > MAX_ELEMENTS:
                raise ModelError(f"the description has more than {MAX_ELEMENTS:,} elements")
            return super().start(tag, attrs)

        def end(self, tag: str, /) -> Element:
            self.depth -= 1
            return super().end(tag)

    return Bounded()
