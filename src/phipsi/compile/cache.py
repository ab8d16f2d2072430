"""The disk cache of compiled machine code: sealed files `<key>.bin` in a directory of the user.

The caller's key, a SHA-256 in hex, names everything the code depends on. Code is handed out only if
its seal holds and no other user could have written it; whatever goes wrong with the disk, the cache
acts as if it were not there. Processes and threads share it without locks: an entry appears whole,
by `os.replace`, or not at all.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import secrets
import stat
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from phipsi import sources
from phipsi.caller import warn
from phipsi.compile import ownership

DEFAULT_LIMIT = 512 << 20
"""Total size of the entries [bytes], unless PHIPSI_CACHE_SIZE gives another."""

_SEAL = struct.Struct("<8sI32sQ32s")
"""Magic, version of the format, key, length of the code, SHA-256 of key and code."""
_MAGIC, _VERSION = b"phipsi\r\n", 1
_OURS = re.compile(r"[0-9a-f]{64}\.(bin|[0-9]+-[0-9a-f]{16}\.tmp)")
_ORPHANED = 60.0
"""Age [s] from which a temporary file is taken for the remains of a killed process. Its name does
not tell: the process may run in another container or on another machine. If it does run, it was
stopped for so long, and what it stores is lost."""
_UNTRIMMED = 1 / 64
"""What a process stores before it looks for entries to delete again, as a fraction of the limit."""
_swept: set[Path] = set()
"""The directories in which this process has looked for temporary files of killed ones."""
_written: dict[Path, int] = {}
"""The size of the entries [bytes] that this process stored in a directory since then."""


class CacheInfo(NamedTuple):
    """The cache of compiled code: its directory (None: no cache), number of entries, their size and
    its limit [bytes].

    >>> print(CacheInfo(Path("cache"), entries=3, size=5 << 20, limit=512 << 20))
    cache: entries 3, size 5.0 MiB of at most 512.0 MiB
    """

    directory: Path | None
    entries: int
    size: int
    limit: int

    def __str__(self) -> str:
        if self.directory is None:
            return "no cache of compiled code"
        size, limit = (f"{bytes_ / 2**20:.1f} MiB" for bytes_ in (self.size, self.limit))
        return f"{self.directory}: entries {self.entries}, size {size} of at most {limit}"


def cache_info() -> CacheInfo:
    """The directory in which compiled code is kept, and how much of it there is.

    PHIPSI_CACHE_DIR sets the directory (`off`: no cache), PHIPSI_CACHE_SIZE the limit in bytes.

    Returns
    -------
    CacheInfo
        Directory (None: no cache), number of entries, their size [bytes] and its limit [bytes].

    Examples
    --------
    >>> import phipsi as pp
    >>> info = pp.cache_info()
    >>> info.directory is None or info.size >= info.entries
    True
    """
    entries = _files(_usable(), ".bin")
    return CacheInfo(_directory(), len(entries), sum(file.size for file in entries), _limit())


def clear_cache() -> int:
    """Delete all compiled code from the disk, and nothing else.

    Kernels that are loaded already keep their code.

    Returns
    -------
    int
        Number of deleted files.

    Examples
    --------
    >>> import phipsi as pp
    >>> pp.clear_cache()  # doctest: +SKIP
    12
    """
    directory = _usable()
    files = [*_files(directory, ".bin"), *_files(directory, ".tmp")]
    return sum(_removed(file.path) for file in files)


def load(key: str) -> bytes | None:
    """The code stored under a key; None if there is none, or none that can be trusted."""
    name = _name(key)
    directory = _usable()
    if directory is None:
        return None
    path = directory / name
    try:
        with open(path, "rb", opener=_opened) as file:
            info, most = os.fstat(file.fileno()), _room(_limit())
            if not stat.S_ISREG(info.st_mode):
                return None
            flaw = ownership.flaw(str(path), info)
            data = file.read(most) if flaw is None and info.st_size <= most else b""
    except OSError:
        return None
    if flaw is not None:
        _warn_unsafe(directory, flaw)
    code = data[_SEAL.size :]
    if data[: _SEAL.size] != _seal(key, code):
        _removed(path)
        return None
    with suppress(OSError):
        os.utime(path)  # the time of last use, by which `_trim` chooses
    return code


def _opened(path: str, flags: int) -> int:
    """Open a file but no link to one, and do not wait for the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def store(key: str, code: bytes) -> None:
    """Store code under a key, if the disk allows it; an earlier entry is replaced."""
    name, entry = _name(key), _seal(key, code) + code
    directory, limit = _usable(create=True), _limit()
    if directory is None:
        return
    try:
        unchanged = sources.unchanged()
    except OSError:
        return
    if not unchanged:
        return _warn(
            "compiled code is no longer kept on disk: the files of phipsi have changed since they "
            "were imported. Restart Python to run what they are now"
        )
    if len(entry) <= _room(limit):
        _write(directory / name, entry)
    written = _written.get(directory, limit) + len(entry)
    if written >= limit * _UNTRIMMED:
        _trim(directory, limit)
        written = 0
    _written[directory] = written


