"""Dense matrices of expressions, on a robot or on any other system."""

from phipsi.operators.algebra.system import System
from phipsi.operators.dense.matrix import matrix
from phipsi.operators.dense.robot_system import system

__all__ = ["System", "matrix", "system"]
