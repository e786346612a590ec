"""`grace-kp traces list` and `show` as people use them: every figure, whole contents, gates, nested runs, ids by their beginning."""

from __future__ import annotations

import gzip
import json

import pytest

import grace_kp as gk
from tests.cli.documents import LONG
from tests.cli.program import run

WIDTHS = [200, 120, 80, 60, 40]


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_list_shows_score_and_success_at_every_width(command, recorded, columns):
    """Columns go, figures stay; success is a word, so that it reads without colour."""
    ran = command("traces", "list", "--store", recorded, columns=columns)
    rows = ran.stdout.splitlines()
    assert [len(row.split()) for row in rows if "…" in row.split()[0]] == []
    assert [] == [heading for heading in ("id", "objective", "ok", "score") if heading not in rows[0].split()]
    documents = json.loads(command("traces", "list", "--store", recorded, "--json").stdout)
    for row, document in zip(rows[2:], documents, strict=False):
        assert document["id"].removeprefix("kp:trace:")[:8] == row.split()[0]
        assert f"{document['metadata']['quality_score']:.3f}" == row.split()[-1]
        assert ("yes" if document["metadata"]["success"] else "no") in row.split()
    assert "3 of 3" == rows[-1]


def test_a_wide_terminal_shows_the_whole_objective(command, recorded):
    """Nothing is cut where there is room."""
    assert LONG in command("traces", "list", "--store", recorded, columns=300).stdout


def test_a_list_says_how_many_there_are(command, recorded):
    """Those shown, and those that match."""
    ran = command("traces", "list", "--store", recorded, "--limit", "1", columns=80)
    assert "1 of 3; --limit shows more" == ran.stdout.splitlines()[-1]
    ran = command("traces", "list", "--store", recorded, "--limit", "1", "--failed", columns=80)
    assert "1 of 1" == ran.stdout.splitlines()[-1]


def test_no_colour_is_needed_to_read_a_list(command, recorded, monkeypatch):
    """The same words with and without colour."""
    plain = command("traces", "list", "--store", recorded, columns=80).stdout
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = command("traces", "list", "--store", recorded, columns=80).stdout
    assert "\x1b[" in coloured
    assert " no " in plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in command("traces", "list", "--store", recorded, columns=80).stdout


def test_a_status_that_no_run_can_have_is_refused(command, url):
    """Exit code 2, and the statuses that there are."""
    ran = command("traces", "list", "--store", url, "--status", "nonsense")
    assert (2, 1) == (ran.returncode, len(ran.stderr.splitlines()))
    assert "Invalid value for '--status': 'nonsense' is not one of 'completed'" in ran.stderr
    for status in ("completed", "failed", "cancelled", "closed", "exited", "interrupted", "not_approved", "suspended"):
        assert status in ran.stderr
    assert command("traces", "export", "-", "--store", url, "--status", "nonsense").returncode == 2
    assert command("traces", "list", "--store", url, "--min-score", "60").returncode == 2


def test_import_list_show_export_and_back(runs, tmp_path):
    """In and out again without loss, and without the secret."""
    store = f"sqlite:///{tmp_path / 't.db'}"
    assert run("traces", "import", runs, "--store", store).returncode == 1
    assert json.loads(run("traces", "list", "--store", store, "--json").stdout)[0]["grace"]["source"]["task_id"] in {
        7,
        8,
    }
    listed = json.loads(run("traces", "list", "--store", store, "--success", "--json").stdout)
    assert len(listed) == 1
    shown = run("traces", "show", listed[0]["id"], "--store", store)
    for piece in ("refund me", "error_recovery", "confidence", "tool_success", "score"):
        assert piece in shown.stdout
    assert "abcdefghijklmnop1234" not in shown.stdout + json.dumps(listed)
    assert run("traces", "show", listed[0]["id"].removeprefix("kp:trace:")[:8], "--store", store).returncode == 0
    out = tmp_path / "out.jsonl.gz"
    assert run("traces", "export", out, "--store", store).returncode == 0
    with gzip.open(out, "rt", encoding="utf-8") as file:
        exported = [json.loads(line) for line in file]
    other = f"sqlite:///{tmp_path / 'other.db'}"
    again = run("traces", "import", out, "--store", other, "--json")
    assert {"imported": 2, "problems": 0} == json.loads(again.stdout)
    back = json.loads(run("traces", "list", "--store", other, "--json").stdout)
    assert sorted(map(json.dumps, exported)) == sorted(map(json.dumps, back))


def test_a_store_that_lacks_something_is_told_in_one_line(tmp_path):
    """A file of which somebody has taken a table away."""
    import sqlite3

    store = f"sqlite:///{tmp_path / 't.db'}"
    with gk.Grace(store=store, evaluator=None, embedder=None) as grace, grace.run("a run"):
        pass
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("DROP TABLE scores")
    connection.close()
    ran = run("traces", "list", "--scorer", "x", "--store", store)
    assert 1 == ran.returncode
    assert "grace-kp: the store cannot be used: no such table: scores\n" == ran.stderr
