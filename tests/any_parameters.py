"""Parameters of phipsi annotated with a bare `Any`: `python -m tests.any_parameters` counts them.

What is left of them is explained in CONTRIBUTING.md.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "phipsi"


def parameters(path: Path) -> Iterator[str | None]:
    """The annotation of every parameter in a file but self and cls; None if there is none."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            a = node.args
            more = [x for x in (a.vararg, a.kwarg) if x is not None]
            for x in [*a.posonlyargs, *a.args, *a.kwonlyargs, *more]:
                if x.arg not in ("self", "cls"):
                    yield None if x.annotation is None else ast.unparse(x.annotation)


def counted() -> dict[str, tuple[int, int]]:
    """Bare `Any` parameters and all parameters, by folder."""
    bare, total = Counter[str](), Counter[str]()
    for path in sorted(SOURCE.rglob("*.py")):
        folder = path.relative_to(SOURCE).parts[0]
        found = list(parameters(path))
        total[folder] += len(found)
        bare[folder] += sum(annotation in (None, "Any") for annotation in found)
    return {folder: (bare[folder], n) for folder, n in total.items() if n}


if __name__ == "__main__":
    rows = counted()
    rows["total"] = (sum(b for b, _ in rows.values()), sum(n for _, n in rows.values()))
    for folder, (some, n) in rows.items():
        print(f"{folder:14} {some:5} of {n:5}  {100 * some / n:4.1f} %")
