"""Rules of the project that no linter knows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "phipsi"
OVER_BODIES = {"records", "bodies", "parents", "hinges"}


def loops(tree: ast.AST) -> Iterator[tuple[int, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.comprehension)):
            yield node.iter.lineno, node.iter
        elif isinstance(node, ast.While):
            yield node.lineno, node.test


def attributes(expression: ast.expr) -> set[str]:
    return {node.attr for node in ast.walk(expression) if isinstance(node, ast.Attribute)}


ALGORITHMS = sorted((SOURCE / "algorithms").rglob("*.py"))


@pytest.mark.parametrize("path", ALGORITHMS, ids=lambda path: path.stem)
def test_algorithms_do_not_loop_over_bodies(path: Path) -> None:
    for line, expression in loops(ast.parse(path.read_text(encoding="utf-8"))):
        found = attributes(expression) & OVER_BODIES
        assert not found, f"{path.name}:{line} loops over {found}: that is a sweep"


@pytest.mark.parametrize("path", ALGORITHMS, ids=lambda path: path.stem)
def test_algorithms_are_short(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            text = ast.get_docstring(node, clean=False) or ""
            length = (node.end_lineno or node.lineno) - node.lineno - text.count("\n")
            assert length <= 60, f"{path.name}:{node.lineno} {node.name} has {length} lines"


def test_only_the_compiler_speaks_of_backends() -> None:
    for package in ("algorithms", "spatial", "model", "operators"):
        for path in (SOURCE / package).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            for word in ("backend", 'dtype="float', "llvm", "cuda"):
                assert word not in text.lower(), f"{path.name} speaks of {word}"
