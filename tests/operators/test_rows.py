"""A symbol is one row: with nothing else said, it is parsed, simplified, run, explained, and dense.
So is a recursion."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest

from phipsi.operators.algebra.spaces import BODY_FORCES
from phipsi.operators.algebra.symbols import SYMBOLS
from phipsi.operators.algebra.symbols.define import symbol
from phipsi.operators.lowering.recursions import RECURSIONS

NEW_SYMBOLS = """
    import numpy as np
    import phipsi as pp
    from phipsi.operators import H, I, K, M, phi, psi, tau_bar, rate
    from phipsi.operators.algebra.local_action import LocalAction
    from phipsi.operators.algebra.spaces import BODY_FORCES, BODY_MOTIONS, JOINT_FORCES
    from phipsi.operators.algebra.symbols.define import symbol

    whiten = symbol(
        "whiten", "𝓦", r"\\mathcal{W}", JOINT_FORCES, JOINT_FORCES,
        "whitening filter, {I − H ψ K}", "1", definition=lambda: I - H @ psi @ K,
    )
    weight = symbol(
        "weight", "Q", "Q", BODY_FORCES, BODY_MOTIONS, "three times the inertia of each body",
        "kg, kg·m, kg·m²", symmetric=True, diagonal=True, constant=True, cost=33,
        action=LocalAction(
            lambda k, y: (k.M @ y) * 3.0, inverse=lambda k, y: (k.M.articulated.inv @ y) * (1 / 3)
        ),
        dense=lambda s: 3.0 * s.diagonal(s.M),
    )

    from phipsi.operators import parse
    from phipsi.operators.dense import matrix, system
    from phipsi.operators.writing.explain import explain

    robot = pp.robots.space_arm()
    q, _ = robot.random_state(0)
    for x in (whiten, whiten.T, weight, weight.inv, H @ phi @ weight @ phi.T @ H.T):
        for text in (x.ascii, str(x), x.latex):
            assert parse(text) is x, text
        dense = matrix(x, system(robot, q))
        assert np.allclose(x.on(robot, q).matrix(), dense, atol=1e-12), x
        told = explain(x, robot)
        assert told.plan is not None
        leaf = next(iter(x.leaves & {whiten, weight}))
        assert leaf.meaning in told.text and "{" not in told.text
        assert told.latex.count("$") % 2 == 0
    print(rate(weight), "|", whiten.definition)
"""


def run(code: str) -> str:
    found = subprocess.run(
        [sys.executable, "-c", dedent(code)], capture_output=True, text=True, encoding="utf-8"
    )
    assert not found.returncode, found.stderr
    return found.stdout.strip()


def test_a_row_is_all_that_a_new_symbol_needs() -> None:
    assert run(NEW_SYMBOLS) == "0[body forces, body motions] | I − HψK"


NEW_RECURSION = """
    import numpy as np
    import phipsi as pp
    from phipsi.operators import E_phi, H, I, M, mass, phi
    from phipsi.operators.algebra.local_action import LocalAction
    from phipsi.operators.algebra.spaces import BODY_FORCES, BODY_MOTIONS
    from phipsi.operators.algebra.symbols.define import symbol
    import phipsi.operators.lowering.recursions as r
    from phipsi.operators.algebra.formula import Name, Sigma

    R = symbol(
        "R_c", "R̂", r"\\hat{R}", BODY_FORCES, BODY_MOTIONS, "composite inertia", "kg, kg·m, kg·m²",
        symmetric=True, diagonal=True, action=LocalAction(lambda k, y: k.R @ y),
        dense=lambda s: s.on_diagonal(s.value(phi @ M @ phi.T)),
    )
    name = Name.of(R.symbol)

    def composite(k, children):
        return {"R": children.sum(lambda c: c.phi.congruence(c.R), k.M.articulated)}

    row = r.Recursion(
        "composite", r.INWARD, composite, gives=(R,), source="[SOA]", cost=40,
        formulas={name: r.M + Sigma("c", r.phi["c"] @ name["c"] @ r.phi["c"].T)},
    )
    r.RECURSIONS += (row,)
    r.RECURSION_OF["R_c"] = row

    from phipsi.operators.dense import matrix, system
    from phipsi.operators.writing.explain import explain

    robot = pp.robots.space_arm()
    q, _ = robot.random_state(0)
    assert np.allclose(R.on(robot, q).matrix(), matrix(R, system(robot, q)), atol=1e-10)
    assert "R̂ = M + Σ_c φ_c R̂_c φ_c*" in explain(R).text
    print(explain(R).plan.sweeps[0].recursions[0].name)
"""


def test_a_row_is_all_that_a_new_recursion_needs() -> None:
    assert run(NEW_RECURSION) == "composite"


SAME_NAME = """
    import sys
    import numpy as np
    import phipsi as pp
    from phipsi.operators.algebra.local_action import LocalAction
    from phipsi.operators.algebra.spaces import BODY_FORCES, BODY_MOTIONS
    from phipsi.operators.algebra.symbols.define import symbol

    weight = symbol(
        "weight", "Q", "Q", BODY_FORCES, BODY_MOTIONS, "a multiple of the inertia",
        symmetric=True, diagonal=True, action=LocalAction(lambda k, y: (k.M @ y) * FACTOR),
    )
    robot = pp.robots.space_arm()
    x = np.ones((robot.nb, 6))
    print((weight.on(robot, robot.neutral()) @ x)[0, 3] / robot.bodies[0].mass)
"""


def test_a_symbol_of_ones_own_is_not_taken_for_one_of_another_process() -> None:
    found = [float(run(SAME_NAME.replace("FACTOR", factor))) for factor in ("3.0", "5.0")]
    assert found[1] == pytest.approx(found[0] * 5 / 3)


@pytest.mark.parametrize("names", [("H", "X", "X"), ("own", "φ", "X"), ("own", "X", r"\psi")])
def test_a_name_that_is_taken_is_refused(names: tuple[str, str, str]) -> None:
    with pytest.raises(ValueError, match=r"is '(H|phi|psi)' already"):
        symbol(*names, BODY_FORCES, BODY_FORCES, "a symbol of one's own")
    assert "own" not in SYMBOLS


def test_every_symbol_can_be_computed_somehow() -> None:
    for name, row in SYMBOLS.items():
        ways = (row.dense, row.definition, row.rate_of)
        assert row.given or any(way is not None for way in ways), name
        assert row.meaning and "{" not in row.meaning, name


def test_what_a_recursion_gives_has_an_action_or_is_a_vector() -> None:
    for recursion in RECURSIONS:
        for leaf in recursion.gives:
            vector = leaf.symbol.domain.name == "numbers"
            assert vector or leaf.symbol.action is not None, leaf
