"""Cases in a loop within one test, for tables of hundreds of rows that take milliseconds each."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def each(names: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `pytest.mark.parametrize(names, values)`, in one test: every case is run, and all that
    fail are reported together, each with its arguments. Fixtures are shared by the cases."""
    keys, rows = [name.strip() for name in names.split(",")], list(values)
    assert rows, "no cases"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            faults: list[Exception] = []
            for row in rows:
                case = dict(zip(keys, row if len(keys) > 1 else (row,), strict=True))
                try:
                    test(*args, **fixtures, **case)
                except Exception as error:
                    error.add_note(f"where {', '.join(f'{k} = {x!r}' for k, x in case.items())}")
                    faults.append(error)
            if faults:
                raise ExceptionGroup(f"{len(faults)} of {len(rows)} cases", faults)

        kept = [p for name, p in signature.parameters.items() if name not in keys]
        assert len(kept) == len(signature.parameters) - len(keys), f"{test} takes no {names}"
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return run

    return decorate
