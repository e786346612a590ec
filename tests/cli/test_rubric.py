"""`grace-kp rubric`: check, score, compare and history, judged by files, a person at a terminal, or a model."""

from __future__ import annotations

import json
import os
import re
from types import SimpleNamespace

import pytest

from grace_kp import GraceError
from grace_kp import rubric as rb
from grace_kp.cli._output import check_writable
from tests.cli.program import ended

pytest.importorskip("yaml", reason="needs the extra eval")

TESTS = """\
scope: Legal risks for the buyer.
documents:
  - id: contract
    domain: law
    bonus_candidates: 3
    file: contract.txt
    problems:
      - {id: limit, category: liability, severity: critical, kind: main, key: names the missing limit}
      - {id: term, category: duration, severity: medium, kind: adjacent}
  - id: service
    domain: code
    problems:
      - {id: limit, category: liability, severity: critical, kind: main}
      - {id: term, category: duration, severity: medium, kind: adjacent}
"""
BASE = """\
name: base
runs:
  - {document: contract, judgements: "○×", second: {judgements: "△×"}}
  - {document: contract, judgements: [x, x]}
  - {document: service, judgements: {limit: △, term: missed}, bonuses: 1}
  - {document: service, judgements: "××", penalties: 1}
"""
LONGER = 'runs:\n- {document: contract, judgements: "○○"}\n- {document: contract, judgements: "○△"}\n- {document: service, judgements: "○○"}\n- {document: service, judgements: "○○"}\n'
OPEN = "name: open\nruns:\n- {document: contract, output: 'The limit of liability is missing.'}\n- {document: service, output: 'Nothing to say.'}\n"


@pytest.fixture
def room(tmp_path):
    for name, text in {
        "tests.yaml": TESTS,
        "base.yaml": BASE,
        "longer.yaml": LONGER,
        "open.yaml": OPEN,
        "contract.txt": "It has no end.",
    }.items():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


@pytest.fixture
def run(command, room, monkeypatch):
    monkeypatch.chdir(room)
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return lambda *arguments: command("rubric", *arguments)


def flat(text):
    return " ".join(text.split())


def test_check(run, room):
    ran = run("check", "tests.yaml")
    assert (0, "") == (ran.returncode, ran.stderr)
    assert "document service: there should be 3 to 5 bonus candidates, not 0" in flat(ran.stdout)
    assert 1 == run("check", "tests.yaml", "--strict").returncode
    told = json.loads(run("check", "tests.yaml", "--json").stdout)
    assert (2, ["liability", "duration"]) == (told["documents"], told["categories"])


def test_score(run):
    ran = run("score", "tests.yaml", "base.yaml", "longer.yaml")
    assert (0, "") == (ran.returncode, ran.stderr)
    page = flat(ran.stdout)
    assert "base 0.5 0 1 -0.5 0.25 0.65 medium 0.00 0.00" in page
    assert "longer 2 1.5 2 2 1.88 0.25 high 0.25 0.88" in page
    assert "duration 0.00 0.88" in page
    assert "base: two raters agree on 50% of 2 judgements; Cohen's kappa 0.33" in page
    assert "run 1 (contract), limit: ○ and △, △ counts" in page
    (told,) = json.loads(run("score", "tests.yaml", "base.yaml", "--json").stdout)
    assert [0.5, 0.0, 1.0, -0.5] == told["variant"]["scores"]
    assert ("○", "△", "△") == tuple(told["disputes"][0][name] for name in ("first", "second", "settled"))


def test_compare_two_files(run, room):
    ran = run("compare", "tests.yaml", "base.yaml", "longer.yaml", "--html", "page.html")
    assert (0, "") == (ran.returncode, ran.stderr)
    page = flat(ran.stdout)
    assert "continue with longer: the variant is better by 1.62, evenly across documents" in page
    assert "p = 0.125 over 5 pairs; further runs of each that would settle it: cannot be told" in page
    told = json.loads(run("compare", "tests.yaml", "base.yaml", "longer.yaml", "--json").stdout)
    assert ("variant", 1.625) == (told["recommendation"]["choice"], told["recommendation"]["raw_diff"])
    assert 4 == (room / "page.html").read_text("utf-8").count("<svg")


