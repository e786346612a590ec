"""A local model is loaded once per process; a failure is remembered for a minute."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import grace_kp as gk
from grace_kp.models import _loading
from tests.models import libraries


@pytest.fixture
def model(monkeypatch):
    return libraries.onnx(monkeypatch)


@pytest.fixture
def clock(monkeypatch):
    """The seconds that the module reads."""
    now = [1_000.0]
    monkeypatch.setattr(_loading.time, "monotonic", lambda: now[0])
    return now


def test_threads_share_one_model(model, tmp_path):
    """Also those that ask for it at the same moment."""
    embedder = gk.OnnxEmbedder(libraries.onnx_folder(tmp_path / "m"))
    barrier = threading.Barrier(8)

    def load(_):
        barrier.wait(30)
        embedder.load()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(load, range(8)))
    assert 1 == model.loads


def test_a_failure_is_remembered_for_a_minute(model, clock, tmp_path):
    """A run of texts does not try again each time; afterwards a model that has become available is found."""
    model.load_error = OSError("broken")
    embedder = gk.OnnxEmbedder(libraries.onnx_folder(tmp_path / "m"))
    for _ in range(3):
        with pytest.raises(gk.EmbedderError, match="broken"):
            embedder.embed(["a"])
    assert 1 == model.loads
    model.load_error = None
    clock[0] += 59.9
    with pytest.raises(gk.EmbedderError, match="broken"):
        embedder.embed(["a"])
    clock[0] += 0.1
    assert (1, libraries.DIMENSIONS) == embedder.embed(["a"]).shape
    assert 2 == model.loads


def test_another_process_loads_its_own(model, monkeypatch, tmp_path):
    """A process that was forked has another id, and none of the parent's model."""
    embedder = gk.OnnxEmbedder(libraries.onnx_folder(tmp_path / "m"))
    assert 384 == embedder.dimensions
    embedder.load()
    assert libraries.DIMENSIONS == embedder.dimensions
    monkeypatch.setattr(_loading.os, "getpid", lambda: -1)
    assert 384 == embedder.dimensions
    embedder.load()
    assert 2 == model.loads
