"""The chain behind approvals and standing approvals: verification, export, restores, retention, consent in advance."""

from __future__ import annotations

import json
import sqlite3

import pytest

from tests.cli.program import filed, state_of


def test_a_changed_byte_is_found_against_a_checkpoint(command, url, tmp_path):
    filed(url, "A-1", "A-2")
    assert (
        "verified without a checkpoint: no accident found"
        in command("approvals", "verify", "--store", url, columns=500).stdout
    )
    points = tmp_path / "points.jsonl"
    assert 0 == command("approvals", "verify", "--write-checkpoint", points, "--store", url).returncode
    good = command("approvals", "verify", "--checkpoint", points, "--store", url, columns=200)
    assert (0, True) == (good.returncode, "2 entries verified against the checkpoint: no problem found" in good.stdout)
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE approval_chain SET data = replace(data, 'requested', 'requesteD') WHERE seq = 1")
    bad = command(
        "approvals", "verify", "--checkpoint", points, "--write-checkpoint", points, "--store", url, columns=200
    )
    assert (1, True) == (bad.returncode, "entry 1 was changed" in bad.stdout)
    assert 1 == len(points.read_text().splitlines())
    assert not json.loads(command("approvals", "verify", "--json", "--store", url).stdout)["ok"]


def test_a_file_that_holds_no_checkpoint_is_an_error(command, url, tmp_path):
    filed(url, "A-1")
    for text in ("", "{broken"):
        (tmp_path / "points.jsonl").write_text(text)
        ran = command("approvals", "verify", "--checkpoint", tmp_path / "points.jsonl", "--store", url)
        assert (1, 1, True) == (ran.returncode, ran.stderr.count("\n"), "points.jsonl" in ran.stderr)
    assert 1 == command("approvals", "verify", "--checkpoint", tmp_path / "none.jsonl", "--store", url).returncode


def test_the_chain_is_exported_as_json_lines(command, url, tmp_path):
    filed(url, "A-1", "A-2")
    lines = [json.loads(line) for line in command("approvals", "export", "--store", url).stdout.splitlines()]
    assert [1, 2] == [line["entry"]["seq"] for line in lines]
    assert "A-1" in lines[0]["contents"]
    assert (
        "exported 1 entry"
        in command("approvals", "export", tmp_path / "x.jsonl", "--after", 1, "--no-contents", "--store", url).stdout
    )
    assert [None] == [json.loads(line)["contents"] for line in (tmp_path / "x.jsonl").read_text().splitlines()]


def test_after_a_restore_everything_approved_is_unknown(command, url):
    approval = filed(url, "A-1")[0]
    command("approvals", "approve", approval.id, "--yes", "--store", url)
    assert (2, "approved") == (
        command("approvals", "restored", "--store", url).returncode,
        state_of(url, approval).state,
    )
    assert {"unknown": 1} == json.loads(command("approvals", "restored", "--yes", "--json", "--store", url).stdout)
    assert "1 with an unknown outcome" in command("approvals", "list", "--store", url, columns=200).stdout


def test_contents_can_be_deleted_and_the_chain_holds(command, url):
    ended, waiting = filed(url, "A-1", "A-2")
    command("approvals", "reject", ended.id, "--yes", "--store", url)
    assert 2 == command("approvals", "forget", "--older-than", "0s", "--store", url).returncode
    assert (
        "deleted the contents of"
        in command("approvals", "forget", "--older-than", "0s", "--yes", "--store", url).stdout
    )
    assert (True, False) == (state_of(url, ended).deleted, state_of(url, waiting).deleted)
    assert "retention has deleted the contents" in command("approvals", "show", ended.id, "--store", url).stdout
    assert 0 == command("approvals", "verify", "--store", url).returncode


GRANT = ("approvals", "standing", "grant", "refund", "--until", "7d", "--uses", "2", "--any", "invoice")


def test_a_grant_approves_what_it_covers(command, url):
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
    filed(url, "A-0")
    name = json.loads(command(*GRANT, "--any", "euros", "--is", "memo=why", "--yes", "--json", "--store", url).stdout)[
        "id"
    ]
    approval = filed(url, "A-1")[0]
    assert "ended" in command("approvals", "standing", "end", name, "--reason", "over", "--store", url).stdout
    assert "cancelled" == state_of(url, approval).state
    assert "no standing approvals" in command("approvals", "standing", "list", "--store", url).stdout
    assert name in command("approvals", "standing", "list", "--ended", "--store", url).stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--range", "euros=1-5"), "LOW..HIGH"),
        (("--range", "euros=.."), "LOW..HIGH"),
        (("--in", "euros=5"), "NAME=JSON-LIST"),
        (("--is", "euros"), "NAME=…"),
        (("--any", "euros", "--is", "euros=5"), "one constraint"),
        (("--any", "euros", "--until", "soon"), "--until must be"),
        (("--any", "euros", "--any", "memo"), "grant asks for a confirmation"),
    ],
)
def test_options_that_cannot_be_read_are_wrong_usage(command, url, options, message):
    filed(url, "A-0")
    ran = command(*GRANT, *options, "--store", url)
    assert (2, 1, True) == (ran.returncode, ran.stderr.count("\n"), message in ran.stderr)
    assert [] == json.loads(command("approvals", "standing", "list", "--json", "--store", url).stdout)
    assert 1 == command("approvals", "standing", "end", "st-none", "--store", url).returncode
