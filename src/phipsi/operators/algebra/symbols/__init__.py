"""The table of symbols: a row for each, with all that is known of it; see `algebra.symbol`."""

from phipsi.operators.algebra.expression import SYMBOLS
from phipsi.operators.algebra.symbols import bodies, dual, rates, splits, vectors
from phipsi.operators.algebra.symbols.bodies import *
from phipsi.operators.algebra.symbols.dual import *
from phipsi.operators.algebra.symbols.rates import *
from phipsi.operators.algebra.symbols.splits import *
from phipsi.operators.algebra.symbols.vectors import *

SHIPPED = frozenset(SYMBOLS)
"""The names of phipsi's own symbols; more can be added by `define`."""

__all__ = ["SHIPPED", "SYMBOLS"]
__all__ += bodies.__all__
__all__ += dual.__all__
__all__ += vectors.__all__
__all__ += splits.__all__
__all__ += rates.__all__
