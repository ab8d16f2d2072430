"""Expressions that take much work: the search for a shorter form ends, what is told is exact."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from phipsi.operators import parse
from phipsi.operators.algebra import simplify
from phipsi.operators.algebra.derivation import ENDED
from phipsi.operators.dense import matrix
from phipsi.operators.writing.explain import explain
from phipsi.operators.writing.parser import ParseError
from tests.operators.systems import random_system
from tests.zoo import close

PRODUCTS = {
    "mass.inv @ D": 12,
    "(H @ phi @ M @ phi.T @ H.T).inv @ D": 12,
    "(mass.inv + D.inv) @ (mass + D)": 6,
    "phi.inv @ psi.inv": 40,
    "M.inv @ P": 600,
    "phi @ M @ phi.T @ M.inv": 60,
}
SLOW = (
    "(0.25V + 2P⁻¹Ġγ + λ⁻¹K∂𝓜('left')β − 0.5S⁻¹φ̇b)*E_φs⁻¹"
    "(2HM + (1/3)HΩ′('tool', 'left')⁻¹ − (1/3)ḊG_s*)*(R('tool') − 0.5(2I + R('left'))⁻¹)"
    "(0.5G_s* + C_sHS)H_a*𝓜_aa⁻¹(H_aGJ('tool', 'left')* − 2J_G('tool', 'left')*)"
)


@pytest.mark.parametrize("part", PRODUCTS)
def test_long_products_are_explained_in_bounded_time(part: str) -> None:
    x = parse("@".join([f"({part})"] * PRODUCTS[part]))
    start = time.process_time()
    found = explain(x)
    for text in (found.text, found.latex, found.markdown):
        assert "Recursion" in text
    assert time.process_time() - start < 10.0


@pytest.mark.parametrize("text", ["τ ** 99", "τ ** 18"])
def test_nested_sums_are_bounded(text: str) -> None:
    """What is simplified can be written and read, and has the same value."""
    x, numbers = parse(text), random_system(2, 4)
    simple = x.simplify()
    assert parse(str(simple)) is simple
    assert explain(x).text
    expected = matrix(x, numbers)
    close(matrix(simple, numbers) / abs(expected).max(), expected / abs(expected).max(), 1e-8)


def test_what_is_found_to_be_zero_has_no_inverse() -> None:
    x = parse("(mass - H @ phi @ M @ phi.T @ H.T - A).inv")
    with pytest.raises(ZeroDivisionError, match=r"^𝓜 − HφMφ\*H\* − A is zero, and has no inverse$"):
        x.simplify()


def test_a_condition_under_which_an_inverse_is_that_of_zero_is_not_used() -> None:
    x = parse("(mass @ D.inv @ A + A @ D.inv @ mass).inv")
    assert x.simplify(trace=True).needs == ()
    with pytest.raises(ZeroDivisionError, match="is zero"):
        x.simplify(assume="no armature")


@pytest.fixture
def uncached() -> Iterator[None]:
    simplify._derived.cache_clear()
    yield
    simplify._derived.cache_clear()


@pytest.mark.usefixtures("uncached")
def test_a_long_search_for_a_shorter_form_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simplify, "MOST_WORK", 1000)
    x = parse(SLOW)
    derivation = x.simplify(trace=True)
    assert derivation.ended and derivation.work < 2000
    assert ENDED in explain(x).text


@pytest.mark.usefixtures("uncached")
@pytest.mark.parametrize("most", [0, 20, 100])
def test_a_search_that_ends_early_is_exact(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simplify, "MOST_WORK", most)
    numbers, ended = random_system(2, 4), 0
    for text in (
        "(mass + mass) @ mass.inv @ (D + H @ psi @ M @ psi.T @ H.T) @ mass.inv @ (mass + D)",
        "J('tool') @ (I - H @ psi @ K).inv.T @ (mass @ D.inv @ mass).inv @ (I - H @ psi @ K).inv",
        "((I + H @ phi @ K) @ D @ (I + H @ phi @ K).T @ (mass + D).inv).logdet",
    ):
        x = parse(text)
        derivation = x.simplify(trace=True)
        for form in derivation.forms:
            close(matrix(form, numbers), matrix(x, numbers), 1e-8)
        assert (ENDED in str(derivation)) == derivation.ended
        ended += derivation.ended
    assert ended


@pytest.mark.parametrize(
    "text", ["1e308 * 1e308 * phi", "*".join(["0.1234567890123"] * 600), "9e999"]
)
def test_numbers_are_bounded(text: str) -> None:
    with pytest.raises(ParseError, match="number"):
        parse(text)


def test_products_of_numbers_that_are_too_large_are_not_multiplied_out() -> None:
    x = parse("(1e300 * phi + psi) @ (1e300 * phi + psi)")
    assert str(x.simplify())
    with pytest.raises(ValueError, match="a number in an expression is at most"):
        _ = 1e200 * (1e200 * x)


@pytest.mark.parametrize("frame", [r"\ud800", r"\x00", r"\u202e"])
def test_names_of_frames_can_be_printed(frame: str) -> None:
    with pytest.raises(ParseError, match="cannot be printed"):
        parse(f"J('{frame}')")
