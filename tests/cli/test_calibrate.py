"""`grace-kp calibrate`: from labelled runs to a profile, a summary and a page. `grace-kp replay` and `grace-kp reviewers`: reports on recorded runs."""

from __future__ import annotations

import json
import re

import pytest

import grace_kp as gk
from grace_kp import calibrate as cal
from tests.calibrate.examples import acted, drawn_runs
from tests.cli.program import document
from tests.store.samples import record_of

HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e[bold]"
RISKS = ("--risk", "notify=0.15", "--risk", "confirm=0.6")


def labelled_lines(count, *, share=0.5, labels=None, label="correct", **fields):
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


def test_the_summary_fits_into_80_columns(command, written):
    """It names the sample, three confidences with intervals, and the levels with bounds."""
    ran = command("calibrate", written(labelled_lines(200)), *RISKS, "--out", "profile.json", columns=80)
    assert max(map(len, ran.stdout.splitlines())) <= 80
    assert "do not use this profile" not in ran.stdout
    for words in ("200 runs of 200 tasks", "fitted on 120 runs", "80 runs of 80 other tasks, before an action", "learned", "formula grace", "run length", "The selective promise", 'gk.Grace(profile="profile.json")'):  # fmt: skip
        assert words in ran.stdout
    narrow = command("calibrate", written(labelled_lines(200)), *RISKS, columns=40)
    assert max(map(len, narrow.stdout.splitlines())) <= 40


def acted_lines(tasks, **options):
    """Labelled actions as JSON lines, two in each run and a task for each run."""
    labelled = acted(tasks, **options)
    for number, trace in enumerate({each.trace.id: each.trace for each in labelled.actions}.values()):
        document = trace.to_dict()
        document["task"]["objective"] = f"Pay order {number}"
        document["grace"]["action_feedback"] = [
            {"action": each.id, "correct": each.correct, "source": "user", "at": "2026-01-02T03:04:05.000Z"}
            for each in labelled.actions
            if each.trace.id == trace.id
        ]
        yield json.dumps(document)


def test_actions_are_summed_up_within_80_columns(command, written):
    """By tool, with the labels that each level still needs, and what predicts errors with its counts."""
    source = written(acted_lines(150))
    ran = command(
        "calibrate", "--actions", source, "--risk", "silent=0.1", "--risk", "notify=0.3", "--holdout", "0", columns=80
    )
    assert (0, "") == (ran.returncode, ran.stderr)
    assert max(map(len, ran.stdout.splitlines())) <= 80
    for words in ("300 actions of 150 tasks", "fitted on 300 actions", "150 of them", "Assessed actions by tool", "share right", "Labels still needed", "What predicts errors: for ", "many arguments: ", "odds ratio", "more labels it needs"):  # fmt: skip
        assert words in ran.stdout
    assert re.search(r"^digest +sha256:[0-9a-f]{64}$", ran.stdout, re.MULTILINE)
    assert 2 == sum(line.startswith("pay ") for line in ran.stdout.splitlines())
    assert max(map(len, command("calibrate", "--actions", source, columns=40).stdout.splitlines())) <= 40


def test_a_profile_for_actions_is_written_with_its_promise(command, written, tmp_path):
    """For all tools together, or for each alone."""
    source, out, report = written(acted_lines(300)), tmp_path / "p.json", tmp_path / "r.html"
    options = ("--risk", "notify=0.3", "--out", out, "--report", report)
    ran = command("calibrate", "--actions", source, *options, "--json")
    figures, profile = json.loads(ran.stdout), cal.CalibratedProfile.load(out)
    assert ("action", 120) == (profile.promise["unit"], profile.promise["n"])
    assert figures["thresholds"] == profile.thresholds.to_dict()
    assert {"pay", "send"} == set(figures["tools"]) == set(profile.action.tools)
    assert {} == profile.action.thresholds
    assert {"flagged", "n", "wrong", "wrong_others", "odds_ratio", "interval"} < set(figures["predictors"][0])
    assert "Labels still needed, by tool" in report.read_text(encoding="utf-8")
    command("calibrate", "--actions", "--per-tool", source, *options)
    profile = cal.CalibratedProfile.load(out)
    assert {"pay", "send"} == set(profile.action.thresholds)
    assert gk.Grace(profile=str(out), store="memory:").status()["profile"]["name"]


