"""phipsi beside Pinocchio on one URDF: the largest relative difference of each quantity."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

import phipsi as pp

pin: Any = importlib.import_module("pinocchio")

STATES = 3
ARMATURE = 1e-3
"""Given to every joint, on both sides, of a robot that moves a massless body."""
TOLERANCE = 1e-10


@dataclass
class Agreement:
    """What came of one file with one base."""

    file: str
    base: str
    nv: int = 0
    errors: dict[str, float] = field(default_factory=dict)
    refused: str = ""
    exact: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Where they differ: how far phipsi and Pinocchio are from long double."""
    note: str = ""

    @property
    def agrees(self) -> bool:
        """Every quantity within tolerance, or phipsi the nearer one to long double."""
        beyond = [name for name, error in self.errors.items() if error > TOLERANCE]
        nearer = [name for name, (ours, theirs) in self.exact.items() if ours <= theirs]
        return not self.refused and set(beyond) <= set(nearer)

    @property
    def notes(self) -> str:
        """What there is to say."""
        said = [self.refused, self.note]
        for name, (ours, theirs) in self.exact.items():
            nearer = "phipsi" if ours <= theirs else "Pinocchio"
            said.append(
                f"{name}: {nearer} is nearer to long double (phipsi {ours:.0e}, "
                f"Pinocchio {theirs:.0e})"
            )
        return "; ".join(filter(None, said))


