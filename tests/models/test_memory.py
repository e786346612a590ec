"""A plain callable is an embedder, and the vectors of texts embedded last are kept."""

from __future__ import annotations

import numpy as np
import pytest

import grace_kp as gk


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


@pytest.mark.parametrize("wrong", ["one text", [3], [None]])
def test_embed_takes_a_list_of_texts(wrong):
    """One text instead of a list would be embedded letter by letter."""
    with pytest.raises(TypeError):
        gk.CallableEmbedder(lambda text: [1.0]).embed(wrong)


@pytest.mark.parametrize("wrong", [3, "model", object()])
def test_what_cannot_be_called_is_no_embedder(wrong):
    with pytest.raises(TypeError, match=f"an embedder has `embed` or is callable .got {type(wrong).__name__}."):
        gk.CallableEmbedder(wrong)


def test_a_callable_must_give_one_vector_per_text():
    for vector in (1.0, [[1.0, 2.0]]):
        with pytest.raises(gk.EmbedderError, match="gave an array of shape"):
            gk.CallableEmbedder(lambda text, vector=vector: vector).embed(["a", "b"])
