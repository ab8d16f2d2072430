"""Forward dynamics of millions of robots on a GPU: `python -m benchmarks.gpu` writes RESULTS.md."""
