"""The command line: `phipsi demo`, `phipsi info`, `phipsi robots`, `phipsi doctor`."""

from phipsi.cli.app import app

__all__ = ["app"]
