"""Shared libraries built by the C and C++ compilers of this machine.

A library is kept in the cache of the tests under a digest of its source, the flags and the version
of the compiler: where nothing changed it is not built again.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from phipsi.compile.cache import load, store

FOLDER = os.environ["PHIPSI_CACHE_DIR"]
"""The cache of all tests; a test may have one of its own."""


def shared_library(text: str, suffix: str, compiler: str, *flags: str) -> bytes:
    """The library of a source text, whose file has that suffix."""
    if "-march=native" in flags:  # of this machine alone
        return built(text, suffix, compiler, *flags)
    what = (text, suffix, version(compiler), flags)
    key = hashlib.sha256(repr(what).encode()).hexdigest()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PHIPSI_CACHE_DIR", FOLDER)
        library = load(key)
        if library is None:
            library = built(text, suffix, compiler, *flags)
            store(key, library)
    return library


def built(text: str, suffix: str, compiler: str, *flags: str) -> bytes:
    """The library as the compiler makes it."""
    with TemporaryDirectory() as folder:
        source, library = Path(folder, f"source{suffix}"), Path(folder, "library.so")
        source.write_text(text)
        files = ["-shared", "-fPIC", str(source), "-o", str(library), "-lm"]
        subprocess.run([compiler, *flags, *files], check=True)
        return library.read_bytes()


@cache
def version(compiler: str) -> str:
    """What the compiler says of itself, and of the machines it compiles for."""
    ask = [compiler, "-v"]
    return subprocess.run(ask, capture_output=True, text=True, check=True).stderr
