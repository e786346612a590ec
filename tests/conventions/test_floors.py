"""The oldest versions that pyproject.toml allows are the ones that `make test-oldest` runs with."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# The adapters that have an environment each, with the name that the Makefile gives it.
ADAPTERS = {"openai-agents": "openai_agents", "pydantic-ai": "pydantic_ai", "google-adk": "adk", "strands": "strands"}


def test_the_oldest_versions_of_adapters_are_tested():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for extra, name in ADAPTERS.items():
        package, floor = extras[extra][0].split(">=")
        pin = re.search(rf"^ADAPTER_{name} \+= {package}==([\d.]+)(?: |$)", makefile, re.MULTILINE)
        assert pin is not None
        assert re.sub(r"(\.0)+$", "", pin[1]) == re.sub(r"(\.0)+$", "", floor)


def test_the_oldest_versions_that_are_allowed_are_the_ones_that_are_tested():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    needs = [*extras["langchain"], *extras["inspect-ai"], *extras["pydantic-evals"]]
    floors = dict(need.split(">=") for need in needs if need.startswith(("lang", "inspect", "pydantic-evals")))
    pins = re.search(r"^OLDEST_PINS := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert pins is not None
    tested = dict(pin.split("==") for pin in pins[1].split())
    assert floors.keys() == tested.keys()
    for name, floor in floors.items():
        assert re.sub(r"(\.0)+$", "", tested[name]) == re.sub(r"(\.0)+$", "", floor)
