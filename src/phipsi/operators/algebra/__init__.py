"""The algebra: expressions of symbols, the identities between them, and their simplification.

Nothing here depends on a robot. A symbol is one row of data in `symbols`, with everything that the
other packages use of it.
"""
