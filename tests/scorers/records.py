"""Short constructors of operations, results and expectations, for the tests of scorers."""

from __future__ import annotations

import importlib.util

import pytest

from grace_kp import scorers as sc

NEEDS_REGEX = pytest.mark.skipif(importlib.util.find_spec("regex") is None, reason="needs the extra eval")


def op(kind="update", target=None, index=None, position=None, content=None):
    return sc.Operation(kind, target, index, position, content)


def done(*operations, **more):
    return sc.EditResult(operations, **more)


def wanted(*operations, **more):
    return sc.EditExpectation(operations, **more)


GOOD = (done(op("update", "a"), pages={"A": "x"}), wanted(op("update", "a"), patterns={"A": ["x"]}))
BAD = (done(op("delete", "b"), pages={"A": "y"}), wanted(op("update", "a"), patterns={"A": ["x"]}))


class Odd:
    """A scorer of one's own that says what it was built with."""

    type = "odd"
    threshold = 0.5

    def __init__(self, limit=1):
        self.options = {"limit": limit}

    def score(self, actual, expected):
        return 1.0

    def details(self, actual, expected):
        return None
