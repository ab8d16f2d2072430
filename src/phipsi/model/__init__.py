"""Robots as data: bodies, hinges, frames; the builder, its checks, and the loaders."""

from phipsi.model.constraints import CONTACTS, Closure, Contact, Grasp, Loop
from phipsi.model.errors import ModelError, ModelWarning
from phipsi.model.hinges import KINDS, HingeKind
from phipsi.model.parts import Body, Frame, Hinge, Mimic, WeldedBody
from phipsi.model.robot import Builder, Robot, combine
from phipsi.model.springs import Spring

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
    "Spring",
    "WeldedBody",
    "combine",
]
