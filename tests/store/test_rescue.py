"""Rescue files: their format, and whoever opens the store next takes in the runs that wait in them."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import pickle
import stat
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.runtime import record_of
from grace_kp.store import JournalEntry, Record, RescueFiles, open_store
from grace_kp.store._rescue import Damaged, read
from grace_kp.store._sqlite import SqliteStore
from tests.store.samples import MARK, document, file_with_a_run, holding, ids, record, rescue_files, stored

TEXTS = st.text(st.characters(exclude_categories=()))  # with halves of surrogate pairs
RECORDS = st.builds(
    Record,
    id=TEXTS,
    created_at=TEXTS,
    domain=TEXTS,
    score=st.floats(allow_nan=False),
    success=st.booleans(),
    status=TEXTS,
    text=TEXTS,
    data=st.one_of(st.binary(), TEXTS.map(lambda text: text.encode(errors="replace"))),
    scores=st.lists(st.tuples(TEXTS, st.none() | st.floats(0, 1), st.none() | st.booleans())).map(tuple),
    attributes=st.lists(st.tuples(TEXTS, TEXTS, TEXTS)).map(tuple),
    awaits=st.lists(TEXTS).map(tuple),
    completes=st.booleans(),
)


@given(st.lists(RECORDS, max_size=5))
def test_every_column_comes_back_as_it_was(records):
    with tempfile.TemporaryDirectory() as folder:
        assert records == read(RescueFiles(Path(folder) / "t.db").write(records))[1]


@pytest.fixture
def written(tmp_path):
    return RescueFiles(tmp_path / "t.db", 0o640).write([record(1), record(2)], ["kp:trace:1"])


def test_the_header_states_what_the_file_holds(written):
    header, _ = read(written)
    assert (2, ["kp:trace:1"]) == (header["records"], header["ended"])
    assert ([written], 0o640) == (list(written.parent.iterdir()), stat.S_IMODE(written.stat().st_mode))


def test_a_file_of_an_earlier_version_is_read(tmp_path):
    kept = record(1)
    header = {"format": "grace_kp rescue", "version": 1, "records": 1, "runs": 1, "at": 1.0, "owner": None}
    lines = [
        {**header, "ended": [], "report": None},
        {**dataclasses.asdict(kept), "data": {"base64": "//4="}},
        {"sha256": "0" * 64},
    ]
    (tmp_path / "earlier").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [replace(kept, data=b"\xff\xfe")] == read(tmp_path / "earlier")[1]


def test_a_file_that_was_cut_off_is_damaged(written):
    data = written.read_bytes()
    for cut in range(0, len(data), 7):
        written.write_bytes(data[:cut])
        with pytest.raises(Damaged):
            read(written)


HEADER = b'{"format": "grace_kp rescue", "version": 2, "records": 1, "runs": 1, "at": 1, "owner": null, "ended": [], "report": null}'


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it was cut off, or is not a rescue file"),
        (b"not JSON\n", "it was cut off, or is not a rescue file"),
        (b'{"a": 1}\n', "it was cut off, or is not a rescue file"),
        (HEADER + b"\n", "it was cut off, or is not a rescue file"),
        (b"[" * 100_000 + b"\n", "a record in it cannot be read: RecursionError"),
        (b'{"format": "grace_kp rescue", "version": 1}\n', "its header is incomplete"),
        (HEADER + b"\n{}\n", "a record in it cannot be read: KeyError: 'data'"),
        (HEADER.replace(b'"records": 1', b'"records": "x"') + b"\n", "a record in it cannot be read: TypeError"),
    ],
)
def test_foreign_content_is_refused(tmp_path, content, problem):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(Damaged, match=problem):
        read(tmp_path / "file")


def test_a_file_of_a_newer_version_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b'{"format": "grace_kp rescue", "version": 3}\n')
    with pytest.raises(Damaged, match="its version is 3, and this grace_kp knows 2"):
        read(tmp_path / "file")


def test_links_and_devices_are_not_read(written, tmp_path):
    """Nobody can have another file taken in, or make the reader wait."""
    (tmp_path / "link").symlink_to(written)
    with pytest.raises(OSError, match="link"):
        read(tmp_path / "link")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Damaged, match="not a regular file"):
        read(tmp_path / "pipe")


def test_a_file_of_another_user_in_a_shared_folder_is_not_read(written, monkeypatch):
    written.parent.chmod(0o1777)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert 2 == len(read(written)[1])  # the owner of the folder may
    found = os.stat_result([*written.parent.stat()[:4], os.getuid() + 2, *written.parent.stat()[5:]])
    monkeypatch.setattr(Path, "stat", lambda self: found)
    with pytest.raises(Damaged, match="shared folder"):
        read(written)


def test_nothing_is_left_of_a_file_that_cannot_be_written(tmp_path):
    broken = record(1, attributes=[("kind", "name", object())])
    with pytest.raises(TypeError):
        RescueFiles(tmp_path / "t.db").write([record(0), broken])
    assert [] == list(tmp_path.iterdir())


@pytest.fixture
def path(tmp_path):
    return file_with_a_run(tmp_path)


def rescue(path, *records, **options):
    return RescueFiles(path).write(records, **options)


def test_a_database_behind_a_link_has_its_files_beside_the_target(path, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(path)
    assert path.parent == rescue(link, record(1)).parent
    assert [0, 1] == stored(path)


def test_two_that_open_the_store_at_once_store_each_run_once(path):
    for number in range(1, 13):
        rescue(path, record(number), record(number + 20))
    opened, failed = [], []

    def work():
        try:
            opened.append(SqliteStore(path, busy_ms=60_000))
        except gk.StoreError as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in opened:
        store.close()
    assert ([], []) == (failed, rescue_files(path))
    assert [0, *range(1, 13), *range(21, 33)] == stored(path)


def test_a_run_that_was_deleted_after_it_had_been_stored_does_not_come_back(path):
    """A process may die after it has stored the runs of a file, before it removes the file."""
    file = rescue(path, record(1), record(2))
    contents = file.read_bytes()
    store = SqliteStore(path)
    file.write_bytes(contents)  # as if it had not been removed
    assert 1 == store.delete(id="kp:trace:1")
    assert [] == rescue_files(path)
    assert [2, 0] == ids(store.query())
    store.close()


@pytest.mark.parametrize("delete", ["delete", "clear"])
def test_no_byte_of_a_deleted_run_is_left_beside_the_database(path, delete):
    store = SqliteStore(path)
    rescue(path, record_of(document("victim", text=MARK, user="u")), record(5))
    assert [] != holding(path.parent)
    count = store.delete(user="u") if delete == "delete" else store.clear()
    assert (1 if delete == "delete" else 3) == count
    assert [] == holding(path.parent)
    assert ([] if delete == "clear" else [0, 5]) == sorted(ids(store.query()))
    store.close()


def test_a_damaged_file_is_reported_once_and_stays(path, caplog):
    broken = rescue(path, record(1), record(2))
    broken.write_bytes(broken.read_bytes()[:-5])
    rescue(path, record(3))
    with caplog.at_level(logging.WARNING, "grace_kp.store"):
        store = SqliteStore(path)
    assert [3, 0] == ids(store.query())
    assert [
        f"the runs in {broken} cannot be stored and removed from there: it was cut off, or is not a rescue file"
    ] == caplog.messages
    report = store.delete(id="kp:trace:3")  # it may hold deleted runs
    assert (1, False, caplog.messages) == (report, report.clean, [report.remains])
    assert [broken.name] == rescue_files(path)
    waiting = RescueFiles(path).waiting()
    assert (0, 0, (f"{broken}: it was cut off, or is not a rescue file",)) == (
        waiting.files,
        waiting.runs,
        waiting.unusable,
    )
    store.close()


def test_a_reader_leaves_the_files_alone(path):
    rescue(path, record(1), record(1, score=0.9))
    reader = open_store(f"sqlite:///{path}", create=False)
    assert 1 == reader.count()
    reader.close()
    waiting = RescueFiles(path).waiting()
    assert (1, 1, ()) == (waiting.files, waiting.runs, waiting.unusable)


def of(version, status="completed", awaits=(), completes=False, text=""):
    found = record_of(document("r", text=text), awaits=frozenset(awaits), completes=completes)
    return replace(found, score=version, status=status)


@pytest.mark.parametrize(
    ("before", "waiting", "score"),
    [
        ([], [of(0.2)], 0.2),
        ([of(0.1, "interrupted")], [of(0.2)], 0.2),
        ([of(0.1, "interrupted", {"scores"})], [of(0.2)], 0.2),
        ([of(0.1)], [of(0.2, "interrupted")], 0.1),
        ([of(0.1)], [of(0.2, "suspended")], 0.1),
        ([of(0.1, "suspended")], [of(0.2)], 0.2),
        ([of(0.1, "suspended")], [of(0.2, "suspended", text="and on")], 0.2),
        ([of(0.1, "suspended", text="and on")], [of(0.2, "suspended")], 0.1),
        ([of(0.1)], [of(0.2, awaits={"scores"})], 0.1),
        ([of(0.1, awaits={"scores"})], [of(0.2)], 0.2),
        ([of(0.1, awaits={"scores"})], [of(0.2, completes=True)], 0.2),
        ([of(0.1)], [of(0.2, completes=True)], 0.1),
        ([], [of(0.2, awaits={"scores"}), of(0.3, completes=True)], 0.3),
        ([], [of(0.2, completes=True)], None),
    ],
)
def test_a_complete_or_newer_version_wins(path, before, waiting, score):
    """A run that was deleted while a process completed it does not come back."""
    store = SqliteStore(path)
    store.put(before)
    store.close()
    rescue(path, *waiting)
    store = SqliteStore(path)
    rows = store._connection.execute("SELECT score FROM traces WHERE id = 'kp:trace:r'").fetchall()
    assert ([] if score is None else [(score,)]) == rows
    store.close()


def test_what_a_kept_run_awaits_is_added_by_whoever_can(path):
    rescue(path, of(0.2, awaits={"scores"}))
    store = SqliteStore(path)
    assert 1 == len(store.incomplete(frozenset({"scores"})))
    store.put([of(0.3, completes=True)])
    assert [] == store.incomplete(frozenset({"scores"}))
    assert 1 == store.count(min_score=0.25, max_score=0.35)
    store.close()


def test_only_the_journals_of_the_process_itself_are_deleted(path):
    store = SqliteStore(path)
    store.journal([JournalEntry("kp:trace:1", 0, b"{}")])
    rescue(path, record(1), ended=["kp:trace:1"], owner="somebody else")
    SqliteStore(path).close()
    assert (1,) == store._connection.execute("SELECT COUNT(*) FROM journal").fetchone()
    rescue(path, ended=["kp:trace:1"], owner=store._owners.id)
    SqliteStore(path).close()
    assert (0,) == store._connection.execute("SELECT COUNT(*) FROM journal").fetchone()
    store.close()


def test_a_store_that_cannot_be_opened_can_be_sent_to_another_process(path):
    path.write_text("not a database, but long enough to be looked at " * 10)
    with pytest.raises(gk.StoreError, match="cannot be opened: file is not a database") as caught:
        SqliteStore(path)
    assert str(caught.value) == str(pickle.loads(pickle.dumps(caught.value)))
