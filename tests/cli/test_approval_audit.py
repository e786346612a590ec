"""Verification, export, restores and retention from the command line."""

from __future__ import annotations

import json
import sqlite3

from tests.cli.program import filed, state_of


def test_a_changed_byte_is_found_against_a_checkpoint(command, url, tmp_path):
    """Exit code 1, one line per problem, and no new checkpoint."""
    filed(url, "A-1", "A-2")
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


def test_without_a_checkpoint_it_says_what_that_means(command, url):
    """Only accidents are found."""
    filed(url, "A-1")
    shown = command("approvals", "verify", "--store", url, columns=500).stdout
    assert "1 entries verified without a checkpoint: no accident found; a deliberate change would not show" in shown
    assert "only accidents are found" in shown


def test_a_file_that_holds_no_checkpoint_is_an_error(command, url, tmp_path):
    """With its name."""
    filed(url, "A-1")
    for text in ("", "{broken"):
        (tmp_path / "points.jsonl").write_text(text)
        ran = command("approvals", "verify", "--checkpoint", tmp_path / "points.jsonl", "--store", url)
        assert (1, 1, True) == (ran.returncode, ran.stderr.count("\n"), "points.jsonl" in ran.stderr)
    assert 1 == command("approvals", "verify", "--checkpoint", tmp_path / "none.jsonl", "--store", url).returncode


def test_the_chain_is_exported_as_json_lines(command, url, tmp_path):
    """To standard output or a file, with or without contents."""
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
    """It asks first."""
    approval = filed(url, "A-1")[0]
    command("approvals", "approve", approval.id, "--yes", "--store", url)
    assert (2, "approved") == (
        command("approvals", "restored", "--store", url).returncode,
        state_of(url, approval).state,
    )
    assert {"unknown": 1} == json.loads(command("approvals", "restored", "--yes", "--json", "--store", url).stdout)
    assert "1 with an unknown outcome" in command("approvals", "list", "--store", url, columns=200).stdout


def test_contents_can_be_deleted_and_the_chain_holds(command, url):
    """Those of approvals that have ended."""
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
