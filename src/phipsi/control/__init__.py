"""Controllers: programs that return joint forces, and paths for them to follow.

The simulation gives a controller t, dt, q, v, active, locked and memory if it asks for them; all
its other inputs are its parameters.
"""

from phipsi.control.base import thrusters, wheel_attitude_hold
from phipsi.control.combine import assisted, on_path
from phipsi.control.diagonal import pose_feedback, pose_lyapunov, rate_feedback
from phipsi.control.gains import check_gains
from phipsi.control.grasping import object_control
from phipsi.control.joint_space import computed_torque, passivity_based, pd_gravity
from phipsi.control.paths import PathPoint, PosePathPoint, joint_path, pose_path, quintic
from phipsi.control.reaction import reaction_mode
from phipsi.control.resolved import resolved_acceleration, resolved_rate
from phipsi.control.task_space import hybrid_force_position, operational_space
from phipsi.control.tasks import pose_error

__all__ = [
    "PathPoint",
    "PosePathPoint",
    "assisted",
    "check_gains",
    "computed_torque",
    "hybrid_force_position",
    "joint_path",
    "object_control",
    "on_path",
    "operational_space",
    "passivity_based",
    "pd_gravity",
    "pose_error",
    "pose_feedback",
    "pose_lyapunov",
    "pose_path",
    "quintic",
    "rate_feedback",
    "reaction_mode",
    "resolved_acceleration",
    "resolved_rate",
    "thrusters",
    "wheel_attitude_hold",
]
