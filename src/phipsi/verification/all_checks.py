"""`pp.verify`: all checks that a robot takes, one after the other."""

from __future__ import annotations

import math
import time

import numpy as np

from phipsi.arguments import as_count
from phipsi.model import Robot
from phipsi.verification import code, dynamics, peers  # their checks are in the table
from phipsi.verification.report import Check, Verification
from phipsi.verification.states import States
from phipsi.verification.table import TABLE, LeftOut, Outcome

_ = code, dynamics, peers


def verify(robot: Robot, *, seed: int = 0) -> Verification:
    """A self-check of everything that computes the motion of a robot, in seconds.

    At random states within the limits of the joints, from rest to fast, independent ways to the
    same numbers are compared: recursions with dense matrices, algorithms with their inverses and
    with differences of energies and poses, machine code with Python over long double, and all of it
    with Pinocchio and MuJoCo where they are installed. Tolerances are what rounding explains, in
    proportion to the number of bodies and the condition number of the mass matrix. `print` it for
    a table. Closures, springs between points and controllers are not looked at.

    Parameters
    ----------
    robot
        The robot.
    seed
        Of the random states.

    Returns
    -------
    Verification
        The checks; `sound` says whether all passed.

    Examples
    --------
    >>> import phipsi as pp
    >>> found = pp.verify(pp.robots.double_pendulum())
    >>> found.sound, found["power"].ok
    (True, True)
    """
    if not isinstance(robot, Robot):
        raise TypeError(f"verify needs a Robot, got {type(robot).__name__}")
    x = States(robot, as_count("verify: seed", seed))
    checks: list[Check] = []
    left_out: dict[str, str] = {}
    with np.errstate(all="ignore"):
        for row in TABLE:
            start = time.perf_counter()
            try:
                outcome = row.run(x)
            except LeftOut as reason:
                left_out[row.name] = str(reason)
                continue
            except Exception as error:  # what cannot be computed is not sound either
                said = " ".join(f"{type(error).__name__}: {error}".split())
                outcome = Outcome(math.inf, 0.0, said)
            checks.append(
                Check(row.name, row.what, *outcome[:2], time.perf_counter() - start, outcome.note)
            )
    return Verification(robot.name, x.condition, tuple(checks), left_out)
