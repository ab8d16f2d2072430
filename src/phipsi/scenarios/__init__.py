"""Scenario files: what is simulated, in TOML; see `docs/scenarios.md`."""

from phipsi.scenarios.laws import LAWS
from phipsi.scenarios.scenario import SCENARIOS, Scenario, load
from phipsi.scenarios.toml_reader import ScenarioError

__all__ = ["LAWS", "SCENARIOS", "Scenario", "ScenarioError", "load"]
