"""Fixtures of the inbox: a shop, and the browser of a person who decides."""

from __future__ import annotations

import pytest

from tests.web.inbox.shop import Shop


@pytest.fixture
def shop():
    made = Shop()
    yield made
    made.grace.close()


@pytest.fixture
def filed(tmp_path):
    """A shop whose store is a file that other processes can open."""
    made = Shop(f"sqlite:///{tmp_path}/shop.db")
    yield made
    made.grace.close()


@pytest.fixture
def ana(shop):
    return shop.browser("ana", role="approver")
