"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from phipsi.model.untrusted import quoted


@contextmanager
def atomic(path: str | os.PathLike[str]) -> Generator[BinaryIO]:
    """A temporary file to write to, which replaces `path` once it is complete.

    If writing is interrupted (a full disk, Ctrl-C), an existing file at `path` stays as it was and
    the temporary file is deleted.
    """
    shown = quoted(str(path), 200)
    try:
        path = Path(os.path.realpath(path))
        if path.is_dir():
            raise IsADirectoryError(f"{shown} is a directory; give the name of a file in it")
    except ValueError as error:
        raise OSError(f"{shown} is no path: {error}") from None
    draft = path.with_name(f".{path.name[:50]}.{secrets.token_hex(8)}.tmp")
    try:
        with open(draft, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError as error:
        if error.errno is None:
            raise
        reason = os.strerror(error.errno)
        raise type(error)(f"{shown} cannot be written: {reason}; nothing was written") from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def write(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write the content to a file, completely or not at all."""
    with atomic(path) as file:
        file.write(content)
    return Path(path)
