"""The samples of a simulation phase by phase, and how they are put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from phipsi.model import Closure
from phipsi.simulation.controller import FORCES, BoundController
from phipsi.simulation.events import Phase


@dataclass(frozen=True)
class Segment:
    """The samples of one phase: of `first`, `first + 1`, … the q, v and memory."""

    phase: Phase
    controller: BoundController
    values: np.ndarray | None
    first: int
    q: np.ndarray
    v: np.ndarray
    memory: np.ndarray | None


def merged(segments: list[Segment]) -> list[Segment]:
    """Neighbours of one phase joined, and samples dropped that an event at their time replaces."""
    groups: list[list[Segment]] = []
    for segment in segments:
        if groups and groups[-1][-1].first + groups[-1][-1].q.shape[-2] - 1 >= segment.first:
            _shorten(groups, segment.first)
        same = groups and _alike(groups[-1][0], segment)
        groups[-1].append(segment) if same else groups.append([segment])
    return [_join(group) for group in groups if group]


def _shorten(groups: list[list[Segment]], first: int) -> None:
    """Drop the samples from `first` on."""
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
    """Are both subject to the same controller, forces and constraints?"""
    a, b = one.phase, other.phase
    same_masks = np.array_equal(a.active, b.active) and np.array_equal(a.locked, b.locked)
    return (
        (one.controller, a.plant) == (other.controller, b.plant)
        and same_masks
        and np.array_equal(_numbers(one), _numbers(other))
    )


def _numbers(segment: Segment) -> np.ndarray:
    return np.zeros(0) if segment.values is None else segment.values


def _join(group: list[Segment]) -> Segment:
    def together(name: str) -> Any:
        parts = [getattr(segment, name) for segment in group]
        return None if parts[0] is None else np.concatenate(parts, axis=-2)

    return replace(group[0], q=together("q"), v=together("v"), memory=together("memory"))


def named(out: Mapping[str, Any], closures: Sequence[Closure]) -> Iterator[tuple[str, np.ndarray]]:
    """Signals by name; the forces of closures one by one."""
    for name, value in out.items():
        array = np.asarray(value)
        if name in FORCES:
            for i, c in enumerate(closures):
                shared = sum(other.a == c.a for other in closures) > 1
                frames = f"{c.a}:{c.b}" if shared else c.a
                yield f"{name.removesuffix('s')}:{frames}", array[..., i, :]
        else:
            yield name, array


def joined(name: str, told: list[dict[str, np.ndarray]], segments: list[Segment]) -> np.ndarray:
    """A signal of all segments, NaN where there was none."""
    example = next(part[name] for part in told if name in part)
    lead = segments[0].q.ndim - 1
    parts = []
    for part, segment in zip(told, segments, strict=True):
        shape = (*segment.q.shape[:-1], *example.shape[lead:])
        parts.append(np.broadcast_to(part.get(name, np.nan), shape))
    return np.concatenate(parts, axis=lead - 1)
