"""`python -m phipsi.cli` is `phipsi`."""

from phipsi.cli import main

main()
