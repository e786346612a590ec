"""The oldest versions that pyproject.toml allows are the ones that `make test-oldest` runs with."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_oldest_langchain_that_is_allowed_is_the_one_that_is_tested():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    floors = dict(need.split(">=") for need in extras["langchain"] if need.startswith("lang"))
    pins = re.search(r"^OLDEST_PINS := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert pins is not None
    tested = dict(pin.split("==") for pin in pins[1].split())
    assert floors.keys() == tested.keys()
    for name, floor in floors.items():
        assert tested[name].removesuffix(".0") == floor.removesuffix(".0")
