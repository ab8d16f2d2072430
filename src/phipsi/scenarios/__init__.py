"""Scenario files: what is simulated, in TOML; see `docs/scenarios.md`."""

from phipsi.scenarios.laws import LAWS
from phipsi.scenarios.reading import ScenarioError
from phipsi.scenarios.scenario import SCENARIOS, Scenario, load

__all__ = ["LAWS", "SCENARIOS", "Scenario", "ScenarioError", "load"]
