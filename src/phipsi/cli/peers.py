"""Calls of Pinocchio and MuJoCo for a robot, to be timed beside phipsi's."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import phipsi as pp
from phipsi.typing import Array

LOOPED, DATAS = 64, 8
"""How many states are evaluated by calls of one state each: of phipsi and Pinocchio, and of MuJoCo,
where each has an MjData of its own."""
AGREEMENT = 1e-6
"""The largest relative difference between our forward dynamics and a peer's."""

PINOCCHIO = {
    "forward_dynamics": ("aba", ("q", "v", "tau")),
    "inverse_dynamics": ("rnea", ("q", "v", "a")),
    "bias_force": ("nonLinearEffects", ("q", "v")),
    "gravity_force": ("computeGeneralizedGravity", ("q",)),
    "mass_matrix": ("crba", ("q",)),
    "mass_matrix_inverse": ("computeMinverse", ("q",)),
    "coriolis_matrix": ("computeCoriolisMatrix", ("q", "v")),
    "kinetic_energy": ("computeKineticEnergy", ("q", "v")),
    "potential_energy": ("computePotentialEnergy", ("q",)),
    "center_of_mass": ("centerOfMass", ("q",)),
    "regressor": ("computeJointTorqueRegressor", ("q", "v", "a")),
    "poses": ("forwardKinematics", ("q",)),
}
"""The function of Pinocchio that computes the same, and its arrays."""


class Contestant(NamedTuple):
    """A call to be timed, and how many evaluations it makes."""

    call: Callable[[], object]
    evaluations: int


class Peer(NamedTuple):
    """Another library."""

    name: str
    single: Mapping[str, Contestant] = {}
    """By function, the evaluation of single states."""
    batch: Mapping[str, Contestant] = {}
    """By function, the evaluation of a batch, where the library has it."""
    absent: str = ""
    """Why it cannot be timed, if so."""


def peers(robot: pp.Robot, states: Mapping[str, Array]) -> list[Peer]:
    """Pinocchio and MuJoCo with this robot; states q, v, a, tau (n, …) are in phipsi's layout."""
    found: list[Peer] = []
    for name, module, make in (
        ("Pinocchio", "pinocchio", _pinocchio),
        ("MuJoCo", "mujoco", _mujoco),
    ):
        try:
            found.append(make(importlib.import_module(module), robot, states))
        except ImportError:
            found.append(Peer(name, absent="not installed"))
        except ValueError as error:
            found.append(Peer(name, absent=str(error).partition("\n")[0]))
    return found


def _check(name: str, robot: pp.Robot, states: Mapping[str, Array], theirs: Array) -> None:
    """Refuse a peer whose accelerations differ from ours: its robot is another."""
    q, v, tau = (states[x][: len(theirs)] for x in ("q", "v", "tau"))
    ours = pp.forward_dynamics(robot, q, v, tau)
    error = np.abs(ours - theirs).max(-1) / np.abs(ours).max(-1)
    if not error.max() < AGREEMENT:
        raise ValueError(f"{name} moves this robot otherwise")


# ---- Pinocchio ---------------------------------------------------------------------------------


def _pinocchio(pin: Any, robot: pp.Robot, states: Mapping[str, Array]) -> Peer:
    """Pinocchio's functions, by the names of ours."""
    model = pp.interop.to_pinocchio_model(robot)
    names = ("q", "v", "a", "tau")
    layout = pp.interop.to_pinocchio(robot, *(states[x] for x in names), joints=model)
    theirs: dict[str, Array] = dict(zip(names, layout, strict=True))
    data = model.createData()
    each = range(min(4, len(theirs["q"])))
    found = np.array(
        [pin.aba(model, data, *(theirs[x][i] for x in ("q", "v", "tau"))) for i in each]
    )
    q = theirs["q"][: len(found)]
    found = pp.interop.from_pinocchio(robot, q, a=found, joints=model)[1]
    _check("Pinocchio", robot, states, found)
    single = {
        name: _looped(getattr(pin, function), (model, data), [theirs[x] for x in wanted])
        for name, (function, wanted) in PINOCCHIO.items()
    }
    batch: dict[str, Contestant] = {}
    for name, (function, wanted) in PINOCCHIO.items():
        many = getattr(pin, f"{function}InParallel", None)  # absent where built without OpenMP
        if many is not None:
            batch[name] = _parallel(pin, model, many, [theirs[x] for x in wanted])
    return Peer("Pinocchio", single, batch)


def _looped(
    function: Callable[..., object], first: tuple[object, ...], arrays: list[Array]
) -> Contestant:
    """A function called for each state; `first` are its first arguments."""
    states = list(zip(*(list(x[:LOOPED]) for x in arrays), strict=True))

    def call() -> None:
        for state in states:
            function(*first, *state)

    return Contestant(call, len(states))


def _parallel(
    pin: Any, model: Any, function: Callable[..., object], arrays: list[Array]
) -> Contestant:
    """A function of Pinocchio that evaluates a batch, on one thread."""
    pool, columns = pin.ModelPool(model, 1), [np.asfortranarray(x.T) for x in arrays]
    out = np.empty((model.nv, len(arrays[0])), order="F")
    return Contestant(lambda: function(1, pool, *columns, out), len(arrays[0]))


# ---- MuJoCo ------------------------------------------------------------------------------------


def _mujoco(mj: Any, robot: pp.Robot, states: Mapping[str, Array]) -> Peer:
    """MuJoCo's forward dynamics."""
    model = tree_spec(mj, robot).compile()
    q, v, tau = (states[x][:DATAS] for x in ("q", "v", "tau"))
    q, v, tau = pp.interop.to_mujoco(robot, q, v, tau=tau, joints=model)
    datas = [mj.MjData(model) for _ in q]
    for data, *state in zip(datas, q, v, tau, strict=True):
        data.qpos, data.qvel, data.qfrc_applied = state
        mj.mj_forward(model, data)
    a = np.array([data.qacc for data in datas])
    _check("MuJoCo", robot, states, pp.interop.from_mujoco(robot, q, v, a, joints=model)[2])

    def call() -> None:
        for data in datas:
            mj.mj_forward(model, data)

    return Peer("MuJoCo", {"forward_dynamics": Contestant(call, len(datas))})


def _ignore(message: str) -> None:
    """Ignore a warning of MuJoCo."""


def tree_spec(mj: Any, robot: pp.Robot) -> Any:
    """The robot as an MjSpec, with nothing but the dynamics of the tree enabled."""
    mj.set_mju_user_warning(_ignore)  # else MuJoCo writes MUJOCO_LOG.TXT in the working directory
    spec = pp.interop.to_mujoco_spec(robot)
    for site in spec.sites:
        spec.delete(site)
    for flag in (mj.mjtDisableBit.mjDSBL_CONSTRAINT, mj.mjtDisableBit.mjDSBL_CONTACT):
        spec.option.disableflags |= int(flag)
    return spec
