"""Which cases of a long list run in `make test`, and which only in `make test-all`.

Every case runs in one of the two. Those of `make test` represent the rest: each value of each dimension occurs in them.
"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import settings

exhaustive = pytest.mark.exhaustive


def product(first, second):
    """Return all pairs as parameters, of which `make test` runs a diagonal: each value of both occurs in it."""
    longest = max(len(first), len(second))
    diagonal = {(n % len(first), n % len(second)) for n in range(longest)}
    return [
        pytest.param(a, b, marks=[] if (row, column) in diagonal else [exhaustive])
        for (row, a), (column, b) in itertools.product(enumerate(first), enumerate(second))
    ]


def examples(number):
    """Return settings with this many examples in `make test-all`, in proportion to the profile's own number elsewhere."""
    return settings(max_examples=max(10, number * settings.default.max_examples // 200))
