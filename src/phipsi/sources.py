"""The source files of phipsi, as a part of every key of the disk cache.

A key must name the code that runs. Files may be replaced while a process runs, before it makes its
first kernel or between two of its imports, so that what is on the disk then says nothing about it.
`import phipsi` therefore notes size, times and inode of every file before any other module is
imported (1 to 2 ms). The content is hashed when the first key is needed (15 ms), and holds as long
as none of these has changed since; the cache stores nothing that was made after a change. Hashes of
the loaded code would not do: which modules are loaded differs from process to process, and bytecode
is not the same from one compilation of a file to the next.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parent


def _files(place: Path = _ROOT) -> Iterator[tuple[str, os.stat_result]]:
    """The source files in a folder, or bytecode without sources; the archive, if they are in one.
    Nothing, if they are not on the disk."""
    if place.is_dir():
        yield from _sources(str(place))
        return
    for archive in place.parents:
        if archive.is_file():
            yield str(archive), archive.stat()


def _sources(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as items:
        for item in items:
            if item.name.startswith((".", "__pycache__")):
                continue  # locks and copies of editors; bytecode of sources
            if item.name.endswith((".py", ".pyc")):
                yield item.path, os.stat(item.path)
            elif item.is_dir():
                yield from _sources(item.path)


def _stamps() -> dict[str, tuple[int, ...]]:
    """What tells the files from others that take their places."""
    found = {path: (x.st_size, x.st_mtime_ns, x.st_ctime_ns, x.st_ino) for path, x in _files()}
    if not found:
        raise FileNotFoundError("phipsi was imported, but is not on the disk")
    return found


_IMPORTED: dict[str, tuple[int, ...]] = {}
"""The files when phipsi was imported; none, if they could not be read."""
with suppress(OSError):
    _IMPORTED = _stamps()


def unchanged() -> bool:
    """Whether the files are those that this process imports; an OSError if they cannot be read."""
    return _stamps() == _IMPORTED


@cache
def digest(package: str = "") -> bytes:
    """A digest of the files of phipsi, or of one of its packages, and of the versions of Python and
    NumPy. If the files may not be those that run: random bytes, which no other process has."""
    import hashlib  # takes longer to import than all the files to look at

    numpy = sys.modules.get("numpy")
    found = hashlib.sha256(repr((sys.version, getattr(numpy, "__version__", ""))).encode())
    try:
        for path, info in sorted(_files(_ROOT / package)):
            content = Path(path).read_bytes() + _older_bytecode(path, info)
            found.update(f"{path.removeprefix(str(_ROOT))} {len(content)} ".encode() + content)
        return found.digest() if unchanged() else os.urandom(32)
    except OSError:
        return os.urandom(32)


def _older_bytecode(path: str, source: os.stat_result) -> bytes:
    """The bytecode that Python runs for a file although it is older: Python compares the size of
    the file and its time in whole seconds, which another version may share."""
    import struct
    from importlib.util import cache_from_source

    try:
        compiled = Path(cache_from_source(path))
        if compiled.stat().st_mtime_ns > max(source.st_mtime_ns, source.st_ctime_ns):
            return b""
        code = compiled.read_bytes()
        flags, time, size = struct.unpack_from("<4xIII", code)
    except (OSError, NotImplementedError, struct.error):
        return b""
    same = (time, size) == (int(source.st_mtime) & 0xFFFFFFFF, source.st_size & 0xFFFFFFFF)
    return code if same or flags else b""
