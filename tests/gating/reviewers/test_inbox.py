"""The configuration of an inbox: durations, ways to wait, groups, and what it refuses."""

from __future__ import annotations

import pytest

import grace_kp as gk


def test_durations_are_seconds():
    """Texts and numbers give the same seconds."""
    inbox = gk.InboxReviewer(deadline="4h", use_within=60)
    assert (14_400.0, 60.0, "wait") == (inbox.deadline, inbox.use_within, inbox.waits)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"deadline": "soon"}, "deadline must be"),
        ({"deadline": 0}, "deadline must be"),
        ({"deadline": True}, "deadline must be"),
        ({"deadline": "30m1h"}, "deadline must be"),
        ({"use_within": "-1s"}, "use_within must be"),
        ({"on_deadline": "skip"}, "needs a deadline"),
        ({"on_deadline": "escalate:", "deadline": 1}, "on_deadline must be"),
        ({"on_deadline": "approve", "deadline": 1}, "on_deadline must be"),
        ({"wait": False}, "wait must be"),
        ({"wait": 1}, "wait must be"),
        ({"group": []}, "group must be"),
        ({"group": " finance"}, "group must be"),
        ({"quorum": 0}, "quorum must be"),
        ({"quorum": True}, "quorum must be"),
        ({"identity": "any"}, "identity must be"),
    ],
)
def test_what_cannot_be_used_is_named(settings, problem):
    """The message says what is allowed."""
    with pytest.raises(ValueError, match=problem):
        gk.InboxReviewer(**settings)


@pytest.mark.parametrize("settings", [{"ask": 5}, {"ask": gk.InboxReviewer()}, {"notify": "https://example.org"}])
def test_other_objects_are_refused(settings):
    """A second reviewer answers itself, and a receiver is a webhook."""
    with pytest.raises(TypeError):
        gk.InboxReviewer(**settings)


def test_it_answers_nobody_directly():
    """A handler outside of a gate gets no consent from an inbox."""
    handler = gk.InterventionHandler(on_confirm=gk.InboxReviewer().review)
    decision = gk.ActionDecision(gk.InterventionLevel.CONFIRM, 0.5, "because")
    assert gk.InterventionAction.CANCEL == handler.handle(decision).action
