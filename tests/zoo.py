"""A zoo of mechanisms: random forests with every hinge kind, and states to put them in."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from hypothesis import strategies as st

import phipsi as pp
from phipsi.model import KINDS
from phipsi.model.hinges import REVERSED, HingeName

MOVING = tuple(name for name in KINDS if name != "weld")
ONE_DOF = ("revolute", "continuous", "prismatic", "helical")


def random_inertia(rng: np.random.Generator) -> dict[str, Any]:
    """Mass, centre and inertia of a cloud of points: always that of a possible body."""
    mass, points = rng.uniform(0.5, 2.0, 8), rng.normal(0, 0.3, (8, 3))
    com = mass @ points / mass.sum()
    d = points - com
    inertia = (
        np.einsum("i,ijk->jk", mass, (d**2).sum(1)[:, None, None] * np.eye(3)) - (d.T * mass) @ d
    )
    return {"mass": mass.sum(), "com": com, "inertia": inertia}


def random_builder(
    rng: np.random.Generator,
    n: int,
    *,
    kinds: tuple[str, ...] = tuple(KINDS),
    branching: bool = True,
    roots: tuple[str, ...] | None = None,
    massless: bool = True,
    armature: bool = True,
) -> pp.Builder:
    """A builder with n random bodies, some massless inside the tree, some welded."""
    builder = pp.Builder("zoo", gravity=rng.normal(0, 5, 3))
    parents = [-1] + [
        int(rng.integers(-1, i)) if branching and rng.random() < 0.5 else i - 1 for i in range(1, n)
    ]
    leaves = set(range(n)) - set(parents)
    for i, p in enumerate(parents):
        kind = cast("HingeName", str(rng.choice(kinds)))
        bound = p < 0 and roots is not None
        if p < 0 and roots is not None:
            kind = cast("HingeName", str(rng.choice(roots)))
        ghost = massless and not bound and i not in leaves and rng.random() < 0.25
        if ghost:
            kind = cast("HingeName", str(rng.choice(ONE_DOF)))
            child = parents.index(i)
            leaves.add(child)  # the next body must have mass
        builder.body(f"body{i}", **({} if ghost else random_inertia(rng)))
        nv = KINDS[kind].nv
        axes = rng.normal(size=(KINDS[kind].axes, 3))
        builder.hinge(
            f"hinge{i}",
            kind,
            "world" if p < 0 else f"body{p}",
            f"body{i}",
            position=rng.normal(0, 0.5, 3),
            rpy=rng.uniform(-3, 3, 3),
            axis=axes if KINDS[kind].axes else None,
            pitch=rng.normal(),
            armature=rng.uniform(0, 0.5, nv) * (armature and rng.random() < 0.5),
            damping=rng.uniform(0, 1, nv),
            stiffness=rng.uniform(0, 1, nv),
            friction=rng.uniform(0, 1, nv),
            backlash=rng.uniform(0, 0.2, nv),
        )
    builder.frame("tool", f"body{n - 1}", position=rng.normal(size=3), rpy=rng.uniform(-3, 3, 3))
    return builder


def random_forest(seed: int, n: int, **options: Any) -> pp.Robot:
    """A random robot that moves; massless bodies where the builder allows them."""
    rng = np.random.default_rng(seed)
    for _ in range(20):
        try:
            robot = random_builder(rng, n, **options).build()
        except pp.ModelError:
            continue
        if robot.nv:
            return robot
    return random_builder(rng, n, **{**options, "massless": False, "kinds": MOVING}).build()


def reversed_forest(seed: int, n: int, **options: Any) -> pp.Robot:
    """A random robot with the kinds of hinges that `rebase` makes of planar, spherical and free
    hinges, between others; at roots if there are no `roots=`."""
    robot = random_forest(seed, n, kinds=("revolute", "planar", "spherical", "free"), **options)
    builder = robot.edit()
    for h in robot.hinges:
        kind = REVERSED.get(f"reversed_{h.kind.name}")
        if kind and not (h.parent == "world" and "roots" in options):
            builder.replace_hinge(h.name, kind=kind)
    return builder.build()


def forests(max_bodies: int = 6, **options: Any) -> st.SearchStrategy[pp.Robot]:
    """Random forests for hypothesis."""
    return st.builds(
        lambda seed, n: random_forest(seed, n, **options),
        st.integers(0, 10**6),
        st.integers(1, max_bodies),
    )


class State:
    """Random state, forces and external forces of a robot, the same for the same robot."""

    def __init__(self, robot: pp.Robot, batch: tuple[int, ...] = (), seed: int = 7) -> None:
        rng = np.random.default_rng(seed)
        self.q, self.v = robot.random_state(rng, batch)
        self.a = rng.normal(size=(*batch, robot.nv))
        self.tau = rng.normal(size=(*batch, robot.nv))
        self.w = rng.normal(size=(*batch, robot.nv))
        self.external = rng.normal(size=(*batch, robot.nb, 6))
        self.active = rng.random((*batch, robot.nv)) < 0.5


def close(actual: Any, expected: Any, tolerance: float = 1e-10) -> None:
    """Largest difference over largest value (at least one) is within tolerance."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    assert np.isfinite(actual).all()
    if actual.size:
        error = np.abs(actual - expected).max() / max(1.0, np.abs(expected).max())
        assert error <= tolerance, f"relative error {error:.2e} > {tolerance:.0e}"
