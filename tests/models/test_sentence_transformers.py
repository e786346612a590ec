"""`SentenceTransformerEmbedder`: what it asks the library for, and what it says where the model cannot be used."""

from __future__ import annotations

import sys

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
