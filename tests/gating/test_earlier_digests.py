"""Digests of an earlier version: those that are kept stay the same, and values that differed then differ today.

The values: `tests/vectors/earlier/values.py`.
"""

from __future__ import annotations

import collections
import gzip
import json
from pathlib import Path

import pytest

from tests.vectors.earlier import values

FILE = Path(values.__file__).parent / "2753eab" / "digests.json.gz"


@pytest.fixture(scope="module")
def then():
    return json.loads(gzip.decompress(FILE.read_bytes()))


@pytest.fixture(scope="module")
def now():
    return values.digests_now()


@pytest.mark.parametrize("kind", ["kept", "lasting"])
def test_a_digest_that_is_kept_stays_the_same(then, now, kind):
    """Stored requests, and calls of paused programs, are compared with it."""
    kept = {name: digests[kind] for name, digests in then.items() if digests[kind]}
    assert len(kept) > 500
    assert kept == {name: now[name][kind] for name in kept}


def test_values_that_differed_still_differ(then, now):
    groups = collections.defaultdict(set)
    for name, digests in then.items():
        groups[now[name]["inside"]].add(digests["inside"])
    assert {number: found for number, found in groups.items() if len(found - {None}) > 1} == {}


def test_what_had_a_digest_has_one(then, now):
    assert [] == [name for name, digests in then.items() if digests["inside"] and now[name]["inside"] is None]
