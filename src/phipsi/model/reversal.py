"""Hinges seen from their other side: the child becomes the parent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from phipsi.spatial import Motion


@dataclass(frozen=True)
class Reversal:
    """How a hinge kind is described from the other side: T'(q') = T(q)⁻¹, with the same kind.

    `q` and `v` tell for each number of q' and v' which number of q and v it is, None where it is
    made of several. `alike` are those of v' that turn into one another: data that are the same for
    all of them stay so. Where no v' is None, a' and tau' follow v'.
    """

    q: tuple[int | None, ...]
    v: tuple[int | None, ...]
    alike: tuple[int, ...] = ()
    axes: Callable[[tuple[Any, ...]], tuple[Any, ...]] = lambda axes: tuple(-u for u in axes[::-1])
    mixed: Callable[[Any], Sequence[Any]] | None = None
    """q' of q where it is no permutation."""

    def coordinates(self, q: Any) -> Sequence[Any]:
        """q' of q."""
        return self.mixed(q) if self.mixed else [q[i] for i in self.q]

    def velocity(self, h: Any, back: Any, q: Any, v: Any) -> Any:
        """v' of v, with H'* v' = −φ⁻* H* v: the parent's motion as the child sees it."""
        if None not in self.v:
            return v[list(self.v)]
        return self._fitted(h, back, q, h.kind.map(h, q).T @ v, Motion.zero())

    def acceleration(self, h: Any, back: Any, q: Any, v: Any, a: Any) -> Any:
        """a' of a, with H'* a' + Ḣ'* v' = −φ⁻* (H* a + Ḣ* v)."""
        if None not in self.v:
            return a[list(self.v)]
        after, q_back = self.velocity(h, back, q, v), self.coordinates(q)
        rate = h.kind.map(h, q).T @ a + h.kind.rate(h, q, v, v)
        return self._fitted(h, back, q, rate, back.kind.rate(back, q_back, after, after))

    def force(self, h: Any, back: Any, q: Any, tau: Any) -> Any:
        """tau' of tau, of the same power."""
        if None not in self.v:
            return tau[list(self.v)]
        phi, H = h.kind.pose(h, q), h.kind.map(h, q)
        units = back.kind.map(back, self.coordinates(q)).T.columns
        return np.array([H.fit(-(phi.T @ unit)) @ tau for unit in units], object)

    def _fitted(self, h: Any, back: Any, q: Any, rate: Motion, known: Motion) -> Any:
        H = back.kind.map(back, self.coordinates(q))
        return H.fit(-(h.kind.pose(h, q).inv.T @ rate) - known)
