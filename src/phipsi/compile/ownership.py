"""Whether another user of this machine could put a file in a directory: owners and modes of the
directory and of every folder and link on the way to it, as sshd asks of the keys of a user."""

from __future__ import annotations

import os
import stat
import sys
from collections import deque
from collections.abc import Iterator
from functools import cache
from pathlib import Path

if sys.platform != "win32":
    import grp
    import pwd

MOST_LINKS = 40
"""The most links that are followed, as Linux does."""


def flaw(path: str, info: os.stat_result) -> str | None:
    """One clause that says why a file or directory is not the user's alone; None if it is."""
    if sys.platform == "win32":
        return None  # the profile of a user is theirs by its access list
    if info.st_uid != os.geteuid():
        return f"{path} belongs to another user"
    writable = info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return f"{path} can be written by others" if writable else None


def flaw_of_directory(directory: Path) -> str | None:
    """The same of a directory, and of all on the way to it.

    A folder there must belong to the user or to root, or whom the root directory belongs to: in a
    container root may have another number. Others may write in it if it is sticky, as /tmp is: they
    cannot rename what is not theirs. So may a group that has the name of the owner, and no other
    member: such a group is what many systems give to each user, with a umask of 002.
    """
    if sys.platform == "win32":
        return None
    *way, (last, info) = _way(directory)
    if not stat.S_ISDIR(info.st_mode):
        raise NotADirectoryError(last)
    owners = {0, os.geteuid(), way[0][1].st_uid if way else 0}
    for path, place in way:
        if place.st_uid not in owners:
            return f"{path} belongs to another user"
        shared = place.st_mode & stat.S_IWOTH
        if place.st_mode & stat.S_IWGRP and not _of_one(place.st_gid, place.st_uid):
            shared |= stat.S_IWGRP
        if shared and not place.st_mode & stat.S_ISVTX and not stat.S_ISLNK(place.st_mode):
            return f"{path} can be written by others"
    return flaw(last, info)


def _way(directory: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Every folder and link on the way to a directory from the root on, and the directory."""
    here, *names = directory.absolute().parts
    yield here, os.stat(here)
    ahead, links = deque(names), 0
    while ahead:
        name = ahead.popleft()
        path = os.path.dirname(here) if name == ".." else os.path.join(here, name)
        info = os.stat(path, follow_symlinks=False)
        yield path, info
        if not stat.S_ISLNK(info.st_mode):
            here = path
            continue
        links += 1
        if links > MOST_LINKS:
            raise OSError(f"{directory} has too many links on the way")
        target = Path(os.readlink(path))
        ahead.extendleft(reversed(target.parts[target.is_absolute() :]))
        here = target.anchor or here


@cache
def _of_one(group: int, user: int) -> bool:
    """Whether a group has the name of a user, and no other member."""
    if sys.platform == "win32":
        return False
    try:
        name, found = pwd.getpwuid(user).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return found.gr_name == name and {*found.gr_mem} <= {name}