def test_actions_of_a_store(command, url):
    with gk.Grace(store=url, evaluator=None, embedder=None) as grace:
        for line in acted_lines(12):
            grace.store.put([record_of(json.loads(line))])
    ran = command("calibrate", "--actions", "--store", url, columns=80)
    assert 0 == ran.returncode
    assert "24 actions of 12 tasks" in ran.stdout
    assert "silent at 0.05 needs at least 67 labels without an error, and there are 5" in ran.stdout
    assert "do not use this profile: every level is never" in " ".join(ran.stdout.split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--actions", "--label", "reward"), "with --actions, labels of actions count"),
        (("--per-tool",), "--per-tool needs --actions"),
        (("--actions", "--moment", "end"), "moment must be action"),
        (("--actions",), "there are no labelled actions"),
    ],
)
def test_options_for_actions_are_checked(command, written, options, words):
    ran = command("calibrate", written(labelled_lines(20)), *options)
    assert ran.returncode
    assert words in ran.stderr


@pytest.mark.parametrize("chosen", [(), ("--out",), ("--report",), ("--out", "--report")])
def test_files_are_written_only_where_an_option_says(command, written, tmp_path, chosen):
    source, options = written(labelled_lines(200)), [text for option in chosen for text in (option, f"mine{option}")]
    ran = command("calibrate", source, *RISKS, *options)
    assert 0 == ran.returncode
    assert sorted([source.name, *(f"mine{option}" for option in chosen)]) == sorted(
        path.name for path in tmp_path.iterdir()
    )
    for option in ("--out", "--report"):
        assert (option not in chosen) == (f"not written; {option} names a file for it" in ran.stdout)
    assert ("--out" in chosen) == ("use it" in ran.stdout)
    if "--out" in chosen:
        profile = cal.CalibratedProfile.load(tmp_path / "mine--out")
        assert "action" == profile.promise["moment"]
        assert profile.digest in "".join(ran.stdout.split())


@pytest.mark.parametrize(
    ("rows", "risks", "words"),
    [
        (labelled_lines(200), ("silent=0.01",), ["every level is never, so gates would escalate every action"]),
        (labelled_lines(200, labels=[True, False] * 100), ("confirm=0.9",), ["the interval of its AUROC, "]),
        (labelled_lines(200, labels=[True, False] * 100), ("silent=0.01",), ["the interval of its AUROC, ", "every level is never"]),
    ],
    ids=["never", "chance", "both"],
)  # fmt: skip
def test_a_profile_that_says_nothing_is_not_to_be_used(command, written, tmp_path, rows, risks, words):
    """The summary, the JSON form and the report say so, and nobody is told how to use it."""
    path, out, report = written(rows), tmp_path / "p.json", tmp_path / "r.html"
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


def test_labels_that_cannot_be_enough_are_named_before_anything_else(command, written):
    ran = command(
        "calibrate", written(labelled_lines(100)), "--risk", "silent=0.02", "--risk", "confirm=0.6", columns=100
    )
    assert ran.stdout.startswith(
        "silent at 0.02 needs at least 149 labels without an error, and there are 40.\nOf 100 tasks, 40% are held back"
    )


def test_json_is_for_machines(command, written):
    ran = command("calibrate", written(labelled_lines(100)), "--risk", "silent=0.02", "--json", "--holdout", "0")
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