def difference(ours: Any, theirs: Any) -> float:
    """Largest difference over largest value."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if not ours.size:
        return 0.0
    largest = np.abs(theirs).max()
    gap = float(np.abs(ours - theirs).max())
    return gap / largest if largest > 0 else gap


class Side:
    """One robot in both libraries, its states and how vectors are matched by joint name."""

    def __init__(self, path: Path, base: Literal["fixed", "free"]) -> None:
        self.note = ""
        self.jacobians: dict[str, pp.Kernel] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pp.ModelWarning)
            try:
                self.robot = pp.load(path, base=base)
            except pp.ModelError as error:
                if "no inertia along it" not in str(error):
                    raise
                self.robot = pp.load(path, base=base, armature=ARMATURE)
                self.note = f"with armature {ARMATURE:g}, for it moves a massless body"
        free = (pin.JointModelFreeFlyer(),) if base == "free" else ()
        self.model = pin.buildModelFromUrdf(str(path), *free)
        self.data = self.model.createData()
        self.order = np.concatenate(
            [np.zeros(0, int), *(self._places(h) for h in self.robot.hinges)]
        ).astype(int)
        armature = np.concatenate([np.zeros(0), *(h.armature for h in self.robot.hinges)])
        self.model.armature = self.theirs(armature)

    def _places(self, h: pp.Hinge) -> np.ndarray:
        joint = self.model.joints[self.model.getJointId(h.name)]
        start = joint.idx_v
        if h.kind.name == "free":
            return start + np.array([3, 4, 5, 0, 1, 2])
        return start + np.arange(h.kind.nv)

    def theirs(self, x: np.ndarray) -> np.ndarray:
        """Our joint vector in their order."""
        out = np.empty_like(x)
        out[self.order] = x
        return out

    def jacobian(self, frame: str) -> pp.Kernel:
        """The Jacobian of one link; there are many, so they are interpreted and not compiled."""
        if frame not in self.jacobians:
            self.jacobians[frame] = pp.jacobian.compile(self.robot, backend="numpy", frame=frame)
        return self.jacobians[frame]

    def quantities(self, q: Any, v: Any, a: Any, tau: Any) -> dict[str, tuple[Any, Any]]:
        """Pairs (ours, theirs), both in our layout."""
        robot, model, data, order = self.robot, self.model, self.data, self.order
        pq = pp.interop.to_pinocchio(robot, q, joints=model)
        pv, pa, pt = self.theirs(v), self.theirs(a), self.theirs(tau)
        twist = np.array([3, 4, 5, 0, 1, 2])
        pairs: dict[str, tuple[Any, Any]] = {
            "forward_dynamics": (
                pp.forward_dynamics(robot, q, v, tau), pin.aba(model, data, pq, pv, pt)[order]),
            "inverse_dynamics": (
                pp.inverse_dynamics(robot, q, v, a), pin.rnea(model, data, pq, pv, pa)[order]),
            "bias_force": (
                pp.bias_force(robot, q, v),
                pin.nonLinearEffects(model, data, pq, pv)[order]),
        }  # fmt: skip
        mass = pin.crba(model, data, pq)
        mass = np.triu(mass) + np.triu(mass, 1).T
        pairs["mass_matrix"] = pp.mass_matrix(robot, q), mass[np.ix_(order, order)]
        inverse = pin.computeMinverse(model, data, pq)
        inverse = np.triu(inverse) + np.triu(inverse, 1).T
        pairs["mass_matrix_inverse"] = (
            pp.mass_matrix_inverse(robot, q), inverse[np.ix_(order, order)])  # fmt: skip
        pairs["center_of_mass"] = pp.center_of_mass(robot, q), pin.centerOfMass(model, data, pq)
        pairs["potential_energy"] = (
            pp.potential_energy(robot, q), pin.computePotentialEnergy(model, data, pq))  # fmt: skip
        momentum = pin.computeCentroidalMomentum(model, data, pq, pv).vector[twist]
        pairs["momentum"] = pp.momentum(robot, q, v, about="com"), momentum
        pin.computeJointJacobians(model, data, pq)
        pin.updateFramePlacements(model, data)
        base_is_world = "world_link" not in {b.name for b in robot.bodies}
        ours, theirs = [], []
        for i, frame in enumerate(model.frames):
            if frame.type != pin.FrameType.BODY or frame.name == "universe":
                continue
            name = frame.name if base_is_world or frame.name != "world" else "world_link"
            J = pin.getFrameJacobian(model, data, i, pin.ReferenceFrame.LOCAL)
            theirs.append(J[np.ix_(twist, order)])
            ours.append(self.jacobian(name)(q))
        pairs["jacobian"] = np.array(ours), np.array(theirs)
        return pairs


EXACT: dict[str, Callable[..., Any]] = {
    "forward_dynamics": lambda r, q, v, a, tau: pp.forward_dynamics.function(r, q, v, tau),
    "inverse_dynamics": lambda r, q, v, a, tau: pp.inverse_dynamics.function(r, q, v, a),
    "bias_force": lambda r, q, v, a, tau: pp.inverse_dynamics.function(r, q, v, 0 * v),
    "mass_matrix": lambda r, q, v, a, tau: pp.mass_matrix.function(r, q),
    "mass_matrix_inverse": lambda r, q, v, a, tau: pp.mass_matrix_inverse.function(r, q),
    "center_of_mass": lambda r, q, v, a, tau: pp.center_of_mass.function(r, q),
}
"""The algorithms run as they are over long double scalars, no compiler in between."""


def compare(path: Path, base: Literal["fixed", "free"], root: Path) -> Agreement:
    """Both libraries on one file at several random states."""
    result = Agreement(str(path.relative_to(root)), base)
    try:
        side = Side(path, base)
    except pp.ModelError as error:
        result.refused = f"phipsi: {error}; Pinocchio: {_refusal(path)}"
        return result
    result.nv, result.note = side.robot.nv, side.note
    if not side.robot.nb:
        result.refused = "nothing moves"
        return result
    rng = np.random.default_rng(0)
    for _ in range(STATES):
        q, v = side.robot.random_state(rng)
        a, tau = rng.normal(size=(2, side.robot.nv))
        for name, (ours, theirs) in side.quantities(q, v, a, tau).items():
            error = difference(ours, theirs)
            result.errors[name] = max(error, result.errors.get(name, 0.0))
            if error > TOLERANCE and name in EXACT:
                state = (np.array(x, np.longdouble).astype(object) for x in (q, v, a, tau))
                exact = EXACT[name](side.robot, *state).astype(np.longdouble)
                far = difference(ours, exact), difference(theirs, exact)
                result.exact[name] = max(far, result.exact.get(name, (0.0, 0.0)))
    return result


def _refusal(path: Path) -> str:
    try:
        pin.buildModelFromUrdf(str(path))
    except (ValueError, RuntimeError):
        return "refuses it too"
    return "loads it"
