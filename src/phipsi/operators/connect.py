"""The implementations of methods of `Expression`; the packages they need are imported when used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from phipsi.model import Robot
from phipsi.operators.algebra.expression import Expression
from phipsi.programs import Program

if TYPE_CHECKING:
    from phipsi.operators.algebra.derivation import Condition, Derivation
    from phipsi.operators.algebra.linear_operator import LinearOperator
    from phipsi.operators.algebra.services import Document, Language
    from phipsi.typing import (
        Array,
        ArrayLike,
        ConfigurationLike,
        ExternalForces,
        JointVectorLike,
        MaskLike,
    )


class Connected:
    """The `Services` of expressions."""

    def derive(
        self, x: Expression, assume: Condition | Iterable[Condition], *, warn: bool
    ) -> Derivation[Expression]:
        """The derivation of the normal form; `warn` of conditions that were used, not assumed."""
        from phipsi.operators.algebra.simplify import derive, warn_of

        derivation = derive(x, assume)
        if warn:
            warn_of(derivation, assume)
        return derivation

    def explain(
        self, x: Expression, robot: Robot | None, *, language: Language, active: MaskLike | None
    ) -> Document:
        """The explanation."""
        from phipsi.operators.writing.explain import explain

        return explain(x, robot, language=language, active=active)

    def on(
        self,
        x: Expression,
        robot: Robot,
        q: ConfigurationLike,
        v: JointVectorLike | None,
        *,
        active: MaskLike | None,
        dense: bool,
    ) -> LinearOperator:
        """The operator of a robot at a configuration."""
        from phipsi.operators.robot_operator import RobotOperator

        return RobotOperator(x, robot, q, v, active=active, dense=dense)

    def program(
        self, x: Expression, *, given: Iterable[str], active: Iterable[bool] | None
    ) -> Program[..., Array]:
        """The program that computes it."""
        from phipsi.arguments import as_names
        from phipsi.operators.checks import truths
        from phipsi.operators.lowering.program import as_program

        mask = None if active is None else truths(active)
        return as_program(x, tuple(sorted(as_names("given", given))), mask)

    def evaluate(
        self,
        x: Expression,
        robot: Robot,
        q: ConfigurationLike,
        v: JointVectorLike | None,
        *,
        active: MaskLike | None,
        external: ExternalForces | None,
        **vectors: ArrayLike,
    ) -> Array:
        """The value of a vector or a number."""
        from phipsi.operators.robot_operator import evaluate

        return evaluate(x, robot, q, v, active=active, external=external, **vectors)

    def formulas(self, plan: object, sweep: object) -> list[str]:
        """The lines of pseudo-code of one sweep."""
        from phipsi.operators.lowering.plan import Plan, Sweep
        from phipsi.operators.writing.pseudocode import Pseudocode

        assert isinstance(plan, Plan) and isinstance(sweep, Sweep)
        own = [x.lines for x in Pseudocode(plan).passes if {*x.sweep.values} & {*sweep.values}]
        return [",  ".join(map(str, line.formulas)) for lines in own for line in lines]
