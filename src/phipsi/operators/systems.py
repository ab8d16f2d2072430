"""Systems: what dense matrices of operators are made from, a robot's numbers or any others.

The algebra asks little of a system: a forest, a 6 × 6 block φ and an inertia M for each body, rows
of H for each hinge. They need not be those of a robot; identities hold for any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from phipsi.conventions import WORLD
from phipsi.model import Robot
from phipsi.operators.checks import chosen
from phipsi.operators.expressions import Leaf
from phipsi.operators.spaces import Space
from phipsi.operators.symbols import SYMBOLS
from phipsi.spatial import Motion, Transform
from phipsi.spatial import rotation as rot


@dataclass(frozen=True, eq=False)
class System:
    """nb bodies in a forest, moved by nv freedoms; what is left out gives symbols less.

    A body may have any number of freedoms, and any body be the parent of any other.
    """

    parents: tuple[int, ...]
    """For each body the number of its parent, −1 for the world."""
    phi: np.ndarray
    """φ of each body towards its parent, (nb, 6, 6)."""
    M: np.ndarray
    """The inertia of each body, (nb, 6, 6)."""
    moves: np.ndarray
    """For each freedom the number of the body that it moves, (nv,)."""
    H: np.ndarray
    """For each freedom its row of H at that body, (nv, 6)."""
    A: np.ndarray
    """Armature, (nv, nv), zero between hinges."""
    passive: np.ndarray | None = None
    """For each freedom: is it passive? (nv,)"""
    bodies: tuple[str, ...] = ()
    hinges: Mapping[str, slice] = field(default_factory=dict)
    """The freedoms of each hinge."""
    frames: Mapping[str, tuple[int, np.ndarray]] = field(default_factory=dict)
    """Frames by name: the body (−1 for the world) and the 6 × 6 block that carries forces to it."""
    load: np.ndarray | None = None
    """External forces and weight, (nb, 6)."""
    hinge_rate: Callable[[np.ndarray], np.ndarray] | None = None
    """Ḣ*β, (nb, 6), from joint rates β."""
    displaced: Callable[[np.ndarray], System] | None = None
    """The system after a joint displacement (nv,)."""
    given: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Whole matrices by symbol, used instead of those that would be computed; see `giving`."""
    known: dict[Leaf, np.ndarray] = field(default_factory=dict, init=False, repr=False)
    """What was computed of it already."""

    def giving(self, **values: Any) -> System:
        """The same system with vectors (T, beta, …; those of bodies flat or (nb, 6)) or operators
        (a gain G that solves no Riccati equation) that have these values."""
        return replace(self, given={**self.given, **{k: self._fit(k, values[k]) for k in values}})

    def _fit(self, name: str, value: Any) -> np.ndarray:
        if name not in SYMBOLS or SYMBOLS[name].framed:
            raise ValueError(f"{name}=… gives nothing a value: no symbol of that name has one")
        spaces = SYMBOLS[name].codomain, SYMBOLS[name].domain
        shape, array = tuple(map(self.size, spaces)), np.array(value, float)
        if array.size != shape[0] * shape[1]:
            raise ValueError(f"{name} has shape {array.shape}, and needs {shape}")
        return array.reshape(shape)

    def size(self, space: Space) -> int:
        """How many numbers a vector of the space has."""
        match space.size:
            case "joint":
                return len(self.H)
            case "body":
                return 6 * len(self.parents)
            case "active":
                return int((~self.released).sum())
            case "passive":
                return int(self.released.sum())
            case "frame":
                return 6 * len(space.frames)
            case "one":
                return 1
        raise ValueError("I or 0 alone has no size: name its space, Identity.of(JOINT_RATES)")

    @property
    def released(self) -> np.ndarray:
        """Which freedoms are passive."""
        if self.passive is None:
            raise ValueError(
                "active and passive joints are not told apart: system(robot, q, active=…) does"
            )
        return self.passive

    @property
    def roots(self) -> np.ndarray:
        """The bodies that hang on the world."""
        return np.flatnonzero(np.array(self.parents, int) < 0)

    def freedom(self, hinge: str) -> int:
        """The only freedom of a hinge."""
        if hinge not in self.hinges:
            raise ValueError(f"there is no hinge {hinge!r}; there are {_list(self.hinges)}")
        place = self.hinges[hinge]
        if place.stop - place.start != 1:
            raise ValueError(f"hinge {hinge!r} has not one freedom, but {place.stop - place.start}")
        return place.start

    def check_free(self, roots: Iterable[int]) -> None:
        """Do root bodies fly freely: with six freedoms, and no armature that ties them down?"""
        for i in roots:
            own = self.moves == i
            if own.sum() != 6 or np.linalg.matrix_rank(self.H[own]) < 6 or self.A[own].any():
                name = repr(self.bodies[i]) if self.bodies else i
                raise ValueError(f"body {name} is no free base: one has six freedoms, no armature")

    def rerooted(self, body: str) -> System:
        """The system with another body as the base ([BI] Appendix A): same frames and order of the
        freedoms, but the six of the free root become the spatial velocity of the new base.

        A hinge c on the way from the root hangs parent p on child c: φ'_p = φ_c⁻¹ and
        H'_p* = −φ_c⁻* H_c*.
        """
        if body not in self.bodies:
            raise ValueError(f"there is no body {body!r}; there are {_list(self.bodies)}")
        base = c = self.bodies.index(body)
        parents, phi = list(self.parents), self.phi.copy()
        moves, H = self.moves.copy(), self.H.copy()
        while (p := self.parents[c]) >= 0:
            own = self.moves == c
            back = np.linalg.inv(self.phi[c])
            parents[p], phi[p] = c, back
            moves[own], H[own] = p, -self.H[own] @ back
            c = p
        self.check_free([c])
        parents[base], phi[base] = -1, np.eye(6)
        own = self.moves == c
        moves[own], H[own] = base, np.eye(6)
        return System(tuple(parents), phi, self.M, moves, H, self.A, bodies=self.bodies)


