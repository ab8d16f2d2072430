"""The algorithms, one file per group; each reads like its equation."""

from phipsi.algorithms.articulated_body import (
    Articulated,
    articulated_inertias,
    forward_dynamics,
)
from phipsi.algorithms.energy_momentum import (
    kinetic_energy,
    momentum,
    momentum_matrix,
    potential_energy,
)
from phipsi.algorithms.kinematics import (
    accelerations,
    center_of_mass,
    frame_pose,
    frame_velocity,
    jacobian,
    jacobian_derivative,
    poses,
    velocities,
)
from phipsi.algorithms.mass_matrix import (
    mass_matrix,
    mass_matrix_inverse,
    mass_matrix_logdet,
    mass_matrix_product,
    mass_matrix_solve,
    mass_matrix_sqrt_product,
)
from phipsi.algorithms.newton_euler import (
    bias_force,
    coriolis_matrix,
    coriolis_product,
    gravity_force,
    inverse_dynamics,
    passive_forces,
    regressor,
)

__all__ = [
    "Articulated",
    "accelerations",
    "articulated_inertias",
    "bias_force",
    "center_of_mass",
    "coriolis_matrix",
    "coriolis_product",
    "forward_dynamics",
    "frame_pose",
    "frame_velocity",
    "gravity_force",
    "inverse_dynamics",
    "jacobian",
    "jacobian_derivative",
    "kinetic_energy",
    "mass_matrix",
    "mass_matrix_inverse",
    "mass_matrix_logdet",
    "mass_matrix_product",
    "mass_matrix_solve",
    "mass_matrix_sqrt_product",
    "momentum",
    "momentum_matrix",
    "passive_forces",
    "poses",
    "potential_energy",
    "regressor",
    "velocities",
]
