"""Golden vectors for the tests of this folder: one JSON object per line, some of the files compressed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

VECTORS = Path(__file__).parent.parent / "vectors"


def read_vectors(name: str) -> list[dict[str, Any]]:
    plain, packed = VECTORS / f"{name}.jsonl", VECTORS / f"{name}.jsonl.gz"
    data = plain.read_bytes() if plain.exists() else gzip.decompress(packed.read_bytes())
    return [json.loads(line) for line in data.splitlines()]


@pytest.fixture
def vectors() -> Callable[[str], list[dict[str, Any]]]:
    """Reads the vectors of a name."""
    return read_vectors
