"""Execution of plans: the sweeps of a lowered expression on the bodies of a robot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from phipsi.conventions import WORLD
from phipsi.model import Robot
from phipsi.operators.algebra.expression import Adjoint, Expression, Inverse, Leaf, Sum
from phipsi.operators.algebra.spaces import Space
from phipsi.operators.lowering.dataflow import Value
from phipsi.operators.lowering.plan import Plan, Sweep
from phipsi.operators.lowering.recursions import INWARD, OUTWARD
from phipsi.spatial import Force, Motion, Pivot, RigidMotion, SpatialInertia
from phipsi.spatial import rotation as rot
from phipsi.sweeps import (
    Children,
    Record,
    external_forces,
    forest,
    gather,
    inward,
    local,
    outward,
    over_siblings,
    stack,
    total,
)
from phipsi.sweeps.forest import Fields
from phipsi.typing import Array, ArrayLike, ConfigurationLike, ExternalForces, JointVectorLike, Real


def field(v: Value) -> str:
    """The field of a body's record that holds a value."""
    return f"value_{v.number}"


class Execution:
    """A plan on a robot.

    `vectors` are those that the plan takes, by name: of joints (nv,), of bodies (nb, 6) or at
    frames. `more` are joint vectors that actions and recursions read, such as `v`.
    """

    def __init__(
        self,
        plan: Plan,
        robot: Robot,
        q: ConfigurationLike,
        vectors: Mapping[str, ArrayLike],
        external: ExternalForces | None = None,
        **more: JointVectorLike,
    ) -> None:
        self.plan, self.robot = plan, robot
        given = {v: vectors[v.data] for v in plan.values if v.op == "input"}
        joints: dict[str, JointVectorLike] = {
            field(v): x for v, x in given.items() if not v.whole and v.space.size != "body"
        }
        symbols = {x for v in plan.values if v.op == "apply" for x in v.data.leaves}
        joints |= {hinge_field(x): robot.mask(*x.frames) * 1.0 for x in symbols if x.frames}
        self.x = forest(robot, q, external=external, **joints, **more)
        if any(x.symbol.reads_origin for x in symbols):
            places = (Motion(rot.zero(), body.origin.position) for body in robot.bodies)
            self.x = self.x.carrying(origin=list(places))
        for v, rows in given.items():
            if v.space.size == "body":
                self.x = self.x.placed(Force if v.space.is_force else Motion, **{field(v): rows})
        self.wholes: dict[Value, Any] = {v: np.asarray(x) for v, x in given.items() if v.whole}
        """The values that belong to no body: arrays and numbers."""
        self.kept = _kept(plan)

    def result(self) -> Array:
        """The result of the plan, after all its sweeps."""
        for sweep in self.plan.sweeps:
            self._sweep(sweep)
        value = self.plan.result
        if value.whole:
            return self.wholes[value]
        return (
            stack(self.x, field(value))
            if value.space.size == "body"
            else gather(self.x, field(value))
        )

    def _sweep(self, sweep: Sweep) -> None:
        """Run one sweep: add its fields to the records, and compute the values of no body."""
        for v in sweep.values:
            if v.op in ("unit", "one", "zero", "add", "times") and v.whole:
                if all(y in self.wholes for y in v.args):
                    self.wholes[v] = self._whole(v)
        placed = {field(v): self._placed(v) for v in sweep.values if v.op == "place"}
        self.x = self.x.carrying(**placed) if placed else self.x
        for recursion in sweep.recursions:
            if recursion.sibling_message is not None:
                self.x = over_siblings(recursion.sibling_message, self.x, **recursion.no_siblings)
        step = self._step(sweep)
        if sweep.direction == INWARD:
            self.x = inward(step, self.x)
        elif sweep.direction == OUTWARD:
            self.x = outward(step, self.x, **self._world(sweep))
        else:
            self.x = local(lambda k: step(k, None), self.x)
        for v in sweep.values:
            if v.whole and v not in self.wholes:
                self.wholes[v] = self._whole(v)

    # ---- one body ------------------------------------------------------------------------------

    def _step(self, sweep: Sweep) -> Callable[[Record, Any], Fields]:
        """The step of a sweep: a function of a body and of its children or parent, or of None."""

        def step(k: Record, near: Any) -> Fields:
            new: Fields = {}
            for recursion in sweep.recursions:
                fields = recursion.step(k, near)
                new.update(fields)
                k = k.extended(fields)
            here: dict[Value, Any] = {}

            def get(v: Value) -> Any:
                return here[v] if v in here else getattr(k, field(v))

            for v in sweep.values:
                if v.op == "load":
                    X = _carried(k, getattr(near, motion_field(v)), [get(y) for y in v.args])
                    new[motion_field(v)], here[v] = X, k.M.inertial(X) - k.f_ext
                elif not v.whole or v.op in ("dot", "logdet"):
                    here[v] = self._part(v, k, near, get)
            return {**new, **{field(v): x for v, x in here.items() if v in self.kept}}

        step.__name__ = " ".join(recursion.name for recursion in sweep.recursions) or "recursion"
        services = self.plan.expression.services
        vars(step)["formulas"] = lambda: services.formulas(self.plan, sweep)
        return step

    def _part(
        self, v: Value, k: Record, near: Children | Record | None, get: Callable[[Value], Any]
    ) -> Any:
        """The part of a value that belongs to a body k; `get` gives those it is computed from."""
        match v.op:
            case "apply":
                return act(v.data, k, get(v.args[0]))
            case "add":
                return _summed(v.data, [get(y) for y in v.args])
            case "recur":
                return _summed([Fraction(1)] * len(v.recursion), [get(y) for y in v.recursion])
            case "gather":
                assert isinstance(near, Children)
                name = field(v.args[0])
                if v.space.is_force:
                    return near.sum(lambda c: c.phi @ getattr(c, name), Force.zero())
                return near.sum(lambda c: c.phi.inv.T @ getattr(c, name), Motion.zero())
            case "scatter":
                back = k.phi.inv if v.space.is_force else k.phi.T
                return back @ getattr(near, field(v.args[0]))
            case "state":
                return getattr(k, v.data)
            case "zero":
                return _zero(v, k)
            case "times":
                return get(v.args[0]) * self.wholes[v.args[1]]
            case "dot":
                return _dot(*map(get, v.args))
            case "logdet":
                return v.data.symbol.action.logdet(k)
            case _:  # a given value, or one at frames that was carried to the bodies
                return getattr(k, field(v))

    def _world(self, sweep: Sweep) -> dict[str, object]:
        """The fields of the world, which the step of a root reads."""
        world = {n: x for own in sweep.recursions for n, x in own.world(self.robot).items()}
        for v in sweep.values:
            if v.op == "scatter":
                world[field(v.args[0])] = _still(v.space)
            elif v.op == "load":
                world[motion_field(v)] = RigidMotion.accelerated(-rot.scalars(self.robot.gravity))
        return world

    # ---- values of no body ---------------------------------------------------------------------

    def _whole(self, v: Value) -> Any:
        """A value that belongs to no body: an array or a number."""
        args: list[Any] = [self.wholes.get(y) for y in v.args]
        match v.op:
            case "pick":
                return np.concatenate([self._at(frame, field(v.args[0])) for frame in v.data])
            case "add":
                return _summed(v.data, args)
            case "solve":
                return Pivot(np.stack(args[1:], axis=1)).solve(args[0])
            case "one":
                return 1.0
            case "unit":
                return np.eye(6 * len(v.data[0]))[v.data[1]].astype(object)
            case "times":
                return args[0] * args[1]
            case "zero":
                return np.zeros(6 * len(v.space.frames), object) if v.space.frames else 0.0
            case _:  # a product of vectors: at frames, or summed over the bodies
                if args and args[0] is not None:
                    return args[0] @ args[1]
                return total(self.x, field(v), 0.0)

    def _at(self, name: str, value: str) -> Array:
        """The motion of a frame, from a field with the motions of bodies."""
        frame = self.robot.frame(name)
        if frame.body == WORLD:
            return np.zeros(6, object)
        return (frame.placement.T @ getattr(self.x.body(frame.body), value)).array

    def _placed(self, v: Value) -> list[Force]:
        """Forces at frames, carried to the bodies."""
        parts = np.split(self.wholes[v.args[0]], len(v.data))
        return external_forces(self.robot, dict(zip(v.data, parts, strict=True)), fixed=True)


