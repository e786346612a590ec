"""`grace-kp calibrate`: from labelled runs to a profile, a summary and a page; refusals are one line."""

from __future__ import annotations

import gzip
import json

import pytest

import grace_kp as gk
from grace_kp import calibrate as cal
from tests.calibrate.examples import drawn_runs
from tests.cli.program import ended

HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e[bold]"
RISKS = ("--risk", "notify=0.15", "--risk", "confirm=0.6")


def lines(count, *, share=0.5, labels=None, label="correct", **fields):
    """Labelled runs as JSON lines, each of a task of its own."""
    runs, drawn = drawn_runs(count, share=share)
    for number, (run, correct) in enumerate(zip(runs, labels or drawn, strict=True)):
        run["id"] = f"kp:trace:{number}"
        run["task"]["objective"] = f"Send order {number}"
        yield json.dumps({**run, label: correct, **fields})


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path, monkeypatch):
    """Whatever is written to the working folder is seen there."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def file(tmp_path):
    def write(rows, name="runs.jsonl"):
        path = tmp_path / name
        text = "".join(f"{row}\n" for row in rows).encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        return path

    return write


def test_the_summary_fits_into_80_columns(command, file):
    """It names the sample, three confidences with intervals, and the levels with bounds."""
    ran = command("calibrate", file(lines(200)), *RISKS, "--out", "profile.json", columns=80)
    assert max(map(len, ran.stdout.splitlines())) <= 80
    assert "do not use this profile" not in ran.stdout
    for words in ("200 runs of 200 tasks", "fitted on 120 runs", "80 runs of 80 other tasks, before an action", "learned", "formula grace", "run length", "The selective promise", 'gk.Grace(profile="profile.json")'):  # fmt: skip
        assert words in ran.stdout
    narrow = command("calibrate", file(lines(200)), *RISKS, columns=40)
    assert max(map(len, narrow.stdout.splitlines())) <= 40


@pytest.mark.parametrize("written", [(), ("--out",), ("--report",), ("--out", "--report")])
def test_files_are_written_only_where_an_option_says(command, file, tmp_path, written):
    source, options = file(lines(200)), [text for option in written for text in (option, f"mine{option}")]
    ran = command("calibrate", source, *RISKS, *options)
    assert 0 == ran.returncode
    assert sorted([source.name, *(f"mine{option}" for option in written)]) == sorted(
        path.name for path in tmp_path.iterdir()
    )
    for option in ("--out", "--report"):
        assert (option not in written) == (f"not written; {option} names a file for it" in ran.stdout)
    assert ("--out" in written) == ("use it" in ran.stdout)
    if "--out" in written:
        profile = cal.CalibratedProfile.load(tmp_path / "mine--out")
        assert "action" == profile.promise["moment"]
        assert profile.digest in "".join(ran.stdout.split())


@pytest.mark.parametrize(
    ("rows", "risks", "words"),
    [
        (lines(200), ("silent=0.01",), ["every level is never, so gates would escalate every action"]),
        (lines(200, labels=[True, False] * 100), ("confirm=0.9",), ["the interval of its AUROC, "]),
        (lines(200, labels=[True, False] * 100), ("silent=0.01",), ["the interval of its AUROC, ", "every level is never"]),
    ],
    ids=["never", "chance", "both"],
)  # fmt: skip
def test_a_profile_that_says_nothing_is_not_to_be_used(command, file, tmp_path, rows, risks, words):
    """The summary, the JSON form and the report say so, and nobody is told how to use it."""
    path, out, report = file(rows), tmp_path / "p.json", tmp_path / "r.html"
    arguments = ("calibrate", path, *(text for risk in risks for text in ("--risk", risk)), "--out", out)
    ran = command(*arguments, "--report", report, columns=300)
    assert 0 == ran.returncode
    found = [line for line in ran.stdout.splitlines() if line.startswith("do not use this profile: ")]
    assert len(words) == len(found)
    assert all(word in line for word, line in zip(words, found, strict=True))
    assert "use it " not in ran.stdout
    assert len(words) == report.read_text(encoding="utf-8").count("Do not use this profile: ")
    objections = json.loads(command(*arguments, "--json").stdout)["objections"]
    assert [line.removeprefix("do not use this profile: ") for line in found] == objections


def test_labels_that_cannot_be_enough_are_named_before_anything_else(command, file):
    ran = command("calibrate", file(lines(100)), "--risk", "silent=0.02", "--risk", "confirm=0.6", columns=100)
    assert ran.stdout.startswith(
        "silent at 0.02 needs at least 149 labels without an error, and there are 40.\nOf 100 tasks, 40% are held back"
    )


def test_json_is_for_machines(command, file):
    ran = command("calibrate", file(lines(100)), "--risk", "silent=0.02", "--json", "--holdout", "0")
    found = json.loads(ran.stdout)
    assert (0, "") == (ran.returncode, ran.stderr)
    assert {"silent": "never"}.items() <= found["thresholds"].items()
    assert (100, True, 114, 0) == (
        found["sample"]["runs"],
        found["approximate"],
        found["needed"]["silent"],
        found["unreadable"],
    )
    assert ["silent at 0.02 needs at least 114 labels without an error, and there are 100"] == found["lacking"]
    assert 0 <= found["assessments"]["learned"]["auroc"] <= 1


def test_the_report_is_written_as_a_page(command, file, tmp_path):
    """With two diagrams, each in two sizes; hostile names do not become markup."""
    rows = lines(100, grace={"source": {"model": HOSTILE, "task_id": HOSTILE}})
    report = tmp_path / "report.html"
    ran = command("calibrate", file(rows, "<b>.jsonl"), "--label", "correct", "--report", report)
    page = report.read_text(encoding="utf-8")
    assert (0, 4) == (ran.returncode, page.count("<svg"))
    assert "<script" not in page
    assert "<b>" not in page
    assert "\x1b" not in page + ran.stdout + ran.stderr
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (list(lines(3)), "too few labels to fit a confidence: there are"),
        (list(lines(100, labels=[True] * 100)), "0 wrong; at least 50 are needed, 15 of each"),
        (list(lines(60, label="other")), "there are no labelled runs (60 no label)"),
    ],
    ids=["three labels", "one class", "no labels"],
)
def test_a_refusal_is_one_line_with_numbers(command, file, rows, words):
    path = file(rows)
    out = path.with_name("profile.json")
    ran = command("calibrate", path, "--out", out)
    assert 1 == ran.returncode
    assert words in ran.stderr
    assert 1 == ran.stderr.count("\n")
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--risk", "silent"], "--risk must be a level and a share, such as silent=0.05 (got 'silent')"),
        (["--risk", "silent=nan"], "risks['silent']"),
        (["--risk", "silent=0.1", "--risk", "silent=0.2"], "names 'silent' twice"),
        (["--promise", "expected"], "promise must be selective or overall"),
        (["--holdout", "1"], "0.9"),
        (["--label", "reward", "--sources", "user"], "label and sources exclude each other"),
        (["--sources", "Mallory!"], "is not a source"),
        (["--store", "memory:"], "name files or --store, not both"),
    ],
)
def test_wrong_usage_is_exit_code_2(command, file, arguments, words):
    ran = command("calibrate", file(lines(3)), *arguments)
    assert 2 == ran.returncode
    assert words in ran.stderr
    assert "" == ran.stdout


def test_a_folder_that_is_missing_is_found_before_the_work(command, file, tmp_path):
    ran = command("calibrate", file(lines(3)), "--out", tmp_path / "none" / "profile.json")
    assert 1 == ran.returncode
    assert "does not exist" in ran.stderr
    ran = command("calibrate", file(lines(3)), "--report", tmp_path)
    assert (1, True) == (ran.returncode, "it is a folder" in ran.stderr)


def test_bad_lines_are_reported_and_the_rest_is_used(command, file):
    """The exit code says that the file could not be read in full."""
    rows = ["{broken", *lines(100), '{"correct": "perhaps", "messages": [{"role": "user", "content": "x"}]}']
    ran = command("calibrate", file(rows, "runs.jsonl.gz"), *RISKS, columns=100)
    assert 1 == ran.returncode
    assert "runs.jsonl.gz:1" in ran.stderr
    assert "runs.jsonl.gz:102" in ran.stderr
    assert "100 runs of 100 tasks" in ran.stdout
    assert "2 unreadable" in ran.stdout


def test_runs_of_a_store_are_labelled_by_feedback(command, stored, url):
    runs, labels = drawn_runs(80)
    for number, run in enumerate(runs):
        run["id"] = f"kp:trace:{number}"
        run["task"]["objective"] = f"Send order {number}"
    stored(*runs)
    with gk.Grace(store=url, evaluator=None, embedder=None) as grace:
        for number, correct in enumerate(labels):
            grace.feedback(f"kp:trace:{number}", correct, source="test" if number % 10 else "user")
    ran = command("calibrate", "--store", url, "--holdout", "0", *RISKS, columns=100)
    assert 0 == ran.returncode, ran.stderr
    assert "80 runs of 80 tasks" in ran.stdout
    assert "72 test" in ran.stdout
    some = command("calibrate", "--store", url, "--holdout", "0", "--sources", "test", "--json")
    assert {"test": 72} == json.loads(some.stdout)["sample"]["sources"]
    wrong = command("calibrate", "--store", url, "--label", "reward")
    assert (2, True) == (wrong.returncode, "--label names a field of a file" in wrong.stderr)


def test_a_terminal_shows_the_work(file, terminal):
    """A bar while the file is read, a line while the profile is fitted, and neither remains."""
    child = terminal("calibrate", file(lines(300)), *RISKS)
    for shown in ("reading", "calibrating on 300 runs", "labelled  300 runs"):
        child.expect(shown)
    assert 0 == ended(child)
