"""`grace-kp score` scores every run that it can read, and reports the others."""

from __future__ import annotations

import json

import pytest

from tests.cli.program import DATA, run


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
