"""The spatial operator algebra: write operators, simplify them, run them in O(N) on any robot.

>>> from phipsi.operators import H, phi, M, A, mass
>>> mass.definition is H @ phi @ M @ phi.T @ H.T + A
True
>>> print(mass.inv.simplify())
(I − HψK)*D⁻¹(I − HψK)
"""

from phipsi.operators.equations import Equation as Equation
from phipsi.operators.expressions import Expression as Expression
from phipsi.operators.parse import ParseError as ParseError
from phipsi.operators.parse import parse as parse
from phipsi.operators.spaces import SpaceError as SpaceError
from phipsi.operators.symbols import *
