"""Decisions and edits from the command line: which person and store, confirmed at a terminal, with --yes elsewhere, bound to what was shown."""

from __future__ import annotations

import getpass
import json

import pytest

from grace_kp.approvals import Actor, RequestStore
from grace_kp.cli import _lookup
from grace_kp.cli._approval_decisions import changed_values, with_values
from grace_kp.errors import EditRefused
from grace_kp.store import open_store
from tests.approvals.receivers import SECRET, receiver
from tests.cli.program import SCHEMA, ended, filed, pending, state_of


@pytest.mark.parametrize(
    ("verb", "options", "state"),
    [
        ("approve", ("--note", "fine"), "approved"), ("reject", ("--reason", "no"), "rejected"), ("respond", ("ask first",), "responded"),
        ("skip", (), "skipped"), ("retry", (), "retried"), ("withdraw", (), "cancelled"),
    ],
)  # fmt: skip
def test_each_verb_needs_yes_without_a_terminal(command, url, verb, options, state):
    """Without it, exit code 2 and nothing changed; repeated by the same person, it changes nothing."""
    approval = filed(url, "A-1")[0]
    arguments = (verb, approval.id, *options)
    refused = command("approvals", *arguments, "--store", url)
    assert (2, 1, "pending") == (refused.returncode, refused.stderr.count("\n"), state_of(url, approval).state)
    for _ in range(2):
        assert 0 == command("approvals", *arguments, "--yes", "--by", "ana", "--store", url).returncode
    assert (state, 2) == (state_of(url, approval).state, state_of(url, approval).revision)


def test_several_ids_have_an_outcome_each(command, url):
    first, second = filed(url, "A-1", "A-2")
    ran = command("approvals", "reject", first.id, "zzzz", second.id, "--yes", "--json", "--store", url)
    outcomes = json.loads(ran.stdout)
    states = [entry.get("state", entry.get("kind")) for entry in outcomes]
    assert (1, ["rejected", "UnknownApproval", "rejected"]) == (ran.returncode, states)


def test_same_decides_all_pending_requests_with_the_digest(command, url):
    alike = [filed(url, "A-1", key=None)[0] for _ in range(3)]
    other = filed(url, "A-2", key=None)[0]
    ran = command("approvals", "reject", alike[0].id, "--same", "--yes", "--store", url)
    assert 3 == ran.stdout.count("rejected: refund(")
    assert "pending" == state_of(url, other).state


def test_a_digest_that_is_no_longer_that_of_the_request_decides_nothing(command, url):
    approval = filed(url, "A-1")[0]
    refused = command("approvals", "approve", approval.id, "--digest", "sha256:00", "--yes", "--store", url)
    assert (1, True, "pending") == (refused.returncode, "sha256:00" in refused.stderr, state_of(url, approval).state)
    ran = command("approvals", "approve", approval.id, "--digest", approval.digest, "--yes", "--store", url)
    assert 0 == ran.returncode


def test_what_cannot_be_shown_is_not_approved_by_yes_alone(command, url):
    approval = filed(url, "A-1", unencoded=("connection",), waits="wait")[0]
    refused = command("approvals", "approve", approval.id, "--yes", "--store", url)
    assert (1, True) == (refused.returncode, "cannot be shown in full: connection" in refused.stderr)
    assert 0 == command("approvals", "approve", approval.id, "--yes", "--unseen", "--store", url).returncode


def test_a_vote_says_how_many_are_missing(command, url):
    approval = filed(url, "A-1", quorum=2, identity="stated")[0]
    first = command("approvals", "approve", approval.id, "--yes", "--by", "ana", "--store", url, columns=200)
    assert "1 of 2 votes so far" in first.stdout
    assert "approved:" in command("approvals", "approve", approval.id, "--yes", "--by", "bob", "--store", url).stdout


def test_reconcile_settles_an_unknown_outcome(command, url):
    approval = filed(url, "A-1")[0]
    command("approvals", "approve", approval.id, "--yes", "--store", url)
    refused = command("approvals", "reconcile", approval.id, "--happened", "--yes", "--store", url)
    assert 1 == refused.returncode
    command("approvals", "restored", "--yes", "--store", url)
    options = ("--not-happened", "--yes", "--note", "looked")
    assert 0 == command("approvals", "reconcile", approval.id, *options, "--store", url).returncode
    assert ("not_done", "looked") == (state_of(url, approval).state, state_of(url, approval).outcome.note)


