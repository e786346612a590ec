"""A store in a file, and its catalog."""

from __future__ import annotations

import pytest

from grace_kp.store import open_catalog, open_store


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 't.db'}"


@pytest.fixture
def store(url):
    opened = open_store(url)
    yield opened
    opened.close()


@pytest.fixture
def catalog(store):
    opened = open_catalog(store)
    yield opened
    opened.close()