def test_the_report_is_written_as_a_page(command, written, tmp_path):
    """With two diagrams, each in two sizes; hostile names do not become markup."""
    rows = labelled_lines(100, grace={"source": {"model": HOSTILE, "task_id": HOSTILE}})
    report = tmp_path / "report.html"
    ran = command("calibrate", written(rows, "<b>.jsonl"), "--label", "correct", "--report", report)
    page = report.read_text(encoding="utf-8")
    assert (0, 4) == (ran.returncode, page.count("<svg"))
    assert "<script" not in page
    assert "<b>" not in page
    assert "\x1b" not in page + ran.stdout + ran.stderr
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (list(labelled_lines(3)), "too few labels to fit a confidence: there are"),
        (list(labelled_lines(100, labels=[True] * 100)), "0 wrong; at least 50 are needed, 15 of each"),
        (list(labelled_lines(60, label="other")), "there are no labelled runs (60 no label)"),
    ],
    ids=["three labels", "one class", "no labels"],
)
def test_a_refusal_is_one_line_with_numbers(command, written, rows, words):
    path = written(rows)
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
        (["--holdout", "nan"], "--holdout must be a share of the tasks from 0 to 0.9 (got nan)"),
        (["--label", "reward", "--sources", "user"], "label and sources exclude each other"),
        (["--sources", "Mallory!"], "is not a source"),
        (["--store", "memory:"], "name files or --store, not both"),
    ],
)
def test_wrong_usage_is_exit_code_2(command, written, arguments, words):
    ran = command("calibrate", written(labelled_lines(3)), *arguments)
    assert 2 == ran.returncode
    assert words in ran.stderr
    assert "" == ran.stdout


def test_a_folder_that_is_missing_is_found_before_the_work(command, written, tmp_path):
    ran = command("calibrate", written(labelled_lines(3)), "--out", tmp_path / "none" / "profile.json")
    assert 1 == ran.returncode
    assert "does not exist" in ran.stderr
    ran = command("calibrate", written(labelled_lines(3)), "--report", tmp_path)
    assert (1, True) == (ran.returncode, "it is a folder" in ran.stderr)


def test_bad_lines_are_reported_and_the_rest_is_used(command, written):
    """The exit code says that the file could not be read in full."""
    rows = ["{broken", *labelled_lines(100), '{"correct": "perhaps", "messages": [{"role": "user", "content": "x"}]}']
    ran = command("calibrate", written(rows, "runs.jsonl.gz"), *RISKS, columns=100)
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


def gated(number, score=0.8, **grace):
    answer = {"action": "proceed", "reviewer": "ana \x1b[31m", "response_time_ms": 900.0}
    entry = {"action": "pay\x1b[2J", "outcome": "executed", "level": "confirm", "score": score, "response": answer}
    return document(number, status="completed", decisions=[entry], **grace)


@pytest.fixture
def gated_runs(tmp_path):
    path = tmp_path / "traces.jsonl"
    labels = [[{"correct": number % 3 > 0, "source": "user"}] for number in range(12)]
    path.write_text("".join(json.dumps(gated(number, feedback=labels[number])) + "\n" for number in range(12)))
    return path


def test_replay_compares_with_what_was_recorded(command, gated_runs):
    ran = command("replay", gated_runs, "--a-thresholds", "0.9,0.7,0.4", "--price", 60, columns=80)
    assert (0, "") == (ran.returncode, ran.stderr)
    assert "gated actions: 12 decisions of 12 runs, 8 right, 4 wrong" in ran.stdout
    assert "B = recorded" in ran.stdout
    assert max(map(len, ran.stdout.splitlines())) <= 80
    assert ran.stdout.replace("\n", "").isprintable()


def test_replay_as_json(command, gated_runs):
    options = "--a-thresholds never,never,0.4 --b-floor pay*=deny --price 30 --minutes 5 --json"
    ran = command("replay", gated_runs, *options.split())
    report = json.loads(ran.stdout)
    actions = report["actions"]
    assert (0, 12, 12) == (ran.returncode, actions["a"]["levels"]["confirm"], actions["b"]["levels"]["denied"])
    assert (60.0, 30.0) == (actions["a"]["minutes"], actions["a"]["price"])
    assert "never / never / 0.4" == actions["a"]["name"]


