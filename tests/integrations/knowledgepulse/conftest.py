"""A registry without waits between attempts, and a server for it."""

from __future__ import annotations

import pytest

from grace_kp.integrations.knowledgepulse import KnowledgePulse
from tests.integrations.knowledgepulse.registry import URL, Registry


@pytest.fixture
def registry():
    made = KnowledgePulse(URL, "top-secret-key", timeout=60.0, deadline=60.0)
    yield made
    made.close(0.0)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    """Attempts follow each other at once, except where the server asks for time."""
    from grace_kp.integrations.knowledgepulse import _outbox

    monkeypatch.setattr(_outbox, "FIRST_WAIT", 0.001)


@pytest.fixture
def server(request):
    made = Registry(*getattr(request, "param", ()))
    yield made
    made.close()
