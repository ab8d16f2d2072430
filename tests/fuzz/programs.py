"""The target of tracing: random programs with loops mean the same on numbers and traced.

A program is a list of steps on scalars. Traced, the algebraic rules of fold.py simplify it; on
numbers it runs step by step, with a bound on what rounding may do to each value
(tests/compile/test_fuzz.py). Nothing is known of what follows from a value that is not finite: the
rules take 0·x for 0 whatever x is.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

import phipsi as pp
from phipsi.compile import Tracer, interpret, lift, tracing
from tests.fuzz.graphs import BATCH, ROWS, Spec, compared, mutate, smaller
from tests.fuzz.target import Target

Step = tuple[Any, ...]
"""(operation, operands): numbers of values, or constants; or ("repeat", count, rows, carry, body,
after, kept)."""
CONSTANTS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -0.5, 3.0, 1e-3, 1e5, 1 / 3)
POWERS = (0, 1, 2, 3, 4, 5, 7, -1, -2, -3, 0.5, 1.5, -0.5, 2.5, -1.5)


def _truth(x: Any) -> Any:
    return 1.0 - (x == 0.0)


def _power(x: Any, n: float) -> Any:
    """x to the power n by products and a root, as it is meant."""
    if n < 0:
        return 1.0 / _power(x, -n)
    result = np.sqrt(x) if n % 1 else 1.0 + 0.0 * x
    for _ in range(int(n)):
        result = result * x
    return result


Function = Callable[..., Any]
BOTH: dict[str, tuple[int, Function]] = {
    "add": (2, lambda a, b: a + b), "sub": (2, lambda a, b: a - b), "mul": (2, lambda a, b: a * b),
    "div": (2, lambda a, b: a / b), "neg": (1, lambda a: -a), "abs": (1, abs),
    "add constant": (1, lambda a, c: a + c), "from constant": (1, lambda a, c: c - a),
    "times": (1, lambda a, c: c * a), "over": (1, lambda a, c: a / c),
    "constant over": (1, lambda a, c: c / a), "less": (2, lambda a, b: a < b),
    "less than": (1, lambda a, c: a < c), "at least": (1, lambda a, c: a >= c),
    "sin": (1, np.sin), "cos": (1, np.cos), "tanh": (1, np.tanh), "exp": (1, np.exp),
    "sqrt": (1, lambda a: np.sqrt(abs(a))), "log": (1, lambda a: np.log(1.0 + a * a)),
    "atan2": (2, np.arctan2), "floor": (1, np.floor), "min": (2, np.minimum),
    "max": (2, np.maximum), "square sum": (2, lambda a, b: (a + b) * (a - b) + b * b),
}  # fmt: skip
"""Operations that are written alike on numbers and traced: how many values they take."""
TRACED: dict[str, tuple[int, Function]] = BOTH | {
    "power": (1, lambda a, n: a**n), "where": (3, pp.where), "and": (2, lambda a, b: a & b),
    "or": (2, lambda a, b: a | b), "not": (1, lambda a: ~a),
}  # fmt: skip
PLAIN: dict[str, tuple[int, Function]] = BOTH | {
    "power": (1, _power),
    "where": (3, np.where),
    "and": (2, lambda a, b: np.minimum(_truth(a), _truth(b))),
    "or": (2, lambda a, b: np.maximum(_truth(a), _truth(b))),
    "not": (1, lambda a: 1.0 - _truth(a)),
}
OFTEN = ("add", "sub", "mul", "neg", "times", "add constant", "div", "power", "where")


def program(rng: np.random.Generator, known: int, n: int, loops: int) -> list[Step]:
    """Steps after which there are more values than the known ones."""
    steps: list[Step] = []
    for k in range(n):
        name = str(rng.choice(OFTEN if rng.random() < 0.6 else list(TRACED)))
        operands: list[float] = [_some(rng, known) for _ in range(TRACED[name][0])]
        if "constant" in name or name in ("times", "over", "less than", "at least"):
            operands.append(float(rng.choice(CONSTANTS[2:] if name == "over" else CONSTANTS)))
        if name == "power":
            operands.append(POWERS[int(rng.integers(len(POWERS)))])
        steps.append((name, *operands))
        known += 1
        if loops and k % (n // loops + 1) == n // (loops + 1):
            steps.append(_loop(rng, known, loops - 1))
            known += len(steps[-1][3]) + steps[-1][1] * len(steps[-1][6])
    return steps


def _some(rng: np.random.Generator, known: int) -> int:
    near = known - 1 - int(rng.exponential(4.0))
    return near if near >= 0 and rng.random() < 0.7 else int(rng.integers(known))


def _loop(rng: np.random.Generator, known: int, loops: int) -> Step:
    count, size, width = int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    carry = [_some(rng, known) for _ in range(size)]
    rows: Any = [[_some(rng, known) for _ in range(width)] for _ in range(count)]
    if rng.random() < 0.4:
        rows = rng.normal(size=(count, width))
    inner, n = known + size + width, int(rng.integers(1, 12))
    body = program(rng, inner, n, loops if rng.random() < 0.5 else 0)
    new = _known(body, inner)
    after, kept = ([_some(rng, new) for _ in range(m)] for m in (size, int(rng.integers(1, 3))))
    return "repeat", count, rows, carry, body, after, kept


def _known(steps: list[Step], known: int) -> int:
    for step in steps:
        known += 1 if step[0] != "repeat" else len(step[3]) + step[1] * len(step[6])
    return known


def run_on(steps: list[Step], values: list[Any], how: dict[str, tuple[int, Function]]) -> None:
    """Append the values of the steps: traced if `how` is `TRACED`, else on numbers."""
    for name, *rest in steps:
        if name == "repeat":
            values += (_repeated if how is TRACED else _unrolled)(values, *rest)
        else:
            arity, function = how[name]
            operands = [values[k] for k in rest[:arity]]
            value = function(*operands, *rest[arity:])
            if how is PLAIN:
                certain = [value.value] + [x.error for x in operands if name != "where"]
                value.error = np.where(np.isfinite(certain).all(axis=0), value.error, np.inf)
            values.append(value)


def _repeated(
    values: list[Any], count: int, rows: Any, carry: Any, body: Any, after: Any, kept: Any
) -> list[Any]:
    def step(c: Any, row: Any) -> Any:
        inner = [*values, *c, *row]
        run_on(body, inner, TRACED)
        return lift([inner[k] for k in after]), lift([inner[k] for k in kept])

    if isinstance(rows, list):
        rows = lift([values[k] for row in rows for k in row]).reshape(count, -1)
    last, every = pp.repeat(count, step, lift([values[k] for k in carry]), rows)
    return [*last, *np.ravel(every)]


def _unrolled(
    values: list[Any], count: int, rows: Any, carry: Any, body: Any, after: Any, kept: Any
) -> list[Any]:
    state, every = [values[k] for k in carry], []
    for row in rows:
        own = [values[k] if isinstance(rows, list) else 0.0 * values[0] + k for k in row]
        inner = [*values, *state, *own]
        run_on(body, inner, PLAIN)
        state = [inner[k] for k in after]
        every += [inner[k] for k in kept]
    return [*state, *every]


def run(content: bytes, deep: bool) -> None:
    """Compare programs on numbers with their graphs."""
    for spec in json.loads(content):
        compared("a traced program", spec, lambda: check(spec))  # noqa: B023


def check(spec: Spec) -> float:
    """Compare one program; the share of its values of which something is known."""
    from tests.compile.test_fuzz import Bounded, check_within

    rng = np.random.default_rng(spec["seed"])
    steps = program(rng, 3, spec["n"], min(spec["loops"], 2))
    tracer = Tracer()
    with tracing(tracer):
        traced: list[Any] = list(tracer.input("x", 3))
        run_on(steps, traced, TRACED)
        graph = tracer.graph([("y", traced)])
    x = rng.normal(size=(ROWS, 3)) * 10.0 ** rng.integers(-1, 2, size=(ROWS, 1))
    plain: list[Any] = [Bounded(column) for column in x.T]
    run_on(steps, plain, PLAIN)
    output = np.empty((ROWS, len(traced)))
    interpret.run(graph, [x], [output])
    value, error = (
        np.stack([np.broadcast_to(getattr(y, part), ROWS) for y in plain], 1)
        for part in ("value", "error")
    )
    check_within([(value, error)], [output])
    return float((error < 1e-3 * (1.0 + abs(value))).mean())


TARGETS = (
    Target("programs", "random programs with loops: on numbers and traced", ".json", list, mutate,
           run, (), smaller, count=2_000, batch=BATCH, seconds=300.0),
)  # fmt: skip
