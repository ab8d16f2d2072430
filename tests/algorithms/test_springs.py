"""Springs between points, against MuJoCo's tendons and differences of their energy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phipsi as pp

mujoco: Any = pytest.importorskip("mujoco")

MECHANISM = """
<mujoco>
  <option gravity="0 0 -9.81"><flag energy="enable"/></option>
  <worldbody>
    <site name="anchor" pos=".3 .2 1"/>
    <body name="a">
      <joint name="shoulder" type="ball"/><geom type="box" size=".1 .2 .3" pos="0 0 -.3" mass="1"/>
      <body name="b" pos="0 0 -.6">
        <joint name="elbow" axis="0 1 0"/><geom type="box" size=".1 .05 .3" pos="0 0 -.3" mass="2"/>
        <site name="tip" pos=".1 0 -.5"/>
      </body>
    </body>
    <body name="c" pos="1 0 0">
      <freejoint name="float"/><geom type="box" size=".1 .2 .3" mass="1.5"/>
      <site name="hook" pos=".05 .1 .2"/>
    </body>
  </worldbody>
  TENDONS
</mujoco>"""
TENDONS = """
  <tendon>
    <spatial stiffness="40" damping="3" springlength=".4">
      <site site="tip"/><site site="hook"/>
    </spatial>
    <spatial stiffness="25" springlength="0"><site site="anchor"/><site site="tip"/></spatial>
    <spatial damping="2"><site site="hook"/><site site="anchor"/></spatial>
  </tendon>"""
SPRINGS = (
    pp.Spring("tip", "hook", stiffness=40.0, damping=3.0, rest_length=0.4),
    pp.Spring("anchor", "tip", stiffness=25.0),
    pp.Spring("hook", "anchor", damping=2.0),
)
ROBOT = pp.load(MECHANISM.replace("TENDONS", ""))


def test_forces_and_energy_are_those_of_tendons() -> None:
    model = mujoco.MjModel.from_xml_string(MECHANISM.replace("TENDONS", TENDONS))
    data = mujoco.MjData(model)
    q, v = ROBOT.random_state(0, batch=(20,))
    forces = pp.spring_forces(ROBOT, SPRINGS, q, v)
    energies = pp.spring_energy(ROBOT, SPRINGS, q) + pp.potential_energy(ROBOT, q)
    qpos, qvel, passive = pp.interop.to_mujoco(ROBOT, q, v, tau=forces)
    for i in range(len(q)):
        data.qpos[:], data.qvel[:] = qpos[i], qvel[i]
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(passive[i], data.qfrc_passive, rtol=1e-10, atol=1e-10)
        assert energies[i] == pytest.approx(data.energy[0], rel=1e-10)


def test_springs_are_the_gradient_of_their_energy_and_dampers_take_energy_out() -> None:
    q, v = ROBOT.random_state(1, batch=(20,))
    gradient = pp.spring_energy.derivative(wrt="q")(ROBOT, SPRINGS, q)
    np.testing.assert_allclose(pp.spring_forces(ROBOT, SPRINGS, q, 0 * v), -gradient, atol=1e-11)
    h = 1e-6
    ahead, back = (pp.spring_energy(ROBOT, SPRINGS, ROBOT.integrate(q, s * h * v)) for s in (1, -1))
    np.testing.assert_allclose((gradient * v).sum(-1), (ahead - back) / (2 * h), rtol=1e-7)
    damping = pp.spring_forces(ROBOT, SPRINGS, q, v) + gradient
    assert ((damping * v).sum(-1) < 0).all()


def test_forces_between_bodies_of_a_free_robot_have_no_resultant() -> None:
    robot = pp.robots.space_arm()
    base = robot.bodies[0].name
    springs = [pp.Spring(base, "tool", stiffness=10.0, damping=1.0, rest_length=0.5)]
    q, v = robot.random_state(2)
    assert np.abs(pp.spring_forces(robot, springs, q, v)[:6]).max() < 1e-12
    assert np.abs(pp.spring_forces(robot, springs, q, v)[6:]).max() > 1e-2


BEAD = (
    pp.Builder("bead")
    .body("bead", mass=2.0, inertia=(1.0, 1.0, 1.0))
    .hinge("bead", "free", "world", "bead")
    .build()
)


@pytest.mark.parametrize("rest_length", [0.0, 0.3])
def test_points_that_coincide_feel_no_force(rest_length: float) -> None:
    """Also not the damper's; and derivatives are those of a linear spring, without NaN."""
    springs = [pp.Spring("bead", "world", 50.0, 4.0, rest_length)]
    q, v = BEAD.neutral(), np.array([0.0, 0, 0, 1, 2, 3])
    assert (pp.spring_forces(BEAD, springs, q, v) == 0.0).all()
    assert pp.spring_energy(BEAD, springs, q) == pytest.approx(25.0 * rest_length**2)
    slope = pp.spring_forces.derivative(wrt="q")(BEAD, springs, q, v)
    np.testing.assert_allclose(slope, np.diag([0, 0, 0, -50.0, -50, -50]))
    motion = pp.simulate(
        BEAD.with_gravity([0, 0, 0]), q, v, duration=0.1, springs=springs, method="implicit"
    )
    assert np.isfinite(motion.q).all()


def test_what_is_no_spring_is_refused() -> None:
    numbers: dict[str, Any] = {"stiffness": -1.0, "damping": np.nan, "rest_length": "long"}
    for name, value in numbers.items():
        with pytest.raises(pp.ModelError, match=f"{name} is .*, (needs|but every) .*number"):
            pp.Spring("a", "b", **{name: value})
    wrong: list[tuple[Any, type[Exception], str]] = [
        (SPRINGS[0], TypeError, "needs a list"),
        ([3], TypeError, "needs pp.Spring"),
        ([pp.Spring("tip", "b")], pp.ModelError, "both fixed to 'b'"),
        ([pp.Spring("tip", "nail")], pp.ModelError, "nail"),
    ]
    for springs, error, words in wrong:
        with pytest.raises(error, match=words):
            pp.spring_forces(ROBOT, springs, *ROBOT.random_state(0))
