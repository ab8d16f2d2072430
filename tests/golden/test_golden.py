"""No kernel changes unnoticed."""

from __future__ import annotations

import pytest

from tests.golden import PACKAGED, REAL, counted, operations, texts

HOW = "if the change is meant, run `python -m tests.golden` and commit the difference"


def test_graphs_are_the_golden_ones() -> None:
    for path, text in texts():
        assert text == path.read_text(), f"{path.name} differs; {HOW}"


@pytest.mark.parametrize("name", [*PACKAGED, *REAL])
def test_no_program_takes_other_than_the_known_operations(name: str) -> None:
    assert operations(name) == counted()[name], HOW
