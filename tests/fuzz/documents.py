"""The targets that read documents: robots as URDF, MJCF and JSON, and scenarios."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import numpy as np

import phipsi as pp
from phipsi.model.json import to_json
from phipsi.scenarios import SCENARIOS, Scenario, ScenarioError
from phipsi.scenarios.scenario import FILES
from tests.fuzz import trees
from tests.fuzz.hostile import havoc
from tests.fuzz.target import Target, Wrong, cut

SMALL = 6
"""The most bodies of a robot that is used after it was read."""
TAME = 1e6
"""The largest number, and the inverse of the smallest, in a robot whose forces must be finite."""


class Format:
    """A format of documents: its reader and its writer."""

    def __init__(self, read: Callable[[str], Any], write: Callable[[Any], str]) -> None:
        self.write = write
        self.read = cache(lambda content: read(content.decode()))

    def readable(self, seeds: list[bytes]) -> list[Any]:
        """The trees of the seeds that are well-formed: some of the corpus are not."""
        return [tree for tree in map(self._tree, seeds) if tree is not None]

    def _tree(self, content: bytes) -> Any:
        try:
            return self.read(content)
        except Exception:
            return None

    def mutate(self, rng: Random, seeds: list[bytes]) -> bytes:
        """A document mutated by structure, now and then by bytes, now and then by both."""
        kind = rng.random()
        content = rng.choice(seeds)
        if kind < 0.9:
            known = _kept(self, tuple(seeds))
            with suppress(RecursionError):  # it nests more than can be written
                content = self.write(trees.mutated(rng, known)).encode("utf-8", "surrogatepass")
        return havoc(rng, content, seeds) if kind > 0.8 else content

    def smaller(self, content: bytes) -> Iterator[bytes]:
        """The document without a part of its tree, then without a run of its bytes."""
        tree = self._tree(content)
        if tree is not None:
            for other in trees.smaller(tree):
                text = self.write(other).encode("utf-8", "surrogatepass")
                if len(text) < len(content):
                    yield text
        yield from cut(content)


@cache
def _kept(form: Format, seeds: tuple[bytes, ...]) -> list[Any]:
    return form.readable(list(seeds))


XML = Format(trees.of_xml, trees.to_xml)
JSON = Format(trees.of_json, trees.to_json)
TOML = Format(trees.of_toml, trees.to_toml)


# ---- robots --------------------------------------------------------------------------------------


def check(robot: pp.Robot, deep: bool) -> None:
    """A robot that was read has no impossible number, is written and read again, and moves."""
    for h in robot.hinges:
        for name in ("effort", "velocity", "armature", "friction", "backlash"):
            if not (getattr(h, name) >= 0).all():
                raise Wrong(f"{name} is negative or not a number")
        if (h.lower > h.upper).any():
            raise Wrong("a lower limit is above the upper one")
    if not deep or robot.nb > SMALL:
        return
    text = to_json(robot)
    if pp.load(text) != robot:
        raise Wrong("the robot is another one when it is written and read again")
    q, v = robot.random_state(0)
    kernel = pp.inverse_dynamics.compile(robot, backend="numpy")
    tau = np.asarray(kernel(q, v, np.ones(robot.nv)))
    sizes = [abs(x) for x in _numbers(json.loads(text)) if x]
    if all(1 / TAME < x < TAME for x in sizes) and not np.isfinite(tau).all():
        raise Wrong("inverse dynamics is not finite")


def _numbers(x: Any) -> Iterator[float]:
    if isinstance(x, dict | list):
        for part in x.values() if isinstance(x, dict) else x:
            yield from _numbers(part)
    elif isinstance(x, float):
        yield x


def urdf(content: bytes, deep: bool) -> None:
    """Read a URDF on both kinds of base; it is refused if both are."""
    refused: list[pp.ModelError] = []
    for base in ("fixed", "free"):
        try:
            check(pp.load(content, base=base, format="urdf"), deep)
        except pp.ModelError as error:
            refused.append(error)
    if len(refused) == 2:
        raise refused[1]


def robot_text(content: bytes, deep: bool) -> None:
    """Read a robot whose format the text tells."""
    check(pp.load(content), deep)


def urdf_seeds() -> list[bytes]:
    from tests.model.test_load_hostile import URDF

    return [URDF.encode()]


def mjcf_seeds() -> list[bytes]:
    from tests.model.test_mjcf import ZOO

    return [text.encode() for text in ZOO.values()]


def json_seeds() -> list[bytes]:
    from tests.zoo import random_forest

    packaged = (pp.robots.double_pendulum, pp.robots.four_bar, pp.robots.flexible_joint_arm)
    forests = [random_forest(seed, 3) for seed in range(6)]
    return [to_json(robot).encode() for robot in (*(make() for make in packaged), *forests)]


# ---- scenarios -----------------------------------------------------------------------------------


def scenario(content: bytes, deep: bool) -> None:
    """Read and check a scenario, and find its start."""
    found = Scenario.of(content, "my.toml", Path("none"))
    if deep:
        with mock.patch.dict(os.environ, PHIPSI_BACKEND="numpy"):
            _ = found.start, found.goals


def scenario_seeds() -> list[bytes]:
    from tests.scenarios import texts

    small = [texts.PENDULUM, texts.ARM, texts.HELD]
    return [
        *(text.encode() for text in small),
        *((FILES / f"{name}.toml").read_bytes() for name in SCENARIOS),
    ]


TARGETS = (
    Target("urdf", "robots as URDF, on a fixed and on a free base", ".urdf", urdf_seeds, XML.mutate,
           urdf, (pp.ModelError,), XML.smaller),
    Target("mjcf", "robots as MJCF, through MuJoCo", ".xml", mjcf_seeds, XML.mutate,
           robot_text, (pp.ModelError,), XML.smaller, count=10_000),
    Target("json", "robots as JSON", ".json", json_seeds, JSON.mutate,
           robot_text, (pp.ModelError,), JSON.smaller),
    Target("toml", "scenarios", ".toml", scenario_seeds, TOML.mutate,
           scenario, (ScenarioError,), TOML.smaller, deep=8),
)  # fmt: skip
