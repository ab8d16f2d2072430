"""The spatial operator algebra: write operators, simplify them, run them in O(N) on any robot.

>>> from phipsi.operators import H, phi, M, A, mass
>>> mass.definition is H @ phi @ M @ phi.T @ H.T + A
True
>>> print(mass.inv.simplify())
(I − HψK)*D⁻¹(I − HψK)
"""

from typing import TYPE_CHECKING, Any

from phipsi.operators.expressions import Expression as Expression
from phipsi.operators.spaces import SpaceError as SpaceError
from phipsi.operators.symbols import *

if TYPE_CHECKING:
    from phipsi.operators.equations import Equation as Equation
    from phipsi.operators.rates import rate as rate
    from phipsi.operators.reading import ParseError as ParseError
    from phipsi.operators.reading import parse as parse

_LATER = {"Equation": "equations", "ParseError": "reading", "parse": "reading", "rate": "rates"}


def __getattr__(name: str) -> Any:
    """What is not needed to run an algorithm is imported when it is first asked for."""
    from importlib import import_module

    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
