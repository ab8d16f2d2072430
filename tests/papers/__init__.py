"""The four papers, item by item, against independent oracles; writes docs/papers.md."""
