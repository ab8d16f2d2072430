"""Systems that no robot has: random numbers in random forests, on which identities must hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from phipsi.operators.dense import System


def random_system(
    seed: int,
    n: int = 5,
    *,
    serial: bool = False,
    free: bool = False,
    armature: bool = True,
    gain: bool = False,
) -> System:
    """n bodies with random invertible φ, inertias and hinges of 1 to 6 freedoms, some passive.

    `free` roots have H = I and no armature. With `gain` G, P and D are random too: block diagonal,
    P and D positive, and no solution of any equation.
    """
    rng = np.random.default_rng(seed)
    parents = tuple(i - 1 if serial or i == 0 else int(rng.integers(-1, i)) for i in range(n))
    freedoms = [6 if free and p < 0 else int(rng.integers(1, 7)) for p in parents]
    ends = np.cumsum(freedoms).tolist()
    places = [slice(end - r, end) for end, r in zip(ends, freedoms, strict=True)]
    moves, nv = np.repeat(np.arange(n), freedoms), ends[-1]
    H = np.concatenate([_invertible(rng)[:r] for r in freedoms])
    A, passive = np.zeros((nv, nv)), rng.random(nv) < 0.5
    for i, (p, place) in enumerate(zip(parents, places, strict=True)):
        if free and p < 0:
            H[place] = np.eye(6)
        elif armature and (i == n - 1 or rng.random() < 0.7):
            A[place, place] = _positive(rng, freedoms[i])
    A *= passive == passive[:, None]  # active and passive rotors are apart
    system = System(
        parents,
        np.stack([_invertible(rng) for _ in parents]),
        np.stack([_positive(rng, 6) for _ in parents]),
        moves,
        H,
        A,
        passive,
        tuple(f"body{i}" for i in range(n)),
        {f"hinge{i}": place for i, place in enumerate(places)},
        {name: (int(rng.integers(n)), _invertible(rng)) for name in ("tool", "camera")},
    )
    return system.giving(**_gain(rng, places)) if gain else system


def systems(max_bodies: int = 6, **options: Any) -> st.SearchStrategy[System]:
    """Random systems for hypothesis."""
    return st.builds(
        lambda seed, n: random_system(seed, n, **options),
        st.integers(0, 10**6),
        st.integers(1, max_bodies),
    )


def vectors(system: System, *names: str, seed: int = 3) -> dict[str, np.ndarray]:
    """Random vectors of joints (T, beta, beta_dot) and bodies (others) by name."""
    rng, nv, nb = np.random.default_rng(seed), len(system.H), len(system.parents)
    joint = ("T", "beta", "beta_dot", "C")
    return {name: rng.normal(size=nv if name in joint else (nb, 6)) for name in names}


def _gain(rng: np.random.Generator, places: list[slice]) -> dict[str, np.ndarray]:
    n, nv = 6 * len(places), places[-1].stop
    G, P, D = np.zeros((n, nv)), np.zeros((n, n)), np.zeros((nv, nv))
    for i, place in enumerate(places):
        body, r = slice(6 * i, 6 * i + 6), place.stop - place.start
        G[body, place] = 0.5 * rng.normal(size=(6, r))
        P[body, body], D[place, place] = _positive(rng, 6), _positive(rng, r)
    return {"G": G, "P": P, "D": D}


def _orthogonal(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


def _invertible(rng: np.random.Generator) -> np.ndarray:
    return _orthogonal(rng, 6) @ np.diag(rng.uniform(0.6, 1.5, 6)) @ _orthogonal(rng, 6)


def _positive(rng: np.random.Generator, n: int) -> np.ndarray:
    Q = _orthogonal(rng, n)
    return Q @ np.diag(rng.uniform(0.3, 3.0, n)) @ Q.T
