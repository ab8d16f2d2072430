"""A folder of results that appears whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from phipsi.model.untrusted import quoted
from phipsi.scenarios.toml_reader import At

SHOWN = 5
"""The most files that a message names."""
INCOMPLETE = "INCOMPLETE"
"""The name of a file that is in a folder while its files are replaced."""
NOTE = (
    "phipsi was stopped while it replaced the files of this folder: some are of an earlier run. "
    "Run it again with --force.\n"
)
ORPHANED = 3600.0
"""Age [s] from which a draft is taken for the remains of a killed run."""


def inside(name: str, at: At) -> Path:
    """The folder that a scenario names, relative to the current folder and below it."""
    path = Path(name)
    here = Path.cwd().resolve()
    odd = path.is_absolute() or ".." in path.parts or not name.isprintable() or path == Path()
    if odd or not (here / path).resolve().is_relative_to(here):
        raise at.wrong(
            f"is {quoted(name)}, needs a folder below the current one (--output may be elsewhere)"
        )
    return path


def check(path: Path, force: bool) -> None:
    """Refuse a folder that cannot be written, and without `force` one that holds files."""
    shown = quoted(str(path), 200)
    try:
        if path.exists() and not path.is_dir():
            raise OSError(f"{shown} is a file; name a folder with --output")
        if not path.exists() and not path.parent.is_dir():
            raise OSError(f"there is no folder {quoted(str(path.parent), 200)} to put results in")
        held = sorted(item.name for item in path.iterdir()) if path.exists() else []
        draft = _draft(path)
        draft.mkdir()
        draft.rmdir()
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(f"{shown} cannot be written: {error.strerror}") from None
    except ValueError as error:
        raise OSError(f"{shown} is no path: {error}") from None
    if held and not force:
        more = f" and {len(held) - SHOWN} more" if len(held) > SHOWN else ""
        names = ", ".join(quoted(name) for name in held[:SHOWN])
        raise OSError(
            f"the folder {shown} holds {names}{more}; say --force to replace files of the same "
            "name, or --output to write elsewhere"
        )


def _draft(path: Path) -> Path:
    """A new folder in `path`, or beside it if there is none: on the same disk."""
    name = f".{path.name[:50]}.{secrets.token_hex(6)}.tmp"
    return path / name if path.exists() else path.with_name(name)


def _clean(path: Path) -> None:
    """Remove the drafts of killed runs in a folder and beside it."""
    draft = re.compile(rf"\.{re.escape(path.name[:50])}\.[0-9a-f]{{12}}\.tmp")
    for place in (path, path.parent):
        for item in place.iterdir() if place.is_dir() else ():
            if draft.fullmatch(item.name) and item.is_dir() and not item.is_symlink():
                if item.stat().st_mtime < time.time() - ORPHANED:
                    shutil.rmtree(item, ignore_errors=True)


def _reason(error: BaseException | None) -> str:
    """The message of the operating system among the causes of an error, else that of the error."""
    said = str(error)
    while error is not None:
        if isinstance(error, OSError) and error.strerror:
            return error.strerror
        error = error.__cause__ or error.__context__
    return said


@contextmanager
def filled(path: Path, force: bool = False) -> Generator[Path]:
    """A draft folder, whose files are moved to `path` when the context ends without an error.

    Whatever stops the writing (a full disk, Ctrl-C), the draft is removed and `path` is as it was.
    A process that is killed leaves `path` as it was too, or with a file INCOMPLETE that says that
    the others are of two runs. Other files in `path` stay.
    """
    check(path, force)
    with suppress(OSError):
        _clean(path)
    shown = quoted(str(path), 200)
    there, draft = path.exists(), _draft(path)
    try:
        draft.mkdir()
        yield draft
        if there:
            _replaced(draft, path)
        else:
            os.replace(draft, path)
    except OSError as error:
        raise OSError(f"nothing was written to {shown}: {_reason(error)}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _replaced(draft: Path, path: Path) -> None:
    """Move the files of a draft into their folder; if that fails, restore the old ones."""
    files, old = sorted(draft.iterdir()), draft / "old"
    placed: list[str] = []
    for file in files:
        if (path / file.name).is_dir():
            raise IsADirectoryError(errno.EISDIR, f"{quoted(file.name)} is a folder there")
    old.mkdir()
    unfinished = path / INCOMPLETE
    before = unfinished.exists()
    try:
        unfinished.write_text(NOTE, encoding="utf-8")
        for file in files:
            placed.append(file.name)
            if (path / file.name).exists():
                os.replace(path / file.name, old / file.name)
            os.replace(file, path / file.name)
        unfinished.unlink()
    except BaseException:
        for name in placed:
            if (old / name).exists():
                os.replace(old / name, path / name)
            elif not (draft / name).exists():
                (path / name).unlink(missing_ok=True)
        if not before:
            unfinished.unlink(missing_ok=True)
        raise
