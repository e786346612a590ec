"""A callable becomes a reviewer with a name, which has the abilities of the callable."""

from __future__ import annotations

import asyncio
import functools
import inspect

import pytest

import grace_kp as gk
from grace_kp.gating import CallbackReviewer
from grace_kp.testing import capture, make_grace

R = gk.InterventionResponse


def approve(request):
    return "proceed"


async def approve_async(request):
    return "proceed"


class Approver:
    """A callable object with abilities."""

    keeps_time = True
    pauses = True

    def __call__(self, request):
        return "proceed"

    def stores(self, text):
        return False


def reviewer_recorded(callback, **settings):
    grace = make_grace(reviewer=CallbackReviewer(callback, **settings))
    with capture() as captured:
        grace.gate(floor="confirm")(lambda: None)()
    return captured.only.grace["decisions"][0]["response"]["reviewer"]


@pytest.mark.parametrize(
    ("callback", "settings", "expected"),
    [
        (approve, {}, "approve"),
        (approve, {"name": "ana"}, "ana"),
        (approve, {"name": ""}, "approve"),
        (approve_async, {}, "approve_async"),
        (functools.partial(approve), {}, "partial"),
    ],
)
def test_the_record_shows_the_name(callback, settings, expected):
    """That of the reviewer; else the callable's own, or the name of its class."""
    assert expected == reviewer_recorded(callback, **settings)


@pytest.mark.parametrize(("callback", "is_async"), [(approve, False), (approve_async, True), (Approver(), False)])
def test_it_is_sync_or_async_like_the_callable(callback, is_async):
    """A gate decides by this how it asks."""
    review = CallbackReviewer(callback).review
    assert is_async is inspect.iscoroutinefunction(review)
    answer = review(None)
    assert "proceed" == (asyncio.run(answer) if is_async else answer)


def test_abilities_are_passed_on():
    """Whether it keeps the time, pauses the program, or stores what it shows."""
    callback = Approver()
    able, plain = CallbackReviewer(callback), CallbackReviewer(approve)
    assert (True, True, callback.stores) == (able.keeps_time, able.pauses, able.stores)
    assert (False, False, None) == (plain.keeps_time, plain.pauses, plain.stores)


@pytest.mark.parametrize("callback", [None, "approve", 5])
def test_what_cannot_be_called_is_refused(callback):
    """At once, with its type."""
    with pytest.raises(TypeError, match=f"callback must be a callable, not {type(callback).__name__}"):
        CallbackReviewer(callback)
