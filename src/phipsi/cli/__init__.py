"""The command line: `phipsi demo`, `phipsi info`, `phipsi robots`, `phipsi explain`,
`phipsi doctor`."""

from phipsi.cli.app import app

__all__ = ["app"]
