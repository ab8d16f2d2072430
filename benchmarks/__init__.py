"""Timings of phipsi beside its peers: `python -m benchmarks` writes BENCHMARKS.md."""
