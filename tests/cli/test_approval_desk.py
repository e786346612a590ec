"""The desk of a command: which store, which person, which approval."""

from __future__ import annotations

import getpass
import json

import pytest

from grace_kp.cli import _approval_desk
from tests.approvals.receivers import SECRET, receiver
from tests.cli.approvals import filed, state_of


def test_the_person_is_the_user_of_the_operating_system_unless_stated(command, url):
    """Recorded as stated, with the channel."""
    first, second = filed(url, "A-1", "A-2")
    command("approvals", "reject", first.id, "--yes", "--store", url)
    command("approvals", "reject", second.id, "--yes", "--by", "ana", "--store", url)
    actors = [state_of(url, approval).decision.actor for approval in (first, second)]
    assert [(getpass.getuser(), "cli", False), ("ana", "cli", False)] == [
        (who.name, who.channel, who.authenticated) for who in actors
    ]


def test_an_empty_name_is_wrong_usage(command, url):
    """Nothing is decided."""
    approval = filed(url, "A-1")[0]
    assert 2 == command("approvals", "reject", approval.id, "--yes", "--by", " ", "--store", url).returncode
    assert "pending" == state_of(url, approval).state


def test_groups_come_from_the_settings(command, url, monkeypatch):
    """A reviewer who is in no group of the request may not decide it."""
    approval = filed(url, "A-1", groups=("finance",))[0]
    monkeypatch.setenv("GRACE_KP_REVIEWERS", "ana=finance,bob=legal")
    refused = command("approvals", "approve", approval.id, "--yes", "--by", "bob", "--store", url)
    assert (1, 1) == (refused.returncode, refused.stderr.count("\n"))
    assert "pending" == state_of(url, approval).state
    assert 0 == command("approvals", "approve", approval.id, "--yes", "--by", "ana", "--store", url).returncode


def test_a_decision_notifies_the_receiver_of_the_settings(command, url, monkeypatch):
    """Also one that the store does not know yet, without another process."""
    approval = filed(url, "A-1")[0]
    with receiver() as hook:
        monkeypatch.setenv("GRACE_KP_WEBHOOK_URL", hook.url)
        monkeypatch.setenv("GRACE_KP_WEBHOOK_SECRET", SECRET)
        ran = command("approvals", "approve", approval.id, "--yes", "--by", "ana", "--store", url)
        assert (0, "") == (ran.returncode, ran.stderr)
        assert ["approval.decided"] == [json.loads(body)["type"] for _, body, _ in hook.messages]


@pytest.mark.parametrize(
    ("secret", "stated"), [("", "nobody is notified"), (SECRET, "1 notifications were not delivered to http://")]
)
def test_a_receiver_that_fails_changes_no_decision(command, url, monkeypatch, secret, stated):
    """It is stated, and bounded in time; the next process sends what is left."""
    monkeypatch.setattr(_approval_desk, "NOTIFY_SECONDS", 0.3)
    approval = filed(url, "A-1")[0]
    with receiver() as hook:
        hook.lasting_answer = 503
        monkeypatch.setenv("GRACE_KP_WEBHOOK_URL", hook.url)
        monkeypatch.setenv("GRACE_KP_WEBHOOK_SECRET", secret)
        ran = command("approvals", "approve", approval.id, "--yes", "--by", "ana", "--store", url)
    assert (0, "approved", True) == (ran.returncode, state_of(url, approval).state, stated in ran.stderr)
