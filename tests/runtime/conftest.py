"""A writer with a scripted pipeline and a store in memory."""

from __future__ import annotations

import pytest

from grace_kp.runtime._writer import Writer
from grace_kp.store import open_store
from tests.runtime.scripted import Pipeline


@pytest.fixture
def pipeline():
    return Pipeline()


@pytest.fixture
def store():
    return open_store("memory:")


@pytest.fixture
def writer(pipeline, store):
    opened = Writer(lambda: store, pipeline)
    yield opened
    opened.close()
