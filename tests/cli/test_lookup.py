"""Commands that read create nothing, see what a writer has written up to now, and name the store they looked at."""

from __future__ import annotations

import json

import pytest

import grace_kp as gk
from grace_kp.cli._lookup import find
from grace_kp.errors import GraceError
from tests.cli.program import document

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
    assert "there is no store at sub/none.db (from --store)" in ran.stderr
    assert "--store or GRACE_KP_STORE" in ran.stderr
    monkeypatch.setenv("GRACE_KP_STORE", "sqlite:///sub/other.db")
    ran = command(*arguments)
    assert "sub/other.db (from environment variable GRACE_KP_STORE)" in ran.stderr
    assert [] == files(tmp_path)


def test_the_default_store_is_not_created_by_reading(command, monkeypatch, tmp_path):
    """Not even its folder."""
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


def test_reading_sees_what_a_writer_has_just_written(command, grace, tmp_path):
    """The writer is still there, and what it wrote stands in its WAL only."""
    with grace.run("second"):
        pass
    assert grace.flush()
    before = files(tmp_path)
    listed = json.loads(command("traces", "list", "--store", f"sqlite:///{tmp_path / 'traces.db'}", "--json").stdout)
    assert ["second", "first"] == [trace["task"]["objective"] for trace in listed]
    assert before == files(tmp_path)
    assert ["traces.db", "traces.db-shm", "traces.db-wal"] == before


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


def test_last_of_nested_runs_alone_is_the_newest():
    """The runs around them may have been deleted."""
    grace = gk.Grace(store="memory:", evaluator=None, embedder=None)
    with grace.run("around"):
        for name in ("a", "b"):
            with grace.run(name):
                pass
    nested = [trace for trace in grace.store.query() if trace.parent_id is not None]
    other = gk.Grace(store="memory:", evaluator=None, embedder=None)
    from grace_kp.runtime._pipeline import record_of

    other.store.put([record_of(trace.to_dict()) for trace in reversed(nested)])
    assert "b" == find(other.store, "last").task.objective


def test_the_beginning_of_an_id_is_enough(command, stored):
    """From three characters on; several are listed, with exit code 1."""
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
