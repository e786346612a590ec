"""A runtime in memory, without models and without a reviewer."""

from __future__ import annotations

import pytest

import grace_kp as gk


@pytest.fixture
def grace():
    with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None) as runtime:
        yield runtime
