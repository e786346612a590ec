"""Gemini over the wire: what is sent, and how every reply becomes a judgement, vectors, or one form of error."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest

pytest.importorskip("google.genai")
httpx = pytest.importorskip("httpx")
respx = pytest.importorskip("respx")

import grace_kp as gk  # noqa: E402
from tests.models.gemini import BOTH, KEY, answer, judged, refusal  # noqa: E402


@BOTH
def test_a_judgement(wire, sync):
    """Structured output at temperature 0, to the model's address, with the key in its header and nowhere else."""
    made = judged(sync=sync)
    assert (0.8, "right", False, 1) == (made.score, made.reason, made.fallback, made.attempts)
    assert ("gemini-x-001", 120, 15) == (made.model, made.tokens_in, made.tokens_out)
    (call,) = wire.calls
    assert call.request.url.path.endswith("/models/gemini-x:generateContent")
    assert KEY == call.request.headers["x-goog-api-key"]
    assert KEY not in str(call.request.url)
    body = json.loads(call.request.content)
    config = body["generationConfig"]
    assert (0, "application/json") == (config["temperature"], config["responseMimeType"])
    assert {"score", "reason"} == set(config["responseJsonSchema"]["properties"])
    assert KEY.encode() not in call.request.content


def test_both_judgements_are_asked_for_in_the_schema(wire):
    wire.mock(return_value=httpx.Response(200, json=answer('{"score": 0.8, "coverage": 0.6}')))
    judge = gk.GeminiJudge(api_key=KEY)
    own, coverage = gk.LLMSelfEvaluator(judge, combined=True).evaluate_both("q", "a")
    assert (0.8, 0.6) == (own.score, coverage.score)
    schema = json.loads(wire.calls[0].request.content)["generationConfig"]["responseJsonSchema"]
    assert {"score", "reason", "coverage", "coverage_reason"} == set(schema["properties"])


def test_several_samples_are_asked_for_at_a_higher_temperature(wire):
    """At 0 they would all be the same."""
    made = gk.LLMSelfEvaluator(gk.GeminiJudge(api_key=KEY), samples=3).evaluate_detailed("q", "a")
    assert (pytest.approx(0.8), 3, pytest.approx(0.0)) == (made.score, made.samples, made.spread)
    assert {0.7} == {json.loads(call.request.content)["generationConfig"]["temperature"] for call in wire.calls}


@BOTH
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "SAFETY"),
        ({"candidates": [{"finishReason": "MAX_TOKENS"}]}, "MAX_TOKENS"),
        ({"candidates": []}, "no text"),
        ({}, "no text"),
        (answer(""), "no text"),
        (answer("I cannot judge this."), "no score"),
        (answer('{"verdict": "good", "points": 7}'), "no score"),
        (b'{"candidates": "none", "usageMetadata": 3}', ""),
        (b'{"candidates": [', ""),
        (b"<html><body>502 Bad Gateway</body></html>", ""),
    ],
)
def test_a_reply_without_a_score_is_a_fallback(wire, body, said, sync):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    wire.mock(return_value=httpx.Response(200, content=content))
    made = judged(sync=sync)
    assert made.fallback
    assert said in made.error


@BOTH
@pytest.mark.parametrize("combined", [False, True])
@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({"candidates": [{"finishReason": "MAX_TOKENS"}], "usageMetadata": {"promptTokenCount": 10, "thoughtsTokenCount": 90}}, 100),
        ({"candidates": [{"finishReason": "SAFETY"}], "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5}}, 15),
        ({"promptFeedback": {"blockReason": "OTHER"}, "usageMetadata": {"promptTokenCount": 10}}, 10),
    ],
)  # fmt: skip
def test_a_judgement_without_text_is_paid_for(wire, body, tokens, combined, sync):
    wire.mock(return_value=httpx.Response(200, json=body))
    limit = gk.SpendingLimit(tokens_per_minute=10_000)
    evaluator = gk.LLMSelfEvaluator(gk.GeminiJudge(api_key=KEY), limit=limit, combined=combined)
    both = evaluator.evaluate_both("q", "a") if sync else asyncio.run(evaluator.aevaluate_both("q", "a"))
    spent = [made.tokens_in + (made.tokens_out or 0) for made in both if made.tokens_in is not None]
    assert [tokens] * (1 if combined else 2) == spent
    assert sum(spent) == limit.spent.tokens


@pytest.mark.parametrize("options", [{"model": ""}, {"timeout": -1}, {"timeout": float("inf")}, {"attempts": 0}])
def test_arguments_of_the_judge_out_of_range_are_refused(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
        gk.GeminiJudge(**options)


def vectors(request, *, size=4, drop=0, value=None):
    """As many vectors as there are requests in the body."""
    requests = json.loads(request.content)["requests"]
    texts = [one["content"]["parts"][0]["text"] for one in requests]
    rows = [[float(len(text)), 1.0, 2.0, 3.0][:size] if value is None else [value] * size for text in texts]
    return httpx.Response(200, json={"embeddings": [{"values": row} for row in rows[: len(rows) - drop]]})


@pytest.fixture
def embeds():
    with respx.mock(assert_all_called=False) as mock:
        yield mock.post(url__regex=r".*:batchEmbedContents").mock(side_effect=vectors)


def test_texts_are_embedded_in_batches(embeds):
    """One vector for each, at most 100 in a request, each text once."""
    embedder = gk.GeminiEmbedder(dimensions=4, api_key=KEY)
    rows = embedder.embed([f"{'x' * (number % 50)}{number}" for number in range(250)])
    assert ((250, 4), np.float32) == (rows.shape, rows.dtype)
    assert 3 == embeds.call_count
    assert [100, 100, 50] == [len(json.loads(call.request.content)["requests"]) for call in embeds.calls]
    assert float(len("xxx3")) == rows[3][0]
    embedder.embed(["xxx3"])
    assert 3 == embeds.call_count


def test_neither_secrets_nor_identifiers_are_sent(embeds):
    """They would leave the machine."""
    gk.GeminiEmbedder(dimensions=4, api_key=KEY).embed(["mail ann@example.com password=hunter2secret 090-1234-5678"])
    sent = embeds.calls[0].request.content.decode()
    for text in ("ann@example.com", "hunter2secret", "1234-5678"):
        assert text not in sent


@pytest.mark.parametrize("wrong", [{"drop": 1}, {"size": 3}, {"value": "NaN"}])
def test_vectors_that_cannot_be_right_are_an_error(embeds, wrong):
    embeds.mock(side_effect=lambda request: vectors(request, **wrong))
    embedder = gk.GeminiEmbedder(dimensions=4, api_key=KEY)
    with pytest.raises((gk.EmbedderError, ValueError)):
        embedder.embed(["a", "b"])
    assert gk.SourceAgreementCalculator(embedder).calculate_detailed(["a", "b"]).fallback


def test_the_embedder_tries_again(embeds):
    """As the judge does; and gives up in one error of ours."""
    embeds.mock(side_effect=[refusal(503), lambda request: vectors(request)])
    assert (1, 4) == gk.GeminiEmbedder(dimensions=4, api_key=KEY).embed(["a"]).shape
    embeds.mock(return_value=refusal(403, "NO", "never"))
    with pytest.raises(gk.EmbedderError, match="HTTP 403 NO: never"):
        gk.GeminiEmbedder(dimensions=4, api_key=KEY).embed(["b"])


@pytest.mark.parametrize("options", [{"dimensions": 0}, {"timeout": 0}, {"attempts": 0}])
def test_arguments_of_the_embedder_out_of_range_are_refused(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
        gk.GeminiEmbedder(**options)
