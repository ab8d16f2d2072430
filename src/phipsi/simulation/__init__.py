"""Simulation: closed loops over time, one robot or many, and the trajectories they give."""

from phipsi.simulation.adaptive import ADAPTIVE
from phipsi.simulation.coordinates import COORDINATES, CoordinatesName
from phipsi.simulation.diverged import Diverged
from phipsi.simulation.doubts import SimulationWarning
from phipsi.simulation.events import Capture, Change, Event, EventError, Failure, Release
from phipsi.simulation.methods import METHODS
from phipsi.simulation.motion import StateHistory, motion
from phipsi.simulation.options import MethodName, SimulationKeywords
from phipsi.simulation.plant import Limits, limit_forces
from phipsi.simulation.simulate import rollout, simulate
from phipsi.simulation.simulator import Interrupted
from phipsi.simulation.trajectory import Sample, Trajectory
from phipsi.simulation.trajectory_data import TrajectoryError

__all__ = [
    "ADAPTIVE",
    "COORDINATES",
    "METHODS",
    "Capture",
    "Change",
    "CoordinatesName",
    "Diverged",
    "Event",
    "EventError",
    "Failure",
    "Interrupted",
    "Limits",
    "MethodName",
    "Release",
    "Sample",
    "SimulationKeywords",
    "SimulationWarning",
    "StateHistory",
    "Trajectory",
    "TrajectoryError",
    "limit_forces",
    "motion",
    "rollout",
    "simulate",
]
