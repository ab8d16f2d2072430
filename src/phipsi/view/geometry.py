"""Rotations, and bounding boxes of solids, over arrays of poses."""

from __future__ import annotations

import numpy as np

from phipsi.model import Robot
from phipsi.typing import Array
from phipsi.view.scene import Scene, Solid


def quaternions(R: Array) -> Array:
    """The unit quaternions (w, x, y, z) of rotation matrices (…, 3, 3), by Shepperd's rule."""
    a, b, c = (R[..., i, i] for i in range(3))
    x, y, z = (R[..., j, i] - R[..., i, j] for i, j in ((1, 2), (2, 0), (0, 1)))
    yz, zx, xy = (R[..., j, i] + R[..., i, j] for i, j in ((1, 2), (2, 0), (0, 1)))
    rows = [
        [1 + a + b + c, x, y, z], [x, 1 + a - b - c, xy, zx],
        [y, xy, 1 - a + b - c, yz], [z, zx, yz, 1 - a - b + c],
    ]  # fmt: skip
    table = np.stack([np.stack(row, -1) for row in rows], -2)
    best = np.argmax(np.diagonal(table, axis1=-2, axis2=-1), -1)
    q = np.take_along_axis(table, best[..., None, None], -2)[..., 0, :]
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def turned_by(R: Array) -> Array:
    """The angles of rotations (…, 3, 3) [rad], precise for small and for large ones."""
    skew = [R[..., j, i] - R[..., i, j] for i, j in ((1, 2), (2, 0), (0, 1))]
    return np.arctan2(np.sqrt(sum(x**2 for x in skew)), np.trace(R, axis1=-2, axis2=-1) - 1)


def corners(robot: Scene, X: Array) -> Array:
    """The corners (…, solids, 8, 3) of boxes around the solids, with bodies at X (…, nb, 4, 4)."""
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) / 2
    world = np.broadcast_to(np.eye(4), (*X.shape[:-3], 4, 4))
    out: list[Array] = []
    for solid in robot["solids"]:
        R, center = rotation(np.array(solid["pose"][3:])), np.array(solid["pose"][:3])
        local = center + (signs * sides(solid)) @ R.T
        A = world if solid["body"] < 0 else X[..., solid["body"], :, :]
        out.append(local @ np.swapaxes(A[..., :3, :3], -1, -2) + A[..., None, :3, 3])
    return np.stack(out, -3) if out else X[..., None, :3, 3]


def sides(solid: Solid) -> Array:
    """The sides of the box around a solid, along its own axes [m]."""
    size = np.array(solid["size"])
    if solid["shape"] == "box":
        return size
    if solid["shape"] == "ellipsoid":
        return 2 * size
    radius, length = size
    return np.array([2, 2, 2 * (solid["shape"] == "capsule")]) * radius + [0, 0, length]


def rotation(quaternion: Array) -> Array:
    """The matrix of a unit quaternion (w, x, y, z)."""
    w, (x, y, z) = quaternion[0], quaternion[1:]
    skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * skew + 2 * skew @ skew


def up_axis(robot: Robot) -> Array:
    """The unit vector against gravity; z where there is no gravity."""
    gravity = np.asarray(robot.gravity, float)
    size = float(np.linalg.norm(gravity))
    return -gravity / size if size else np.array([0.0, 0.0, 1.0])
