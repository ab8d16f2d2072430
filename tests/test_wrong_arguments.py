"""Public functions refuse arguments of the wrong kind by a ValueError, a TypeError or an error of
phipsi; `python -m tests.wrong_arguments` tries all of them."""

from __future__ import annotations

import random

import pytest

from tests.wrong_arguments import cases, fault

SAMPLE = 200
"""Calls that are tried, of some 23 000."""


@pytest.mark.usefixtures("interpreted")
def test_wrong_arguments_are_refused_by_errors_about_arguments(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    every = list(cases())
    assert len(every) > 20_000
    found = []
    for call, argument, wrong in random.Random(20).sample(every, SAMPLE):
        wrongly = fault(call, argument, wrong)
        if wrongly and wrongly.foreign:
            found.append(f"{call.name}({argument}={wrong.name}): {wrongly.told} {wrongly.place}")
    assert not found, "\n".join(found)
