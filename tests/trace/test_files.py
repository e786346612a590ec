"""Files that hold traces: private whatever the umask, whole or not at all, and never more of them in memory than allowed."""

from __future__ import annotations

import gzip
import io
import json
import logging
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.judge import JudgementCache
from grace_kp.store import open_store
from grace_kp.trace._files import write_whole
from grace_kp.trace._lines import TooLong, lines_of

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


@pytest.mark.parametrize("bad", ["private", "999", "66", "060", "400", "1600", "0o600", ""])
def test_a_mode_that_cannot_be_used_is_refused(bad):
    """The owner must be able to read and write."""
    with pytest.raises(gk.SettingsError, match="file_mode"):
        gk.Grace(store="memory:", file_mode=bad)


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


def test_a_replaced_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path):
    """What the user has set is the user's."""
    target, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    target.write_text("before")
    target.chmod(0o644)
    link.symlink_to(target)
    gk.write_traces(link, [trace()])
    assert (True, 0o644, 1) == (link.is_symlink(), mode(target), len(target.read_text().splitlines()))


def test_nothing_is_left_of_what_failed(tmp_path):
    """The file is as it was, and no temporary file stays."""
    target = tmp_path / "page.html"
    target.write_text("before")
    with pytest.raises(gk.InvalidTrace):
        gk.write_traces(target, [trace(), gk.InvalidRecord("broken", file="a")])
    assert ("before", [target]) == (target.read_text(), list(tmp_path.iterdir()))
    with pytest.raises(OSError, match="no-folder"):
        write_whole(tmp_path / "no-folder" / "x", "x")


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


# Reading


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_beyond_the_bound_is_reported_and_the_next_is_read(tmp_path, packed):
    """The message names the bound and how to raise it."""
    path = tmp_path / "a.jsonl"
    lines = [trace(name="1").to_json(), trace("x" * 40_000, "2").to_json(), trace(name="3").to_json()]
    data = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    one, two, three = gk.read_traces(path, max_document_mb=0.01)
    assert ("kp:trace:1", "kp:trace:3") == (one.id, three.id)
    assert f"{path}:2" in str(two)
    assert "longer than 0.01 MB" in str(two)
    assert "GRACE_KP_MAX_DOCUMENT_MB" in str(two)
    assert 3 == sum(isinstance(item, gk.ReasoningTrace) for item in gk.read_traces(path))


def test_a_document_over_several_lines_has_the_same_bound(tmp_path, monkeypatch):
    """The setting raises it."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps([trace("x" * 500, str(n)).to_dict() for n in range(40)], indent=1))
    monkeypatch.setenv("GRACE_KP_MAX_DOCUMENT_MB", "0.01")
    (found,) = gk.read_traces(path)
    assert "a document over several lines is longer than 0.01 MB" in str(found)
    monkeypatch.setenv("GRACE_KP_MAX_DOCUMENT_MB", "1")
    assert 40 == len(list(gk.read_traces(path)))


BOMBS = {
    "one line": lambda: [b"[" + b" " * (1 << 20)] * 250,
    "an object that never ends": lambda: [b'{"a":\n'] + [b'"' + b"x" * (1 << 20) + b'",\n'] * 250,
    "many lists": lambda: [b"[[],[],[],[],\n"] + [b"[]," * (1 << 18)] * 100,
}


@pytest.mark.parametrize("make", BOMBS.values(), ids=BOMBS)
def test_an_import_of_a_compression_bomb_stays_small(tmp_path, make):
    """Gigabytes behind a few megabytes end in one line on stderr, within the memory of a small process."""
    path = tmp_path / "bomb.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for piece in make():
            file.write(piece)
    megabytes = 600
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]) << 20,) * 2);"
        "from grace_kp.cli._app import main; main(['traces', 'import', sys.argv[2], '--store', 'memory:'])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(megabytes), str(path)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "GRACE_KP_MAX_DOCUMENT_MB": "2", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (1, True) == (ran.returncode, "MemoryError" not in ran.stderr), ran.stderr[-2_000:]
    assert "longer than 2 MB" in ran.stderr


@given(st.lists(st.binary(max_size=40)), st.integers(1, 30), st.booleans(), st.booleans())
def test_lines_are_those_of_the_file(pieces, limit, packed, as_text):
    """Joined they are the file; each that is longer than the bound is named in its place."""
    data = b"\n".join(piece.replace(b"\r", b"") for piece in pieces)
    if data.startswith(b"\x1f\x8b"):
        return
    if as_text and not packed:
        try:
            source = io.StringIO(data.decode(), newline="\n")
        except UnicodeDecodeError:
            return
    else:
        source = io.BytesIO(gzip.compress(data) if packed else data)
    lines = [part + b"\n" for part in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    expected = ["long" if len(line.rstrip(b"\n")) > limit else line for line in lines if line]
    assert expected == ["long" if isinstance(line, TooLong) else line for line in lines_of(source, limit)]
