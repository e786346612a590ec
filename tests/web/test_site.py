"""What all pages share: the context, the templates, and the programs that empty pages show."""

from __future__ import annotations

import math
import threading

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup
from starlette.requests import Request

import grace_kp as gk
from grace_kp.errors import StoreError
from grace_kp.web import _site
from grace_kp.web._site import (
    FRESH_SECONDS,
    ValueCache,
    asking_lines,
    path_of,
    recording_lines,
    root_of,
    templates,
    when,
)
from tests.web.visiting import PATIENCE


@pytest.mark.parametrize(
    ("path", "root", "expected"),
    [
        ("/inbox", "", ("/inbox", "")),
        ("/grace/inbox", "/grace", ("/inbox", "/grace")),
        ("/grace", "/grace", ("", "/grace")),
        ("/gracefully", "/grace", ("/gracefully", "/grace")),
        ("/inbox", "/", ("/inbox", "")),
    ],
)
def test_the_path_is_split_at_the_mount(path, root, expected):
    scope = {"type": "http", "path": path, "root_path": root, "headers": []}
    assert expected == (path_of(scope), root_of(Request(scope)))


@pytest.fixture(scope="module")
def render():
    look = templates()
    return lambda text, **values: look.from_string(text).render(**values)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("<script>", "&lt;script&gt;"),
        ('" onclick="x', "&#34; onclick=&#34;x"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("a\x00\x1b[31mb", "a⟨U+0000⟩⟨U+001B⟩[31mb"),
        (None, ""),
        (Markup("<b>ours</b>"), "<b>ours</b>"),
    ],
)
def test_what_is_shown_is_escaped_and_visible(render, value, expected):
    assert expected == render("{{ value }}", value=value)


def test_a_name_that_is_missing_is_an_error(render):
    with pytest.raises(UndefinedError):
        render("{{ missing }}")


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, '<time datetime="1970-01-01T00:00:00.000Z">1970-01-01 00:00:00 UTC</time>'),
        (1_764_104_400.5, '<time datetime="2025-11-25T21:00:00.500Z">2025-11-25 21:00:00 UTC</time>'),
        (None, "never"),
        (math.nan, "never"),
        (1e30, "never"),
    ],
)
def test_a_time_is_in_utc_and_for_scripts(seconds, expected):
    assert expected == when(seconds)


def test_the_first_records_a_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    lines = recording_lines("sqlite:////secret/place.db")
    assert "secret" not in lines  # a viewer must not learn the path of the store
    assert "store=" not in recording_lines(None)
    exec(lines, names)
    try:
        assert names["grace"].flush()
        assert ["When do I get my money back?"] == [trace.task.objective for trace in names["grace"].store.query()]
    finally:
        names["grace"].close()


def test_the_second_waits_for_a_decision(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    asking = threading.Thread(target=exec, args=(asking_lines("sqlite:///app.db"), names))
    with gk.Grace(store="sqlite:///app.db", evaluator=None, embedder=None) as other:
        changes = other.approvals.watch()
        asking.start()
        other.approvals.approve(next(iter(changes)).approval, by="ana")
    asking.join(300)
    names["grace"].close()
    assert "paid back 40 euros for A-17" in capsys.readouterr().out


def test_a_kept_value_is_computed_once_a_minute():
    kept = ValueCache()
    values = iter("ab")
    assert ["a", "a"] == [kept.get("key", now, lambda: next(values)).value for now in (0.0, FRESH_SECONDS - 1)]


def test_readers_do_not_wait_for_a_long_computation(monkeypatch):
    """The first reader gets no value, later ones the previous one, until the background thread has computed it."""
    kept, may_end = ValueCache(), threading.Event()

    def compute():
        may_end.wait(PATIENCE)
        return "computed"

    monkeypatch.setattr(_site, "PATIENCE", 0)
    assert kept.get("key", 0.0, compute) is None
    assert kept.get("key", 0.0, compute) is None
    may_end.set()
    monkeypatch.setattr(_site, "PATIENCE", PATIENCE)
    assert "computed" == kept.get("key", 0.0, compute).value
    may_end.clear()
    assert "computed" == kept.get("key", FRESH_SECONDS, compute).value
    may_end.set()


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (StoreError("no such file: /secret/place.db"), "the store cannot be read or written at the moment"),
        (KeyError("/secret/place.db"), "the computation failed. The log of the server has the reason"),
    ],
)
def test_a_computation_that_fails_is_a_problem_of_the_value(caplog, error, problem):
    def fail():
        raise error

    kept = ValueCache()
    assert (None, problem) == (kept.get("key", 0.0, fail).value, kept.get("key", 0.0, fail).problem)
    assert "place.db" in caplog.text
