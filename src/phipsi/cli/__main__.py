"""`python -m phipsi.cli` is `phipsi`."""

from phipsi.cli.app import app

app(prog_name="phipsi")
