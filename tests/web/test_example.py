"""The programs that empty pages show."""

from __future__ import annotations

import threading
import time

import pytest

import grace_kp as gk
from grace_kp.web._example import asking_lines, recording_lines


def test_the_first_records_a_run(tmp_path, monkeypatch):
    """It is complete: it can be run as it is, and the run is in the store."""
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(recording_lines("sqlite:////secret/place.db"), names)
    try:
        assert names["grace"].flush()
        assert ["When do I get my money back?"] == [trace.task.objective for trace in names["grace"].store.query()]
    finally:
        names["grace"].close()


def test_the_second_waits_for_a_decision(tmp_path, monkeypatch, capsys):
    """And goes on with it."""
    monkeypatch.chdir(tmp_path)
    names = {}
    asking = threading.Thread(target=exec, args=(asking_lines("sqlite:///app.db"), names))
    asking.start()
    with gk.Grace(store="sqlite:///app.db", evaluator=None, embedder=None) as other:
        deadline = time.monotonic() + 300
        while not (pending := other.approvals.pending()) and time.monotonic() < deadline:
            time.sleep(0.05)
        other.approvals.approve(pending[0].id, by="ana")
    asking.join(300)
    names["grace"].close()
    assert "paid back 40 euros for A-17" in capsys.readouterr().out


@pytest.mark.parametrize("lines", [recording_lines, asking_lines])
def test_the_path_of_the_store_is_not_shown(lines):
    """A viewer must not learn it; the default store needs no name."""
    assert "secret" not in lines("sqlite:////secret/place.db")
    assert "  # the store of this server" in lines("sqlite:////secret/place.db")
    assert "store=" not in lines(None)
