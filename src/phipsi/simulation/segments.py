"""Segments: the samples of a simulation between events, and how they are joined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from phipsi.model import Closure
from phipsi.simulation.controller import FORCES, BoundController
from phipsi.simulation.events import Phase
from phipsi.simulation.sequences import Sequences
from phipsi.typing import Array


@dataclass(frozen=True)
class Segment:
    """Consecutive samples of one phase."""

    phase: Phase
    controller: BoundController
    values: Array | None
    """The parameters of the controller, packed, (…, k)."""
    sequences: Sequences | None
    """Its sequences over time."""
    first: int
    """The number of the first sample."""
    q: Annotated[Array, "samples nq"]
    v: Annotated[Array, "samples nv"]
    memory: Annotated[Array, "samples m"] | None

    @property
    def bound(self) -> tuple[BoundController, Array | None, Sequences | None]:
        """The controller with its parameters and sequences."""
        return self.controller, self.values, self.sequences

    @property
    def numbers(self) -> Annotated[Array, "samples"]:
        """The numbers of the samples."""
        count: int = self.q.shape[-2]
        return np.arange(self.first, self.first + count)


def merged(segments: list[Segment]) -> list[Segment]:
    """The segments with neighbours under the same conditions joined, and without the samples that
    an event replaces by its own at the same time."""
    groups: list[list[Segment]] = []
    for segment in segments:
        if groups and groups[-1][-1].first + groups[-1][-1].q.shape[-2] - 1 >= segment.first:
            _shorten(groups, segment.first)
        same = groups and _alike(groups[-1][0], segment)
        groups[-1].append(segment) if same else groups.append([segment])
    return [_join(group) for group in groups if group]


def _shorten(groups: list[list[Segment]], first: int) -> None:
    """Drop the samples of the last segment from the number `first` on."""
    last = groups[-1].pop()
    left = first - last.first
    if left > 0:
        memory = None if last.memory is None else last.memory[..., :left, :]
        groups[-1].append(
            replace(last, q=last.q[..., :left, :], v=last.v[..., :left, :], memory=memory)
        )
    if not groups[-1]:
        groups.pop()


def _alike(one: Segment, other: Segment) -> bool:
    """Whether both have the same controller, parameters, forces and constraints."""
    a, b = one.phase, other.phase
    same_masks = np.array_equal(a.active, b.active) and np.array_equal(a.locked, b.locked)
    return (
        (one.controller, a.plant) == (other.controller, b.plant)
        and one.sequences is other.sequences
        and same_masks
        and np.array_equal(_numbers(one), _numbers(other))
    )


def _numbers(segment: Segment) -> Array:
    return np.zeros(0) if segment.values is None else segment.values


def _join(group: list[Segment]) -> Segment:
    q = np.concatenate([segment.q for segment in group], axis=-2)
    v = np.concatenate([segment.v for segment in group], axis=-2)
    kept = [segment.memory for segment in group if segment.memory is not None]
    return replace(group[0], q=q, v=v, memory=np.concatenate(kept, axis=-2) if kept else None)


def named(out: Mapping[str, Array], closures: Sequence[Closure]) -> Iterator[tuple[str, Array]]:
    """The results of `observe` by name; forces of closures have a name for each closure."""
    for name, value in out.items():
        array = np.asarray(value)
        if name in FORCES:
            for i, c in enumerate(closures):
                shared = sum(other.a == c.a for other in closures) > 1
                frames = f"{c.a}:{c.b}" if shared else c.a
                yield f"{name.removesuffix('s')}:{frames}", array[..., i, :]
        else:
            yield name, array


def joined(name: str, signals: list[dict[str, Array]], segments: list[Segment]) -> Array:
    """One signal over all segments, NaN in those without it; `signals` are those of each."""
    example = next(own[name] for own in signals if name in own)
    lead = segments[0].q.ndim - 1
    parts: list[Array] = []
    for own, segment in zip(signals, segments, strict=True):
        shape = (*segment.q.shape[:-1], *example.shape[lead:])
        parts.append(np.broadcast_to(own.get(name, np.nan), shape))
    return np.concatenate(parts, axis=lead - 1)
