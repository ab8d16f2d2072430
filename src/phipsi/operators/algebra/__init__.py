"""The algebra: expressions of symbols, the identities between them, and their simplification.

Nothing here knows a robot. A symbol is one row of data in `symbols`, with all that the other
packages need to know of it.
"""
