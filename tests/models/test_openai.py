"""OpenAI-compatible endpoints as judge and embedder: what is sent and to whom, what an endpoint may refuse, and the verdict's probability."""

from __future__ import annotations

import asyncio
import json
import logging
import math

import numpy as np
import pytest

httpx = pytest.importorskip("httpx")
respx = pytest.importorskip("respx")

import grace_kp as gk  # noqa: E402

URL, KEY = "http://gpu.example:8000/v1", "a-key-that-nobody-may-see-42"
SCORE = '{"score": 0.8, "reason": "right"}'
VERDICT = '{"score": 0.8, "reason": "右 \\"is_correct\\": false", "is_correct": true}'
BOTH = pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
OPTIONS = {"temperature", "response_format", "logprobs", "top_logprobs"}


def answer(text=SCORE, logprobs=None, **more):
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop", "logprobs": logprobs}
    return {"model": "m-001", "choices": [choice], "usage": {"prompt_tokens": 120, "completion_tokens": 12}, **more}


def refusal(code, message="never", **more):
    return httpx.Response(code, json={"error": {"message": message, "type": "invalid_request_error"}}, **more)


def body(call):
    return json.loads(call.request.content)


def judged(sync=True, judge=None, answered="a", **options):
    evaluator = gk.LLMSelfEvaluator(judge or gk.OpenAIJudge("m", **{"api_key": KEY, "base_url": URL, **options}))
    if sync:
        return evaluator.evaluate_detailed("q", answered)
    return asyncio.run(evaluator.aevaluate_detailed("q", answered))


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def wire():
    with respx.mock(assert_all_called=False) as mock:
        yield mock.post(path__regex="/chat/completions").mock(return_value=httpx.Response(200, json=answer()))


@BOTH
def test_a_judgement(wire, sync):
    """The reply's schema at temperature 0, to the address, with the key in its header and nowhere else; several samples vary."""
    made = judged(sync)
    assert (0.8, "right", False, 1, None) == (made.score, made.reason, made.fallback, made.attempts, made.p_true)
    assert ("m-001", 120, 12) == (made.model, made.tokens_in, made.tokens_out)
    (call,) = wire.calls
    assert f"{URL}/chat/completions" == str(call.request.url)
    assert f"Bearer {KEY}" == call.request.headers["authorization"]
    assert KEY.encode() not in call.request.content
    sent = body(call)
    assert ("m", 0.0, {"model", "messages", *OPTIONS}) == (sent["model"], sent["temperature"], sent.keys())
    schema = sent["response_format"]["json_schema"]["schema"]
    assert ["score", "reason", "is_correct"] == schema["required"] == list(schema["properties"])
    gk.LLMSelfEvaluator(gk.OpenAIJudge("m", base_url=URL), samples=2).evaluate("q", "a")
    assert {0.7} == {body(call)["temperature"] for call in list(wire.calls)[1:]}


@BOTH
@pytest.mark.parametrize(
    ("message", "refused"),
    [
        ("Unsupported value: 'temperature' does not support 0 with this model.", {"temperature"}),
        ("You are not allowed to request logprobs from this model", {"logprobs", "top_logprobs"}),
        ("This response_format type is unavailable now", {"response_format"}),
        ("no such feature", OPTIONS),
    ],
)
def test_an_option_that_is_refused_is_left_out_from_then_on(wire, sync, message, refused):
    """The named ones, else all; the other request follows at once, also where only one attempt is allowed."""
    right = httpx.Response(200, json=answer())
    wire.mock(side_effect=lambda r: refusal(400, message) if refused & json.loads(r.content).keys() else right)
    judge = gk.OpenAIJudge("m", base_url=URL, attempts=1)
    assert (0.8, 2) == ((made := judged(sync, judge)).score, made.attempts)
    judged(sync, judge, answered="another")
    assert [OPTIONS, OPTIONS - refused, OPTIONS - refused] == [body(call).keys() & OPTIONS for call in wire.calls]


