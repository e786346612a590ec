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


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (("1h",), ("2h",), (3_600, "cancel")),
        ((), ("2h", "skip"), (7_200, "cancel")),
        (("1h", "skip"), ("2h", "skip"), (3_600, "skip")),
        (("1h", "escalate:leads"), ("2h", "escalate:leads"), (7_200, "escalate:leads")),
        (("1h", "escalate:leads"), ("2h", "escalate:legal"), (3_600, "cancel")),
        (("1h", "escalate:leads"), ("2h", "skip"), (3_600, "skip")),
        (("1h", "escalate:leads"), ("2h",), (3_600, "cancel")),
    ],
)
def test_two_inboxes_at_once(first, second, expected):
    """What ends a request without running anything is stricter, and so is the shorter deadline before it and the longer one before more people may decide."""
    for one, two in ((first, second), (second, first)):
        combined = gk.InboxReviewer(*one).combined(gk.InboxReviewer(*two))
        assert expected == (combined.deadline, combined.on_deadline)


def test_who_decides_in_two_inboxes():
    """The higher quorum, authenticated people, the shorter time of use and the common groups; without any it is an error."""
    one = gk.InboxReviewer(group=["a", "b"], quorum=2, identity="stated", use_within="1h", wait="raise", ask=print)
    two = gk.InboxReviewer(group=["b", "c"], use_within="2h")
    for first, second in ((one, two), (two, one)):
        combined = first.combined(second)
        assert (("b",), 2, "authenticated", 3_600) == (
            combined.groups, combined.quorum, combined.identity, combined.use_within,
        )  # fmt: skip
        assert (first.wait, first.ask) == (combined.wait, combined.ask)
    with pytest.raises(ValueError, match="none in common"):
        one.combined(gk.InboxReviewer(group="c"))
