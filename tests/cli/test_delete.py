"""`grace-kp traces delete` and the filters by tag, user, session and metadata, as a user meets them."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pexpect
import pytest

import grace_kp as gk
from grace_kp.cli._app import main
from grace_kp.judge import JudgementCache

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def url(tmp_path, monkeypatch):
    path = f"sqlite:///{tmp_path}/t.db"
    monkeypatch.setenv("GRACE_KP_STORE", path)
    with gk.Grace(store=path, evaluator=None, embedder=None, reviewer=None) as grace:
        for name, user in (("one", "ana"), ("two", "ana"), ("three", "ben")):
            with grace.run(name, user=user, session=f"s-{name}", tags=["all", name], metadata={"n": len(name)}):
                pass
    return path


@pytest.fixture
def call(capsys):
    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["traces", *arguments])
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run


def objectives(call, *conditions):
    _, out, _ = call("list", "--json", *conditions)
    return sorted(trace["task"]["objective"] for trace in json.loads(out))


def test_list_and_export_filter_by_attributes(url, call, tmp_path):
    """Options may be repeated, and hold together."""
    assert ["one", "two"] == objectives(call, "--user", "ana")
    assert ["two"] == objectives(call, "--tag", "all", "--tag", "two")
    assert ["three"] == objectives(call, "--metadata", "n=5", "--session", "s-three")
    assert 0 == call("export", str(tmp_path / "x.jsonl"), "--user", "ana")[0]
    assert 2 == len((tmp_path / "x.jsonl").read_text().splitlines())
    code, _, err = call("list", "--metadata", "n")
    assert (2, True) == (code, "KEY=VALUE" in err)


def test_show_names_them(url, call):
    """A line each."""
    _, out, _ = call("show", "last")
    for line in ("tags        all, three", "user        ben", "session     s-three", 'metadata    {"n": 5}'):
        assert line in out


def test_delete_with_yes_prints_what_it_did(url, call):
    """A line for people, a report for machines, exit 0; what is not there is no error for conditions, and one for an id."""
    code, out, err = call("delete", "--user", "ana", "--yes")
    assert (0, "deleted 2 runs\n", "") == (code, out, err)
    assert ["three"] == objectives(call)
    code, out, _ = call("delete", "--older-than", "0s", "--session", "s-three", "--yes", "--json")
    assert (0, {"deleted": 1, "actions": 0, "open": [], "clean": True, "remains": ""}) == (code, json.loads(out))
    assert (0, "deleted 0 runs\n", "") == call("delete", "--user", "ana", "-y")
    code, _, err = call("delete", "nothing", "--yes")
    assert (1, True) == (code, "no trace" in err)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [((), "needs a condition"), (("--user", "ana"), "--yes"), (("--older-than", "soon", "--yes"), "older_than"), (("--user", "", "--yes"), "user")],
)  # fmt: skip
def test_delete_without_a_condition_or_an_answer_deletes_nothing(url, call, arguments, hint):
    """One line that says what is missing; exit 2."""
    code, out, err = call("delete", *arguments)
    assert (2, "", True) == (code, out, hint in err)
    assert ["one", "three", "two"] == objectives(call)


@pytest.mark.parametrize(("answer", "left"), [("", 3), ("n", 3), ("y", 1)])
def test_delete_asks_at_a_terminal(url, answer, left):
    """Only a yes deletes; the question says how many runs."""
    child = pexpect.spawn(
        sys.executable, ["-m", "grace_kp.cli", "traces", "delete", "--user", "ana"], env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=300
    )  # fmt: skip
    child.expect(r"Delete 2 runs \(user ana\)")
    child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert (0 if answer == "y" else 130) == child.exitstatus
    store = gk.Grace(store=url).store
    assert left == store.count()


def test_delete_empties_the_judgement_cache(url, call, tmp_path, monkeypatch):
    """Its reasons may quote a deleted run."""
    path = tmp_path / "judgements.db"
    monkeypatch.setenv("GRACE_KP_JUDGE_CACHE", str(path))
    cache = JudgementCache(path)
    cache.put("k", {"score": 0.5, "reason": "QUOTED" * 900})
    cache.close()
    code, out, _ = call("delete", "--user", "ana", "--yes")
    assert (0, True) == (code, "judgement cache" in out)
    assert not any(b"QUOTED" in file.read_bytes() for file in tmp_path.iterdir())
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