def _write(path: Path, entry: bytes) -> None:
    """Write the whole entry or nothing. There is no fsync: an entry that a power cut leaves
    half-written does not match its seal, and is compiled again."""
    temporary = path.with_suffix(f".{os.getpid()}-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb", opener=lambda file, flags: os.open(file, flags, 0o600)) as file:
            file.write(entry)
        os.replace(temporary, path)  # Windows refuses while another process reads
    except OSError:
        pass
    finally:
        _removed(temporary)


class _File(NamedTuple):
    """A file of the cache: its size [bytes] and time of last use [s]."""

    path: str
    size: int
    used: float


def _files(directory: Path | None, suffix: str) -> list[_File]:
    """The entries (".bin") or temporary files (".tmp") of the cache; links and files of other names
    are ignored."""
    files: list[_File] = []
    if directory is None:
        return files
    with suppress(OSError), os.scandir(directory) as items:
        for item in items:
            if item.name.endswith(suffix) and _OURS.fullmatch(item.name):
                with suppress(OSError):
                    info = item.stat(follow_symlinks=False)
                    if stat.S_ISREG(info.st_mode):
                        files.append(_File(item.path, info.st_size, info.st_mtime))
    return files


def _trim(directory: Path, limit: int) -> None:
    """Delete temporary files of killed processes and, above the limit, the least recently used
    entries."""
    _sweep(directory)
    entries = _files(directory, ".bin")
    total = sum(file.size for file in entries)
    for file in sorted(entries, key=lambda file: file.used) if total > limit else ():
        if total > _room(limit) and _removed(file.path):
            total -= file.size


def _room(limit: int) -> int:
    """The size that trimming leaves: 80 % of the limit, so that not every store trims. No entry may
    be larger."""
    return limit * 4 // 5


def _limit() -> int:
    setting = os.environ.get("PHIPSI_CACHE_SIZE") or str(DEFAULT_LIMIT)
    if re.fullmatch("[0-9]{1,18}", setting):
        return int(setting)
    _warn(f"PHIPSI_CACHE_SIZE={setting!r} is no number of bytes; {DEFAULT_LIMIT} is taken")
    return DEFAULT_LIMIT


def _directory() -> Path | None:
    """The directory of the cache, whether it exists or not; None if the cache is turned off or the
    user has no home directory."""
    setting = os.environ.get("PHIPSI_CACHE_DIR")
    try:
        if setting is not None:
            return None if setting.lower() in ("", "0", "off") else Path(setting).expanduser()
        if sys.platform == "win32":
            local = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
            return Path(local, "phipsi", "Cache")
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "phipsi"
        xdg = os.environ.get("XDG_CACHE_HOME", "")  # to be ignored if relative, says XDG
        return Path(xdg if os.path.isabs(xdg) else Path.home() / ".cache", "phipsi")
    except RuntimeError:
        return None


def _usable(create: bool = False) -> Path | None:
    """The directory, if it is there and no other user can put code in it."""
    directory = _directory()
    if directory is None:
        return None
    try:
        if create:
            _make(directory)
        flaw = ownership.flaw_of_directory(directory)
    except OSError:
        return None
    if flaw is not None:
        _warn_unsafe(directory, flaw)
        return None
    if directory not in _swept:
        _swept.add(directory)
        _sweep(directory)
    return directory


def _make(directory: Path) -> None:
    """Make a directory, and those above it, for the user alone."""
    if not directory.is_dir():
        with suppress(FileExistsError):  # another process was quicker
            _make(directory.parent)
            os.mkdir(directory, 0o700)


def _sweep(directory: Path) -> None:
    """Delete the temporary files of killed processes."""
    for file in _files(directory, ".tmp"):
        if file.used < time.time() - _ORPHANED:
            _removed(file.path)


def _warn_unsafe(directory: Path, flaw: str) -> None:
    _warn(
        f"compiled code in {directory} is not used: {flaw}. Change that (chown, or chmod go-w), or "
        "set PHIPSI_CACHE_DIR to another directory, or to off"
    )


@functools.cache
def _warn(message: str) -> None:
    """Issue a warning, once per process."""
    warn(message, RuntimeWarning)


def _name(key: str) -> str:
    if not re.fullmatch("[0-9a-f]{64}", key):
        raise ValueError(f"a cache key is a SHA-256 in lower-case hex, not {key!r}")
    return f"{key}.bin"


def _seal(key: str, code: bytes) -> bytes:
    digest = hashlib.sha256(bytes.fromhex(key))
    digest.update(code)
    return _SEAL.pack(_MAGIC, _VERSION, bytes.fromhex(key), len(code), digest.digest())


def _removed(path: str | Path) -> bool:
    """Delete a file; returns whether it is gone."""
    with suppress(OSError):
        Path(path).unlink(missing_ok=True)
        return True
    return False
