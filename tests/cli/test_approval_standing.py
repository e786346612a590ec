"""Standing approvals from the command line: every parameter constrained, for a time, a number of times."""

from __future__ import annotations

import json

import pytest

from tests.cli.program import filed, state_of

GRANT = ("approvals", "standing", "grant", "refund", "--until", "7d", "--uses", "2", "--any", "invoice")


def test_a_grant_approves_what_it_covers(command, url):
    """A range, a list, an exact value and any."""
    filed(url, "A-0")
    granted = command(
        *GRANT, "--range", "euros=0..50", "--in", 'memo=["why", "x"]', "--by", "ana", "--yes", "--json", "--store", url
    )
    assert {"invoice": {"any": True}, "euros": {"from": 0, "to": 50}, "memo": {"in": ["why", "x"]}} == json.loads(
        granted.stdout
    )["parameters"]
    approval = filed(url, "A-1")[0]
    assert "approved" == state_of(url, approval).state
    shown = command("approvals", "standing", "list", "--store", url, columns=200).stdout
    assert "euros: from 0 to 50" in shown
    assert "0 of 2" in shown


def test_an_ended_grant_cancels_what_nobody_has_started(command, url):
    """And is listed no more."""
    filed(url, "A-0")
    name = json.loads(command(*GRANT, "--any", "euros", "--is", "memo=why", "--yes", "--json", "--store", url).stdout)[
        "id"
    ]
    approval = filed(url, "A-1")[0]
    assert "ended" in command("approvals", "standing", "end", name, "--reason", "over", "--store", url).stdout
    assert "cancelled" == state_of(url, approval).state
    assert "no standing approvals" in command("approvals", "standing", "list", "--store", url).stdout
    assert name in command("approvals", "standing", "list", "--ended", "--store", url).stdout


def test_a_grant_is_confirmed(command, url):
    """At a terminal, or with --yes."""
    filed(url, "A-0")
    assert 2 == command(*GRANT, "--any", "euros", "--any", "memo", "--store", url).returncode
    assert [] == json.loads(command("approvals", "standing", "list", "--json", "--store", url).stdout)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--range", "euros=1-5"), "LOW..HIGH"),
        (("--range", "euros=.."), "LOW..HIGH"),
        (("--in", "euros=5"), "NAME=JSON-LIST"),
        (("--is", "euros"), "NAME=…"),
        (("--any", "euros", "--is", "euros=5"), "one constraint"),
        (("--any", "euros", "--until", "soon"), "--until must be"),
    ],
)
def test_options_that_cannot_be_read_are_wrong_usage(command, url, options, message):
    """Exit code 2, one line."""
    filed(url, "A-0")
    ran = command(*GRANT, *options, "--yes", "--store", url)
    assert (2, 1, True) == (ran.returncode, ran.stderr.count("\n"), message in ran.stderr)


def test_a_standing_approval_that_is_not_there_cannot_be_ended(command, url):
    """One line, exit code 1."""
    filed(url, "A-0")
    ran = command("approvals", "standing", "end", "st-none", "--store", url)
    assert (1, 1) == (ran.returncode, ran.stderr.count("\n"))
