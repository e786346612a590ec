"""The real model through both libraries, and what `OnnxEmbedder` says where it cannot be used."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import grace_kp as gk
from tests.models import libraries

TEXTS = [
    "The agent looked up the fare from Lisbon to Rome.",
    "東京の天気は晴れです。",
    "返金の手続きを始めます。",
    "",
    "word " * 600,
    "emoji 🎉 and a lone \udc00 surrogate".replace("\udc00", "?"),
    "def f(x): return x + 1",
]


@pytest.fixture(scope="module")
def both(minilm, onnx_folder):
    return gk.OnnxEmbedder(onnx_folder), gk.SentenceTransformerEmbedder(minilm, "cpu")


def test_both_give_the_same_vectors(both):
    """To 1e-5, for short, long, empty and Japanese texts, alone and in a batch."""
    onnx, torch = both
    ours, theirs = onnx.embed(TEXTS), torch.embed(TEXTS)
    assert (len(TEXTS), 384) == ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype == np.float32
    assert np.abs(ours - theirs).max() < 1e-5
    fresh = type(onnx)(onnx._model)
    for number, text in enumerate(TEXTS):
        assert np.abs(fresh.embed([text])[0] - ours[number]).max() < 1e-5


def test_vectors_have_length_one(both):
    """So that similarity is a product."""
    assert np.linalg.norm(both[0].embed(TEXTS), axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-5)


def test_a_large_batch_keeps_its_order(both):
    texts = [f"{'long ' * (number % 17)}text number {number}" for number in range(200)]
    whole = gk.OnnxEmbedder(both[0]._model, remember=0).embed(texts)
    for number in (0, 16, 99, 199):
        assert np.abs(whole[number] - both[0].embed([texts[number]])[0]).max() < 1e-5


def test_similar_texts_are_less_novel_than_different_ones(both):
    """In English, and in Japanese as far as the model goes; repeats go towards 0."""

    def novelty(first, then):
        scorer = gk.ValueScorer(embedder=both[0])
        for text in (first, then):
            score = scorer.score_parts(step_types=["thought"], tool_names=[], success=True, confidence=0.5, text=text)
        assert score.novelty_fallback is None
        return score.novelty

    refund = "refund the customer 20 euros"
    assert novelty(refund, refund) == pytest.approx(0.0, abs=1e-5)
    assert novelty(refund, "give the client his 20 EUR back") < novelty(refund, "the weather in Rome is nice")
    ja = "顧客に二十ユーロを返金する"
    assert novelty(ja, ja) == pytest.approx(0.0, abs=1e-5)
    assert novelty(ja, "お客様に二十ユーロを返金します") < novelty(ja, "Version 3 of the library is out")


def test_a_folder_that_lacks_something_says_what(monkeypatch, tmp_path):
    """Or is no folder, or holds something else."""
    model = libraries.onnx(monkeypatch)
    with pytest.raises(gk.EmbedderError, match="no folder"):
        gk.OnnxEmbedder(tmp_path / "no").embed(["text"])
    with pytest.raises(gk.EmbedderError, match=r"lacks model\.onnx"):
        gk.OnnxEmbedder(tmp_path).embed(["text"])
    (tmp_path / "model.onnx").write_bytes(b"garbage")
    with pytest.raises(gk.EmbedderError, match=r"lacks tokenizer\.json"):
        gk.OnnxEmbedder(tmp_path).embed(["text"])
    (tmp_path / "tokenizer.json").write_text("{}")
    model.load_error = ValueError("no protobuf")
    with pytest.raises(gk.EmbedderError, match="cannot be loaded: ValueError: no protobuf"):
        gk.OnnxEmbedder(tmp_path).embed(["text"])


def test_a_missing_extra_names_the_command(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(gk.MissingExtra, match=r"grace-kp\[onnx\]"):
        gk.OnnxEmbedder(tmp_path).embed(["text"])


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True])
def test_a_number_of_threads_that_is_none_is_refused(wrong):
    with pytest.raises(ValueError, match="threads must be a whole number >= 1"):
        gk.OnnxEmbedder(threads=wrong)


def test_a_model_that_gives_no_vectors_is_an_error(monkeypatch, tmp_path):
    model = libraries.onnx(monkeypatch)
    embedder = gk.OnnxEmbedder(libraries.onnx_folder(tmp_path / "m"))
    embedder.load()
    rows = model.rows
    model.rows = lambda texts: rows(texts)[:0]
    with pytest.raises(gk.EmbedderError, match="gave an array of shape"):
        embedder.embed(["a", "b"])
