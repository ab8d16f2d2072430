"""Lowering: expressions become values, plans of sweeps, and programs that run on a robot."""
