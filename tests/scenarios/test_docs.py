"""The page about scenarios tells the truth."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from phipsi.scenarios import LAWS, schema
from phipsi.scenarios.pose_spec import PoseSpec
from tests.scenarios.texts import read

PAGE = (Path(__file__).parents[2] / "docs/scenarios.md").read_text(encoding="utf-8")
TABLES = [
    PoseSpec, schema.Packaged, schema.FromFile, schema.BodyTable, schema.Start, schema.Reach,
    schema.Simulation, schema.Stops, schema.LoopTable, schema.GraspTable, schema.PathTable,
    schema.ControllerTable, schema.FailureTable, schema.CaptureTable, schema.ReleaseTable,
    schema.ChangeTable, schema.Output, schema.Document,
]  # fmt: skip


def test_its_scenario_can_be_run():
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    scenario = read(text).changed(duration=0.05)
    assert scenario.output.folder == "puma" and len(scenario.run()) == 11


@pytest.mark.parametrize("kind", TABLES, ids=lambda kind: kind.__name__)
def test_every_key_is_told(kind: type):
    told = set(re.findall(r"(?<=[`\[. ])(\w+)(?=[`\]. =])", PAGE))
    own = {f.name for f in fields(kind)} - {"where", "own"}
    assert own <= told, own - told


def test_every_law_is_told():
    for law in LAWS:
        assert law in PAGE
