"""Judges and embedders are recognised by their methods, and a reply is a text with its cost."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from grace_kp.protocols import Embedder, Judge, JudgeReply


class Vectors:
    dimensions = 2

    def embed(self, texts):
        return np.zeros((len(texts), self.dimensions), np.float32)


@pytest.mark.parametrize(
    ("value", "is_judge"), [(lambda prompt: "yes", True), (str, True), ("yes", False), (None, False)]
)
def test_any_callable_is_a_judge(value, is_judge):
    assert is_judge is isinstance(value, Judge)


def test_an_embedder_has_dimensions_and_embed():
    assert isinstance(Vectors(), Embedder)
    assert not isinstance(lambda text: [0.0], Embedder)


def test_a_reply_is_its_text():
    reply = JudgeReply("0.7", model="m", tokens_in=10, tokens_out=2, attempts=3)
    assert ("0.7", "m", 10, 2, 3) == (reply, reply.model, reply.tokens_in, reply.tokens_out, reply.attempts)
    plain = JudgeReply("0.7")
    assert (None, None, None, 1) == (plain.model, plain.tokens_in, plain.tokens_out, plain.attempts)
    assert plain == reply == copy.copy(str(reply))