def test_rounds_in_a_history(run, room):
    first = run("compare", "tests.yaml", "history.md", "base.yaml", "--record")
    assert "recorded as round 1 in history.md" in first.stdout
    second = run("compare", "tests.yaml", "history.md", "longer.yaml", "--record", "--notes", "Asks for reasons.")
    assert "continue with longer" in second.stdout
    third = run("compare", "tests.yaml", "history.md", "base.yaml")
    assert "continue with longer: keep the current best: the variant regresses in liability by 0.75" in flat(
        third.stdout
    )
    again = run("compare", "tests.yaml", "history.md", "longer.yaml", "--record")
    assert 1 == again.returncode
    assert "history.md already has a variant 'longer'; choose another name" in flat(again.stderr)
    history = rb.History.load(room / "history.md")
    assert ["base", "longer"] == [one.variant.name for one in history.rounds]
    assert "Asks for reasons." == history.rounds[1].notes
    shown = run("history", "history.md", "--html", "page.html")
    assert "2 longer 1.88 0.25 high 0.25 +1.62 goes on with it" in flat(shown.stdout)
    assert "the best is longer (mean 1.88); continue" in shown.stdout
    told = json.loads(run("history", "history.md", "--json").stdout)
    assert ("longer", False, "Asks for reasons.") == (told["best"], told["converged"], told["rounds"][1]["notes"])
    assert 4 == (room / "page.html").read_text("utf-8").count("<svg")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ["score", "tests.yaml", "open.yaml"],
            "open.yaml: 2 of 2 runs have no judgements; add them with --by terminal or --by model",
        ),
        (
            ["score", "tests.yaml", "open.yaml", "--by", "terminal"],
            "--by terminal needs a terminal as standard input",
        ),
        (["score", "tests.yaml", "open.yaml", "--by", "model"], "no model can judge: no API key is set"),
        (["score", "tests.yaml", "base.yaml", "longer.yaml", "--out", "x.json"], "--out takes one variant"),
        (
            ["compare", "tests.yaml", "none.md", "base.yaml"],
            "none.md has no rounds yet; use --record to make this variant the first",
        ),
        (["compare", "tests.yaml", "base.yaml", "longer.yaml", "--record"], "--record needs a history"),
        (
            ["compare", "tests.yaml", "none.md", "base.yaml", "--record", "--html", "x.html"],
            "nothing to compare the first round with",
        ),
        (["history", "none.md"], "none.md: the file does not exist"),
        (["history", "contract.txt"], "contract.txt is not a history: it names no test set"),
    ],
)
def test_mistakes_are_one_line(run, room, arguments, problem):
    ran = run(*arguments)
    assert ran.returncode in {1, 2}
    assert problem in flat(ran.stderr)
    assert "Traceback" not in ran.stderr
    assert not (room / "none.md").exists()


@pytest.fixture
def person(room, terminal):
    """A person is asked at a terminal; what is judged goes to `judged.json`."""
    return terminal("rubric", "score", "tests.yaml", "open.yaml", "--by", "terminal", "--out", "judged.json", cwd=room)


def test_a_person_at_the_terminal(room, person):
    for typed in ("o", "perhaps", "t", "1", "0", "x", "x", "0", "2"):
        person.expect("> |\\? ")
        person.sendline(typed)
    assert 0 == ended(person), person.before
    tests = rb.read_test_set(room / "tests.yaml")
    name, outputs = rb.read_variant(room / "judged.json", tests)
    assert ["The limit of liability is missing.", "Nothing to say."] == [one.text for one in outputs]
    assert [2.0, -1.0] == list(rb.rate(name, outputs, tests).variant.scores)
    assert "person" == outputs[0].ratings[0].rater


def test_what_a_person_has_judged_is_kept(room, person):
    for typed in ("o", "t", "1", "0"):
        person.expect("> |\\? ")
        person.sendline(typed)
    person.expect("> ")
    person.sendintr()
    assert 130 == ended(person)
    _, outputs = rb.read_variant(room / "judged.json", rb.read_test_set(room / "tests.yaml"))
    assert [1, 0] == [len(one.ratings) for one in outputs]


