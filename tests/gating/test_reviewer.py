"""Whatever a reviewer answers or raises: the action does not run, and the error neither fails itself nor repeats what it was shown."""

from __future__ import annotations

import asyncio

import pytest

import grace_kp as gk
from grace_kp.testing import make_grace

both = pytest.mark.parametrize("is_async", [False, True])


class Unreadable(Exception):
    def __str__(self):
        raise RuntimeError("unreadable")

    __repr__ = __str__


def raises(error):
    def reviewer(request):
        raise error

    return reviewer


def asked(reviewer, is_async, identity=None):
    """The error of a gated call that this reviewer is asked about, and the gate's entry."""
    grace = make_grace(reviewer=reviewer)
    ran = []

    def log_in(password):
        ran.append(password)

    async def log_in_async(password):
        ran.append(password)

    act = grace.gate(floor="confirm", identity=identity)(log_in_async if is_async else log_in)
    with pytest.raises(gk.ActionCancelled) as caught, grace.run("log in") as run:
        asyncio.run(act("correct horse")) if is_async else act("correct horse")
    assert [] == ran
    return caught.value, run.trace.grace["decisions"][0]


@both
def test_an_error_that_cannot_be_read_is_named(is_async):
    """Its message raises when it is asked for."""
    error, entry = asked(raises(Unreadable()), is_async)
    assert "failed (Unreadable: <message cannot be read>)" in str(error)
    assert "Unreadable: <message cannot be read>" == entry["error"]


@both
def test_words_that_are_no_text_are_shown_as_one(is_async):
    """A refusal stays a refusal."""
    error, entry = asked(lambda request: gk.InterventionResponse("cancel", user_input=Unreadable()), is_async)
    assert "refused" in str(error)
    assert "cancelled" == entry["outcome"]


def generator(request):
    yield gk.InterventionResponse("proceed")


async def async_generator(request):
    yield gk.InterventionResponse("proceed")


@both
@pytest.mark.parametrize(
    ("reviewer", "problem"),
    [
        (
            lambda request: request.arguments["password"],
            "type str; a reviewer returns a response or one of proceed, modify",
        ),
        (lambda request: dict(request.arguments), "type dict"),
        (lambda request: True, "type bool"),
        (lambda request: None, "type NoneType"),
        (lambda request: Unreadable(), "type Unreadable"),
        (lambda request: type("Text", (str,), {})("proceed"), "type Text"),
        (generator, "type generator"),
        (async_generator, "type async_generator"),
        (raises(ValueError("x" * 10_000)), "ValueError: x"),
    ],
)
def test_nonsense_is_named_by_its_type(reviewer, problem, is_async):
    """The value itself may be a secret that the reviewer was shown."""
    error, entry = asked(reviewer, is_async)
    assert problem in str(error)
    assert "correct horse" not in str(error) + str(entry)
    assert len(entry["error"]) <= 600
