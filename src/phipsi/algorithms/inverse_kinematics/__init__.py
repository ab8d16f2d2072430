"""Inverse kinematics: the problem, Newton iterations, the search over starts, the solution."""

from phipsi.algorithms.inverse_kinematics.search import inverse_kinematics
from phipsi.algorithms.inverse_kinematics.solution import InverseKinematicsSolution

__all__ = ["InverseKinematicsSolution", "inverse_kinematics"]
