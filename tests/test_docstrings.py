"""Docstrings of public names: one sentence, then the sections of NumPy's style, which agree with
the signature."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import griffe
import pytest

from phipsi.programs import Program
from tests.declared_types import EXTRAS

PACKAGES = {
    "phipsi": "functions and classes",
    "phipsi.control": "controllers",
    "phipsi.interop": "other libraries",
    "phipsi.scenarios": "scenario files",
    "phipsi.operators": "the operator algebra",
    "phipsi.simulation": "simulations",
    "phipsi.view": "pictures",
    "phipsi.interop.jax": "JAX",
    "phipsi.interop.torch": "PyTorch",
    "phipsi.compile.linalg": "linear algebra inside programs",
    "phipsi.model.robots": "robots that ship",
}
UNTOLD = ("self", "cls", "_")


def functions(package: Any) -> Iterator[tuple[str, Any]]:
    """The public functions, programs and methods of a module, by name."""
    own = [n for n, x in vars(package).items() if getattr(x, "__module__", "") == package.__name__]
    for name in getattr(package, "__all__", [n for n in own if not n.startswith("_")]):
        value = None if name in EXTRAS else getattr(package, name)
        if isinstance(value, Program) or inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value) and value.__module__.startswith("phipsi."):
            for attribute, member in vars(value).items():
                member = getattr(member, "__func__", member)
                if inspect.isfunction(member) and not attribute.startswith("_"):
                    yield f"{name}.{attribute}", member


def faults(name: str, function: Callable[..., Any]) -> Iterator[str]:
    """What is wrong with the docstring of a function."""
    text = inspect.getdoc(function) or ""
    first = text.split("\n\n")[0]
    if not first.endswith((".", ").", ":")) or "\n" in first:
        yield f"{name}: the summary is not one line that ends with a full stop"
    sections = {s.kind.value: s for s in griffe.Docstring(text).parse("numpy", warnings=False)}
    signature = inspect.signature(function)
    expected = [p for p in signature.parameters if p not in UNTOLD]
    told = sections.get("parameters")
    listed = [p.name.lstrip("*") for p in told.value] if told else []
    if listed != expected:
        yield f"{name}: Parameters are {listed}, the signature has {expected}"
    returns = signature.return_annotation
    if returns not in (None, "None") and not {"returns", "yields"} & set(sections):
        yield f"{name}: there is no section Returns"
    if "." not in name and "examples" not in sections:
        yield f"{name}: there is no section Examples"


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_describe_the_signature(package: str) -> None:
    if package.rpartition(".")[2] in EXTRAS:
        pytest.importorskip(package.rpartition(".")[2])
    module = importlib.import_module(package)
    found = [fault for name, f in functions(module) for fault in faults(name, f)]
    assert not found, "\n".join(found)