@pytest.fixture
def model(room, monkeypatch):
    """A model that judges: what each call is to say, by its number; then the first for ever."""
    monkeypatch.chdir(room)
    found = SimpleNamespace(seen=[], says=[["detected", "missed"]])

    def judge(prompt):
        found.seen.append(prompt)
        code = re.search(r'"([0-9a-f]{12})-n"', prompt)[1]
        verdicts = found.says[(len(found.seen) - 1) % len(found.says)]
        judgements = {f"{code}-{n}": {"verdict": word, "reason": "so"} for n, word in enumerate(verdicts, 1)}
        return json.dumps({"judgements": judgements, "bonuses": [], "penalties": []})

    monkeypatch.setattr("grace_kp.models.choose_judge", lambda settings: SimpleNamespace(model=judge, why=""))
    return found


def test_a_model_judges_twice(command, room, model):
    model.says = [["detected", "missed"], ["partial", "missed"], ["missed", "missed"], ["missed", "missed"]]
    ran = command("rubric", "score", "tests.yaml", "open.yaml", "--by", "model", "--out", "judged.json")
    assert (0, "") == (ran.returncode, ran.stderr)
    assert "two raters agree on 75% of 4 judgements" in ran.stdout
    assert "run 1 (contract), limit: ○ and △, △ counts" in ran.stdout
    assert 4 == len(model.seen)
    for text in ("Legal risks for the buyer.", "It has no end.", "names the missing limit", "The limit of liability is missing."):  # fmt: skip
        assert text in model.seen[0]
    again = command("rubric", "score", "tests.yaml", "judged.json", "--by", "model", "--json")
    assert (0, 4) == (again.returncode, len(model.seen))
    assert [0.5, 0.0] == json.loads(again.stdout)[0]["variant"]["scores"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ["compare", "tests.yaml", "history.md", "open.yaml", "--record"],
            "history.md already has a variant 'open'",
        ),
        (["compare", "other.yaml", "history.md", "base.yaml"], "the rounds in history.md were run on another test set"),
        (["compare", "tests.yaml", "history.md", "base.yaml", "--html", "nowhere/x.html"], "nowhere does not exist"),
        (["score", "tests.yaml", "open.yaml", "--out", "nowhere/x.json"], "nowhere does not exist"),
        (["compare", "tests.yaml", "contract.md", "open.yaml", "--record"], "contract.md is not a history"),
    ],
)
def test_what_can_be_known_before_is_said_before_anybody_judges(command, room, model, arguments, problem):
    (room / "contract.md").write_text("# A contract", "utf-8")
    (room / "other.yaml").write_text(TESTS.replace("names the missing limit", "another key"), "utf-8")
    (room / "named.yaml").write_text(LONGER.replace("runs:", "name: open\nruns:"), "utf-8")
    assert 0 == command("rubric", "compare", "tests.yaml", "history.md", "named.yaml", "--record").returncode
    before = (room / "history.md").read_bytes()
    ran = command("rubric", *arguments, "--by", "model")
    assert 1 == ran.returncode
    assert problem in flat(ran.stderr)
    assert [] == model.seen
    assert before == (room / "history.md").read_bytes()


def test_a_round_is_added_again_when_another_process_has_saved_one(command, room, monkeypatch):
    monkeypatch.chdir(room)
    save, changes = rb.History.save, [rb.HistoryChanged("it has changed")]

    def save_late(history):
        if changes:
            raise changes.pop()
        save(history)

    monkeypatch.setattr(rb.History, "save", save_late)
    assert 0 == command("rubric", "compare", "tests.yaml", "history.md", "base.yaml", "--record").returncode
    assert ["base"] == [one.variant.name for one in rb.History.load(room / "history.md").rounds]


@pytest.mark.parametrize(
    ("refused", "problem"),
    [("x.json", "x.json: cannot be written: Permission denied"), ("", ": cannot write into this folder")],
)
def test_files_without_permission_are_refused(tmp_path, monkeypatch, refused, problem):
    (tmp_path / "x.json").write_text("{}")
    check_writable(tmp_path / "x.json", tmp_path / "new.json", None)
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path / refused)
    with pytest.raises(GraceError, match=problem):
        check_writable(tmp_path / "x.json")
