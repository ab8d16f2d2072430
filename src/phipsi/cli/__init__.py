"""The command line: `app` has the commands, and each is run by a module of its name."""

from phipsi.cli.app import app

__all__ = ["app"]