def test_replay_reads_the_store(command, recorded):
    report = json.loads(command("replay", "--store", recorded, "--a-thresholds", "1,1,0", "--json").stdout)
    assert (2, 2) == (report["actions"]["decisions"], report["runs"]["decisions"])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "nothing to compare: state policy A with --a, --a-thresholds or --a-floor"),
        (["--a", "nonsense"], "'nonsense' is not a policy; known are 'recorded', the profiles 'grace', 'strict'"),
        (["--a", "recorded", "--a-thresholds", "1,1,1"], "--a recorded cannot have thresholds or floors"),
        (["--a-thresholds", "0.9,0.7"], "--a-thresholds '0.9,0.7': write silent,notify,confirm"),
        (["--b-thresholds", "0.1,0.2,0.3"], "thresholds must satisfy silent >= notify >= confirm"),
        (["--b-floor", "deny"], "--b-floor 'deny': write ACTION=FLOOR"),
        (["--b-floor", "pay=sure"], "floor must be one of"),
        (["--a", "grace", "--store", "memory:"], "name files or --store, not both"),
    ],
)
def test_wrong_usage_is_explained(command, gated_runs, options, problem):
    ran = command("replay", gated_runs, *options)
    assert (2, 1, "") == (ran.returncode, len(ran.stderr.splitlines()), ran.stdout)
    assert problem in ran.stderr


def test_what_cannot_be_read_or_replayed_fails(command, gated_runs, tmp_path):
    gated_runs.write_text(gated_runs.read_text() + "{broken\n")
    ran = command("replay", gated_runs, "--a-thresholds", "0.9,0.7,0.4")
    assert (1, True) == (ran.returncode, "12 decisions" in ran.stdout)
    assert f"{gated_runs}:13" in ran.stderr
    old = tmp_path / "old.jsonl"
    old.write_text(json.dumps(gated(1)))
    ran = command("replay", old, "--a", "strict")
    assert 1 == ran.returncode
    assert "nothing could be replayed; the notes of the report say why" in ran.stderr
    missing = command("replay", "--store", f"sqlite:///{tmp_path}/none.db", "--a", "grace")
    assert (1, True) == (missing.returncode, "no store exists at" in missing.stderr)
    profile = command("replay", gated_runs, "--a", tmp_path / "none.json")
    assert (1, True) == (profile.returncode, "none.json" in profile.stderr)


def test_runs_that_a_profile_was_fitted_on_are_left_out(command, tmp_path):
    """Unless an option includes them; the report says how many there were."""
    runs, labels = drawn_runs(60)
    for number, run in enumerate(runs):
        run["id"] = f"kp:trace:{number}"
    profile, path = tmp_path / "profile.json", tmp_path / "runs.jsonl"
    cal.fit(runs[:50], labels[:50]).save(profile)
    path.write_text("".join(json.dumps(run) + "\n" for run in runs), encoding="utf-8")
    left_out = json.loads(command("replay", path, "--a", profile, "--json").stdout)
    assert (60, 50, 10) == (left_out["traces"], left_out["fitted"], left_out["runs"]["runs"])
    assert "50 traces left out" in command("replay", path, "--a", profile).stdout
    included = json.loads(command("replay", path, "--a", profile, "--include-fitted", "--json").stdout)
    assert (0, 60) == (included["fitted"], included["runs"]["runs"])


def test_reviewers_shows_counts(command, gated_runs, recorded):
    ran = command("reviewers", gated_runs, columns=80)
    assert (0, "") == (ran.returncode, ran.stderr)
    assert "12 traces, 1 reviewer" in ran.stdout
    assert ran.stdout.replace("\n", "").isprintable()
    hidden = command("reviewers", gated_runs, "--pseudonyms", "--json")
    assert ("reviewer 1", False) == (json.loads(hidden.stdout)["reviewers"][0]["name"], "ana" in hidden.stdout)
    (ana,) = json.loads(command("reviewers", "--store", recorded, "--json").stdout)["reviewers"]
    assert ("ana", 1, 1) == (ana["name"], ana["refused"], ana["modified"])


def test_a_field_of_a_file_labels_its_runs(command, tmp_path):
    """Rewards of chat runs count as labels, as they do for `grace-kp calibrate`."""
    path = tmp_path / "runs.jsonl"
    rows = [
        {
            "task_id": number,
            "reward": float(number % 2),
            "traj": [{"role": "user", "content": f"question {number}"}, {"role": "assistant", "content": "answer"}],
        }
        for number in range(6)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    ran = command("replay", path, "--a", "grace", "--b", "strict", "--json")
    runs = json.loads(ran.stdout)["runs"]
    assert (3, 3) == (runs["right"], runs["wrong"])
    ran = command("replay", "--store", "memory:", "--label", "reward", "--a", "grace")
    assert 2 == ran.returncode
    assert "--label names a field of a file" in ran.stderr
