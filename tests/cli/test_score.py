"""`grace-kp score` and `grace-kp eval`: every run and every case that can be read is scored, and the exit code says whether all passed."""

from __future__ import annotations

import json
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from tests import warm
from tests.cli.program import run
from tests.pages.reading import Elements


def test_score_prints_every_run_and_reports_the_broken_line(runs):
    """A table and a summary; the broken line is named with file and line, the rest is scored, exit code 1."""
    ran = run("score", runs)
    assert ran.returncode == 1
    assert f"{runs}:2" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert "2 runs, 50% successful; 1 could not be read" in ran.stdout


def test_score_as_json_has_exactly_the_promised_fields(runs):
    listed = json.loads(run("score", runs, "--json").stdout)
    fields = {"id", "score", "complexity", "novelty", "tool_diversity", "outcome_confidence", "profile", "overrides"}
    assert [set(item) for item in listed] == [fields, fields]
    assert listed[0]["score"] > listed[1]["score"]
    lines = [json.loads(line) for line in run("score", runs, "--jsonl").stdout.splitlines()]
    assert lines == listed


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe", b"[" * 5_000, b"NaN\n", b"\x1f\x8b broken"])
def test_any_bytes_are_read_without_a_traceback(tmp_path, content):
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    ran = run("score", path)
    assert ran.returncode == (1 if content else 0)
    assert "Traceback" not in ran.stderr + ran.stdout


pytest.importorskip("regex", reason="needs the extra eval")
pytest.importorskip("yaml", reason="needs the extra eval")


def case(number, target="a", content="x"):
    operation = {"type": "update", "target_block_id": "a"}
    return {
        "id": f"case <{number}>",
        "actual": {"operations": [operation], "pages": {"A": content}, "blocks_before": [{"id": "a", "content": "o"}], "blocks_after": [{"id": "a", "content": "n"}]},
        "expected": {"operations": [{**operation, "target_block_id": target}], "patterns": {"A": ["x"]}},
    }  # fmt: skip


@pytest.fixture
def evaluate(tmp_path):
    def call(cases, *arguments, suite="standard"):
        file = tmp_path / "cases.jsonl"
        file.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in cases), "utf-8")
        return warm.run(
            [sys.executable, "-m", "grace_kp.cli", "eval", suite, str(file), *arguments],
            capture_output=True, text=True, cwd=tmp_path, stdin=subprocess.DEVNULL, timeout=300,
        )  # fmt: skip

    return call


def test_a_case_that_fails_is_explained(evaluate):
    ran = evaluate([case(1), case(2, target="b")])
    assert (1, "") == (ran.returncode, ran.stderr)
    assert "1 of 2 cases pass" in ran.stdout
    assert "target mismatch" in ran.stdout
    assert "expected target_block_id 'b', chosen was target_block_id 'a'" in " ".join(ran.stdout.split())


def test_reports(evaluate, tmp_path):
    evaluate([case(1), case(2, target="b")], "--html", "r.html", "--junit", "r.xml")
    page = (tmp_path / "r.html").read_text("utf-8")
    text = Elements(page).text
    assert all(words in text for words in ("1 of 2 cases pass", "case <2>", "target mismatch"))
    suite = ElementTree.parse(tmp_path / "r.xml").getroot()
    assert ("2", "1") == (suite.get("tests"), suite.get("failures"))
    assert "target mismatch" in suite.findall("testcase")[1].find("failure").text


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["{"], ":1: "),
        ([case(1), json.dumps({"actual": {}, "expected": {}, "more": 1})], ":2: the case has an unknown field 'more'"),
        ([json.dumps({"actual": {}, "expected": {"patterns": {"A": ["("]}}})], "malformed"),
    ],
)
def test_a_line_that_cannot_be_read_is_one_line_on_standard_error(evaluate, lines, problem):
    ran = evaluate(lines)
    assert 2 == ran.returncode
    assert problem in ran.stderr
    assert 1 == len(ran.stderr.splitlines())
    assert "Traceback" not in ran.stderr


def test_suites_that_are_not_there(evaluate):
    for suite, problem in (("harsh", "a preset must be one of"), ("none.yaml", "No such file")):
        ran = evaluate([case(1)], suite=suite)
        assert (2, True) == (ran.returncode, problem in ran.stderr)


