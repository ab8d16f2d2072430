"""The actuators of a compiled MJCF, and the forces that joints can have from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from phipsi.typing import Array

ON_JOINT = 0, 1
"""mjTRN_JOINT and mjTRN_JOINTINPARENT of mujoco.mjtTrn: the actuator acts on one joint."""
AFFINE = 1
"""mjGAIN_AFFINE of mujoco.mjtGain, and mjBIAS_AFFINE of mjtBias; 0 is fixed, or none."""


def on_joint(m: Any) -> NDArray[np.bool_]:
    """Whether each actuator acts on one joint."""
    return np.isin(m.actuator_trntype, ON_JOINT)


def is_motor(m: Any) -> NDArray[np.bool_]:
    """Whether the force of each actuator is its control, times a constant, on one joint."""
    law = m.actuator_dyntype, m.actuator_gaintype, m.actuator_biastype
    return on_joint(m) & ~np.any(law, axis=0)


def is_servo(m: Any) -> NDArray[np.bool_]:
    """Whether the force of each actuator is affine in the coordinate and the rate of one joint."""
    law = np.maximum(m.actuator_gaintype, m.actuator_biastype)
    return on_joint(m) & ~is_motor(m) & (law == AFFINE)


def efforts(m: Any) -> Array:
    """For each joint the largest force that actuators exert on it; infinite if there is no limit.

    Actuators of tendons and bodies may move any joint; without actuators every joint is driven."""
    own = on_joint(m)
    total = np.full(m.njnt, 0.0 if m.nu and own.all() else np.inf)
    gear = np.abs(m.actuator_gear[:, 0])
    moves = own & (gear != 0.0)
    np.add.at(total, m.actuator_trnid[moves, 0], gear[moves] * _strengths(m)[moves])
    allowed = np.where(m.jnt_actfrclimited, np.abs(m.jnt_actfrcrange).max(axis=1), np.inf)
    return np.minimum(total, allowed)


def _strengths(m: Any) -> Array:
    """The largest force of each actuator; infinite if it has no limit."""
    force = np.abs(m.actuator_forcerange).max(axis=1)
    control = np.abs(m.actuator_gainprm[:, :1] * m.actuator_ctrlrange).max(axis=1)
    return np.minimum(
        np.where(m.actuator_forcelimited, force, np.inf),
        np.where(is_motor(m) & m.actuator_ctrllimited, control, np.inf),
    )
