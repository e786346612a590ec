"""A request for approval in a few words."""

from __future__ import annotations

import subprocess
import sys

import pytest

from grace_kp.approvals import ENTITLING, ApprovalState, Vote
from grace_kp.cli import _approval_words as words
from grace_kp.pages import APPROVAL_STATES
from tests.cli.approvals import ANA, HOSTILE, pending


def test_the_sentence_begins_with_what_identifies_the_operation():
    """Key fields first; a long value is cut visibly."""
    request = pending(arguments={"memo": "word " * 40, "invoice": "A-17"})
    assert words.sentence(request).startswith('refund(invoice="A-17", memo="word word')
    assert "…" in words.sentence(request)


def test_hostile_texts_are_visible():
    """In names, values and people."""
    request = pending(action=HOSTILE, arguments={HOSTILE: HOSTILE}, groups=(HOSTILE,))
    for text in (words.sentence(request), words.deciders(request), words.person(ANA)):
        assert text.isprintable()
    assert r"\u202e" in words.sentence(request)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.9, "59 s"), (60, "1 m"), (3_600, "1 h"), (12_000, "3 h 20 m"), (86_400 * 12 + 7_200, "12 d")],
)
def test_durations_have_at_most_two_units(seconds, text):
    """Enough to decide what is urgent."""
    assert text == words.duration(seconds)


def test_only_votes_for_the_arguments_as_they_are_count():
    """Not those that were cast before an edit, nor names that are only stated."""
    request = pending(quorum=2, groups=("finance",))
    votes = tuple(
        Vote(actor=ANA, at=0.0, digest=digest, counts=counts)
        for digest, counts in ((request.digest, True), ("sha256:old", True), (request.digest, False))
    )
    assert "finance: 1 of 2" == words.deciders(pending(quorum=2, groups=("finance",), votes=votes))


@pytest.mark.parametrize(
    ("waits", "is_awaited", "text"),
    [("wait", True, "waits"), ("wait", False, "gone"), ("wait", None, "unknown"), ("raise", None, "asks again"), ("hand_over", None, "handed over")],
)  # fmt: skip
def test_it_says_whether_a_process_waits(waits, is_awaited, text):
    """Or that none has to."""
    assert text == words.process(pending(waits=waits, is_awaited=is_awaited))


def test_every_state_has_its_words():
    """Those in which an action may be started are known, too."""
    assert {str(state) for state in ApprovalState} == set(APPROVAL_STATES)
    assert set(ENTITLING) == set(words.TO_BE_USED)


def test_the_library_of_approvals_is_not_imported_by_other_commands():
    """`grace-kp --version` does not wait for it."""
    code = "import sys, grace_kp.cli._app; print('grace_kp.approvals' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert "False\n" == ran.stdout
