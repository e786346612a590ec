"""What every embedder keeps to: one row per text in order, known texts from memory, and failures that are one error of ours."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest

import grace_kp as gk
from tests.models import libraries


def from_callable(patch, folder, stack, **options):
    model = libraries.Model()
    return gk.CallableEmbedder(lambda text: model.rows([text])[0], **options), model


def from_onnx(patch, folder, stack, **options):
    model = libraries.onnx(patch)
    embedder = gk.OnnxEmbedder(libraries.onnx_folder(folder / "model"), threads=2, **options)
    embedder.load()
    model.texts.clear()  # the text that loading measures
    return embedder, model


def from_sentence_transformers(patch, folder, stack, **options):
    model = libraries.sentence_transformers(patch)
    return gk.SentenceTransformerEmbedder(folder, **options), model


def from_gemini(patch, folder, stack, **options):
    pytest.importorskip("google.genai")
    respx, httpx = pytest.importorskip("respx"), pytest.importorskip("httpx")
    model = libraries.Model()

    def answer(request):
        texts = [item["content"]["parts"][0]["text"] for item in json.loads(request.content)["requests"]]
        try:
            rows = model.rows(texts)
        except OSError as error:
            return httpx.Response(400, json={"error": {"code": 400, "status": "BAD", "message": str(error)}})
        return httpx.Response(200, json={"embeddings": [{"values": row.tolist()} for row in rows]})

    router = stack.enter_context(respx.mock(assert_all_called=False))
    router.post(url__regex=r".*:batchEmbedContents").mock(side_effect=answer)
    return gk.GeminiEmbedder(dimensions=libraries.DIMENSIONS, api_key="k", **options), model


def from_openai(patch, folder, stack, **options):
    respx, httpx = pytest.importorskip("respx"), pytest.importorskip("httpx")
    model = libraries.Model()

    def answer(request):
        try:
            rows = model.rows(json.loads(request.content)["input"])
        except OSError as error:
            return httpx.Response(400, json={"error": {"message": str(error)}})
        data = [{"index": number, "embedding": row.tolist()} for number, row in enumerate(rows)]
        return httpx.Response(200, json={"data": data})

    router = stack.enter_context(respx.mock(assert_all_called=False))
    router.post("http://localhost:8000/v1/embeddings").mock(side_effect=answer)
    address = "http://localhost:8000/v1"
    return gk.OpenAIEmbedder("e", dimensions=libraries.DIMENSIONS, base_url=address, api_key="k", **options), model


MAKERS = {
    "callable": from_callable,
    "onnx": from_onnx,
    "sentence-transformers": from_sentence_transformers,
    "gemini": from_gemini,
    "openai": from_openai,
}
TEXTS = ["a fare", "東京の天気", "a much longer text about the fare from Lisbon to Rome", "b", "x" * 400]


@pytest.fixture(params=MAKERS.values(), ids=MAKERS)
def make(request, monkeypatch, tmp_path):
    with contextlib.ExitStack() as stack:
        yield lambda **options: request.param(monkeypatch, tmp_path, stack, **options)


def test_one_row_per_text_in_order(make):
    embedder, _ = make()
    rows = embedder.embed(TEXTS)
    assert ((len(TEXTS), libraries.DIMENSIONS), np.float32) == (rows.shape, rows.dtype)
    assert libraries.DIMENSIONS == embedder.dimensions
    assert (0, libraries.DIMENSIONS) == embedder.embed([]).shape
    assert isinstance(embedder, gk.Embedder)
    fresh, _ = make()
    for row, text in zip(rows, TEXTS, strict=True):
        assert row == pytest.approx(fresh.embed([text])[0], abs=1e-5)
    assert len({row.tobytes() for row in rows}) == len(TEXTS)


@pytest.mark.parametrize("wrong", ["one text", [3], [None], [b"bytes"]])
def test_anything_but_a_list_of_texts_is_refused(make, wrong):
    embedder, model = make()
    with pytest.raises(TypeError, match="embed takes"):
        embedder.embed(wrong)
    assert [] == model.texts


def test_a_known_text_does_not_go_through_the_model_again(make):
    embedder, model = make()
    first = embedder.embed(["a", "b", "a"])
    assert first[0].tolist() == first[2].tolist()
    embedder.embed(["b", "c"])
    assert ["a", "b", "c"] == sorted(model.texts)


def test_rows_may_be_changed_by_the_caller(make):
    embedder, _ = make()
    found = []
    for _ in range(3):
        rows = embedder.embed(["a"])
        found.append(rows.tolist())
        rows[:] = 0
    assert found[0] == found[1] == found[2] != rows.tolist()


def test_a_memory_of_nothing_remembers_nothing(make):
    """`remember=0` sends every text through the model; a negative number is refused."""
    embedder, model = make(remember=0)
    for _ in range(2):
        embedder.embed(["a"])
    assert ["a", "a"] == model.texts
    with pytest.raises(ValueError, match="remember must be a whole number >= 0"):
        make(remember=-1)


def test_a_failing_model_is_an_error_and_never_a_failing_run(make):
    """Novelty and agreement fall back, and say why; later texts are embedded again."""
    embedder, model = make()
    model.error = OSError("out of memory")
    with pytest.raises((gk.EmbedderError, OSError), match="out of memory"):
        embedder.embed(["a"])
    score = gk.ValueScorer(embedder).score_parts(
        step_types=["thought"], tool_names=[], success=True, confidence=1.0, text="a"
    )
    assert 0.5 == score.novelty
    assert "out of memory" in score.novelty_fallback
    assert gk.SourceAgreementCalculator(embedder).calculate_detailed(["a", "b"]).fallback
    model.error = None
    assert (1, libraries.DIMENSIONS) == embedder.embed(["a"]).shape


def test_no_representation_shows_a_key_or_a_text(make):
    embedder, _ = make()
    embedder.embed(["a secret text"])
    assert "secret" not in repr(embedder)
    assert "'k'" not in repr(embedder)
