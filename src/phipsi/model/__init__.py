"""Robots as data: bodies, hinges, frames; the builder, its checks, and the loaders."""

from phipsi.model.builder import Builder, combine
from phipsi.model.constraints import CONTACTS, Closure, Contact, Grasp, Loop
from phipsi.model.hinges import KINDS, HingeKind
from phipsi.model.robot import Body, Frame, Hinge, Mimic, ModelError, ModelWarning, Robot

__all__ = [
    "CONTACTS",
    "KINDS",
    "Body",
    "Builder",
    "Closure",
    "Contact",
    "Frame",
    "Grasp",
    "Hinge",
    "HingeKind",
    "Loop",
    "Mimic",
    "ModelError",
    "ModelWarning",
    "Robot",
    "combine",
]