def motion_field(v: Value) -> str:
    """The field of a body's record that holds the rigid motion of a load."""
    return f"motion_{v.number}"


def act(x: Expression, k: Record, y: Any) -> Any:
    """A block-diagonal operator applied to the part y of a vector that belongs to a body k."""
    inner = x.inner if isinstance(x, Inverse) else x
    if isinstance(inner, Sum):
        parts = (getattr(k, leaf.symbol.name) for leaf in sorted(inner.leaves, key=str))
        inertias = [
            part.articulated if isinstance(part, SpatialInertia) else part for part in parts
        ]
        return reduce(lambda a, b: a + b, inertias).inv @ y
    (leaf,) = x.leaves
    own = leaf.symbol.action
    assert own is not None
    starred = isinstance(inner, Adjoint)
    if isinstance(x, Inverse):
        action = own.inverse_adjoint if starred else own.inverse
    else:
        action = own.adjoint if starred else own.apply
    assert action is not None, x
    if leaf.frames:
        k = k.extended({"axis": k.H.T @ getattr(k, hinge_field(leaf))})
    return action(k, y)


def hinge_field(x: Leaf) -> str:
    """The field of a body's record that marks the freedom of a named hinge."""
    return f"hinge_{x.frames[0]}"


def _carried(k: Record, X: RigidMotion, acceleration: list[Array]) -> RigidMotion:
    """The motion X of the parent, carried through the hinge ([BI-c] (2.2))."""
    rate = k.H_rate(k.v)
    for qdd in acceleration:
        rate = k.H.T @ qdd + rate
    return (k.phi.T @ X).through(k.H.T @ k.v, rate)


def _summed(numbers: Iterable[Fraction], values: Sequence[Any]) -> Any:
    """Σ number · value; a factor of one takes no multiplication."""
    out = None
    for c, x in zip(numbers, values, strict=True):
        x = x if abs(c) == 1 else x * float(abs(c))
        out = (x if c > 0 else -x) if out is None else out + x if c > 0 else out - x
    return out


def _dot(x: Any, y: Any) -> Real:
    """The product of a motion with a force, in either order, or of two arrays."""
    if isinstance(x, Motion):
        return x.dot(y)
    return y.dot(x) if isinstance(x, Force) else x @ y


def _zero(v: Value, k: Record) -> Force | Motion | Array:
    """The part of zero that belongs to a body."""
    return _still(v.space) if v.space.size == "body" else np.zeros(len(k.A), object)


def _still(space: Space) -> Force | Motion:
    return Force.zero() if space.is_force else Motion.zero()


def _kept(plan: Plan) -> set[Value]:
    """The values that must be fields of records: neighbours, later sweeps or the end read them."""
    sweep_of = {v: i for i, sweep in enumerate(plan.sweeps) for v in sweep.values}
    kept = {plan.result}
    for v in plan.values:
        for y in v.sources:
            if v.whole or v.op in ("gather", "scatter") or sweep_of[y] < sweep_of[v]:
                kept.add(y)
        if v.op in ("dot", "logdet"):
            kept.add(v)
    return kept
