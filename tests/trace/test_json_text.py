"""JSON text is read value by value with its lines; lines of plain and packed files are read within a memory limit."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.trace import object_without_duplicates
from grace_kp.trace._json_text import FoundValue, TooLong, lines_of, read_text


def values(text, line=1):
    return [
        found.value if isinstance(found, FoundValue) else (found.line, found.problem)
        for found in read_text(text, line, lambda item: "role" in item)
    ]


def test_values_may_span_lines():
    """Several of them, each with the line on which it begins."""
    found = list(read_text('{\n"a": 1\n}\n\n{"b": 2}', 5, lambda item: False))
    assert [FoundValue({"a": 1}, 5), FoundValue({"b": 2}, 9)] == found


def test_a_list_gives_its_items_with_their_paths():
    """Unless its first item is part of a single value, as in a list of messages."""
    assert [FoundValue({"a": 1}, 1, "[0]"), FoundValue({"b": 2}, 2, "[1]")] == list(
        read_text('[{"a": 1},\n{"b": 2}]', 1, lambda item: False)
    )
    assert [[{"role": "user"}]] == values('[{"role": "user"}]')
    assert [[]] == values("[]")


def test_reading_continues_after_a_broken_value():
    """At the next line that is indented like it and opens an object."""
    assert [{"a": 1}, (2, "is not JSON: expecting value"), {"c": 3}] == values('{"a": 1}\n{"b": x}\n{"c": 3}')


def test_a_value_that_is_cut_off_is_reported_on_its_own_line():
    """The next value begins where this one should go on."""
    assert [(1, "is not JSON: it is not complete when the next value begins"), {"b": 2}] == values('{"a": 1,\n{"b": 2}')


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[{"a": 1}\n{"b": 2}]', (2, "is not JSON: expecting ',' or ']' after an item of the list")),
        ('[{"a": 1},\n{"b": 2}', (2, "is not JSON: the list is not closed")),
    ],
)
def test_a_damaged_list_gives_its_items_and_the_problem(text, problem):
    """Nothing that can be read is lost."""
    found = values(text)
    assert problem in found
    assert [{"a": 1}, {"b": 2}] == [item for item in found if item != problem]


def test_duplicate_keys_are_refused():
    """Python would keep the last value only."""
    assert {"a": 1, "b": 2} == object_without_duplicates([("a", 1), ("b", 2)])
    with pytest.raises(ValueError, match="duplicate key 'a'"):
        object_without_duplicates([("a", 1), ("a", 2)])


ROOT = Path(__file__).resolve().parents[2]


def trace(text="x", name="1"):
    return gk.ReasoningTrace.model_validate({
        "@context": "https://openknowledgepulse.org/schema/v1", "@type": "ReasoningTrace", "id": f"kp:trace:{name}",
        "metadata": {"created_at": "2026-01-01T00:00:00.000Z", "task_domain": "d", "success": True},
        "task": {"objective": text}, "steps": [{"step_id": 0, "type": "thought"}], "outcome": {"result_summary": "", "confidence": 0.5},
    })  # fmt: skip


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
    # Where threads are free, the allocator reserves addresses by the gigabyte.
    megabytes = 1_624 if sysconfig.get_config_var("Py_GIL_DISABLED") else 600
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
