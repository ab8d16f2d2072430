"""The spatial operator algebra: write operators, simplify them, run them in O(N) on any robot.

>>> from phipsi.operators import H, phi, M, A, mass
>>> mass.definition is H @ phi @ M @ phi.T @ H.T + A
True
>>> print(mass.inv.simplify())
(I − HψK)*D⁻¹(I − HψK)

`algebra` holds expressions, symbols and identities; `lowering` turns expressions into sweeps over
the bodies; `writing` reads and explains them; `dense` makes matrices of them, as an oracle.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from phipsi.operators.algebra import symbols
from phipsi.operators.algebra.expression import Expression
from phipsi.operators.algebra.spaces import SpaceError
from phipsi.operators.algebra.symbols import *
from phipsi.operators.connect import Connected

if TYPE_CHECKING:
    from phipsi.operators.algebra.rate import rate
    from phipsi.operators.equation import Equation
    from phipsi.operators.writing.parser import ParseError, parse

__all__ = ["Equation", "Expression", "ParseError", "SpaceError", "parse", "rate"]
__all__ += symbols.__all__

Expression.services = Connected()

_LATER = {
    "Equation": "equation",
    "ParseError": "writing.parser",
    "parse": "writing.parser",
    "rate": "algebra.rate",
}


def __getattr__(name: str) -> Any:
    """Import a name that no algorithm needs when it is first used."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
