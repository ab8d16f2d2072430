"""A policy is trained by gradient through the simulation, in PyTorch.

A double pendulum with motors is to move from wherever it is to a pose, and stay. Its policy has two
lines: a linear map of state to torques, and a constant. A rollout of it is a program; `pp.torch`
makes a function of tensors of it, whose gradient runs back through all the steps. Adam does the
rest: after two hundred steps the pendulum holds the pose, with the torques that gravity asks for,
which nobody told it.

Needs PyTorch: pip install "phipsi[torch]".
"""

import time

import numpy as np
import torch

import phipsi as pp


@pp.program(shapes={"gains": ("nv", 4), "constant": ("nv",)})
def policy(robot, q, v, gains, constant):
    """tau = K x + k."""
    return gains @ np.concatenate([q, v]) + constant


robot = pp.robots.double_pendulum()
swing = pp.torch.function(pp.motion(policy, duration=2.0, dt=0.005, every=20), robot)
target = torch.tensor([0.8, -0.5], dtype=torch.float64)

torch.manual_seed(0)
start = 2.0 * torch.rand(64, 2, dtype=torch.float64) - 1.0  # 64 poses
rest = torch.zeros_like(start)
gains = torch.zeros(2, 4, dtype=torch.float64, requires_grad=True)
constant = torch.zeros(2, dtype=torch.float64, requires_grad=True)


def loss() -> torch.Tensor:
    """How far from the pose, and how fast, over the whole motion, of all 64."""
    motion = swing(start, rest, gains=gains, constant=constant)
    return ((motion.q - target) ** 2).mean() + 0.02 * (motion.v**2).mean()


optimizer = torch.optim.Adam([gains, constant], lr=0.5)
begin = time.perf_counter()
for step in range(201):
    optimizer.zero_grad()
    error = loss()
    error.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step:3}: loss {error.item():.4f}")
print(f"201 gradients through 64 motions of 400 steps: {time.perf_counter() - begin:.1f} s")

end = swing(start, rest, gains=gains, constant=constant).q[:, -1].detach()
weight = pp.gravity_force(robot, target.numpy())
held = (gains @ torch.cat([target, rest[0]]) + constant).detach().numpy()
print("farthest from the pose at the end:", (end - target).abs().max().item(), "rad")
print("torques learnt at the pose", held.round(2), "of gravity", weight.round(2))
assert (end - target).abs().max() < 0.05 and np.allclose(held, weight, atol=0.3)