@pytest.mark.parametrize("text", [r"\[/INST\]", "[red]x", "ends in \\"])
def test_brackets_and_backslashes_are_shown_as_they_are(evaluate, text):
    ran = evaluate([{**case(1), "id": text, "expected": {"patterns": {"A": [r"\[never" + "\\]"], text: ["x"]}}}])
    assert (1, "") == (ran.returncode, ran.stderr)
    assert f"fails  {text}  overall" in ran.stdout
    assert f"Page '{text}': Pattern 'x' not found" in " ".join(ran.stdout.split())
    assert r"Pattern '\[never\]' not found" in " ".join(ran.stdout.split())


LOCAL = """
from grace_kp import scorers as sc
from tests import warm

def made():
    class Odd:
        type, threshold = "odd", 0.5
        def score(self, actual, expected):
            return len(actual.operations) % 2
        def details(self, actual, expected):
            return {"seen": {1, 2}, "what": object(), "nan": float("nan")}
    return Odd()

sc.register("odd", made)
"""


@pytest.mark.parametrize("name", ["my_scorers", "sub/json.py"])
@pytest.mark.parametrize("count", [1, 600])
def test_scorers_of_ones_own_are_imported_first(evaluate, tmp_path, name, count):
    """Also such that could not be sent to another process, with details that are no JSON."""
    file = tmp_path / (name if name.endswith(".py") else f"{name}.py")
    file.parent.mkdir(exist_ok=True)
    file.write_text(LOCAL, "utf-8")
    (tmp_path / "s.yaml").write_text("scorers: [{type: odd}]", "utf-8")
    ran = evaluate([case(n) for n in range(count)], "--import", name, "--json", "--jobs", "2", suite="s.yaml")
    assert (0, "") == (ran.returncode, ran.stderr)
    told = json.loads(ran.stdout, parse_constant=pytest.fail)
    assert count == len(told)
    assert {1, 2} == set(told[-1]["results"][0]["details"]["seen"])


def test_half_surrogate_pairs_cannot_be_written_and_cost_nothing_else(evaluate, tmp_path):
    odd = {**case(1), "id": "odd \ud800"}
    odd["actual"] = {**odd["actual"], "pages": {"A": "y \udfff"}}
    for arguments in (["--html", "r.html", "--junit", "r.xml"], ["--json"], []):
        ran = evaluate([odd], *arguments)
        assert (1, "") == (ran.returncode, ran.stderr)
        assert "odd ?" in ran.stdout
    assert "odd ?" in (tmp_path / "r.html").read_text("utf-8")
    assert "odd ?" in (tmp_path / "r.xml").read_text("utf-8")


def test_several_processes_keep_the_order_and_name_the_first_line_that_cannot_be_read(evaluate):
    cases = [case(number, target="b" if number == 700 else "a") for number in range(900)]
    ran = evaluate(cases, "--json", "--jobs", "2")
    told = json.loads(ran.stdout)
    assert [one["id"] for one in cases] == [one["id"] for one in told]
    assert [700] == [number for number, one in enumerate(told) if not one["passed"]]
    cases[600], cases[820] = "{", "["
    ran = evaluate(cases, "--jobs", "2")
    assert (2, 1) == (ran.returncode, len(ran.stderr.splitlines()))
    assert "cases.jsonl:601: " in ran.stderr


@pytest.mark.parametrize("method", ["get_all_start_methods", "sched_getaffinity"])
def test_systems_that_cannot_fork_or_do_not_tell_their_cores(tmp_path, method):
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(case(n)) + "\n" for n in range(600)), "utf-8")
    script = (
        "import multiprocessing, os, sys\n"
        "if sys.argv.pop() == 'sched_getaffinity':\n    os.__dict__.pop('sched_getaffinity', None)\n"
        "else:\n    multiprocessing.get_all_start_methods = lambda: ['spawn']\n"
        "from grace_kp.cli import main\nmain()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, "eval", "standard", "cases.jsonl", method],
        capture_output=True, text=True, cwd=tmp_path, stdin=subprocess.DEVNULL, timeout=300,
    )  # fmt: skip
    assert (0, "") == (ran.returncode, ran.stderr)
    assert "600 of 600 cases pass" in ran.stdout
