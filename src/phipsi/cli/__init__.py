"""The command line: `main` is the command `phipsi`; `app` has the commands, most of which have a
module of their name that runs them."""

from __future__ import annotations

import os

from phipsi.cli.errors import INTERRUPTED


def main() -> None:
    """Run the command `phipsi`. Ctrl-C ends it with status 130 at any moment, also during imports
    and while Python exits, until nothing is left to be interrupted."""
    try:
        import atexit
        import signal

        usual = signal.getsignal(signal.SIGINT)
        ours = usual is signal.default_int_handler  # else the caller ignores or handles it
        if ours:
            signal.signal(signal.SIGINT, _stop)
            # Python itself would let the signal kill the process after the last of these functions
            atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
        from phipsi.cli.app import app

        try:
            if ours:
                signal.signal(signal.SIGINT, usual)
            app(prog_name="phipsi")
        finally:
            if ours:
                signal.signal(signal.SIGINT, _stop)
    except KeyboardInterrupt:
        _stop()


def _stop(*_: object) -> None:
    """Say that the command was interrupted, and end the process at once."""
    try:
        os.write(2, b"phipsi: interrupted\n")
    except OSError:  # stderr is closed
        pass
    os._exit(INTERRUPTED)
