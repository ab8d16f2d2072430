"""Small scenarios that several tests share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from phipsi.scenarios import Scenario, ScenarioError

PENDULUM = """title = "A double pendulum falls"
[robot]
name = "double_pendulum"
[start.q]
joint1 = 1.0
[simulation]
duration = 0.1
dt = 0.01
"""
ARM = """title = "An arm goes somewhere"
[robot]
name = "puma560"
[start.q_deg]
joint2 = 40
joint5 = 50
[simulation]
duration = 0.2
dt = 0.01
[controller]
law = "computed_torque"
stiffness = 100.0
[controller.path]
duration = 0.1
goal_deg = { joint1 = 5 }
"""
HELD = """title = "A box is held"
[robot]
name = "seven_axis_arm"
[[robot.add]]
body = "box"
mass = 2.0
sides = [0.1, 0.1, 0.1]
place = { position = [0.8, 0.0, 1.0] }
frames = { face = { position = [0.0, 0.0, 0.05], rpy_deg = [180, 0, 0] } }
[simulation]
duration = 0.1
dt = 0.01
"""


def read(text: str, folder: Path = Path(), **more: Any) -> Scenario:
    return Scenario.of(text.encode(), "my.toml", folder, **more)


def refused(text: str, folder: Path = Path()) -> str:
    """The one sentence that a text is refused with, when it is read or, if not then, when run."""
    with pytest.raises(ScenarioError) as caught:
        read(text, folder).run()
    message = str(caught.value)
    assert message.startswith(("my.toml: ", "my.toml, line ", "my.toml is ", "my.toml has "))
    assert "\n" not in message and "Traceback" not in message
    return message
