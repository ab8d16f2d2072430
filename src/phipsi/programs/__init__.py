"""Programs: functions of a robot and arrays, traced, compiled, derived and written as source."""

from phipsi.programs.identity import identity
from phipsi.programs.parameters import ROBOT, Parameter, parameters_of
from phipsi.programs.program import Program, program

__all__ = ["ROBOT", "Parameter", "Program", "identity", "parameters_of", "program"]
