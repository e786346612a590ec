"""The real model through both libraries, and what `OnnxEmbedder` says where it cannot be used."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

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
    """Texts are sorted by length on the way, and come back where they belong."""
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


def test_after_the_ttl_novelty_recovers(both):
    """What was forgotten is new again, against what is still there."""
    now = [0.0]
    cache = gk.VectorCache(ttl_seconds=10, clock=lambda: now[0])
    scorer = gk.ValueScorer(embedder=both[0], cache=cache)

    def novelty(text):
        return scorer.score_parts(
            step_types=["thought"], tool_names=[], success=True, confidence=0.5, text=text
        ).novelty

    novelty("refund the customer")
    assert novelty("refund the customer") == pytest.approx(0.0, abs=1e-5)
    now[0] = 8.0
    novelty("a poem about the sea")
    now[0] = 15.0
    assert novelty("refund the customer") > 0.5


def test_the_agreement_of_real_texts(both):
    """Sources that say the same agree more than sources that do not."""
    agreement = gk.SourceAgreementCalculator(both[0])
    same = agreement.calculate(["Paris is the capital of France.", "The capital of France is Paris."])
    other = agreement.calculate(["Paris is the capital of France.", "Bread is made of flour."])
    assert 0.9 < same <= 1
    assert other < 0.4


def test_it_is_loaded_once_by_many_threads(onnx_folder, monkeypatch):
    """And gives all of them the same."""
    from grace_kp.models import _onnx

    made = []

    class Counted(_onnx._OnnxModel):
        def __init__(self, folder):
            made.append(folder)
            super().__init__(folder)

    monkeypatch.setattr(_onnx, "_OnnxModel", Counted)
    embedder = gk.OnnxEmbedder(onnx_folder, remember=0)
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda number: embedder.embed([TEXTS[number % 3]])[0], range(24)))
    assert 1 == len(made)
    for number, row in enumerate(rows):
        assert np.abs(row - rows[number % 3]).max() < 1e-6


def test_a_forked_child_loads_its_own(onnx_folder):
    """Threads of a model do not survive a fork."""
    code = textwrap.dedent("""
        import os, sys, signal
        import grace_kp as gk
        embedder = gk.OnnxEmbedder(sys.argv[1])
        first = embedder.embed(["hello"])
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            second = embedder.embed(["hello", "again"])
            os._exit(0 if abs(first[0] - second[0]).max() < 1e-6 else 3)
        assert os.waitpid(child, 0)[1] == 0
    """)
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(onnx_folder)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (0, "") == (ran.returncode, ran.stderr)


def test_runs_are_novel_in_the_order_in_which_they_ended(onnx_folder):
    """On the background worker; the agent's thread embeds nothing."""
    threads = set()
    model = gk.OnnxEmbedder(onnx_folder, remember=0)

    class Watched:
        dimensions = 384

        def embed(self, texts):
            threads.add(threading.current_thread().name)
            return model.embed(texts)

    grace = gk.Grace(store="memory:", embedder=Watched(), evaluator=None, reviewer=None)

    @grace.agent
    def agent(question):
        return "done"

    for question in ("refund the customer", "a poem about the sea", "refund the customer", "refund the customer"):
        agent(question)
    assert grace.flush(60)
    novelties = [trace.grace["value"] for trace in reversed(grace.store.query())]
    assert "nothing to compare with yet" == novelties[0]["novelty_fallback"]
    assert novelties[1]["novelty"] > 0.3
    assert novelties[2]["novelty"] == pytest.approx(0.0, abs=1e-4)
    assert novelties[3]["novelty"] == pytest.approx(0.0, abs=1e-4)
    grace.close()


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
    """One ImportError of ours."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(gk.MissingExtra, match=r"grace-kp\[onnx\]"):
        gk.OnnxEmbedder(tmp_path).embed(["text"])


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True])
def test_a_number_of_threads_that_is_none_is_refused(wrong):
    """When the embedder is created."""
    with pytest.raises(ValueError, match="threads must be a whole number >= 1"):
        gk.OnnxEmbedder(threads=wrong)


def test_a_model_that_gives_no_vectors_is_an_error(monkeypatch, tmp_path):
    """One row too few, or none at all."""
    model = libraries.onnx(monkeypatch)
    embedder = gk.OnnxEmbedder(libraries.onnx_folder(tmp_path / "m"))
    embedder.load()
    rows = model.rows
    model.rows = lambda texts: rows(texts)[:0]
    with pytest.raises(gk.EmbedderError, match="gave an array of shape"):
        embedder.embed(["a", "b"])
