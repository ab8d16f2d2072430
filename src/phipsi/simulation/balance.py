"""Whether a motion keeps the laws that it has to keep: energy, momentum, closures, quaternions.

Each interval from sample to sample is integrated once more, in half the steps and all intervals at
once. That gives the work of what is no potential, by Simpson's rule, and what the method itself is
wrong by: where the balance is off by more, the forces are not what they are said to be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from phipsi.algorithms import (
    frame_velocity,
    kinetic_energy,
    loop_opening,
    momentum,
    passive_energy,
    potential_energy,
    spring_energy,
)
from phipsi.compile import lift
from phipsi.conventions import WORLD
from phipsi.model import Robot
from phipsi.programs import program
from phipsi.simulation.clock import Seconds
from phipsi.simulation.closed_loop import ClosedLoop, LoopInputs, commanded
from phipsi.simulation.plant import Plant
from phipsi.simulation.segments import Segment
from phipsi.simulation.sequences import Sequences
from phipsi.simulation.steps import FixedSteps
from phipsi.sweeps.lowering import unrolling
from phipsi.typing import Array, Configuration, ExternalForces, JointVector

ENERGY, EXPLAINED, DRIFT = "energy_error", "energy_error_explained", "momentum_error"
"""The names of the signals of a balance."""
UNITS = {ENERGY: "J", EXPLAINED: "J"}
SAFETY = 4.0
"""How much larger the error of a step may be than it changes in half steps (twice, for order 1),
and that of Simpson's rule than it differs from the trapezoids'."""
ROUNDING = 1e-12
"""The relative error of energies and momenta that rounding explains, for each sample."""
MUCH = 0.02
"""The part of the energy, or momentum, in play that a motion may lose or gain in silence."""
GAP = 1e-4
"""The gap [rad, m] that closures may have opened by."""
NORM = 1e-9
"""How far from one the norm of a quaternion may be."""
SINGULAR = (
    ", or start such that the closures stay away from singular positions, which adaptive methods "
    "cannot pass"
)
"""What to do besides where there are closures."""
PARTS = 8
"""Parts of an interval at which power is asked for, at most; a power of two."""
ADAPTIVE_STEPS = 16
"""Steps of an interval of an adaptive method in its repetition by "rk4"."""


@program(static=("loop",))
def supplied(
    robot: Robot, q: Configuration, v: JointVector, t: Seconds, dt: Seconds,
    memory: Array | None = None, active: JointVector | None = None,
    locked: JointVector | None = None, parameters: Array | None = None,
    sequences: Array | None = None, *, loop: ClosedLoop,
) -> tuple[Array, Array]:  # fmt: skip
    """The power [W] of motors, dampers, friction, stops and external forces; and the largest force
    from outside, which are external forces and those on free hinges to the world [N·m, N].

    Forces of springs have an energy and are not counted: what does not depend on v, but for stops.
    """
    inputs, plant = LoopInputs(dt, memory, active, locked, parameters, sequences), loop.plant
    with unrolling(loop.unroll):
        out = commanded(robot, loop, inputs, t, q, v)
        still = np.zeros(robot.nv)
        tau = out["tau"] + plant.loads(robot, q, v) - plant.loads(robot, q, still)
        if plant.limits is not None:
            tau = tau + plant.limits.forces(robot, q, still)
        roots = (h.name for h in robot.hinges if h.parent == WORLD)
        outside = [*np.where(robot.mask(*roots), lift(tau), 0.0)]
        power = v @ tau
        for wrench, twist in _external(robot, q, v, out["external"]):
            power = power + wrench @ twist
            outside += [*wrench]
    return power, np.max(np.abs(lift(np.array([*outside, 0.0]))))


def _external(
    robot: Robot, q: Configuration, v: JointVector, forces: ExternalForces | None
) -> Iterator[tuple[Array, Array]]:
    """The wrench on each frame or body, and the velocity of that in its own axes."""
    if forces is None:
        return
    if isinstance(forces, Mapping):
        named = cast("Mapping[str, Array]", forces)
    else:
        named = dict(zip((b.name for b in robot.bodies), np.asanyarray(forces), strict=True))
    for name, wrench in named.items():
        yield np.asanyarray(wrench), np.asarray(frame_velocity(robot, q, v, name))


@dataclass(frozen=True)
class Repetition:
    """All intervals of a segment, integrated again in half the steps."""

    q: Configuration
    """(…, N − 1, parts + 1, nq): the state at the beginning of each interval, and after parts."""
    v: JointVector
    power: Array
    outside: Array
    spacing: float
    """The time [s] from one to the next."""

    @property
    def work(self) -> tuple[Array, Array]:
        """The work in each interval by Simpson's rule, and how it differs from the trapezoids'."""
        P = self.power
        simpson = (P[..., :-1:2] + 4.0 * P[..., 1::2] + P[..., 2::2]).sum(-1) * self.spacing / 3.0
        trapezoid = (P[..., :-1] + P[..., 1:]).sum(-1) * self.spacing / 2.0
        return simpson, np.abs(simpson - trapezoid)


def repeated(steps: FixedSteps, segment: Segment) -> Repetition:
    """The repetition of a segment; `steps` are those of its phase, at its own dt."""
    every, numbers = steps.clock.every, segment.numbers[:-1]
    unit = 1 if steps.sequences is None else steps.sequences.steps
    parts = 2
    while parts < PARTS and every % (parts * unit) == 0:
        parts *= 2
    each = 2 * every // parts
    q, v = segment.q[..., :-1, :], segment.v[..., :-1, :]
    inputs = steps.inputs
    more: dict[str, Any] = {"dt": inputs.dt / 2.0}
    if segment.memory is not None:
        more["memory"] = segment.memory[..., :-1, :]
    if segment.values is not None:
        more["parameters"] = segment.values[..., None, :]
    sequences = None if steps.sequences is None else _by_sample(steps.sequences, numbers, every)
    first = 2.0 * every * numbers
    again = replace(
        steps, phase=replace(steps.phase, q=q, v=v), inputs=inputs._replace(**more),
        sequences=sequences, offset=first,
    )  # fmt: skip
    found = again.run(parts, each)
    k = each * np.arange(parts + 1)
    given = again.inputs._replace(
        memory=found.memory,
        parameters=None if segment.values is None else segment.values[..., None, None, :],
        sequences=None if sequences is None else sequences.at(k),
    )
    t = (first[:, None] + k) * given.dt
    power, outside = supplied(steps.robot, found.q, found.v, t, *given, loop=steps.loop)
    spacing = each * float(given.dt)
    return Repetition(found.q, found.v, np.asarray(power), np.asarray(outside), spacing)


def _by_sample(sequences: Sequences, numbers: Array, every: int) -> Sequences:
    """The intervals of sequences within those from sample to sample, (…, N, rows, m), each halved,
    for there are twice as many steps."""
    each = every // sequences.steps
    rows = numbers[:, None] * each + np.arange(each + 1)
    held, ends = sequences.held[..., rows[:, :-1], :], sequences.knots[..., rows, :]
    knots = np.repeat(ends, 2, axis=-2)[..., :-1, :]
    knots[..., 1::2, :] = 0.5 * (ends[..., :-1, :] + ends[..., 1:, :])
    return Sequences(np.repeat(held, 2, axis=-2), knots, sequences.steps)


def energy(robot: Robot, plant: Plant, q: Configuration, v: JointVector) -> Array:
    """Kinetic energy and that of gravity and springs [J]."""
    found = np.asarray(kinetic_energy(robot, q, v)) + np.asarray(potential_energy(robot, q))
    if plant.passive and robot.joint_data("stiffness").any():
        found = found + np.asarray(passive_energy(robot, q))
    if plant.springs:
        found = found + np.asarray(spring_energy(robot, plant.springs, q))
    return found


@dataclass(frozen=True)
class Balance:
    """What the samples of a segment are off by, from its first sample on."""

    times: Array
    energy: Array
    """The gain of energy that no work accounts for [J], (…, N)."""
    explained: Array
    """What the method, and the rule for the work, explain of that [J]."""
    exchanged: Array
    """The energy in play [J]: the largest kinetic energy, the range of the potential, all work."""
    momentum: Array | None
    """The change of momentum where nothing acts from outside, (…, N) [N·m·s or N·s]."""
    momentum_explained: Array | None
    opening: Array
    """How far the closures have opened [rad or m], (…, N)."""
    norms: Array
    """How far norms of quaternions are from one, (…, N)."""

    @property
    def signals(self) -> dict[str, Array]:
        """The figures by the names of signals."""
        found = {ENERGY: self.energy, EXPLAINED: self.explained}
        return found if self.momentum is None else found | {DRIFT: self.momentum}

    def doubts(self) -> Iterator[str]:
        """A sentence for each law that the motion breaks."""
        gain = np.abs(self.energy)
        found = _first(self, gain > self.explained)
        if found:
            t, at = found
            yield (
                f"the energy is off by {self.energy[at]:.2g} J at t = {t:g} s, which neither work "
                f"nor the steps explain ({self.explained[at]:.1g} J): a force is not the gradient "
                "of its energy, or a closure does work; look for jumps of forces and for singular "
                "positions there"
            )
        else:
            found = _first(self, gain > MUCH * self.exchanged)
            if found:
                t, at = found
                yield (
                    f"the steps are too coarse: the energy is off by {self.energy[at]:.2g} J at "
                    f"t = {t:g} s, of {self.exchanged[at]:.2g} J in play; take a smaller dt, "
                    f"smaller tolerances or another method{SINGULAR if self.opening.any() else ''}"
                )
        if self.momentum is not None and self.momentum_explained is not None:
            found = _first(self, self.momentum > self.momentum_explained)
            if found:
                t, at = found
                yield (
                    f"the momentum is off by {self.momentum[at]:.2g} N·m·s or N·s at t = {t:g} s, "
                    f"which the steps do not explain ({self.momentum_explained[at]:.1g}), although "
                    "nothing acts from outside: take a smaller dt, or method='preserving'"
                )
        found = _first(self, self.opening > GAP)
        if found:
            t, at = found
            yield (
                f"the closures have opened by {self.opening[at]:.2g} rad or m at t = {t:g} s; take "
                "a smaller dt or a larger stabilisation"
            )
        found = _first(self, self.norms > NORM)
        if found:
            t, at = found
            yield f"a quaternion is off from unit norm by {self.norms[at]:.1g} at t = {t:g} s"


def _first(x: Balance, broken: Array) -> tuple[float, tuple[int, ...]] | None:
    """The time and the place of the first sample at which a law is broken."""
    if not broken.any():
        return None
    places = np.argwhere(broken)
    at = tuple(int(i) for i in places[places[:, -1].argmin()])
    return float(x.times[at[-1]]), at


def balance(steps: FixedSteps, segment: Segment, times: Array) -> Balance:
    """The balance of a segment of at least two samples; `steps` as in `repeated`."""
    robot, plant, again = steps.robot, steps.phase.plant, repeated(steps, segment)
    q, v = segment.q, segment.v
    end = again.q[..., -1, :], again.v[..., -1, :]
    E, kinetic = energy(robot, plant, q, v), np.asarray(kinetic_energy(robot, q, v))
    work, uncertain = again.work
    step = np.abs(E[..., 1:] - energy(robot, plant, *end)) + uncertain
    if steps.loop.method == "implicit":  # whose steps pass over what decays within them
        step = step + np.abs(work)
    size = np.abs(E[..., 1:]) + np.abs(kinetic[..., 1:])
    potential = E - kinetic
    exchanged = kinetic.max(-1) + np.ptp(potential, axis=-1) + np.abs(work).sum(-1)
    moved = None if not _alone(robot, plant, again) else np.asarray(momentum(robot, q, v))
    drift = allowed = None
    if moved is not None:
        local = np.abs(moved[..., 1:, :] - np.asarray(momentum(robot, *end))).max(-1)
        scale = np.sqrt(2.0 * float(robot.mass) * kinetic[..., 1:]) + np.abs(moved[..., 1:, :]).max(
            -1
        )
        drift = np.abs(moved - moved[..., :1, :]).max(-1)
        allowed = _summed(SAFETY * local + ROUNDING * (1.0 + scale))
    return Balance(
        times, _summed(np.diff(E) - work), _summed(SAFETY * step + ROUNDING * size),
        np.broadcast_to(exchanged[..., None], E.shape),
        drift, allowed, _opening(robot, plant, q, v), _norms(robot, q),
    )  # fmt: skip


def _summed(x: Array) -> Array:
    """Sums up to each sample, 0 at the first."""
    return np.concatenate([np.zeros((*x.shape[:-1], 1)), np.cumsum(x, axis=-1)], axis=-1)


def _alone(robot: Robot, plant: Plant, again: Repetition) -> bool:
    """Whether nothing acts from outside, so that the momentum of the whole is constant."""
    roots = [h for h in robot.hinges if h.parent == WORLD]
    ends = [name for x in (*plant.closures, *plant.springs) for name in (x.a, x.b)]
    return not (
        np.any(robot.gravity)
        or again.outside.any()
        or any(h.kind.name != "free" or np.any(h.armature) or np.any(h.stiffness) for h in roots)
        or any(robot.frame(name).body == WORLD for name in ends)
    )


def _opening(robot: Robot, plant: Plant, q: Configuration, v: JointVector) -> Array:
    """How far the closures have opened since the first sample."""
    if not plant.closures:
        return np.zeros(q.shape[:-1])
    error = np.asarray(loop_opening(robot, plant.closures, q, v).error)
    return np.abs(error - error[..., :1, :]).max(-1)


def _norms(robot: Robot, q: Configuration) -> Array:
    """How far norms of quaternions are from one."""
    off = np.zeros(q.shape[:-1])
    for h in robot.hinges:
        if h.kind.quaternion is not None:
            start = h.q.start + h.kind.quaternion
            off = np.maximum(off, np.abs(np.linalg.norm(q[..., start : start + 4], axis=-1) - 1.0))
    return off
