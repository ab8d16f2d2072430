"""Published problems of multibody dynamics, against references that are not phipsi.

One file for each problem: its model, its reference, its runs; `page` is the text of
docs/problems.md.
"""
