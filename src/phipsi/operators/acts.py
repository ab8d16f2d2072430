"""Letters at work: what a symbol does to the part of one body."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from phipsi.operators.expressions import Adjoint, Expression, Inverse, Leaf, Sum
from phipsi.operators.recursions import turning_hinge
from phipsi.spatial import HingeMap, Motion, SpatialInertia
from phipsi.spatial import rotation as rot


def spinning(k: Any) -> Motion:
    """The rotation of a body about its origin, that of the frame that people see."""
    w = k.V.angular
    return Motion(w, rot.cross(k.origin.linear, w))


def gain_rate(k: Any, y: Any) -> Any:
    """Ġ y = (U̇ − GḊ)D⁻¹ y."""
    x = k.D.solve(y)
    return k.U_dot @ x - k.G @ (k.D_dot @ x)


def root_rate_transpose(k: Any, y: Any) -> Any:
    """d(D½*)/dt y, column by column of d(D½)/dt."""
    columns = (k.D.root_rate(k.D_dot, unit) for unit in np.eye(len(y)))
    return np.array([column @ y for column in columns], object)


ACTS: Mapping[str, Callable[[Any, Any], Any]] = {
    "H": lambda k, y: k.H @ y,
    "H*": lambda k, y: k.H.T @ y,
    "M": lambda k, y: k.M @ y,
    "M⁻¹": lambda k, y: k.M.articulated.inv @ y,
    "A": lambda k, y: k.A * y,
    "P": lambda k, y: k.P @ y,
    "P⁻¹": lambda k, y: k.P.inv @ y,
    "P_plus": lambda k, y: k.P_plus @ y,
    "D": lambda k, y: k.D.matrix @ y,
    "D⁻¹": lambda k, y: k.D.solve(y),
    "D_half": lambda k, y: k.D.root(y),
    "D_half*": lambda k, y: k.D.root_transpose(y),
    "D_half⁻¹": lambda k, y: k.D.root_solve(y),
    "D_half⁻*": lambda k, y: k.D.root_transpose_solve(y),
    "G": lambda k, y: k.G @ y,
    "G*": lambda k, y: k.G.T @ y,
    "Upsilon": lambda k, y: k.Upsilon @ y,
    "Upsilon⁻¹": lambda k, y: k.Upsilon.inv @ y,
    "Upsilon_plus": lambda k, y: k.Upsilon_plus @ y,
    "S": lambda k, y: k.S @ y,
    "S_plus": lambda k, y: (k.S_plus @ y) * k.inside,
    "G_s": lambda k, y: -(k.minus_G_s @ y),
    "G_s*": lambda k, y: -(k.minus_G_s.T @ y),
    "Lambda": lambda k, y: k.Lambda @ y,
    "Lambda⁻¹": lambda k, y: k.Lambda.inv @ y,
    "H_a": lambda k, y: k.H.masked(1.0 - k.passive) @ y,
    "H_a*": lambda k, y: k.H.masked(1.0 - k.passive).T @ y,
    "A_a": lambda k, y: k.A * (1.0 - k.passive) * y,
    "H_p": lambda k, y: k.H_p @ y,
    "H_p*": lambda k, y: k.H_p.T @ y,
    "A_p": lambda k, y: k.A * k.passive * y,
    "P_p": lambda k, y: k.P_p @ y,
    "P_p⁻¹": lambda k, y: k.P_p.inv @ y,
    "P_p_plus": lambda k, y: k.P_p_plus @ y,
    "D_p": lambda k, y: (k.D_p.matrix @ y) * k.passive,
    "D_p⁻¹": lambda k, y: k.D_p.solve(y),
    "G_p": lambda k, y: k.G_p @ y,
    "G_p*": lambda k, y: k.G_p.T @ y,
    "Delta_cross": lambda k, y: k.Delta.cross_force(y),
    "Delta_cross*": lambda k, y: -k.Delta.cross(y),
    "V_cross": lambda k, y: k.V.cross(y),
    "V_cross*": lambda k, y: -k.V.cross_force(y),
    "H_cross": lambda k, y: k.axis.cross_force(y),
    "H_cross*": lambda k, y: -k.axis.cross(y),
    "spin": lambda k, y: spinning(k).cross_force(y),
    "spin*": lambda k, y: -spinning(k).cross(y),
    "H_dot": lambda k, y: HingeMap(turning_hinge(k, k.v)) @ y,
    "H_dot*": lambda k, y: k.H_rate(y),
    "P_dot": lambda k, y: k.P_dot @ y,
    "D_dot": lambda k, y: k.D_dot @ y,
    "D_half_dot": lambda k, y: k.D.root_rate(k.D_dot, y),
    "D_half_dot*": root_rate_transpose,
    "G_dot": gain_rate,
    "G_dot*": lambda k, y: k.D.solve(k.U_dot.transpose_dot(y) - k.D_dot @ (k.G.T @ y)),
}
"""What a letter does to the part of one body."""


def act(x: Expression, k: Any, y: Any) -> Any:
    """A letter, applied to the part of one body."""
    inner = x.inner if isinstance(x, Inverse) else x
    if isinstance(inner, Sum):
        parts = (getattr(k, leaf.symbol.name) for leaf in sorted(inner.leaves, key=str))
        inertias = [
            part.articulated if isinstance(part, SpatialInertia) else part for part in parts
        ]
        return reduce(lambda a, b: a + b, inertias).inv @ y
    starred = isinstance(inner, Adjoint)
    suffix = ("⁻*" if starred else "⁻¹") if isinstance(x, Inverse) else "*" if starred else ""
    (leaf,) = x.leaves
    if leaf.frames:
        k = k.extended({"axis": k.H.T @ getattr(k, hinge_field(leaf))})
    return ACTS[leaf.symbol.name + suffix](k, y)


def hinge_field(x: Leaf) -> str:
    """The field of a body's record that says which of its freedoms are those of a named hinge."""
    return f"hinge_{x.frames[0]}"
