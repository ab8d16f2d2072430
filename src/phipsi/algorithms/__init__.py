"""The algorithms, one file per group; each reads like its equation."""

from phipsi.algorithms.articulated_body import (
    Articulated,
    articulated_inertias,
    forward_dynamics,
)
from phipsi.algorithms.base_invariant import (
    Dual,
    base_invariant_forward_dynamics,
    decoupled_forward_dynamics,
    dual_articulated_inertias,
    link_accelerations,
    minimal_state,
)
from phipsi.algorithms.constraints import (
    Assembled,
    Captured,
    Closed,
    Opening,
    capture,
    close_loops,
    closed_chain_dynamics,
    effective_inertia,
    loop_opening,
)
from phipsi.algorithms.energy_momentum import (
    kinetic_energy,
    momentum,
    momentum_matrix,
    potential_energy,
)
from phipsi.algorithms.grasps import (
    Held,
    grasp_dynamics,
)
from phipsi.algorithms.kinematics import (
    accelerations,
    center_of_mass,
    frame_pose,
    frame_velocity,
    gram_solve,
    jacobian,
    jacobian_derivative,
    jacobian_gram,
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
from phipsi.algorithms.operational_space import (
    impact,
    operational_bias,
    operational_inertia,
    operational_inertia_inverse,
    tip_force_accelerations,
)
from phipsi.algorithms.reaching import inverse_kinematics
from phipsi.algorithms.rebasing import Rebased, rebase
from phipsi.algorithms.targets import Solution

__all__ = [
    "Articulated",
    "Assembled",
    "Captured",
    "Closed",
    "Dual",
    "Held",
    "Opening",
    "Rebased",
    "Solution",
    "accelerations",
    "articulated_inertias",
    "base_invariant_forward_dynamics",
    "bias_force",
    "capture",
    "center_of_mass",
    "close_loops",
    "closed_chain_dynamics",
    "coriolis_matrix",
    "coriolis_product",
    "decoupled_forward_dynamics",
    "dual_articulated_inertias",
    "effective_inertia",
    "forward_dynamics",
    "frame_pose",
    "frame_velocity",
    "gram_solve",
    "grasp_dynamics",
    "gravity_force",
    "impact",
    "inverse_dynamics",
    "inverse_kinematics",
    "jacobian",
    "jacobian_derivative",
    "jacobian_gram",
    "kinetic_energy",
    "link_accelerations",
    "loop_opening",
    "mass_matrix",
    "mass_matrix_inverse",
    "mass_matrix_logdet",
    "mass_matrix_product",
    "mass_matrix_solve",
    "mass_matrix_sqrt_product",
    "minimal_state",
    "momentum",
    "momentum_matrix",
    "operational_bias",
    "operational_inertia",
    "operational_inertia_inverse",
    "passive_forces",
    "poses",
    "potential_energy",
    "rebase",
    "regressor",
    "tip_force_accelerations",
    "velocities",
]
