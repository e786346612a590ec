"""The answer in place of an action that waits."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest

import grace_kp as gk
from tests.gating.inboxes import runtime


def test_it_is_a_text_with_its_approval():
    """It can be sent to another process."""
    grace = runtime()

    @grace.gate(floor="confirm", reviewer=gk.InboxReviewer(wait="hand_over"))
    def act(n: int) -> int:
        return n

    answer = act(1)
    copy = pickle.loads(pickle.dumps(answer))
    assert (str(answer), answer.approval.id) == (str(copy), copy.approval.id)
    assert "act has not run" in answer


def test_the_error_of_a_worker_reaches_the_process_that_queued_the_job():
    """With the approval, and without the real arguments, which may be live objects."""
    grace = runtime(reviewer=gk.InboxReviewer(wait="raise"))

    @grace.gate(floor="confirm", key="pay:{n}", ignore=("client",))
    def pay(n: int, client: object) -> None:
        raise AssertionError

    with pytest.raises(gk.ActionPending) as raised:
        pay(1, threading.Lock())
    again = pickle.loads(pickle.dumps(raised.value))
    assert (raised.value.approval, str(raised.value)) == (again.approval, str(again))
    assert {"n": "[left out of a pickle]", "client": "[left out of a pickle]"} == dict(again.request.arguments)
    assert copy.deepcopy(raised.value).request.arguments["client"].acquire()
