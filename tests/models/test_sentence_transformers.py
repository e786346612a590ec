"""Embedders: the memory that all share, plain callables, and sentence-transformers."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import grace_kp as gk
from tests.models import libraries


@pytest.fixture
def model(monkeypatch):
    return libraries.sentence_transformers(monkeypatch)


def test_a_model_is_loaded_from_disk_without_progress_bars(model, tmp_path):
    embedder = gk.SentenceTransformerEmbedder(tmp_path, "cpu", batch_size=7)
    assert 0 == model.loads
    embedder.embed(["a"])
    embedder.embed(["b"])
    assert 1 == model.loads
    expected = {"name": str(tmp_path), "device": "cpu", "local_files_only": True, "bars": False}
    assert expected == model.options
    assert ["off", "on"] == model.bars.changes
    assert 7 == model.batch_size


def test_a_model_on_the_hub_is_fetched_only_when_that_is_allowed(model):
    gk.SentenceTransformerEmbedder("some/model").load()
    assert (True, False) == (model.options["local_files_only"], model.options["bars"])
    gk.SentenceTransformerEmbedder("some/model", fetch=True).load()
    assert (False, True) == (model.options["local_files_only"], model.options["bars"])


def test_bars_that_are_off_stay_off(model, tmp_path):
    model.bars.enabled = False
    gk.SentenceTransformerEmbedder(tmp_path).load()
    assert [] == model.bars.changes
    assert not model.bars.enabled


def test_the_length_of_vectors(model, tmp_path):
    """384 for the default model, without loading it; any other model is asked."""
    assert 384 == gk.SentenceTransformerEmbedder().dimensions
    assert 0 == model.loads
    assert libraries.DIMENSIONS == gk.SentenceTransformerEmbedder(tmp_path).dimensions
    assert 1 == model.loads


@pytest.mark.parametrize(("fetch", "hint"), [(False, True), (True, False)])
def test_a_model_that_cannot_be_loaded_says_why(model, fetch, hint):
    model.load_error = OSError("no such file")
    with pytest.raises(gk.EmbedderError, match="some/model cannot be loaded: OSError: no such file") as caught:
        gk.SentenceTransformerEmbedder("some/model", fetch=fetch).embed(["a"])
    assert hint == ("fetch=True" in str(caught.value))
    assert model.bars.enabled


def test_a_missing_extra_names_the_command(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(gk.MissingExtra, match=r"grace-kp\[embeddings\]"):
        gk.SentenceTransformerEmbedder(tmp_path).embed(["text"])


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True])
def test_a_batch_size_that_is_no_number_of_texts_is_refused(wrong):
    with pytest.raises(ValueError, match=r"batch_size must be a whole number >= 1"):
        gk.SentenceTransformerEmbedder(batch_size=wrong)


def test_a_plain_callable_is_an_embedder_with_a_memory():
    asked = []

    def function(text):
        asked.append(text)
        return [len(text), 1.0]

    embedder = gk.CallableEmbedder(function)
    with pytest.raises(gk.EmbedderError, match="after the first text"):
        _ = embedder.dimensions
    rows = embedder.embed(["a", "bb", "a"])
    assert [[1, 1], [2, 1], [1, 1]] == rows.tolist()
    assert np.float32 == rows.dtype
    assert 2 == embedder.dimensions
    embedder.embed(["bb", "ccc"])
    assert ["a", "bb", "ccc"] == asked
    assert (0, 2) == embedder.embed([]).shape


def test_the_memory_is_bounded():
    """The text used last stays."""
    asked = []

    def function(text):
        asked.append(text)
        return [1.0]

    embedder = gk.CallableEmbedder(function, remember=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        embedder.embed([text])
    assert ["a", "b", "c", "b"] == asked
    with pytest.raises(ValueError, match="remember"):
        gk.CallableEmbedder(function, remember=-1)


@pytest.mark.parametrize("wrong", [3, "model", object()])
def test_what_cannot_be_called_is_no_embedder(wrong):
    with pytest.raises(TypeError, match=f"an embedder has `embed` or is callable .got {type(wrong).__name__}."):
        gk.CallableEmbedder(wrong)


def test_a_callable_must_give_one_vector_per_text():
    for vector in (1.0, [[1.0, 2.0]]):
        with pytest.raises(gk.EmbedderError, match="gave an array of shape"):
            gk.CallableEmbedder(lambda text, vector=vector: vector).embed(["a", "b"])
