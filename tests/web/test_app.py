"""The application as a whole: what it is made of, and how it is mounted."""

from __future__ import annotations

import httpx
import pytest

from grace_kp.testing import make_grace
from grace_kp.web import app


@pytest.fixture
def client():
    grace = make_grace()
    with grace:
        yield httpx.AsyncClient(transport=httpx.ASGITransport(app(grace)), base_url="http://127.0.0.1:8765")


async def test_it_is_healthy(client):
    """`/healthz` needs no login."""
    answer = await client.get("/healthz")
    assert (200, {"status": "ok"}) == (answer.status_code, answer.json())


async def test_the_first_page_is_the_inbox(client):
    """The path alone leads to what waits."""
    answer = await client.get("/")
    assert (303, "/inbox") == (answer.status_code, answer.headers["location"])
