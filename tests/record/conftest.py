"""A runtime in memory, without models and without a reviewer; and recording that raises its own errors."""

from __future__ import annotations

import pytest

import grace_kp as gk


@pytest.fixture
def grace():
    with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None) as runtime:
        yield runtime


@pytest.fixture
def strict(monkeypatch):
    """An error inside recording fails the test instead of being survived."""
    monkeypatch.setenv("GRACE_KP_STRICT_RECORDING", "1")
