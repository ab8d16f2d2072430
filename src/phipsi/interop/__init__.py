"""Robots and states in the forms of other libraries, and back."""

from phipsi.interop.mujoco import from_mujoco, to_mujoco
from phipsi.interop.mujoco_model import to_mujoco_model, to_mujoco_spec
from phipsi.interop.pinocchio import from_pinocchio, to_pinocchio
from phipsi.interop.pinocchio_model import to_pinocchio_model

__all__ = [
    "from_mujoco",
    "from_pinocchio",
    "to_mujoco",
    "to_mujoco_model",
    "to_mujoco_spec",
    "to_pinocchio",
    "to_pinocchio_model",
]
