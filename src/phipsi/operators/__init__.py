"""The spatial operators of a robot."""

from phipsi.operators.dense import Dense, dense

__all__ = ["Dense", "dense"]
