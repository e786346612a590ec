"""The format of rescue files: what is written comes back, and what was damaged is not taken for a file."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.store import Record
from grace_kp.store._rescue_file import Damaged, checked, finish_part, open_file, read_header, read_records, write
from tests.store.samples import record

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


def read(path):
    with open_file(path) as file:
        return list(read_records(file, read_header(file)))


@given(st.lists(RECORDS, max_size=5))
def test_every_column_comes_back_as_it_was(records):
    """Bytes that are no text, too, in the same order."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write(path, {"owner": None}, records, 0o600)
        assert records == read(path)


@pytest.fixture
def path(tmp_path):
    """A file with two records."""
    file = tmp_path / "file"
    write(file, {"ended": ["kp:trace:1"]}, [record(1), record(2)], 0o640)
    return file


def test_the_header_states_what_the_file_holds(path):
    """With the fields of whoever wrote it, and nothing else lies beside it."""
    with open_file(path) as file:
        header = checked(file)
    assert (2, 2, ["kp:trace:1"]) == (header["records"], header["runs"], header["ended"])
    assert ([path], 0o640) == (list(path.parent.iterdir()), stat.S_IMODE(path.stat().st_mode))


def test_a_file_that_was_cut_off_or_changed_is_damaged(path):
    """At whatever place."""
    data = path.read_bytes()
    for cut in range(0, len(data), 7):
        path.write_bytes(data[:cut])
        with pytest.raises(Damaged):
            read(path)
    for place in range(0, len(data), 7):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(Damaged):
            read(path)
    path.write_bytes(data + b"x")
    with pytest.raises(Damaged, match="changed"):
        read(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "cut off"),
        (b"not JSON\n", "not that of a rescue file"),
        (b"[" * 100_000 + b"\n", "not that of a rescue file"),
        (b'{"a": 1}\n', "not that of a rescue file"),
        (b'{"format": "grace_kp rescue", "version": 2}\n', "its version is 2, and this grace_kp knows 1"),
        (b'{"format": "grace_kp rescue", "version": 1}\n', "header is incomplete"),
        (b'{"format": "grace_kp rescue", "version": 1, "records": 1, "runs": 1}\n{}\n', "cannot be read: KeyError"),
    ],
)
def test_foreign_content_is_refused_with_the_reason(tmp_path, content, reason):
    """Another version, too."""
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(Damaged, match=reason):
        read(tmp_path / "file")


def test_links_and_devices_are_not_read(path, tmp_path):
    """Nobody can have another file taken in, or make the reader wait."""
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match="link"):
        read(tmp_path / "link")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Damaged, match="no regular file"):
        read(tmp_path / "pipe")


def test_a_file_of_another_user_in_a_shared_folder_is_not_read(path, monkeypatch):
    """Anybody could have put it there."""
    path.parent.chmod(0o1777)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert 2 == len(read(path))  # the owner of the folder may
    found = os.stat_result([*path.parent.stat()[:4], os.getuid() + 2, *path.parent.stat()[5:]])
    monkeypatch.setattr(Path, "stat", lambda self: found)
    with pytest.raises(Damaged, match="shared folder"):
        read(path)


def test_nothing_is_left_of_a_file_that_cannot_be_written(tmp_path):
    """For example on a full disk."""
    broken = record(1, attributes=[("kind", "name", object())])
    with pytest.raises(TypeError):
        write(tmp_path / "file", {}, [record(0), broken], 0o600)
    assert [] == list(tmp_path.iterdir())


def test_a_part_of_a_dead_process_is_completed_or_removed(path):
    """It was killed before it gave the file its name, or earlier."""
    part = path.rename(path.with_name("file.part"))
    finish_part(part)
    assert (True, False) == (path.exists(), part.exists())
    part.write_bytes(path.read_bytes()[:-1])
    finish_part(part)
    assert not part.exists()


def test_a_part_that_is_being_written_is_left_alone(path):
    """Its process holds a lock, or is about to take it."""
    part = path.rename(path.with_name("file.part"))
    with part.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        finish_part(part)
    assert part.exists()
    part.write_bytes(b"")
    finish_part(part)
    assert part.exists()
