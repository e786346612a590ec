"""Files that hold traces: private whatever the umask, and written completely or not at all."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

import pytest

import grace_kp as gk
from grace_kp.judge import JudgementCache
from grace_kp.store import open_store
from grace_kp.trace._files import write_whole

ROOT = Path(__file__).resolve().parents[2]


def mode(path):
    return stat.S_IMODE(Path(path).stat().st_mode)


def trace(text="x", name="1"):
    return gk.ReasoningTrace.model_validate({
        "@context": "https://openknowledgepulse.org/schema/v1", "@type": "ReasoningTrace", "id": f"kp:trace:{name}",
        "metadata": {"created_at": "2026-01-01T00:00:00.000Z", "task_domain": "d", "success": True},
        "task": {"objective": text}, "steps": [{"step_id": 0, "type": "thought"}], "outcome": {"result_summary": "", "confidence": 0.5},
    })  # fmt: skip


@pytest.fixture
def umask_0():
    before = os.umask(0)
    yield
    os.umask(before)


# Modes


def test_every_new_file_is_the_owner_s_alone(tmp_path, umask_0):
    """Database, write-ahead log, exports, pages, judgements: 0600, also with umask 0."""
    store = open_store(f"sqlite:///{tmp_path}/new/t.db")
    cache = JudgementCache(tmp_path / "judgements.db")
    cache.put("k", {"score": 0.5})
    gk.write_traces(tmp_path / "a.jsonl", [trace()])
    gk.write_traces(tmp_path / "a.jsonl.gz", [trace()])
    write_whole(tmp_path / "page.html", "<p>")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 6
    assert {0o600} == {mode(path) for path in files}
    assert 0o700 == mode(tmp_path / "new")
    store.close()
    cache.close()


def test_the_setting_file_mode_says_otherwise(tmp_path, umask_0, monkeypatch):
    """For new files; a database that is open to more than that is closed to them."""
    monkeypatch.setenv("GRACE_KP_FILE_MODE", "660")
    gk.write_traces(tmp_path / "a.jsonl", [trace()])
    open_store(f"sqlite:///{tmp_path}/t.db").close()
    assert (0o660, 0o660) == (mode(tmp_path / "a.jsonl"), mode(tmp_path / "t.db"))
    with gk.Grace(store=f"sqlite:///{tmp_path}/u.db", file_mode="640") as grace:
        grace.store.count()
        assert 0o640 == mode(tmp_path / "u.db")
    gk.write_traces(tmp_path / "b.jsonl", [trace()], mode=0o644)
    assert 0o644 == mode(tmp_path / "b.jsonl")


def test_an_open_database_is_closed_to_others_when_it_is_opened(tmp_path, caplog):
    """With the files beside it, and with a line in the log; a mode that is strict enough stays."""
    path = tmp_path / "t.db"
    first = open_store(f"sqlite:///{path}")
    first.put([])
    for file in tmp_path.iterdir():
        file.chmod(0o666)
    with caplog.at_level(logging.WARNING, logger="grace_kp.store"):
        open_store(f"sqlite:///{path}").close()
    assert {0o600} == {mode(file) for file in tmp_path.iterdir()}
    assert any("0666" in record.getMessage() and "file_mode" in record.getMessage() for record in caplog.records)
    first.close()
    caplog.clear()
    path.chmod(0o600)
    open_store(f"sqlite:///{path}").close()
    assert [] == caplog.records


def test_somebody_else_s_database_is_left_to_them(tmp_path, caplog, monkeypatch):
    """It is opened all the same, and the log says what is wrong with it."""
    path = tmp_path / "t.db"
    open_store(f"sqlite:///{path}").close()
    path.chmod(0o666)
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    open_store(f"sqlite:///{path}").close()
    assert 0o666 == mode(path)
    assert "belongs to another user" in caplog.text


# Writing


def test_a_link_planted_in_a_shared_folder_is_refused(tmp_path, monkeypatch):
    """A link of somebody else's where everybody may write is not followed; one's own is."""
    shared, victim = tmp_path / "shared", tmp_path / "victim.jsonl"
    shared.mkdir()
    shared.chmod(0o1777)
    link = shared / "out.jsonl"
    link.symlink_to(victim)
    gk.write_traces(link, [trace()])
    victim.write_text("precious")
    real = Path.lstat
    as_another = os.stat_result((stat.S_IFLNK | 0o777, 0, 0, 1, 12_345, 12_345, 0, 0, 0, 0))
    monkeypatch.setattr(Path, "lstat", lambda path: as_another if path == link else real(path))
    for write in (
        lambda: gk.write_traces(link, [trace()]),
        lambda: write_whole(link, "x"),
        lambda: open_store(f"sqlite:///{link}"),
    ):
        with pytest.raises((PermissionError, gk.StoreError), match="another user"):
            write()
    assert "precious" == victim.read_text()
