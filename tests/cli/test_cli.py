"""The command line as a user meets it: what it prints, and that no mistake of theirs shows a traceback."""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path

import pexpect
import pytest

import grace_kp as gk
from tests import warm

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("GRACE_KP_DATA", ROOT.parent / "shared" / "data"))
CHAT = {
    "task_id": 7,
    "reward": 1.0,
    "traj": [
        {"role": "user", "content": "refund me"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "function": {"name": "look", "arguments": '{"id": 5}'}}],
        },
        {"role": "tool", "tool_call_id": "1", "name": "look", "content": "Error: not found"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "1", "function": {"name": "look", "arguments": '{"id": 6}'}}],
        },
        {"role": "tool", "tool_call_id": "1", "name": "look", "content": "found; key sk-proj-abcdefghijklmnop1234"},
        {"role": "assistant", "content": "You are refunded."},
    ],
}


def run(*arguments, stdin=None, **environment):
    return warm.run(
        [sys.executable, "-m", "grace_kp.cli", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment}, input=stdin, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture
def runs(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(CHAT) + "\n{broken\n\n" + json.dumps({**CHAT, "reward": 0.0, "task_id": 8}) + "\n")
    return path


def test_score_prints_every_run_and_reports_the_broken_line(runs):
    """A table and a summary; the broken line is named with file and line, the rest is scored, exit code 1."""
    ran = run("score", runs)
    assert ran.returncode == 1
    assert f"{runs}:2" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert "2 runs, 50% successful; 1 could not be read" in ran.stdout


def test_score_as_json_has_exactly_the_promised_fields(runs):
    """A list of objects, parts between 0 and 1."""
    listed = json.loads(run("score", runs, "--json").stdout)
    fields = {"id", "score", "complexity", "novelty", "tool_diversity", "outcome_confidence", "profile", "overrides"}
    assert [set(item) for item in listed] == [fields, fields]
    assert listed[0]["score"] > listed[1]["score"]
    lines = [json.loads(line) for line in run("score", runs, "--jsonl").stdout.splitlines()]
    assert lines == listed


@pytest.mark.skipif(not DATA.is_dir(), reason="the recorded runs are not beside the repository")
def test_score_on_recorded_runs_of_an_airline_agent():
    """Every run of the file is scored."""
    ran = run("score", DATA / "tau_bench_airline_gpt4o.jsonl.gz", "--json")
    listed = json.loads(ran.stdout)
    assert (0, 124) == (ran.returncode, len(listed))
    assert all(0 <= item["score"] <= 1 for item in listed)
    assert len({item["id"] for item in listed}) == 124


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


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["score"], 2), (["score", "no-such-file.jsonl"], 1), (["score", "."], 1), (["scoer", "x"], 2), (["traces", "show", "nope", "--store", "memory:"], 1),
        (["traces", "list", "--store", "mysql://x"], 1), (["traces", "list", "--store", "memory:", "--since", "yesterday"], 2),
        (["traces", "list", "--limit", "no"], 2), (["score", "x", "--profile", "lenient"], 2), (["demo", "--colour"], 2),
        (["traces", "export", "/no/such/folder/x.jsonl", "--store", "memory:"], 1),
    ],
)  # fmt: skip
def test_mistakes_are_one_line_and_an_exit_code(arguments, code):
    """2 for usage, 1 for failure; never a traceback."""
    ran = run(*arguments, stdin="")
    assert code == ran.returncode, ran.stderr
    assert "Traceback" not in ran.stderr + ran.stdout
    assert 1 == len(ran.stderr.strip().splitlines())


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


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\xff\xfe",
        b"[[[[",
        b"[" * 5_000,
        b"1e999\n",
        b"NaN\n",
        b'{"a": 1}\n',
        b"\x1f\x8b broken",
        b"null\n" * 3,
    ],
)
def test_any_bytes_are_read_without_a_traceback(tmp_path, content):
    """Garbage is reported, line by line."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    ran = run("score", path)
    assert ran.returncode == (1 if content else 0)
    assert "Traceback" not in ran.stderr + ran.stdout


def test_a_broken_setting_is_named():
    """An unknown environment variable is refused with the nearest known name."""
    ran = run("traces", "list", GRACE_KP_STROE="memory:")
    assert (1, "") == (ran.returncode, ran.stdout)
    assert "did you mean 'store'" in ran.stderr


def test_doctor_says_what_is_there_and_what_is_broken(tmp_path):
    """Exit code 0 when nothing is broken, 1 with the reason when something is."""
    good = run("doctor", "--json", GRACE_KP_STORE=f"sqlite:///{tmp_path / 't.db'}", GEMINI_API_KEY="hidden-key")
    report = json.loads(good.stdout)
    assert (0, []) == (good.returncode, report["problems"])
    assert report["keys"]["GEMINI_API_KEY"] == "set"
    assert "hidden-key" not in good.stdout
    assert report["settings"]["store"]["from"] == "environment variable GRACE_KP_STORE"
    (tmp_path / "file").write_text("x")
    bad = run("doctor", GRACE_KP_STORE=f"sqlite:///{tmp_path / 'file' / 't.db'}")
    assert bad.returncode == 1
    assert "broken" in bad.stdout


def test_demo_without_a_terminal_says_what_it_decided():
    """It does its work, shows figures, and does not run the gated action."""
    ran = run("demo", stdin="y\n")
    assert (0, "") == (ran.returncode, ran.stderr)
    for piece in ("✗ read_file", "error_recovery", "search_quality", "nobody to ask", "not evaluated"):
        assert piece in ran.stdout
    assert "characters written" not in ran.stdout
    documents = json.loads(run("demo", "--json", stdin="").stdout)
    assert len(documents) == 4
    *nested, root = documents
    assert [document["id"] for document in nested] == root["grace"]["children"]
    assert "cancelled" == root["grace"]["decisions"][0]["outcome"]


def test_demo_in_a_terminal_asks():
    """Enter alone asks again; y writes the report."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    child = pexpect.spawn(sys.executable, ["-m", "grace_kp.cli", "demo"], env=environment, encoding="utf-8", timeout=40)
    child.expect(r"\[i\]nput > ")
    child.sendline("")
    child.expect(r"\[i\]nput > ")
    child.sendline("y")
    child.expect("characters written")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_help_and_version():
    """Every command explains itself."""
    assert run("--version").stdout.startswith("grace-kp ")
    for command in (
        ["--help"],
        ["score", "-h"],
        ["traces", "-h"],
        ["traces", "export", "-h"],
        ["doctor", "-h"],
        ["demo", "-h"],
    ):
        ran = run(*command)
        assert (0, "") == (ran.returncode, ran.stderr)
        assert "Usage" in ran.stdout