def test_a_terminal_shows_what_would_run_and_asks(url, terminal):
    approval = filed(url, "A-1")[0]
    child = terminal("approvals", "approve", approval.id, "--store", url)
    child.expect(r"\? \[y/N\] ")
    for text in ("may refund run?", 'invoice = "A-1"', "euros = 40", approval.digest):
        assert text in child.before.replace("\r\n", "\n")
    child.sendline("")
    assert (1, "pending") == (ended(child), state_of(url, approval).state)
    child = terminal("approvals", "approve", approval.id, "--store", url)
    child.expect(r"\? \[y/N\] ")
    child.sendline("y")
    assert (0, "approved") == (ended(child), state_of(url, approval).state)


def test_a_change_while_the_question_is_shown_decides_nothing(url, terminal):
    approval = filed(url, "A-1", quorum=2, identity="stated")[0]
    child = terminal("approvals", "approve", approval.id, "--by", "ana", "--store", url)
    child.expect(r"\? \[y/N\] ")
    store = open_store(url)
    RequestStore(store.approvals).edit(approval.id, {"euros": 4_000}, by=Actor.here("mallory"))
    store.close()
    child.sendline("y")
    assert 1 == ended(child)
    assert ["mallory"] == [vote.actor.name for vote in state_of(url, approval).votes]


def test_what_cannot_be_shown_needs_a_phrase_at_a_terminal(url, terminal):
    approval = filed(url, "A-1", unencoded=("connection",), waits="wait")[0]
    for typed, state in (("y", "pending"), ("run unseen", "approved")):
        child = terminal("approvals", "approve", approval.id, "--store", url)
        child.expect("unseen\r\n> ")
        child.sendline(typed)
        ended(child)
        assert state == state_of(url, approval).state


def test_yes_is_no_consent_to_an_edit_that_was_not_shown(command, url):
    """It needs the digest of the edit, or that the same person looks at it."""
    approval = filed(url, "A-1", quorum=2, identity="stated")[0]
    command("approvals", "edit", approval.id, "euros=4000", "--yes", "--by", "bo", "--store", url)
    for verb in (("approve",), ("edit", "memo=x")):
        refused = command("approvals", verb[0], approval.id, *verb[1:], "--yes", "--by", "ana", "--store", url)
        assert (1, True) == (refused.returncode, "were changed by bo" in refused.stderr)
    assert "pending" == state_of(url, approval).state
    digest = state_of(url, approval).digest
    command("approvals", "approve", approval.id, "--yes", "--by", "ana", "--digest", digest, "--store", url)
    assert "edited" == state_of(url, approval).state


def test_one_confirmation_is_for_all_that_ask_the_same(url, terminal):
    """The prompt names them. Requests of another domain, or with a value that nobody can compare, ask something else."""
    alike = filed(url, "A-1", "A-1", key=None)
    others = [*filed(url, "A-1", key=None, domain="other"), *filed(url, "A-2")]
    child = terminal("approvals", "approve", alike[0].id, "--same", "--by", "ana", "--store", url)
    child.expect(f"1 more with the same digest: {alike[1].id}")
    child.expect("y/N")
    child.sendline("y")
    assert 0 == ended(child)
    assert ["approved"] * 2 == [state_of(url, each).state for each in alike]
    assert ["pending"] * 2 == [state_of(url, each).state for each in others]


