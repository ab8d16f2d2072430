"""A target that goes wrong in every way, for the tests of the fuzzer."""

from __future__ import annotations

import os
import signal
import time
import warnings

from tests.fuzz.target import LONGEST, Target, Wrong, cut
from tests.fuzz.worker import MEMORY

WORDS = ("good", "refused", "crash", "foreign")


def use(content: bytes, deep: bool) -> None:
    """Do what a word in the input says."""
    text = content.decode("utf-8", "replace")
    if "crash" in text:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "exit" in text:
        os._exit(3)
    if "hang" in text:
        time.sleep(60.0)
    if "memory" in text:
        bytes(2 * MEMORY)
    if "foreign" in text:
        raise KeyError("a key")
    if "warning" in text:
        warnings.warn("a value overflows", RuntimeWarning, stacklevel=1)
    if "wrong" in text:
        raise Wrong("it is not as it was")
    said = {"line": "two\nlines", "bidi": "\u202eabc", "long": "x" * (LONGEST + 1), "empty": "",
            "refused": "a sentence about 'x' and 3"}  # fmt: skip
    for word, message in said.items():
        if word in text:
            raise ValueError(message)


FAULTY = Target(
    "faulty", "", ".txt", list, lambda rng, seeds: f"{rng.choice(WORDS)} {rng.random()}".encode(),
    use, (ValueError,), cut, seconds=1.0,
)  # fmt: skip
TARGETS = {"faulty": FAULTY}
