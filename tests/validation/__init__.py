"""Long checks, which `make validation` runs and whose results are pages of docs/.

`checks` has them, one row each; `page` is the text of docs/validation.md.
"""
