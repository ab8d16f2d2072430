"""Robots that come with phipsi: each function builds one, without files.

>>> from phipsi.model import robots
>>> robots.double_pendulum()
<Robot 'double_pendulum': 2 bodies, nq=2, nv=2>
"""

from collections.abc import Callable

from phipsi.model.robot import Robot
from phipsi.model.robots.arms import (
    flexible_joint_arm,
    flexible_link_arm,
    puma560,
    seven_axis_arm,
)
from phipsi.model.robots.chains import chain, double_pendulum, four_bar, planar_chain, snake
from phipsi.model.robots.legged import humanoid, quadruped
from phipsi.model.robots.space import dual_space_arm, space_arm

ROBOTS: dict[str, Callable[[], Robot]] = {
    "double_pendulum": double_pendulum,
    "planar_chain": lambda: planar_chain(5),
    "four_bar": four_bar,
    "chain": lambda: chain(6),
    "puma560": puma560,
    "seven_axis_arm": seven_axis_arm,
    "space_arm": space_arm,
    "dual_space_arm": dual_space_arm,
    "quadruped": quadruped,
    "humanoid": humanoid,
    "snake": snake,
    "flexible_joint_arm": flexible_joint_arm,
    "flexible_link_arm": flexible_link_arm,
}
"""Every robot by the name of its function, with default options (chains: a few links)."""

__all__ = [
    "ROBOTS",
    "chain",
    "double_pendulum",
    "dual_space_arm",
    "flexible_joint_arm",
    "flexible_link_arm",
    "four_bar",
    "humanoid",
    "planar_chain",
    "puma560",
    "quadruped",
    "seven_axis_arm",
    "snake",
    "space_arm",
]


def __dir__() -> list[str]:
    return list(ROBOTS)
