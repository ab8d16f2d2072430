"""The public names and where they live; `__init__.py` imports each when it is first used."""

from phipsi import conventions as conventions
from phipsi import interop as interop
from phipsi import operators as operators
from phipsi.algorithms import Articulated as Articulated
from phipsi.algorithms import accelerations as accelerations
from phipsi.algorithms import articulated_inertias as articulated_inertias
from phipsi.algorithms import bias_force as bias_force
from phipsi.algorithms import center_of_mass as center_of_mass
from phipsi.algorithms import coriolis_matrix as coriolis_matrix
from phipsi.algorithms import coriolis_product as coriolis_product
from phipsi.algorithms import forward_dynamics as forward_dynamics
from phipsi.algorithms import frame_pose as frame_pose
from phipsi.algorithms import frame_velocity as frame_velocity
from phipsi.algorithms import gravity_force as gravity_force
from phipsi.algorithms import inverse_dynamics as inverse_dynamics
from phipsi.algorithms import jacobian as jacobian
from phipsi.algorithms import jacobian_derivative as jacobian_derivative
from phipsi.algorithms import kinetic_energy as kinetic_energy
from phipsi.algorithms import mass_matrix as mass_matrix
from phipsi.algorithms import mass_matrix_inverse as mass_matrix_inverse
from phipsi.algorithms import mass_matrix_logdet as mass_matrix_logdet
from phipsi.algorithms import mass_matrix_product as mass_matrix_product
from phipsi.algorithms import mass_matrix_solve as mass_matrix_solve
from phipsi.algorithms import mass_matrix_sqrt_product as mass_matrix_sqrt_product
from phipsi.algorithms import momentum as momentum
from phipsi.algorithms import momentum_matrix as momentum_matrix
from phipsi.algorithms import passive_forces as passive_forces
from phipsi.algorithms import poses as poses
from phipsi.algorithms import potential_energy as potential_energy
from phipsi.algorithms import regressor as regressor
from phipsi.algorithms import velocities as velocities
from phipsi.compile import Kernel as Kernel
from phipsi.compile import TraceError as TraceError
from phipsi.compile import linalg as linalg
from phipsi.compile import repeat as repeat
from phipsi.compile import where as where
from phipsi.compile.cache import cache_info as cache_info
from phipsi.compile.cache import clear_cache as clear_cache
from phipsi.model import Body as Body
from phipsi.model import Builder as Builder
from phipsi.model import Frame as Frame
from phipsi.model import Hinge as Hinge
from phipsi.model import Mimic as Mimic
from phipsi.model import ModelError as ModelError
from phipsi.model import ModelWarning as ModelWarning
from phipsi.model import Robot as Robot
from phipsi.model import combine as combine
from phipsi.model import robots as robots
from phipsi.model.load import load as load
from phipsi.model.load import save as save
from phipsi.spatial import Transform as Transform
from phipsi.sweeps import Program as Program
from phipsi.sweeps import program as program

__version__: str
__all__: list[str]