def system(
    robot: Robot, q: Any, v: Any = None, *, active: Any = None, external: Any = None
) -> System:
    """The system of a robot at one configuration q (nq,), moving with v (nv,).

    `active` says which joints are: names of hinges, or a mask (nv,). External forces are
    {frame: wrench} or (nb, 6). Bodies are in the frames that people see, accelerations are true:
    gravity is among the loads.
    """
    q = np.asarray(q, float)
    if q.shape != (robot.nq,):
        raise ValueError(f"q has shape {q.shape}, and needs ({robot.nq},)")
    origins, frames = [b.origin for b in robot.bodies], _frames(robot)
    phi, rows, M, fall = [], [], [], []
    poses = {-1: Transform.identity()}
    for i, (body, h, p) in enumerate(zip(robot.bodies, robot.hinges, robot.parents, strict=True)):
        O, turned = body.origin, h.placement @ h.kind.pose(h, _part(q, h.q))
        inboard = turned if p < 0 else origins[p].inv @ turned
        poses[i] = poses[p] @ inboard @ O
        phi.append(_block(inboard @ O))
        M.append(np.array(O.inv.congruence(body.inertia).articulated.matrix, float))
        rows += [(O.T @ column).array for column in h.kind.columns(h, _part(q, h.q))]
        fall.append((poses[i].T @ Motion(rot.zero(), rot.scalars(robot.gravity))).array)

    def hinge_rate(beta: np.ndarray) -> np.ndarray:
        moving = ((h, _part(q, h.q), _part(beta, h.v)) for h in robot.hinges)
        rates = [h.kind.rate(h, x, rate, rate) for h, x, rate in moving]
        return _array([(O.T @ r).array for O, r in zip(origins, rates, strict=True)], 6)

    places: dict[bytes, System] = {}

    def displaced(dv: np.ndarray) -> System:
        key = dv.tobytes()
        if key not in places:
            places[key] = system(robot, robot.integrate(q, dv), active=active)
        return places[key]

    inertias, weight = _array(M, 6, 6), _array(fall, 6)[..., None]
    made = System(
        robot.parents, _array(phi, 6, 6), inertias,
        np.repeat(np.arange(robot.nb), [h.kind.nv for h in robot.hinges]), _array(rows, 6),
        np.diag(np.asarray(robot.joint_data("armature"), float)), _passive(robot, active),
        tuple(b.name for b in robot.bodies), {h.name: h.v for h in robot.hinges}, frames,
        _external(robot, frames, external) + (inertias @ weight)[..., 0], hinge_rate, displaced,
    )  # fmt: skip
    return made if v is None else made.giving(beta=v)


def _frames(robot: Robot) -> dict[str, tuple[int, np.ndarray]]:
    found = {WORLD: (-1, np.eye(6))}
    for name in (*(b.name for b in robot.bodies), *robot.frames):
        frame = robot.frame(name)
        i = robot.body_index(frame.body)
        seen = frame.placement if i < 0 else robot.bodies[i].origin.inv @ frame.placement
        found[name] = i, _block(seen)
    return found


def _external(robot: Robot, frames: Mapping[str, Any], external: Any) -> np.ndarray:
    if not isinstance(external, Mapping):
        forces = np.zeros((robot.nb, 6)) if external is None else np.array(external, float)
        return forces.reshape(robot.nb, 6)
    forces = np.zeros((robot.nb, 6))
    for name, wrench in external.items():
        i, block = frames[robot.frame(name).name]
        if i < 0:
            raise ValueError(f"external force on {name!r}: that frame is fixed to the world")
        forces[i] += block @ wrench
    return forces


def _passive(robot: Robot, active: Any) -> np.ndarray | None:
    mask = chosen(robot, active)
    return None if mask is None else ~np.array(mask, bool)


def _part(x: np.ndarray, place: slice) -> Any:
    return x[place].astype(object)


def _block(pose: Transform) -> np.ndarray:
    """φ = [[R, l~R], [0, R]] of a pose."""
    R, l = np.array(pose.rotation, float), np.array(pose.position, float)
    return np.block([[R, skew(l) @ R], [np.zeros((3, 3)), R]])


def skew(x: np.ndarray) -> np.ndarray:
    """x~ with x~ y = x × y, (…, 3, 3) of (…, 3)."""
    return np.cross(np.eye(3), x[..., None, :])


def _array(rows: list[Any], *shape: int) -> np.ndarray:
    return np.array(rows, float).reshape(-1, *shape)


def _list(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
