"""States in the layouts of other libraries, and back."""

from phipsi.interop.mujoco import from_mujoco, to_mujoco
from phipsi.interop.pinocchio import from_pinocchio, to_pinocchio

__all__ = ["from_mujoco", "from_pinocchio", "to_mujoco", "to_pinocchio"]