ENCODED = {
    "invoice": "A-1", "euros": 40, "memo": None, "day": {"$date": "2026-01-31"}, "rate": {"$decimal": "1.10"}, "tags": ["a"], "big": {"$int": "9007199254740993"},
}  # fmt: skip
OPTIONAL = {"type": "object", "properties": {"memo": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}


@pytest.mark.parametrize(
    ("change", "schema", "value"),
    [
        ("euros=20", SCHEMA, 20),
        ("euros=20", {}, 20),
        ("invoice=20", SCHEMA, "20"),
        ("invoice=20", {}, "20"),
        ("invoice=a=b:c", {}, "a=b:c"),
        ("invoice=", {}, ""),
        ("memo=20", OPTIONAL, "20"),
        ("memo:=null", OPTIONAL, None),
        ('memo:="null"', OPTIONAL, "null"),
        ("day=2026-02-01", {}, {"$date": "2026-02-01"}),
        ("rate=2.50", {}, {"$decimal": "2.50"}),
        ("big=9007199254740995", {}, {"$int": "9007199254740995"}),
        ('tags=["b"]', {}, ["b"]),
        ('invoice:={"a": 1}', {}, {"a": 1}),
        ("euros=20", {"properties": []}, 20),
        ("euros=20", {"properties": {"euros": {"type": {}, "anyOf": 5}}}, 20),
        ("invoice=20", {"properties": {"invoice": {"type": [[], "string"], "anyOf": [5]}}}, "20"),
    ],
)
def test_the_kind_of_a_value_is_that_of_its_parameter(change, schema, value):
    """From the schema, else from the value that is there; `:=` is JSON whatever the parameter."""
    name = change.partition("=")[0].rstrip(":")
    assert {name: value} == changed_values(pending(encoded=ENCODED, schema=schema), [change])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["euros"], "must read NAME=VALUE"),
        (["cents=1"], "no parameter 'cents'; known are invoice, euros"),
        (["euros=1", "euros=2"], "is given twice"),
        (["euros=x"], "must be JSON"),
        (["euros=NaN"], "must be JSON"),
        (["memo=null"], "null may be the string or no value"),
        (["=1"], "must read NAME=VALUE"),
    ],
)
def test_changes_that_cannot_be_read_are_refused(changes, message):
    with pytest.raises(EditRefused, match=message):
        changed_values(pending(encoded=ENCODED, schema=OPTIONAL), changes)


def test_the_preview_shows_what_was_asked():
    once = with_values(pending(encoded=ENCODED), {"euros": 20})
    assert (20, 40) == (once.arguments["euros"], once.asked["euros"])
    twice = with_values(once, {"euros": 10})
    assert (10, 40) == (twice.arguments["euros"], twice.asked["euros"])


def test_an_edit_is_a_decision(command, url):
    """It needs --yes without a terminal; key fields stay as they are."""
    approval = filed(url, "A-1")[0]
    assert 2 == command("approvals", "edit", approval.id, "euros=20", "--store", url).returncode
    assert 1 == command("approvals", "edit", approval.id, "invoice=A-2", "--yes", "--store", url).returncode
    assert "pending" == state_of(url, approval).state
    ran = command("approvals", "edit", approval.id, "euros=20", "memo=20", "--yes", "--store", url, columns=200)
    now = state_of(url, approval)
    assert (0, "edited", {"invoice": "A-1", "euros": 20, "memo": "20"}) == (ran.returncode, now.state, now.arguments)
    assert now.digest in ran.stdout


def test_the_person_is_the_user_of_the_operating_system_unless_stated(command, url):
    first, second = filed(url, "A-1", "A-2")
    command("approvals", "reject", first.id, "--yes", "--store", url)
    command("approvals", "reject", second.id, "--yes", "--by", "ana", "--store", url)
    actors = [state_of(url, approval).decision.actor for approval in (first, second)]
    assert [(getpass.getuser(), "cli", False), ("ana", "cli", False)] == [
        (who.name, who.channel, who.authenticated) for who in actors
    ]


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
    ("secret", "stated"), [("", "no notification was sent"), (SECRET, "1 notifications were not delivered to http://")]
)
def test_a_receiver_that_fails_changes_no_decision(command, url, monkeypatch, secret, stated):
    """It is stated, and bounded in time; the next process sends what is left."""
    monkeypatch.setattr(_lookup, "NOTIFY_SECONDS", 0.3)
    approval = filed(url, "A-1")[0]
    with receiver() as hook:
        hook.lasting_answer = 503
        monkeypatch.setenv("GRACE_KP_WEBHOOK_URL", hook.url)
        monkeypatch.setenv("GRACE_KP_WEBHOOK_SECRET", secret)
        ran = command("approvals", "approve", approval.id, "--yes", "--by", "ana", "--store", url)
    assert (0, "approved", True) == (ran.returncode, state_of(url, approval).state, stated in ran.stderr)
