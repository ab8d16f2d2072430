"""Whatever a file holds, there is one ScenarioError or a scenario, never anything else."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phipsi.scenarios import SCENARIOS, Scenario, ScenarioError, load
from phipsi.scenarios.scenario import FILES
from phipsi.scenarios.schema import Document
from phipsi.scenarios.toml_reader import MAX_BYTES, At, parse, read, walk
from tests.each import each
from tests.scenarios.texts import PENDULUM

TEXTS = {name: (FILES / f"{name}.toml").read_text() for name in SCENARIOS}


def taken(content: bytes) -> str:
    """What it is refused with; empty if it is not."""
    start = time.process_time()
    try:
        Scenario.of(content, "my.toml", Path())
        return ""
    except ScenarioError as error:
        return str(error)
    finally:
        assert time.process_time() - start < 5.0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "title is missing"),
        (b"\x89PNG\r\n\x1a\n\0\0", "not UTF-8"),
        (b"\xff\xfet\0i\0", "not UTF-8"),
        (b"\0" * 100, "not TOML"),
        (b"a = " + b"[" * 100_000, "line 1: has more than 2,000 characters"),
        (b"a = " + b"[\n" * 100_000, "nests too deeply"),
        (b"a = " + b"[" * 50 + b"]" * 50, "nests more than 12"),
        (b"a = " + b"{a=" * 400 + b"1" + b"}" * 400, "nest"),
        (b".".join([b"a"] * 900) + b" = 1", "nests more than 12"),
        (b"\n".join(b"[%d.%s]" % (k, b".".join([b"a"] * 900)) for k in range(130)), "nests more"),
        (b".".join([b"a"] * 100_000) + b" = 1", "line 1: has more than 2,000 characters"),
        (b"a = " + b"9" * 1_900, "too large a number"),
        (b"a = 0x" + b"f" * 1_900, "too large a number"),
        (b"a = 1e999", "a is inf, but every number must be finite"),
        (b"a = -nan", "a is nan, but every number must be finite"),
        (b"a = 1979-05-27T07:32:00Z", "a is a datetime"),
        (b"# x\n" * MAX_BYTES, "has more than 256,000 bytes"),
        (b"x" * 10_000_000, "has more than 256,000 bytes"),
        (b"a = '''\n" + b"x = 1\n" * 40_000 + b"'''\n", "a is not known"),
        (b"\n".join(b"[[a%d]]" % k for k in range(20_000)), "a0 is not known"),
        (PENDULUM.encode() + b"[[events]]\n" * 20_000, "events has 20000 entries"),
        (b'"\\u202e" = 1', "characters that cannot be printed"),
        ("title = 'ß\u202e'".encode(), "title has characters that cannot be printed"),
        (b'title = "\\u001b[31mred"', "title has characters that cannot be printed"),
        ("title = 'ß'\nrobot = 3".encode(), "robot is 3, needs a table"),
    ],
)  # fmt: skip
def test_files_that_are_no_scenarios(content: bytes, said: str):
    assert said in taken(content)


LONG = "l" * 1_900
BODY = '[robot]\nbody = "{0}"\nmass = 1.0\nsides = [1, 1, 1]\nframes = {{ {0} = {{}} }}\n'
HEAD = 'title = "x"\n{}[simulation]\nduration = 0.1\ndt = 0.01\n'.format
PACKAGED = HEAD('[robot]\nname = "puma560"\n')


@each("text", [
    f"{LONG} = 1",
    f'{PACKAGED}[[closures]]\na = "{LONG}"\nb = "world"\n',
    f'{PACKAGED}[controller]\nlaw = "{LONG}"\n',
    f'{PACKAGED}[[events]]\nkind = "change"\ntime = 0.0\ncontroller = "{LONG}"\n',
    f"{PACKAGED}[start.q]\n{LONG} = 1",
    f'{PACKAGED}[start.q]\n"{"l " * 900}" = 1',
    f"{PACKAGED}[{'.'.join(['start', 'q', *['l' * 200] * 9])}]",
    HEAD(BODY.format("l" * 900)) + '[output]\nframes = ["m"]\n',
    HEAD(BODY.format("l" * 900)) + f'[output]\nframes = ["{"l" * 899}m"]\n',
])  # fmt: skip
def test_long_names_are_cut_in_messages(text: str):
    with pytest.raises(ScenarioError) as caught:
        _ = Scenario.of(text.encode(), "my.toml", Path()).start
    assert len(str(caught.value)) < 800


def test_a_large_file_is_not_read(tmp_path: Path):
    path = tmp_path / "large.toml"
    with open(path, "wb") as file:
        file.truncate(1 << 36)  # sparse
    with pytest.raises(ScenarioError, match="bytes"):
        load(path)


WRONG: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["free", "tool", "pose_feedback", "loop", "failure", "world", "space_arm"]),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=5), x, max_size=3),
    max_leaves=5,
)  # fmt: skip


def put(tables: Any, path: tuple[str | int, ...], value: Any) -> None:
    *inner, last = path
    for step in inner:
        tables = tables[step]
    if value is None:
        del tables[last]
    else:
        tables[last] = value


@pytest.mark.parametrize("name", SCENARIOS)
@given(data=st.data())
def test_anything_in_the_place_of_any_value(name: str, data: st.DataObject):
    tables, at = parse(TEXTS[name].encode(), "my.toml")
    paths = sorted((path for path, _ in walk(tables) if path), key=repr)
    put(tables, data.draw(st.sampled_from(paths)), data.draw(WRONG))
    check(tables, at)


@given(tables=st.dictionaries(st.sampled_from(
    ["title", "robot", "start", "simulation", "closures", "controller", "events", "output", "x"]
), WRONG, max_size=6))  # fmt: skip
def test_anything_as_tables(tables: dict[str, Any]):
    check(tables, At("my.toml"))


def check(tables: dict[str, Any], at: At) -> None:
    """Values that TOML cannot have are checked too: they come from `changed`."""
    try:
        document = read(Document, tables, at)
        Scenario.made(document, b"", Path())
    except ScenarioError as error:
        assert str(error).startswith("my.toml") and "\n" not in str(error)


@given(st.binary(max_size=60), st.integers(0, len(PENDULUM)))
def test_bytes_in_a_scenario(noise: bytes, at: int):
    text = PENDULUM.encode()
    taken(text[:at] + noise + text[at:])


@given(st.text(max_size=200))
def test_texts(text: str):
    taken(text.encode("utf-8", "replace"))
