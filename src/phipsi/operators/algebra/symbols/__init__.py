"""The table of symbols; `algebra.symbol` describes the fields of a row."""

from phipsi.operators.algebra.expression import SYMBOLS
from phipsi.operators.algebra.symbols import bodies, dual, rates, splits, vectors
from phipsi.operators.algebra.symbols.bodies import *
from phipsi.operators.algebra.symbols.dual import *
from phipsi.operators.algebra.symbols.rates import *
from phipsi.operators.algebra.symbols.splits import *
from phipsi.operators.algebra.symbols.vectors import *

SHIPPED = frozenset(SYMBOLS)
"""The names of phipsi's own symbols; the functions of `define` add more."""

__all__: list[str] = ["SHIPPED", "SYMBOLS"]
__all__ += bodies.__all__
__all__ += dual.__all__
__all__ += vectors.__all__
__all__ += splits.__all__
__all__ += rates.__all__
