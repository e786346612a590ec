"""Edits from the command line: the kind of each value is that of its parameter, and the difference is shown."""

from __future__ import annotations

import pytest

from grace_kp.cli._approval_edit import changed_values, edited
from grace_kp.errors import EditRefused
from tests.cli.approvals import SCHEMA, filed, pending, state_of

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
        (["euros=1", "euros=2"], "stands twice"),
        (["euros=x"], "must be JSON"),
        (["euros=NaN"], "must be JSON"),
        (["memo=null"], "null may be the text or no value"),
        (["=1"], "must read NAME=VALUE"),
    ],
)
def test_changes_that_cannot_be_read_are_refused(changes, message):
    """With what to write instead."""
    with pytest.raises(EditRefused, match=message):
        changed_values(pending(encoded=ENCODED, schema=OPTIONAL), changes)


def test_the_preview_shows_what_was_asked():
    """Also where it was edited before."""
    once = edited(pending(encoded=ENCODED), {"euros": 20})
    assert (20, 40) == (once.arguments["euros"], once.asked["euros"])
    assert (10, 40) == (edited(once, {"euros": 10}).arguments["euros"], edited(once, {"euros": 10}).asked["euros"])


def test_a_damaged_encoding_is_refused():
    """Nothing is shown that would not run."""
    with pytest.raises(EditRefused):
        edited(pending(), {"euros": {"$date": "tomorrow"}})


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
