"""`grace-kp replay` and `grace-kp reviewers` read files or the store."""

from __future__ import annotations

import json

import pytest

from grace_kp import calibrate as cal
from tests.calibrate.examples import drawn_runs
from tests.cli.program import document


def gated(number, score=0.8, **grace):
    answer = {"action": "proceed", "reviewer": "ana \x1b[31m", "response_time_ms": 900.0}
    entry = {"action": "pay\x1b[2J", "outcome": "executed", "level": "confirm", "score": score, "response": answer}
    return document(number, status="completed", decisions=[entry], **grace)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "traces.jsonl"
    labels = [[{"correct": number % 3 > 0, "source": "user"}] for number in range(12)]
    path.write_text("".join(json.dumps(gated(number, feedback=labels[number])) + "\n" for number in range(12)))
    return path


def test_replay_compares_with_what_was_recorded(command, file):
    ran = command("replay", file, "--a-thresholds", "0.9,0.7,0.4", "--price", 60, columns=80)
    assert (0, "") == (ran.returncode, ran.stderr)
    assert "gated actions: 12 decisions of 12 runs, 8 right, 4 wrong" in ran.stdout
    assert "B = recorded" in ran.stdout
    assert max(map(len, ran.stdout.splitlines())) <= 80
    assert ran.stdout.replace("\n", "").isprintable()


def test_replay_as_json(command, file):
    options = "--a-thresholds never,never,0.4 --b-floor pay*=deny --price 30 --minutes 5 --json"
    ran = command("replay", file, *options.split())
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
def test_wrong_usage_is_explained(command, file, options, problem):
    ran = command("replay", file, *options)
    assert (2, 1, "") == (ran.returncode, len(ran.stderr.splitlines()), ran.stdout)
    assert problem in ran.stderr


def test_what_cannot_be_read_or_replayed_fails(command, file, tmp_path):
    file.write_text(file.read_text() + "{broken\n")
    ran = command("replay", file, "--a-thresholds", "0.9,0.7,0.4")
    assert (1, True) == (ran.returncode, "12 decisions" in ran.stdout)
    assert f"{file}:13" in ran.stderr
    old = tmp_path / "old.jsonl"
    old.write_text(json.dumps(gated(1)))
    ran = command("replay", old, "--a", "strict")
    assert 1 == ran.returncode
    assert "nothing could be replayed; the notes of the report say why" in ran.stderr
    missing = command("replay", "--store", f"sqlite:///{tmp_path}/none.db", "--a", "grace")
    assert (1, True) == (missing.returncode, "no store exists at" in missing.stderr)
    profile = command("replay", file, "--a", tmp_path / "none.json")
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


def test_reviewers_shows_counts(command, file, recorded):
    ran = command("reviewers", file, columns=80)
    assert (0, "") == (ran.returncode, ran.stderr)
    assert "12 traces, 1 reviewer" in ran.stdout
    assert ran.stdout.replace("\n", "").isprintable()
    hidden = command("reviewers", file, "--pseudonyms", "--json")
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