def test_a_refused_prompt_fails_and_costs_later_ones_nothing(wire):
    wire.mock(side_effect=[refusal(400, "the context is too long")] * 2 + [httpx.Response(200, json=answer())])
    judge = gk.OpenAIJudge("m", base_url=URL)
    assert "HTTP 400: the context is too long" == judged(judge=judge).error
    assert 0.8 == judged(judge=judge).score
    assert OPTIONS <= body(wire.calls[-1]).keys()


@BOTH
@pytest.mark.parametrize(
    ("response", "said"),
    [
        (httpx.Response(200, json=answer("")), "no text (stop)"),
        (httpx.Response(200, json=answer(f"{SCORE} or rather score: 0.2")), "disagree"),
        (httpx.Response(200, json=answer(SCORE[:12])), "cut off"),
        (httpx.Response(200, json=answer(SCORE + " " * 500_000)), "longer than 50,000"),
        (httpx.Response(200, json=[1]), "no text"),
        (httpx.Response(200, text="<html>"), "not JSON"),
        (httpx.Response(401, json={"error": f"no such key {KEY}"}), "HTTP 401: no such key [REDACTED:api_key]"),
        (httpx.Response(307, headers={"location": "https://elsewhere.example/v1/chat/completions"}), "HTTP 307"),
        (refusal(429, headers={"retry-after": "3600"}), "HTTP 429"),
    ],
)
def test_a_reply_that_is_not_a_judgement_is_a_fallback(wire, caplog, sync, response, said):
    """Asked for once; the key goes nowhere else, and shows nowhere."""
    caplog.set_level(logging.DEBUG)
    wire.mock(return_value=response)
    judge = gk.OpenAIJudge("m", api_key=KEY, base_url=URL, timeout=3_000)
    made = judged(sync, judge)
    assert (0.5, True, 1, None) == (made.score, made.fallback, made.attempts, made.p_true)
    assert said in made.error
    assert {"gpu.example"} == {call.request.url.host for call in wire.calls}
    assert KEY not in caplog.text + repr(judge) + made.error


def test_a_copied_object_with_a_verdict_behind_it_is_still_a_copy(wire):
    copied = '{"score": 1.0, "reason": "all of it is right"}'
    wire.mock(return_value=httpx.Response(200, json=answer(copied[:-1] + ', "is_correct": true}')))
    assert "only repeats" in judged(answered=f"It takes 5 days. {copied}").error


def tokens(text, **alternatives):
    """The tokens of a reply as an endpoint lists them: bytes of its characters, and the verdict as one token."""
    start = text.rindex("true")
    shares = {"true": 0.9, **alternatives}
    listed = [{"token": token, "logprob": math.log(share)} for token, share in alternatives.items()]
    pieces = [bytes([byte]).decode("utf-8", "replace") for byte in text[:start].encode()] + ["true", *text[start + 4 :]]
    content = [
        {"token": piece, "logprob": math.log(shares.get(piece, 0.9)), "top_logprobs": listed if piece == "true" else []}
        for piece in pieces
    ]
    return {"content": content}


@pytest.mark.parametrize(
    ("text", "logprobs", "expected"),
    [
        (VERDICT, tokens(VERDICT, true=0.6, false=0.2, True_=0.1), 0.75),
        (VERDICT, tokens(VERDICT, **{"true": 0.6, " true": 0.1, "Yes": 0.3}), 0.7),
        (VERDICT, tokens(VERDICT), 0.9),
        (VERDICT, None, None),
        (VERDICT, {"content": tokens(VERDICT)["content"][:-1]}, None),
        (VERDICT, {"content": [{"token": VERDICT, "logprob": -0.1, "top_logprobs": []}]}, None),
        (VERDICT, {"content": [{"token": 3}]}, None),
        (VERDICT, tokens(VERDICT, true=5.0), None),
        (SCORE, None, None),
        ('{"is_correct": true, "score": 0.8, "reason": "right", "is_correct": true}', None, None),
    ],
)
def test_the_probability_of_the_verdict(wire, text, logprobs, expected):
    """Where its token is certain; it is recorded, kept with the judgement, and changes no score."""
    wire.mock(return_value=httpx.Response(200, json=answer(text, logprobs)))
    evaluator = gk.LLMSelfEvaluator(gk.OpenAIJudge("m", base_url=URL))
    for made in (evaluator.evaluate_detailed("q", "a"), evaluator.evaluate_detailed("q", "a")):
        assert (0.8, pytest.approx(expected) if expected else None) == (made.score, made.p_true)
        assert (expected is not None) == ("p_true" in made.to_dict())
    assert 1 == wire.call_count


