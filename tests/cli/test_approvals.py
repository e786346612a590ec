"""`grace-kp approvals list` and `show`, as a person and a program meet them."""

from __future__ import annotations

import json

import pytest
from rich.cells import cell_len

from tests.cli.approvals import HOSTILE, filed


def test_the_list_names_what_is_pending_and_what_to_do_next(command, url):
    """The most urgent first."""
    late = filed(url, "A-2", deadline_seconds=7_200.0)[0]
    soon = filed(url, "A-1", deadline_seconds=600.0)[0]
    out = command("approvals", "list", "--store", url, columns=100).stdout
    assert out.index(soon.id[3:11]) < out.index(late.id[3:11])
    assert 'refund(invoice="A-1", euros=40' in out
    assert "handed over" in out
    assert "approvals show ID" in out


def test_requests_with_the_same_digest_are_one_row(command, url):
    """With their number; --all shows each."""
    for _ in range(3):
        filed(url, "A-1", key=None)
    assert 1 == command("approvals", "list", "--store", url, columns=100).stdout.count("refund(")
    assert "×3 refund(" in command("approvals", "list", "--store", url, columns=100).stdout
    assert 3 == command("approvals", "list", "--all", "--store", url, columns=100).stdout.count("refund(")


def test_an_empty_store_says_what_to_do_next(command, url):
    """So does a condition that nothing meets, and a store that is not there."""
    assert "there is no store" in command("approvals", "list", "--store", url).stderr
    approval = filed(url, "A-1")[0]
    assert (
        "no pending requests match; the store has 1"
        in command("approvals", "list", "--action", "x*", "--store", url, columns=200).stdout
    )
    command("approvals", "reject", approval.id, "--yes", "--store", url)
    assert "`grace-kp approvals list --past`" in command("approvals", "list", "--store", url, columns=200).stdout


def test_past_requests_by_state_person_and_time(command, url):
    """Newest first; each condition restricts."""
    first, second = filed(url, "A-1", "A-2")
    command("approvals", "reject", first.id, "--yes", "--by", "ana", "--store", url)
    command("approvals", "approve", second.id, "--yes", "--by", "bob", "--store", url)

    def ids(*conditions):
        return [
            entry["id"]
            for entry in json.loads(command("approvals", "list", "--json", "--store", url, *conditions).stdout)
        ]

    assert [second.id, first.id] == ids("--past") == ids("--since", "1h")
    assert [first.id] == ids("--state", "rejected") == ids("--decided-by", "ana")
    assert [] == ids()
    assert 2 == command("approvals", "list", "--since", "soon", "--store", url).returncode


def test_show_records_the_view_once_per_person(command, url):
    """In the chain, which the page ends with."""
    approval = filed(url, "A-1")[0]
    for _ in range(2):
        shown = command("approvals", "show", approval.id[3:9], "--by", "ana", "--store", url)
    assert 1 == shown.stdout.count("viewed by ana")
    assert "may refund run?" in shown.stdout
    document = json.loads(command("approvals", "show", approval.id, "--json", "--store", url).stdout)
    assert {"invoice": "A-1", "euros": 40, "memo": "why"} == document["arguments"]
    assert ["requested", "viewed"] == [entry["kind"] for entry in document["chain"]][:2]


def test_ids_that_do_not_name_one_approval_are_errors(command, url):
    """Unknown, too short, ambiguous; nothing is shown."""
    filed(url, "A-1", id="ap-aaaa1111")
    filed(url, "A-2", id="ap-aaaa2222")
    for wanted, message in (
        ("zzzz", "no approval 'zzzz'"),
        ("a", "at least the first 3"),
        ("aaaa", "several approval ids begin"),
    ):
        shown = command("approvals", "show", wanted, "--store", url)
        assert (1, "", True) == (shown.returncode, shown.stdout, message in shown.stderr)


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_hostile_texts_stay_within_the_lines_of_the_list(command, url, columns):
    """Whatever an agent or a person wrote."""
    filed(
        url,
        HOSTILE,
        action=HOSTILE,
        level="confirm",
        key=None,
        groups=(HOSTILE,),
        quorum=2,
        domain=HOSTILE,
        objective=HOSTILE,
        reason=HOSTILE,
    )
    for arguments in (("list",), ("list", "--json"), ("list", "--jsonl")):
        out = command("approvals", *arguments, "--store", url, columns=columns).stdout
        assert [] == [line for line in out.splitlines() if not line.isprintable()]
        assert "json" in arguments[-1] or all(cell_len(line) <= columns for line in out.splitlines())
