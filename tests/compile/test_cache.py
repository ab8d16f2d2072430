"""The disk cache gives back what was stored or nothing, whatever happens to the disk."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import signal
import stat
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from phipsi.compile import cache, ownership

posix = pytest.mark.skipif(sys.platform == "win32", reason="owners and modes are POSIX")
MINUTE = 60


def key(i: object) -> str:
    return hashlib.sha256(str(i).encode()).hexdigest()


def code(i: object, blocks: int = 4) -> bytes:
    return hashlib.sha256(f"code {i}".encode()).digest() * blocks


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for every test; not yet there."""
    monkeypatch.setenv("PHIPSI_CACHE_DIR", str(tmp_path / "deep" / "cache"))
    monkeypatch.delenv("PHIPSI_CACHE_SIZE", raising=False)
    cache._warn.cache_clear()
    return tmp_path / "deep" / "cache"


def entry(place: Path, i: object) -> Path:
    return place / f"{key(i)}.bin"


def names(place: Path) -> set[str]:
    return {path.name for path in place.iterdir()}


def put(path: Path, data: bytes | bytearray) -> None:
    """Write a file that is trusted for its owner and mode, whatever the umask."""
    path.touch(mode=0o600)
    path.write_bytes(data)


def aged(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_round_trip(place: Path) -> None:
    assert cache.load(key(1)) is None
    assert not place.exists()
    for i, stored in enumerate([b"", b"\x00", code(1), os.urandom(1 << 20)]):
        cache.store(key(i), stored)
        assert cache.load(key(i)) == stored
    cache.store(key(1), b"another")
    assert cache.load(key(1)) == b"another"
    assert cache.load(key(99)) is None
    assert names(place) == {entry(place, i).name for i in range(4)}


@posix
def test_only_the_user_can_read_and_write(place: Path) -> None:
    old = os.umask(0)
    try:
        cache.store(key(1), code(1))
    finally:
        os.umask(old)
    for made in (place, place.parent):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert stat.S_IMODE(entry(place, 1).stat().st_mode) == 0o600
    assert cache.load(key(1)) == code(1)


@pytest.mark.parametrize("wrong", ["", "../" + "0" * 61, "A" * 64, "0" * 63, "0" * 64 + "\n"])
def test_a_key_is_a_hash(wrong: str) -> None:
    with pytest.raises(ValueError, match="key"):
        cache.load(wrong)
    with pytest.raises(ValueError, match="key"):
        cache.store(wrong, b"")


def test_the_seal(place: Path) -> None:
    cache.store(key(1), b"machine code")
    hashed = bytes.fromhex(key(1))
    digest = hashlib.sha256(hashed + b"machine code").digest()
    head = b"phipsi\r\n" + (1).to_bytes(4, "little") + hashed + (12).to_bytes(8, "little")
    assert entry(place, 1).read_bytes() == head + digest + b"machine code"


def test_every_flipped_byte_is_noticed(place: Path) -> None:
    cache.store(key(1), code(1))
    whole = entry(place, 1).read_bytes()
    for offset in range(len(whole)):
        for flip in (0x01, 0x80, 0xFF):
            broken = bytearray(whole)
            broken[offset] ^= flip
            put(entry(place, 1), broken)
            assert cache.load(key(1)) is None, (offset, flip)
            assert not entry(place, 1).exists(), (offset, flip)
    put(entry(place, 1), whole)
    assert cache.load(key(1)) == code(1)


def test_every_truncation_and_addition_is_noticed(place: Path) -> None:
    cache.store(key(1), code(1))
    whole = entry(place, 1).read_bytes()
    for broken in [whole[:n] for n in range(len(whole))] + [whole + b"\x00", whole * 2]:
        put(entry(place, 1), broken)
        assert cache.load(key(1)) is None, len(broken)
        assert not entry(place, 1).exists(), len(broken)
    put(entry(place, 1), whole)
    assert cache.load(key(1)) == code(1)


def test_a_renamed_entry_is_noticed(place: Path) -> None:
    cache.store(key(1), code(1))
    os.replace(entry(place, 1), entry(place, 2))
    assert cache.load(key(2)) is None
    assert names(place) == set()


@posix
def test_a_link_is_not_followed(place: Path) -> None:
    cache.store(key(1), code(1))
    elsewhere = place.parent / "elsewhere.bin"
    os.replace(entry(place, 1), elsewhere)
    entry(place, 1).symlink_to(elsewhere)
    assert cache.load(key(1)) is None
    assert cache.cache_info().entries == cache.clear_cache() == 0
    before = elsewhere.read_bytes()
    cache.store(key(1), b"new")
    assert cache.load(key(1)) == b"new"
    assert not entry(place, 1).is_symlink()
    assert elsewhere.read_bytes() == before


def test_remains_of_killed_processes_go_after_a_minute(place: Path) -> None:
    """When a process first looks into the directory, and when it trims it."""
    place.mkdir(mode=0o700, parents=True)
    old = place / f"{key(1)}.123-0123456789abcdef.tmp"
    young = place / f"{key(1)}.124-0123456789abcdef.tmp"
    foreign = place / "notes.tmp"

    def left() -> None:
        for path, age in ((old, 1.5 * MINUTE), (young, 0.2 * MINUTE), (foreign, 900 * MINUTE)):
            path.write_bytes(b"half")
            aged(path, age)

    left()
    assert cache.load(key(2)) is None
    assert names(place) == {young.name, foreign.name}
    left()
    cache.store(key(2), code(2))
    assert names(place) == {young.name, foreign.name, entry(place, 2).name}


def test_the_least_recently_used_go_first(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store(key(0), code(0))
    size = entry(place, 0).stat().st_size
    monkeypatch.setenv("PHIPSI_CACHE_SIZE", str(10 * size))
    for i in range(10):
        cache.store(key(i), code(i))
        aged(entry(place, i), 1000 - i)
    assert cache.cache_info() == (place, 10, 10 * size, 10 * size)
    assert cache.load(key(0)) == code(0)  # which makes it the youngest
    cache.store(key(10), code(10))
    kept = {i for i in range(11) if entry(place, i).exists()}
    assert kept == {0, 4, 5, 6, 7, 8, 9, 10}
    for i in range(11, 60):
        cache.store(key(i), code(i))
        assert cache.cache_info().size <= 10 * size
        assert cache.load(key(i)) == code(i)


def test_a_large_cache_is_not_scanned_at_each_store(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is after every 1/64 of its limit, so that it stays below the limit by and large."""
    scans: list[int] = []
    trim = cache._trim

    def noted(directory: Path, limit: int) -> None:
        scans.append(limit)
        trim(directory, limit)

    monkeypatch.setattr(cache, "_trim", noted)
    cache.store(key(0), code(0))
    size = entry(place, 0).stat().st_size
    monkeypatch.setenv("PHIPSI_CACHE_SIZE", str(640 * size))
    for i in range(1, 1000):
        cache.store(key(i), code(i))
        assert i % 100 or cache.cache_info().size <= 650 * size
    assert 80 <= len(scans) <= 101
    assert cache.load(key(0)) is None
    assert cache.load(key(999)) == code(999)


def test_an_entry_beyond_the_bound_drives_nothing_out(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.store(key(1), code(1))
    monkeypatch.setenv("PHIPSI_CACHE_SIZE", "1000")
    cache.store(key(2), bytes(900))
    assert cache.load(key(2)) is None
    assert cache.load(key(1)) == code(1)
    monkeypatch.setenv("PHIPSI_CACHE_SIZE", "0")
    cache.store(key(3), b"")
    assert names(place) == set()


@pytest.mark.parametrize("wrong", ["512MB", "-1", "1e9", "9" * 5000])
def test_a_wrong_size_warns_once(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("PHIPSI_CACHE_SIZE", wrong)
    with pytest.warns(RuntimeWarning, match="PHIPSI_CACHE_SIZE") as caught:
        cache.store(key(1), code(1))
        cache.store(key(2), code(2))
        assert cache.cache_info().limit == cache.DEFAULT_LIMIT == 512 * 1024 * 1024
    assert len(caught) == 1
    assert cache.load(key(1)) == code(1)


@posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_directory_others_can_write_is_not_used(place: Path, mode: int) -> None:
    cache.store(key(1), code(1))
    place.chmod(mode)
    with pytest.warns(RuntimeWarning, match=r"chmod.*PHIPSI_CACHE_DIR") as caught:
        assert cache.load(key(1)) is None
        cache.store(key(2), code(2))
        assert cache.load(key(1)) is None
        assert cache.cache_info().entries == cache.clear_cache() == 0
    assert len(caught) == 1
    assert str(place) in str(caught[0].message)
    assert names(place) == {entry(place, 1).name}
    place.chmod(0o755)
    assert cache.load(key(1)) == code(1)


@posix
def test_a_directory_of_another_user_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store(key(1), code(1))
    stranger = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: stranger)
    with pytest.warns(RuntimeWarning, match="another user"):
        assert cache.load(key(1)) is None


class Faked:
    """Owners, groups and modes of paths, as `os.stat` shall tell them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.owners: dict[Path, int] = {}
        self.modes: dict[Path, int] = {}
        real = os.stat

        def told(path: Any, *args: Any, **named: Any) -> os.stat_result:
            info, where = real(path, *args, **named), Path(str(path))
            if where not in (*self.owners, *self.modes):
                return info
            mode, *rest = info
            rest[3] = self.owners.get(where, rest[3])
            rest[4] = OWN_GROUP
            return os.stat_result((self.modes.get(where, mode), *rest))

        monkeypatch.setattr(os, "stat", told)


OWN_GROUP = 4711


@pytest.fixture
def faked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Faked]:
    """All files are of a group that only the user is a member of."""
    import grp
    import pwd

    me = pwd.getpwuid(os.geteuid()).pw_name
    mine = grp.struct_group((me, "x", OWN_GROUP, [me]))
    monkeypatch.setattr(grp, "getgrgid", lambda _: mine)
    ownership._of_one.cache_clear()
    yield Faked(monkeypatch)
    ownership._of_one.cache_clear()


FOLDER, LINK = stat.S_IFDIR, stat.S_IFLNK


@posix
@pytest.mark.parametrize(
    ("mode", "safe"),
    [
        (FOLDER | 0o755, True), (FOLDER | 0o775, True), (FOLDER | 0o2775, True),
        (FOLDER | 0o777, False), (FOLDER | 0o757, False), (FOLDER | 0o1777, True),
    ],
)  # fmt: skip
def test_a_folder_on_the_way_that_others_can_write(
    place: Path, faked: Faked, mode: int, safe: bool
) -> None:
    """They could put a directory of their own in the place of the cache."""
    cache.store(key(1), code(1))
    above = place.parent.parent
    faked.modes[above] = mode
    if safe:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert cache.load(key(1)) == code(1)
        return
    with pytest.warns(RuntimeWarning, match=f"{above} can be written by others"):
        assert cache.load(key(1)) is None
        cache.store(key(2), code(2))
    assert names(place) == {entry(place, 1).name}


@posix
@pytest.mark.parametrize("members", [["another"], ["another", "me"]])
def test_a_folder_on_the_way_that_a_group_can_write(
    place: Path, faked: Faked, monkeypatch: pytest.MonkeyPatch, members: list[str]
) -> None:
    import grp

    cache.store(key(1), code(1))
    faked.modes[place.parent] = FOLDER | 0o775
    real = grp.getgrgid(OWN_GROUP)
    ours = grp.struct_group((real.gr_name, "x", OWN_GROUP, members))
    staff = grp.struct_group(("staff", "x", OWN_GROUP, []))
    for group in (ours, staff):
        ownership._of_one.cache_clear()
        cache._warn.cache_clear()
        monkeypatch.setattr(grp, "getgrgid", lambda _, group=group: group)
        with pytest.warns(RuntimeWarning, match=f"{place.parent} can be written by others"):
            assert cache.load(key(1)) is None


@posix
def test_a_folder_or_link_on_the_way_of_another_user(
    place: Path, faked: Faked, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.store(key(1), code(1))
    link = place.parent.parent / "link"
    link.symlink_to(place.parent.name)  # a relative one
    monkeypatch.setenv("PHIPSI_CACHE_DIR", str(link / "cache"))
    assert cache.load(key(1)) == code(1)
    stranger = os.geteuid() + 1
    for path in (link, place.parent):
        faked.owners = {path: stranger}
        with pytest.warns(RuntimeWarning, match=f"{path} belongs to another user"):
            assert cache.load(key(1)) is None
    faked.owners = {place.parent: 0}
    assert cache.load(key(1)) == code(1)  # root may do anything anyway
    faked.owners = {path: stranger for path in (Path("/"), place.parent)}
    assert cache.load(key(1)) == code(1)  # root has another number in a container
    assert cache.load(key(2)) is None


@posix
def test_links_that_lead_nowhere_or_in_a_circle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").symlink_to(tmp_path / "nothing" / "there")
    (tmp_path / "round").symlink_to("round")
    for name in ("gone", "round", "round/cache", "gone/../cache"):
        monkeypatch.setenv("PHIPSI_CACHE_DIR", str(tmp_path / name))
        cache.store(key(1), code(1))
        assert cache.load(key(1)) is None
        assert cache.cache_info().entries == 0


@posix
def test_a_link_to_the_directory_is_followed(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.store(key(1), code(1))
    (tmp_path / "link").symlink_to(place)
    (tmp_path / "second").symlink_to("link")
    for name in ("link", "second", "deep/../second", "link/../cache"):
        monkeypatch.setenv("PHIPSI_CACHE_DIR", str(tmp_path / name))
        assert cache.load(key(1)) == code(1), name


@posix
def test_what_is_no_regular_file_is_not_opened_for_long(place: Path) -> None:
    """A pipe with nobody at the other end, a device without end, a folder."""
    cache.store(key(0), code(0))
    os.mkfifo(entry(place, 1), 0o600)
    entry(place, 2).mkdir()
    for i in (1, 2):
        assert cache.load(key(i)) is None
    assert cache.cache_info().entries == 1
    cache.store(key(1), code(1))
    assert cache.load(key(1)) == code(1)


@posix
def test_an_entry_larger_than_any_is_not_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHIPSI_CACHE_SIZE", "1000000")
    cache.store(key(1), code(1))
    with open(entry(place, 1), "r+b") as file:
        file.truncate(1 << 40)  # a hole
    assert cache.load(key(1)) is None
    assert names(place) == set()


@posix
def test_an_entry_others_can_write_is_not_used(place: Path) -> None:
    cache.store(key(1), code(1))
    entry(place, 1).chmod(0o666)
    with pytest.warns(RuntimeWarning, match="can be written by others") as caught:
        assert cache.load(key(1)) is None
    assert len(caught) == 1
    cache.store(key(1), code(1))
    assert cache.load(key(1)) == code(1)


@posix
def test_a_read_only_directory_is_read(place: Path) -> None:
    cache.store(key(1), code(1))
    place.chmod(0o500)
    if os.access(place, os.W_OK):
        pytest.skip("root may write everywhere")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.load(key(1)) == code(1)
        cache.store(key(2), code(2))
        assert cache.load(key(2)) is None
        assert cache.clear_cache() == 0
    place.chmod(0o700)


@pytest.mark.parametrize(
    "fails", ["open", "replace", "mkdir", "stat", "scandir", "utime", "unlink"]
)
@pytest.mark.parametrize("error", [errno.EROFS, errno.ENOSPC, errno.EACCES, errno.EIO])
def test_errors_of_the_disk_are_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str, error: int
) -> None:
    cache.store(key(1), code(1))
    if fails == "mkdir":
        monkeypatch.setenv("PHIPSI_CACHE_DIR", str(tmp_path / "another" / "cache"))
    calls = []

    def fail(*_: Any, **__: Any) -> None:
        calls.append(fails)
        raise OSError(error, os.strerror(error))

    with warnings.catch_warnings(), monkeypatch.context() as broken:
        warnings.simplefilter("error")
        broken.setattr(os, fails, fail)
        cache.store(key(2), code(2))
        assert cache.load(key(1)) in (None, code(1))
        assert cache.load(key(2)) in (None, code(2))
        cache.cache_info()
        cache.clear_cache()
    assert calls
    cache.store(key(3), code(3))
    assert cache.load(key(3)) == code(3)


def test_refused_replacement_leaves_nothing_behind(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.store(key(1), code(1))

    def refuse(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "replace", refuse)
    cache.store(key(1), b"new")
    assert cache.load(key(1)) == code(1)
    assert names(place) == {entry(place, 1).name}


def test_no_directory_can_be_made(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.parent.write_text("a file in the way")
    cache.store(key(1), code(1))
    assert cache.load(key(1)) is None
    monkeypatch.setenv("PHIPSI_CACHE_DIR", str(place.parent))  # the file itself
    cache.store(key(1), code(1))
    assert cache.load(key(1)) is None
    assert cache.cache_info().entries == cache.clear_cache() == 0


@pytest.mark.parametrize("setting", ["", "off", "OFF", "0"])
def test_turned_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, setting: str) -> None:
    monkeypatch.setenv("PHIPSI_CACHE_DIR", setting)
    monkeypatch.chdir(tmp_path)
    cache.store(key(1), code(1))
    assert cache.load(key(1)) is None
    assert cache.cache_info() == (None, 0, 0, cache.DEFAULT_LIMIT)
    assert str(cache.cache_info()) == "no cache of compiled code"
    assert cache.clear_cache() == 0
    assert names(tmp_path) == set()


def test_the_directory_of_each_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def directory(platform: str, **variables: str) -> Path | None:
        with monkeypatch.context() as patch:
            for name in ("PHIPSI_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
                patch.delenv(name, raising=False)
            for name, value in variables.items():
                patch.setenv(name, value)
            patch.setattr(sys, "platform", platform)
            return cache.cache_info().directory

    xdg = str(tmp_path / "xdg")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert directory("linux") == tmp_path / ".cache" / "phipsi"
    assert directory("linux", XDG_CACHE_HOME=xdg) == tmp_path / "xdg" / "phipsi"
    assert directory("linux", XDG_CACHE_HOME="relative") == tmp_path / ".cache" / "phipsi"
    assert directory("darwin", XDG_CACHE_HOME=xdg) == tmp_path / "Library" / "Caches" / "phipsi"
    assert directory("win32", LOCALAPPDATA=xdg) == tmp_path / "xdg" / "phipsi" / "Cache"
    assert directory("linux", PHIPSI_CACHE_DIR=xdg) == tmp_path / "xdg"

    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", homeless)
    assert directory("linux") is directory("darwin") is directory("win32") is None
    monkeypatch.delenv("PHIPSI_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if sys.platform != "win32":
        cache.store(key(1), code(1))
        assert cache.load(key(1)) is None


def test_clear_leaves_other_files_alone(place: Path) -> None:
    for i in range(3):
        cache.store(key(i), code(i))
    (place / f"{key(1)}.123-0123456789abcdef.tmp").write_bytes(b"half")
    foreign = {"notes.txt", "x.bin", f"{key(1)}.bin.bak", f"{key(1)}.tmp", f"x{key(1)}.bin"}
    for name in foreign:
        (place / name).write_text("mine")
    (place / f"{key(9)}.bin").mkdir()
    assert cache.cache_info().entries == 3
    assert cache.clear_cache() == 4
    assert names(place) == foreign | {f"{key(9)}.bin"}
    assert cache.cache_info() == (place, 0, 0, cache.DEFAULT_LIMIT)
    assert cache.load(key(9)) is None
    assert cache.load(key(1)) is None


def script(text: str, *args: object, **options: Any) -> subprocess.Popen[str]:
    """A process with this module's `key` and `code` at hand."""
    head = (
        "import hashlib, os, random, sys\nfrom phipsi.compile import cache\n"
        "def key(i): return hashlib.sha256(str(i).encode()).hexdigest()\n"
        "def code(i, n=4): return hashlib.sha256(f'code {i}'.encode()).digest() * n\n"
    )
    command = [sys.executable, "-c", head + text, *map(str, args)]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, **options)


@posix
def test_a_full_disk_keeps_no_half_entry(place: Path) -> None:
    cache.store(key(1), code(1))
    limited = script(
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        "cache.store(key(2), code(2, 1000))\n"
        "print(cache.load(key(2)), cache.load(key(1)) == code(1))\n"
    )
    assert limited.communicate()[0].split() == ["None", "True"]
    assert names(place) == {entry(place, 1).name}


TOGETHER = """
writer, tight = sys.argv[1], sys.argv[2] == "tight"
draw, hits = random.Random(writer), 0
for round in range(300):
    i = draw.randrange(12)
    if draw.random() < 0.5:
        cache.store(key(i), code((i, writer), 2000))
        assert tight or os.name == "nt" or cache.load(key(i)) is not None, "the entry was away"
    found = cache.load(key(i))
    if found is not None:
        assert found in [code((i, str(w)), 2000) for w in range(8)], "wrong bytes"
        hits += 1
print(hits)
"""


@pytest.mark.parametrize("bound", ["roomy", "tight"])
def test_many_processes_at_once(place: Path, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    """All write the same dozen keys, each its own code: every load is one of them, whole."""
    if bound == "tight":  # entries are driven out all the while
        monkeypatch.setenv("PHIPSI_CACHE_SIZE", str(6 * 64_100))
    processes = [script(TOGETHER, writer, bound) for writer in range(8)]
    hits = [int(process.communicate()[0] or -1) for process in processes]
    assert [process.returncode for process in processes] == [0] * 8
    assert min(hits) > 20
    assert all(name.endswith(".bin") for name in names(place))
    for i in range(12):
        assert cache.load(key(i)) in [None] + [code((i, str(w)), 2000) for w in range(8)]


KILLED = """
print("ready", flush=True)
while True:
    for i in range(4):
        cache.store(key(i), code(i, 250_000))
        print("stored", flush=True)
"""


@posix
def test_killed_while_storing(place: Path) -> None:
    draw = random.Random(0)
    for k in range(10):
        process = script(KILLED)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if k % 2:  # half of them after a store at least, however slow the machine is
            assert process.stdout.readline() == "stored\n"
        time.sleep(draw.uniform(0.0, 0.1))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        for i in range(4):
            assert cache.load(key(i)) in (None, code(i, 250_000))
    assert any(cache.load(key(i)) for i in range(4))
    for path in place.glob("*.tmp"):
        aged(path, 2 * MINUTE)
    for i in range(4):
        cache.store(key(i), code(-i))
        assert cache.load(key(i)) == code(-i)
    assert names(place) == {entry(place, i).name for i in range(4)}
