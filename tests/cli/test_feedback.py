"""`grace-kp feedback` on the command line, and how labels are shown, listed and exported."""

from __future__ import annotations

import json

import pytest

import grace_kp as gk
from grace_kp import calibrate as cal
from grace_kp.store import open_store
from tests.store.samples import document, put


@pytest.fixture
def url(tmp_path, monkeypatch):
    path = f"sqlite:///{tmp_path / 't.db'}"
    monkeypatch.setenv("GRACE_KP_STORE", path)
    with gk.Grace(store=path, evaluator=None, embedder=None, reviewer=None, new_id=iter(f"kp:trace:{n}aaa{n}" for n in range(3)).__next__) as grace:  # fmt: skip
        for name in ("one", "two", "three"):
            with grace.run(name):
                pass
    return path


def labels(url, name):
    store = open_store(url, create=False)
    found = store.get(f"kp:trace:{name}").grace.get("feedback", [])
    store.close()
    return found


def test_a_label_for_one_run(command, url):
    """By the beginning of its id, or the last one; words and numbers."""
    assert (0, "stored feedback on kp:trace:0aaa0\n", "") == command("feedback", "0aa", "correct")
    ran = command("feedback", "last", "wrong", "--source", "test", "--by", "ana", "--note", "no refund", "--json")
    printed = json.loads(ran.stdout)
    assert (0, "kp:trace:2aaa2", False, "ana") == (ran.returncode, printed["trace_id"], printed["correct"], printed["by"])  # fmt: skip
    assert 0 == command("feedback", "kp:trace:1aaa1", "0.7", "--probability", "0.5").returncode
    assert [(True, "user"), (0.7, "user"), (False, "test")] == [
        (entry["correct"], entry["source"]) for name in ("0aaa0", "1aaa1", "2aaa2") for entry in labels(url, name)
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["0aa", "maybe"], 2, "the label must be correct, wrong, or a number from 0 to 1 (got 'maybe')"),
        (["0aa", "correct", "--source", "a b"], 2, "source must be a name"),
        (["0aa", "correct", "--source", "audit"], 2, "source 'audit' needs --probability"),
        (["9zz", "correct"], 1, "no trace '9zz'"),
        (["0aa"], 2, "feedback needs a trace id and a label, or --file"),
        (["0aa", "correct", "--file", "x"], 2, "feedback needs a trace id and a label, or --file"),
        (["--file", "nothing.csv"], 1, "nothing.csv: No such file or directory"),
        (["0aa", "correct", "--store", "sqlite:///nowhere/t.db"], 1, "no store exists at"),
    ],
)
def test_mistakes_are_one_line(command, url, arguments, code, message):
    """Exit 2 for wrong usage, 1 for what is not there; nothing is stored."""
    ran = command("feedback", *arguments)
    assert (code, "", 1) == (ran.returncode, ran.stdout, ran.stderr.count("\n"))
    assert message in ran.stderr
    assert [] == labels(url, "0aaa0")


def test_labels_from_a_file(command, url, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("trace_id,correct,source\n0aaa0,1,\n1aaa1,wrong,user\n")
    assert (0, "stored 2 labels\n", "") == command("feedback", "--file", path, "--source", "test")
    assert ["test", "user"] == [labels(url, name)[0]["source"] for name in ("0aaa0", "1aaa1")]
    path.write_text("trace_id,correct\n" + "0aaa0,1\n" * 600 + "nobody,1\n" * 7)
    ran = command("feedback", "--file", path)
    assert (1, "stored 600 labels, 7 could not be stored\n") == (ran.returncode, ran.stdout)
    assert f"grace-kp: {path}:602: no trace kp:trace:nobody in the store\n" in ran.stderr
    assert 6 == ran.stderr.count("\n")
    assert "and 2 more that could not be stored" in ran.stderr
    assert {"stored": 600, "problems": 7} == json.loads(command("feedback", "--file", path, "--json").stdout)


def test_show_names_the_labels(command, url):
    command("feedback", "0aa", "correct", "--by", "ana")
    note = "key sk-proj-abcdefghijklmnopqrstuvwxyz012345 \x1b[2J"
    command("feedback", "0aa", "0.25", "--note", note, "--probability", "0.5")
    shown = command("traces", "show", "0aa", columns=200).stdout
    first, second = (line for line in shown.splitlines() if line.startswith("feedback"))
    assert first.startswith("feedback    0.25, user, 20")
    assert ", probability 0.5: key [REDACTED:api_key]" in first
    assert "feedback    correct, user, by ana, 20" in second
    assert "\x1b" not in shown
    for _ in range(25):
        command("feedback", "1aa", "wrong")
    assert "and 5 earlier ones; --full shows all" in command("traces", "show", "1aa").stdout
    assert 25 == command("traces", "show", "1aa", "--full").stdout.count("feedback    wrong, user")


def test_labelled_runs_are_listed(command, url):
    """With any label, with one of a source, and without."""
    command("feedback", "0aa", "correct")
    command("feedback", "1aa", "wrong", "--source", "test")

    def listed(*options):
        return sorted(trace["id"][9:10] for trace in json.loads(command("traces", "list", "--json", *options).stdout))

    assert (["0", "1"], ["2"]) == (listed("--feedback"), listed("--no-feedback"))
    assert (["1"], ["0", "2"]) == (listed("--feedback-source", "test"), listed("--no-feedback", "--feedback-source", "test"))  # fmt: skip


def test_a_label_for_one_action(command, url):
    """By its number or an id; it is shown with the run, and does not make it a labelled one."""
    store = open_store(url)
    decisions = [{"id": name, "action": "pay", "outcome": "executed"} for name in ("first", "second")]
    put(store, document("paid", decisions=decisions))
    store.close()
    ran = command("feedback", "paid", "wrong", "--action", "2", "--by", "ana")
    assert (0, "stored feedback on the action second of kp:trace:paid\n") == (ran.returncode, ran.stdout)
    printed = json.loads(command("feedback", "paid", "correct", "--action", "first", "--json").stdout)
    assert ("kp:trace:paid", "first", True) == (printed["trace_id"], printed["action"], printed["correct"])
    assert "wrong, action second, user, by ana" in command("traces", "show", "paid").stdout
    assert "kp:trace:paid" not in command("traces", "list", "--feedback", "--json").stdout
    missed = command("feedback", "paid", "wrong", "--action", "3")
    assert (2, 1) == (missed.returncode, missed.stderr.count("\n"))
    assert "its gated actions: 1 pay (first), 2 pay (second)" in missed.stderr
    assert 2 == command("feedback", "--file", "x.csv", "--action", "1").returncode


def test_an_imported_file_states_the_labels_of_its_actions_as_its_own(command, url, tmp_path):
    """Whatever source they name in it."""
    decisions = [{"id": "a", "action": "pay", "outcome": "executed"}]
    labels = [{"action": "a", "correct": True, "source": "user", "by": "ana"}]
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(document("there", decisions=decisions, action_feedback=labels)))
    assert 0 == command("traces", "import", str(path)).returncode
    store = open_store(url, create=False)
    stored = store.get("kp:trace:there").grace["action_feedback"]
    assert [("a", "import:runs.jsonl")] == [(each["action"], each["source"]) for each in stored]
    assert {"label of another source": 1} == dict(cal.action_labels(store).left_out)
    (label,) = cal.action_labels(store, "import:runs.jsonl").actions
    assert (True, False) == (label.correct, label.is_audited)
    store.close()
