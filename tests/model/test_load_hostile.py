"""Whatever a stranger hands to `load` is read or refused: one sentence, bounded time and memory."""

import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import phipsi as pp
from phipsi.model import untrusted
from phipsi.model.json import to_json
from phipsi.model.untrusted import MAX_BYTES

URDF = """<?xml version="1.0"?>
<robot name="arm">
  <link name="base"/>
  <link name="link">
    <inertial>
      <origin xyz="0 0 0.1" rpy="0 0 0"/><mass value="1.5"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>
    </inertial>
  </link>
  <joint name="joint" type="revolute">
    <parent link="base"/><child link="link"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/>
  </joint>
</robot>
"""
LAUGHS = (
    '<!DOCTYPE robot [<!ENTITY a "ha">'
    + "".join(
        f'<!ENTITY {y} "{f"&{x};" * 10}">' for x, y in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + ']><robot name="&i;"/>'
)
EXTERNAL = '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="&x;"/>'
BLOWUP = f'<!DOCTYPE robot [<!ENTITY a "{"x" * 10**5}">]><robot name="{"&a;" * 10**4}"/>'


def refused(source, message: str, **options) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(pp.ModelError, match=message) as caught:
            pp.load(source, **options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 400
    assert peak < 20 * MAX_BYTES


TEXTS = {
    "billion laughs": (LAUGHS, "DOCTYPE, entities or external references"),
    "quadratic blowup": (BLOWUP, "DOCTYPE, entities or external references"),
    "external entity": (EXTERNAL, "DOCTYPE, entities or external references"),
    "external DTD": ('<!DOCTYPE robot SYSTEM "http://a.b/c"><robot/>', "DOCTYPE"),
    "undefined entity": ('<robot name="&x;"/>', "not well-formed"),
    "deep nesting": ("<a>" * 10**6, "nests more than 1000"),
    "deep MJCF": ("<mujoco><worldbody>" + "<body>" * 10**6, "nests more than 1000"),
    "deep JSON": ('{"phipsi":' + "[" * 10**6, "nested too deeply"),
    "deep JSON objects": ('{"a":' * 10**6, "nested too deeply"),
    "many elements": ("<robot>" + "<a/>" * 600_000, "more than 500,000 elements"),
    "one long token": ("<robot name='" + "x" * 20_000_000, "not well-formed"),
    "one long tag": ("<" + "x" * 20_000_000 + ">", "not well-formed"),
    "many attributes": (
        "<robot " + " ".join(f'a{i}="0"' for i in range(1_100_000)) + "/>",
        "more than 1,000,000 attributes",
    ),
    "100 MB of text": ("<robot>" + "x" * 100_000_000, "at most 64,000,000"),
    "truncated": (URDF[: len(URDF) // 2], "not well-formed"),
    "mismatched": ("<robot><link></robot>", "not well-formed"),
    "two roots": (URDF + "<robot/>", "not well-formed"),
    "null byte": (URDF.replace("arm", "a\0m"), "null character"),
    "NaN": (URDF.replace('value="1.5"', 'value="NaN"'), "'NaN', but every number must be finite"),
    "infinity": (URDF.replace('value="1.5"', 'value="-inf"'), "must be finite"),
    "1e400": (URDF.replace('value="1.5"', 'value="1e400"'), "'1e400', but every number"),
    "1e400 origin": (URDF.replace("0 0 0.1", "0 0 1e400"), "must be finite"),
    "overflow": (
        URDF.replace('value="1.5"', 'value="1e300"').replace("0 0 0.1", "0 0 1e300"),
        "'link': inertia is .*, but every number must be finite",
    ),
    "hexadecimal": (URDF.replace("1.5", "0x10"), "'0x10', which is not a number"),
    "underscores": (URDF.replace("1.5", "1_5"), "'1_5', which is not a number"),
    "other digits": (URDF.replace("1.5", "\u0661"), "not a number"),
    "long number": (URDF.replace("1.5", "1" * 10**6), "must be finite"),
    "long name": (URDF.replace('"joint"', f'"{"j" * 10**6}"'), "at most 1000 characters"),
    "control name": (URDF.replace('"joint"', '"a&#10;b"'), "printable"),
    "surrogate": (URDF.replace("arm", "\ud800"), "not XML|not UTF-8|printable"),
    "no robot": ("<html></html>", "'html', but a robot is <robot>"),
    "only a comment": ("<!-- robot -->", "not well-formed"),
    "self mimic": (URDF.replace("</joint>", "<mimic/></joint>"), "has no name"),
}  # fmt: skip


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("what", TEXTS)
def test_hostile_text(what: str):
    refused(*TEXTS[what])


FILES = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\t ", "is empty"),
    "binary": (bytes(range(256)) * 100, "not UTF-8"),
    "null bytes": (b"\0" * 10_000, "null character"),
    "UTF-16": (URDF.encode("utf-16"), "UTF-16"),
    "UTF-16 without mark": (URDF.encode("utf-16-le"), "null character"),
    "UTF-32": (URDF.encode("utf-32"), "UTF-16|null character|not UTF-8"),
    "latin-1": (URDF.replace("arm", "bras à").encode("latin-1"), "not UTF-8"),
    "gzip": (b"\x1f\x8b\x08\x00" + b"\xaa" * 1000, "not UTF-8"),
    "prose": (b"A robot walks into a bar.", "neither XML nor JSON"),
    "latin-1 declared": (
        b'<?xml version="1.0" encoding="ISO-8859-1"?><robot name="\xe9"/>',
        "not UTF-8",
    ),
    "wrong JSON": (b'{"phipsi": 3}', "version 3"),
}


@pytest.mark.parametrize("what", FILES)
def test_hostile_file(what: str, tmp_path: Path):
    path = tmp_path / "robot.urdf"
    content, message = FILES[what]
    path.write_bytes(content)
    refused(path, message)
    refused(path, "'robot.urdf': ")


def test_huge_file_is_not_read(tmp_path: Path):
    path = tmp_path / "huge.urdf"
    with path.open("wb") as file:
        file.write(b"<robot>")
        file.truncate(100_000_000)
    refused(path, "'.*huge.urdf.* has 100,000,000 bytes")


def test_directory(tmp_path: Path):
    refused(tmp_path, "is a directory")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_what_is_not_a_file(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "not a regular file")


@pytest.mark.parametrize("source", ["nowhere.urdf", "ur5", "", "a robot"])
def test_missing_file(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((FileNotFoundError, pp.ModelError)) as caught:
        pp.load(source)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("source", ["a\0b", "x" * 100_000, "line\n" * 1000])
def test_what_is_no_path(source: str):
    with pytest.raises((FileNotFoundError, pp.ModelError)) as caught:
        pp.load(source)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("source", [None, 7, [], {}])
def test_what_is_no_source(source: object):
    refused(source, "load needs a path, XML or JSON")


def test_unknown_format():
    refused(URDF, "needs 'urdf', 'mjcf' or 'json'", format="sdf")
    refused(URDF, "but an MJCF has <mujoco>", format="mjcf")
    refused(URDF, "not JSON", format="json")


def test_base_is_for_urdf():
    refused(to_json(pp.load(URDF)), "base='free' is for URDF", base="free")


def test_the_content_decides(tmp_path: Path):
    robot = pp.load(URDF)
    assert pp.load(URDF.encode()) == robot
    assert pp.load("\ufeff \n" + URDF.partition("?>")[2]) == robot
    path = tmp_path / "no_suffix"
    path.write_text(URDF, encoding="utf-8-sig")
    assert pp.load(path) == pp.load(str(path)) == robot


def test_save_and_load(tmp_path: Path):
    robot, path = pp.load(URDF), tmp_path / "arm.json"
    path.write_text("something older")
    pp.save(robot, path)
    assert pp.load(path).key == robot.key
    assert [p.name for p in tmp_path.iterdir()] == ["arm.json"]


def test_what_load_would_refuse_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    robot, path = pp.load(URDF), tmp_path / "arm.json"
    for limit, message in (("MAX_PARTS", "at most 0 are read"), ("MAX_BYTES", "at most 0 are")):
        with monkeypatch.context() as patch, pytest.raises(pp.ModelError, match=message):
            patch.setattr(untrusted, limit, 0)
            pp.save(robot, path)
    assert not path.exists()


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "arm.json"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        pp.save(pp.load(URDF), path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["arm.json"]


@given(st.integers(0, len(URDF) - 1), st.integers(0, 40), st.text(max_size=8))
def test_a_damaged_urdf_is_read_or_refused(start: int, cut: int, put: str):
    damaged = URDF[:start] + put + URDF[start + cut :]
    try:
        pp.load("<" + damaged[1:])
    except pp.ModelError as error:
        assert "\n" not in str(error)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(content: bytes):
    with pytest.raises(pp.ModelError) as caught:
        pp.load(content)
    assert "\n" not in str(caught.value)
