"""Spatial (6-D) algebra of one body. A scalar is a float, a NumPy number or array, or traced.

Vectors are NumPy object arrays of scalars; symmetric blocks are symmetric by construction.
"""

from phipsi.spatial.compliance import Compliance
from phipsi.spatial.factor import Inverse, Pivot, PseudoInverse, SemiPivot, SingularError
from phipsi.spatial.givens import Givens, Rotation
from phipsi.spatial.hinge_map import ForceBasis, Gain, HingeMap, MotionBasis, armature_block
from phipsi.spatial.inertia import ArticulatedInertia, SpatialInertia
from phipsi.spatial.joined import Joined
from phipsi.spatial.rigid_motion import RigidMotion
from phipsi.spatial.roots import NoRoot, RootKind, check_root, root_of
from phipsi.spatial.transform import Transform, TransposedTransform
from phipsi.spatial.vectors import Force, Motion

__all__ = [
    "ArticulatedInertia",
    "Compliance",
    "Force",
    "ForceBasis",
    "Gain",
    "Givens",
    "HingeMap",
    "Inverse",
    "Joined",
    "Motion",
    "MotionBasis",
    "NoRoot",
    "Pivot",
    "PseudoInverse",
    "RigidMotion",
    "RootKind",
    "Rotation",
    "SemiPivot",
    "SingularError",
    "SpatialInertia",
    "Transform",
    "TransposedTransform",
    "armature_block",
    "check_root",
    "root_of",
]
