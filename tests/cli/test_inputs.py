"""What commands read: files that are unreadable in part, modules of the user, stores that reading never creates or changes, ids by their beginning."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pexpect
import pytest

import grace_kp as gk
from grace_kp.cli._inputs import load_module
from grace_kp.cli._lookup import find
from grace_kp.errors import GraceError
from tests.cli.program import document, ended

RUN = {
    "task_id": 1,
    "reward": 1.0,
    "traj": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "good day"}],
}
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["runs.jsonl", "runs.csv.gz"])
@pytest.mark.parametrize("count", [2, 150, 3_000])
def test_a_file_of_another_kind_is_one_line(command, written, name, count):
    """The first problem with its place, and what a file holds; not a line per line."""
    path = written((f"{number},a,b" for number in range(count)), name)
    ran = command("score", path)
    assert (1, "no runs") == (ran.returncode, ran.stdout[:7])
    assert 1 == len(ran.stderr.splitlines())
    assert f"{path}:1" in ran.stderr
    assert "traces or chat runs" in ran.stderr
    assert json.loads(command("traces", "import", path, "--store", "memory:", "--json").stdout)["imported"] == 0


def test_the_first_problems_of_a_file_are_named_and_the_rest_counted(command, written):
    """Five lines and a sum; what can be read is scored, wherever it stands."""
    good, bad = json.dumps(RUN), "{broken"
    path = written([bad, bad, bad, good, *[bad] * 40, good])
    ran = command("score", path)
    lines = ran.stderr.splitlines()
    assert [f"{path}:{number}" in line for number, line in zip((1, 2, 3, 5, 6), lines, strict=False)] == [True] * 5
    assert f"grace-kp: {path}: and 38 more that cannot be read" == lines[5]
    assert 6 == len(lines)
    assert "2 runs, 100% successful; 43 could not be read" in ran.stdout
    counts = json.loads(command("traces", "import", path, "--store", "memory:", "--json").stdout)
    assert {"imported": 1, "already_here": 1, "problems": 43} == counts


def test_each_file_is_reported_for_itself(command, written):
    """A file that is missing, one of another kind, and one that can be read."""
    good, bad = written([json.dumps(RUN)]), written(["1", "2", "3"], "bad.jsonl")
    ran = command("score", bad, "none.jsonl", good)
    assert [str(bad), "none.jsonl"] == [line.split(": ")[1].split(":")[0] for line in ran.stderr.splitlines()]
    assert "1 run, 100% successful; 4 could not be read" in ran.stdout


def test_long_work_shows_its_share_and_what_remains_in_a_terminal(written):
    """A percentage, the number of runs and the time left; without a terminal nothing."""
    path = written([json.dumps(RUN)] * 300)
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    code = (
        "import sys, grace_kp.cli._output as o, rich.progress as p\n"
        "kept = p.Progress.update\n"
        "def update(self, *a, **k):\n    kept(self, *a, **k); self.refresh()\n"
        "p.Progress.update = update\n"
        f"from grace_kp.cli import main; main(['score', {str(path)!r}, '--no-summary'])"
    )
    child = pexpect.spawn(sys.executable, ["-c", code], env=environment, encoding="utf-8", timeout=300)
    child.expect("scoring")
    child.expect(r"100%.*300.*left")
    assert 0 == ended(child)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Imported modules and folders are forgotten afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in ("mine_by_name", "mine_by_path", "grace_kp_import_json"):
        sys.modules.pop(name, None)


def test_by_name_and_by_path(tmp_path, monkeypatch):
    """A file with the name of a loaded module does not replace it."""
    monkeypatch.chdir(tmp_path)
    for name in ("mine_by_name", "mine_by_path", "json"):
        (tmp_path / f"{name}.py").write_text("answer = 42\n")
    assert 42 == load_module("mine_by_name", "work").answer
    assert 42 == load_module(str(tmp_path / "mine_by_path.py"), "work").answer
    loaded = sys.modules["json"]
    assert 42 == load_module(str(tmp_path / "json.py"), "work").answer
    assert loaded is sys.modules["json"]


@pytest.mark.parametrize(
    "text", ["raise ValueError('no')", "import sys; sys.exit(3)", "(", "import nothing_of_this_name"]
)
def test_whatever_a_module_raises_is_one_error(tmp_path, text):
    (tmp_path / "mine_by_path.py").write_text(text)
    with pytest.raises(GraceError, match=r"^work .*mine_by_path\.py: "):
        load_module(str(tmp_path / "mine_by_path.py"), "work")


READERS = [
    ["traces", "list"], ["traces", "list", "--json"], ["traces", "show", "last"], ["traces", "export", "out.jsonl"], ["traces", "contribute", "--dry-run", "--url", "http://127.0.0.1:9"], ["traces", "delete", "abc", "--yes"],
]  # fmt: skip


def files(folder):
    return sorted(path.name for path in folder.rglob("*"))


@pytest.fixture
def grace(tmp_path):
    grace = gk.Grace(store=f"sqlite:///{tmp_path / 'traces.db'}", evaluator=None, embedder=None)
    with grace.run("first"):
        pass
    assert grace.flush()
    yield grace
    grace.close()


@pytest.mark.parametrize("arguments", READERS, ids=" ".join)
def test_a_store_that_is_missing_is_named_and_not_created(command, tmp_path, monkeypatch, arguments):
    """Exit code 1, one line with the file, where its name comes from, and how to choose another."""
    monkeypatch.chdir(tmp_path)
    ran = command(*arguments, "--store", "sqlite:///sub/none.db")
    assert (1, "", 1) == (ran.returncode, ran.stdout, len(ran.stderr.splitlines()))
    assert "no store exists at sub/none.db (from --store)" in ran.stderr
    assert "--store or GRACE_KP_STORE" in ran.stderr
    monkeypatch.setenv("GRACE_KP_STORE", "sqlite:///sub/other.db")
    ran = command(*arguments)
    assert "sub/other.db (from environment variable GRACE_KP_STORE)" in ran.stderr
    assert [] == files(tmp_path)


def test_the_default_store_is_not_created_by_reading(command, monkeypatch, tmp_path):
    for name in ("XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "data"))
    ran = command("traces", "list")
    assert 1 == ran.returncode
    assert "(the default)" in ran.stderr
    assert 0 == command("doctor").returncode
    assert [] == files(tmp_path)


@pytest.mark.parametrize("arguments", [*READERS[:3], ["traces", "export", "-"]], ids=" ".join)
def test_reading_leaves_nothing_beside_a_store(command, grace, tmp_path, arguments):
    """No `-wal` and no `-shm` of a store that nobody else uses."""
    grace.close()
    assert 0 == command(*arguments, "--store", f"sqlite:///{tmp_path / 'traces.db'}").returncode
    assert ["traces.db"] == files(tmp_path)


def test_no_traces_names_the_store_and_the_way_to_another(command, grace, tmp_path):
    """An empty store, conditions that nothing meets, and a store in memory."""
    url = f"sqlite:///{tmp_path / 'traces.db'}"
    ran = command("traces", "list", "--store", url, "--domain", "none", columns=300)
    assert f"no traces match; the store has 1: {tmp_path / 'traces.db'} (from --store)" in ran.stdout
    grace.store.clear()
    assert grace.flush()
    ran = command("traces", "list", "--store", url, columns=300)
    assert (
        f"no traces in {tmp_path / 'traces.db'} (from --store); --store or GRACE_KP_STORE names another\n" == ran.stdout
    )
    assert "[]\n" == command("traces", "list", "--store", url, "--json").stdout
    assert "empty in every new process" in command("traces", "list", "--store", "memory:", columns=300).stdout


def test_last_is_the_newest_run_that_is_not_nested():
    """A nested run begins later than the run around it; it is not what somebody who asks for the last run means."""
    grace = gk.Grace(store="memory:", evaluator=None, embedder=None)

    @grace.agent
    def inner(question):
        return question

    @grace.agent
    def outer(question):
        return [inner(f"part {number}") for number in range(50)]

    with pytest.raises(GraceError, match="the store is empty"):
        find(grace.store, "last")
    outer("first")
    outer("second")
    assert "second" == find(grace.store, "last").task.objective


def test_the_beginning_of_an_id_is_enough(command, stored):
    url = stored(document("abc111"), document("abc222"), document("xyz333"))
    assert "run xyz333" in command("traces", "show", "xyz", "--store", url).stdout
    assert "run abc1" in command("traces", "show", "kp:trace:abc1", "--store", url).stdout
    ran = command("traces", "show", "abc", "--store", url)
    assert (1, "") == (ran.returncode, ran.stdout)
    assert "grace-kp: several trace ids begin with 'abc': abc111, abc222; give more characters\n" == ran.stderr
    ran = command("traces", "show", "xy", "--store", url)
    assert (1, 1) == (ran.returncode, len(ran.stderr.splitlines()))
    assert "3 characters" in ran.stderr
    assert command("traces", "show", "%_%", "--store", url).returncode == 1
