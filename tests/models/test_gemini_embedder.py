"""`GeminiEmbedder` over the wire: batches, redaction of what is sent, and errors in one form."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("google.genai")
httpx = pytest.importorskip("httpx")
respx = pytest.importorskip("respx")

import grace_kp as gk  # noqa: E402
from tests.models.gemini import KEY, refusal  # noqa: E402


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
    """Too few of them, of another length, or no numbers; agreement falls back then."""
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
def test_arguments_out_of_range_are_refused(options):
    """When the embedder is created, not when the first text comes."""
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
        gk.GeminiEmbedder(**options)
