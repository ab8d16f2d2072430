"""The command line: `app` has the commands; most have a module of their name that runs them."""

from phipsi.cli.app import app

__all__ = ["app"]
