"""Cases in a loop: all are run, and all faults are told."""

import pytest

from tests.each import each

SEEN: list[tuple[int, str]] = []


@each("y", "ab")
@each("x", range(3))
def test_every_case_is_run(x: int, y: str) -> None:
    SEEN.append((x, y))


def test_each_was_run_once() -> None:
    SEEN.clear()
    test_every_case_is_run()  # type: ignore[call-arg]
    assert sorted(SEEN) == [(x, y) for x in range(3) for y in "ab"]


def test_every_fault_is_told_with_its_case() -> None:
    @each("x, y", [(1, 1), (1, 2), (2, 2), (3, 4)])
    def equal(x: int, y: int) -> None:
        assert x == y

    with pytest.raises(ExceptionGroup, match="2 of 4 cases") as caught:
        equal()  # type: ignore[call-arg]
    notes = [error.__notes__ for error in caught.value.exceptions]
    assert notes == [["where x = 1, y = 2"], ["where x = 3, y = 4"]]


def test_no_cases_are_a_mistake() -> None:
    with pytest.raises(AssertionError, match="no cases"):
        each("x", [])
    with pytest.raises(AssertionError, match="takes no z"):
        each("z", [1])(lambda x: None)
