"""The verbs by name; how requests carry them out stands in the tests of the API."""

from __future__ import annotations

import pytest

from grace_kp.errors import ApprovalError, ChangedSinceShown
from grace_kp.web._verbs import VERBS, perform
from tests.approvals.shops import ANA, Shop, asked


@pytest.fixture
def requests():
    return Shop().requests


@pytest.mark.parametrize(
    ("verb", "state"),
    [("approve", "approved"), ("edit", "edited"), ("reject", "rejected"), ("respond", "responded"), ("skip", "skipped"),
     ("retry", "retried"), ("withdraw", "cancelled")],
)  # fmt: skip
def test_a_verb_keeps_its_words(requests, verb, state):
    """Each leads to its state, with the words of the person."""
    request = requests.file(asked())
    done = perform(requests, verb, request.id, actor=ANA, words="because", digest=request.digest, changes={"euros": 1})
    assert (state, "because") == (done.state, done.decision.note)


def test_the_digest_is_compared(requests):
    """Every verb that decides about arguments refuses others than were shown."""
    request = requests.file(asked())
    for verb in VERBS[:-1]:
        with pytest.raises(ChangedSinceShown):
            perform(requests, verb, request.id, actor=ANA, words="x", digest="sha256:00", changes={"euros": 1})


def test_an_unknown_verb(requests):
    """Is refused by name."""
    with pytest.raises(ApprovalError, match="'bless'"):
        perform(requests, "bless", requests.file(asked()).id, actor=ANA)
