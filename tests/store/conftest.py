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
def small_windows(monkeypatch):
    for name, value in (("_search.FEW", 0), ("_search.FIRST_WINDOW", 2), (".OLD_BATCH", 2), (".BATCH", 3)):
        monkeypatch.setattr(f"grace_kp.store._catalog{name}", value)


@pytest.fixture
def catalog(store):
    opened = open_catalog(store)
    yield opened
    opened.close()
