"""Fuzzing: what strangers may hand to phipsi, mutated by its structure, and random graphs.

`python -m tests.fuzz` (`make fuzz`) runs it; a target is a row of `targets.py`.
"""