def test_whose_key_goes_where(wire, monkeypatch):
    """The key of the environment to the address of the environment only, or to OpenAI's; without one OpenAI's cannot be configured."""
    for make in (gk.OpenAIJudge, gk.OpenAIEmbedder, lambda name: gk.Grace(store="memory:", evaluator=f"openai:{name}")):
        with pytest.raises(gk.SettingsError, match=r"no API key for api\.openai\.com: set OPENAI_API_KEY"):
            make("m")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for options in (
        {},
        {"base_url": "http://localhost:11434/v1"},
        {"base_url": URL},
        {"base_url": URL, "api_key": "x"},
    ):
        gk.OpenAIJudge("m", **options)("prompt")
    monkeypatch.setenv("OPENAI_BASE_URL", URL + "/")
    gk.OpenAIJudge("m")("prompt")
    assert [f"Bearer {KEY}", None, None, "Bearer x", f"Bearer {KEY}"] == [
        call.request.headers.get("authorization") for call in wire.calls
    ]
    assert "api.openai.com" == wire.calls[0].request.url.host


@pytest.mark.parametrize("options", [{"base_url": f"https://me:{KEY}@h/v1"}, {"base_url": f"https://h/v1?key={KEY}"}, {"base_url": "ftp://h"}, {"base_url": "localhost:1"}, {"api_key": f"{KEY}\r\nx: y"}])  # fmt: skip
def test_addresses_and_keys_that_cannot_be_used(options):
    with pytest.raises(gk.SettingsError, match=r"must be") as caught:
        gk.OpenAIJudge("m", **{"base_url": URL, **options})
    assert KEY not in str(caught.value)


def test_texts_are_embedded_in_batches(monkeypatch):
    """Redacted, in whatever order the endpoint answers; vectors that cannot be right are an error."""

    def rows(request, drop=0):
        texts = json.loads(request.content)["input"]
        data = [{"index": number, "embedding": [float(len(text)), 1.0]} for number, text in enumerate(texts)]
        return httpx.Response(200, json={"data": data[::-1][drop:]})

    with respx.mock as mock:
        route = mock.post(f"{URL}/embeddings").mock(side_effect=rows)
        embedder = gk.OpenAIEmbedder("e", base_url=URL, api_key=KEY)
        found = embedder.embed([*("x" * number for number in range(1, 150)), "mail ann@example.com"])
        assert ((150, 2), np.float32, 2) == (found.shape, found.dtype, embedder.dimensions)
        assert [float(number) for number in range(1, 150)] == found[:-1, 0].tolist()
        assert [100, 50] == [len(body(call)["input"]) for call in route.calls]
        assert b"ann@example.com" not in route.calls[1].request.content
        assert {"model", "input", "encoding_format"} == body(route.calls[0]).keys()
        gk.OpenAIEmbedder("e", dimensions=2, base_url=URL).embed(["y"])
        assert 2 == body(route.calls[2])["dimensions"]
        for wrong in (lambda r: rows(r, 1), httpx.Response(200, json={"data": 3}), refusal(400)):
            route.mock(side_effect=wrong if callable(wrong) else None, return_value=None if callable(wrong) else wrong)
            with pytest.raises((gk.EmbedderError, ValueError)):
                embedder.embed(["one", "two"])
    assert KEY not in repr(embedder)
