"""Arguments that are lists, names, mappings or counts, and sentences about what is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from phipsi.arguments import as_count, as_list, as_mapping, as_names


def test_what_is_taken() -> None:
    assert as_list("x", (1, 2)) == as_list("x", iter([1, 2])) == [1, 2]
    assert as_names("x", "ab") == ["ab"] and as_names("x", np.array(["a", "b"])) == ["a", "b"]
    assert as_mapping("x", None) == {} and as_mapping("x", {"a": 1}) == {"a": 1}
    assert as_count("x", np.int8(3)) == 3 and as_count("x", 2**63 - 1) == 2**63 - 1


@pytest.mark.parametrize(
    "function, value, message",
    [
        (as_list, 3, "x is an int, needs a sequence"),
        (as_list, np.array(3.0), "x is an ndarray, needs a sequence"),
        (as_names, ["a", 3], "x has an int, needs names"),
        (as_mapping, ["a"], "x is a list, needs a mapping of names to values"),
        (as_mapping, {3: "a"}, "x has the key 3, needs names"),
        (as_count, True, "x is True, needs a whole number of at least 0"),
        (as_count, np.bool_(True), "x is np.True_, needs a whole number of at least 0"),
        (as_count, -1, "x is -1, needs a whole number of at least 0"),
        (as_count, 1.0, "x is 1.0, needs a whole number of at least 0"),
        (as_count, 10**400, f"x is 1.*0, needs a whole number of at most {2**63 - 1}"),
    ],
)
def test_what_is_refused(function: Callable[[str, Any], Any], value: object, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{message}$"):
        function("x", value)
