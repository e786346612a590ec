"""Traces for tests of stores."""

from __future__ import annotations

import json
from pathlib import Path

from grace_kp.runtime import record_of
from grace_kp.store import Record, Store, open_store
from grace_kp.store._sqlite import SqliteStore

MARK = "MARKER-OF-WHAT-IS-DELETED"


def record(number=0, **fields):
    values = {
        "id": f"kp:trace:{number}", "created_at": f"2026-01-01T00:00:{number % 60:02d}.000Z", "domain": "default", "score": 0.5,
        "success": True, "status": "completed", "text": f"objective {number}",
    }  # fmt: skip
    values.update(fields)
    document = {
        "@context": "https://openknowledgepulse.org/schema/v1", "@type": "ReasoningTrace", "id": values["id"],
        "metadata": {"created_at": values["created_at"], "task_domain": values["domain"], "success": values["success"], "quality_score": values["score"]},
        "task": {"objective": "x"}, "steps": [{"step_id": 0, "type": "thought"}], "outcome": {"result_summary": "", "confidence": 0.5},
    }  # fmt: skip
    return Record(**values, data=json.dumps(document).encode())


def ids(traces):
    return [int(trace.id.rpartition(":")[2]) for trace in traces]


def document(name, *, created_at="2026-01-01T00:00:00.000Z", text="", **grace):
    return {
        "@context": "https://openknowledgepulse.org/schema/v1", "@type": "ReasoningTrace", "id": f"kp:trace:{name}",
        "metadata": {"created_at": created_at, "task_domain": "default", "success": True, "quality_score": 0.5},
        "task": {"objective": f"objective {name} {text}"}, "steps": [{"step_id": 0, "type": "thought", "content": text}],
        "outcome": {"result_summary": text, "confidence": 0.5}, "grace": {"status": "completed", **grace},
    }  # fmt: skip


def put(store, *documents):
    store.put([record_of(item) for item in documents])


def left(store):
    return sorted(trace.id.removeprefix("kp:trace:") for trace in store.iterate())


def holding(folder, mark=MARK):
    return sorted(
        path.name for path in Path(folder).rglob("*") if path.is_file() and mark.encode() in path.read_bytes()
    )


def set_back(connection, version):
    """Make a file, after its missing tables were dropped, one of an earlier version of the schema, so that a writer brings it up to date."""
    connection.execute("DROP INDEX traces_by_change")
    for column in ("changed", "rewritten"):
        connection.execute(f"ALTER TABLE traces DROP COLUMN {column}")
    connection.execute("DELETE FROM schema_migrations WHERE version > ?", (version,))


class Clock:
    """A clock in seconds that a test sets."""

    def __init__(self, now=1_000.0):
        self.now = now

    def __call__(self):
        return self.now


class Own:
    """A store of a user's, with the methods of the protocol and nothing else."""

    def __init__(self):
        held = open_store("memory:")
        for name in (name for name in vars(Store) if not name.startswith("_")):
            setattr(self, name, getattr(held, name))


def file_with_a_run(folder):
    store = SqliteStore(folder / "t.db")
    store.put([record(0)])
    store.close()
    return store.path


def rescue_files(path):
    return sorted(file.name for file in path.parent.iterdir() if ".rescue-" in file.name)


def stored(path):
    store = SqliteStore(path)
    found = sorted(ids(store.query()))
    store.close()
    return found
