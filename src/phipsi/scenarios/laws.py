"""The control laws that scenarios may name."""

from __future__ import annotations

from typing import Any

from phipsi import control
from phipsi.programs import Program

LAWS: dict[str, Program[..., Any]] = {
    name: getattr(control, name)
    for name in (
        "pd_gravity",
        "computed_torque",
        "passivity_based",
        "rate_feedback",
        "pose_feedback",
        "operational_space",
        "hybrid_force_position",
        "resolved_acceleration",
        "reaction_mode",
        "object_control",
        "thrusters",
        "wheel_attitude_hold",
    )
}
"""The controllers of `phipsi.control` by the names that scenarios call them."""
