"""The symbols of the algebra: names, spaces, meaning, unit, and what each is in simpler ones."""

from phipsi.operators import symbols_of_bodies, symbols_of_rates, symbols_of_splits
from phipsi.operators.symbols_of_bodies import *
from phipsi.operators.symbols_of_rates import *
from phipsi.operators.symbols_of_splits import *
from phipsi.operators.table import DEFINITIONS, SYMBOLS, Symbol

__all__ = ["DEFINITIONS", "SYMBOLS", "Symbol"]
__all__ += symbols_of_bodies.__all__
__all__ += symbols_of_splits.__all__
__all__ += symbols_of_rates.__all__
