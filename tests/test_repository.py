"""The package as a whole: its names, its metadata, its files."""

import ast
import importlib
import inspect
import re
import stat
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import phipsi
from tests.each import each

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCES = sorted((ROOT / "src").glob("**/*.py"))


@each("name", phipsi.__all__)
def test_public_name_resolves(name: str):
    assert getattr(phipsi, name) is not None
    assert name in dir(phipsi)


@each("name", [n for n in phipsi.__all__ if not n.startswith("_")])
def test_public_name_is_documented(name: str):
    assert inspect.getdoc(getattr(phipsi, name)), f"{name} has no docstring"


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="forward_dynamic"):
        getattr(phipsi, "forward_dynamic")  # noqa: B009


def test_version_is_the_same_everywhere():
    assert phipsi.__version__ == metadata.version("phipsi") == PROJECT["version"]


def test_extras():
    extras = PROJECT["optional-dependencies"]
    users = {"sim", "mjcf", "cuda", "torch", "jax", "symbolic", "dataframe", "plot", "view",
             "campaign"}  # fmt: skip
    assert set(extras) == users | {"all", "dev"}
    (everything,) = extras["all"]
    assert set(everything.removeprefix("phipsi[").removesuffix("]").split(",")) == users


def test_doctor_reports_every_extra_of_users():
    from phipsi.cli.doctor import requirements

    assert set(requirements()) - {"core"} == set(PROJECT["optional-dependencies"]) - {"all", "dev"}


def test_console_script_resolves():
    module, name = PROJECT["scripts"]["phipsi"].split(":")
    assert callable(getattr(importlib.import_module(module), name))


def test_package_is_typed_and_licensed():
    assert (ROOT / "src/phipsi/py.typed").exists()
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")


@each("path", SOURCES)
def test_module_has_a_docstring(path: Path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


def test_ci_runs_what_the_readme_says():
    script = ROOT / ".ci/run"
    assert script.stat().st_mode & stat.S_IXUSR
    assert re.findall(r"^make \w+", script.read_text(), re.MULTILINE) == ["make lint", "make test"]
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


THREATS = re.findall(r"`([\w/]+\.py)::(\w+)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))


@each("file, name", THREATS)
def test_a_test_of_the_threats_exists(file: str, name: str):
    functions = ast.walk(ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8")))
    assert name in {x.name for x in functions if isinstance(x, ast.FunctionDef)}


def test_every_threat_has_a_test():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8").partition("## Threats")[2]
    rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 30
    assert all("`" in row.split(" | ")[2] for row in rows if not row.startswith("| **"))


PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")])


@each("page", PAGES)
def test_links_lead_to_files(page: Path):
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert not [link for link in local if not (page.parent / link).exists()]
