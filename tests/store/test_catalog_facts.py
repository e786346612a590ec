"""What the index keeps of a run, and the figures that it sums: documents from elsewhere may hold anything."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.store import CatalogQuery, Group, Record, open_catalog, open_store
from grace_kp.store._catalog_facts import EARLIEST, facts_of, instant, milliseconds, number_of, whole
from grace_kp.store._catalog_source import StoredRun
from tests.store.listed import judged, run
from tests.store.samples import put

JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5), st.sampled_from(("silent", "\ud800", 10**400))
    ),
    lambda parts: st.one_of(st.lists(parts, max_size=3), st.dictionaries(st.text(max_size=5), parts, max_size=3)),
    max_leaves=5,
)  # fmt: skip
FIELDS = (
    "name",
    "status",
    "tags",
    "user",
    "session",
    "metadata",
    "parent",
    "decisions",
    "scores",
    "usage",
    "evaluation",
    "awaits",
    "duration_ms",
    "confidence",
)


def stored(data, created_at="2026-01-01T00:00:00.000Z"):
    """Return a stored run with this document."""
    return StoredRun(1, "kp:trace:a", created_at, "default", 0.5, True, "completed", "text", data)


def facts(made):
    """Return the facts of a document."""
    return facts_of(stored(json.dumps(made).encode()), json.loads)


@given(
    grace=st.dictionaries(st.sampled_from(FIELDS), JSON),
    parts=st.dictionaries(st.sampled_from(("metadata", "task", "outcome", "steps", "grace")), JSON),
)
def test_a_document_of_any_shape_is_indexed(grace, parts):
    """Values of the wrong type count as absent."""
    data = json.dumps({"metadata": {}, "task": {}, "outcome": {}, "grace": grace, **parts}).encode()
    found = facts_of(stored(data), json.loads)
    json.dumps(found.shown, ensure_ascii=False).encode()
    assert found.is_readable


@pytest.mark.parametrize("url", ["memory:", "sqlite:///{}/t.db"])
@pytest.mark.parametrize("data", [b"", b"[1]", b"{", b"\xff", b'{"grace": ' + b"[" * 100_000])
def test_a_document_that_is_none_is_counted_and_found_by_its_columns(tmp_path, url, data):
    """The rest of the store is indexed all the same."""
    store = open_store(url.format(tmp_path))
    store.put([Record("kp:trace:a", "once", "code", 0.5, True, "odd", "TEXT", data), *[]])
    catalog = open_catalog(store)
    assert 1 == catalog.refresh().unreadable
    (row,) = catalog.find(CatalogQuery(domain="code", status="odd", text="text", level="none")).rows
    assert ("once", "", None) == (row.created_at, row.agent, row.confidence)
    store.put([Record("kp:trace:a", "once", "code", 0.5, True, "odd", "TEXT", b"{}")])
    assert 0 == catalog.refresh().unreadable
    catalog.close()
    store.close()


def test_half_a_surrogate_pair_is_stored_as_a_question_mark():
    """SQLite cannot hold it."""
    found = facts(run("a", agent="\ud800", user="\udfff", tags=["\ud800"]))
    assert ("?", "?", ["?"]) == (found.agent, found.shown[13], found.shown[15])


def test_the_agent_is_the_name_or_else_the_id():
    """Without either it is empty."""
    made = run("a", agent="bot")
    made["metadata"]["agent_id"] = "kp:agent:other"
    assert "bot" == facts(made).agent
    del made["grace"]["name"]
    assert "kp:agent:other" == facts(made).agent
    del made["metadata"]["agent_id"]
    assert "" == facts(made).agent


def test_judgements_before_gates_count_as_well():
    """Calls, tokens and fallbacks by model; a fallback without a model is counted under a name of its own."""
    decisions = [
        {"level": "confirm", "evaluation": judged("large", 7)},
        {"evaluation": {"self_evaluation": {"fallback": True}}},
    ]
    calls, tokens, levels, models = facts(
        run("a", evaluation=judged("small", 5, fallback=True), decisions=decisions)
    ).shown[18:]
    assert (2, 12, {"confirm": 1}) == (calls, tokens, levels)
    assert {"small": [1, 5, 1], "large": [1, 7, 0], "unknown": [0, 0, 1]} == models


def test_a_run_that_was_not_assessed_has_no_confidence():
    """The figure in its outcome is a placeholder."""
    made = run("a", confidence=0.5)
    assert 0.5 == facts(made).confidence
    del made["grace"]["confidence"]
    assert facts(made).confidence is None
    del made["grace"]["status"]
    assert 0.5 == facts(made).confidence


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("1970-01-01T00:00:01.002Z", 1_002), ("1969-12-31T23:59:59.999Z", -1), ("1970-01-01T01:00:00+01:00", 0), ("1970-01-01", 0),
        ("0000-01-01T00:00:00Z", EARLIEST), ("soon", EARLIEST),
    ],
)  # fmt: skip
def test_times_are_milliseconds(text, at):
    """A text that is no time stands before all others."""
    assert at == milliseconds(text)


@given(at=st.integers(milliseconds("0001-01-01"), milliseconds("9999-12-31")))
def test_milliseconds_become_the_same_time_again(at):
    """In the form of traces."""
    assert at == milliseconds(instant(at))


@pytest.mark.parametrize(
    ("value", "number", "count"),
    [
        (3, 3.0, 3),
        (-1, -1.0, 0),
        (True, None, 0),
        ("3", None, 0),
        (float("inf"), None, 0),
        (float("nan"), None, 0),
        (10**400, None, 0),
    ],
)
def test_numbers_that_sums_cannot_hold_count_as_absent(value, number, count):
    """Truth values are no numbers."""
    assert (number, count) == (number_of(value), whole(value))


@pytest.fixture
def store():
    return open_store("memory:")


def figures(store, *period, **conditions):
    catalog = open_catalog(store)
    catalog.refresh()
    return catalog.figures(*period, **conditions)


def test_days_without_runs_are_included(store):
    """In order."""
    put(store, run("a", created_at="2026-02-28T23:59:59.999Z"), run("b", created_at="2026-03-02T00:00:00.000Z"))
    found = figures(store, "2026-02-28", "2026-03-02")
    assert [("2026-02-28", 1), ("2026-03-01", 0), ("2026-03-02", 1)] == [(day.name, day.runs) for day in found.days]


def test_a_store_without_runs_has_figures_of_zero(store):
    """Nothing is missing from them."""
    found = figures(store, "2026-01-01", "2026-01-01")
    assert (Group(name=""), (), {}, (0,) * 20, (0,) * 20, {}) == (
        found.total, found.agents, found.statuses, found.confidence, found.scores, found.models,
    )  # fmt: skip
    assert {"silent": 0, "notify": 0, "confirm": 0, "escalate": 0} == found.levels
    assert found == figures(store, "2026-01-01", "2026-01-01", agent="nobody") or found.total.name == ""


def test_agents_beyond_fifty_are_summed(store):
    """Under a name that no agent has."""
    put(
        store,
        *(run(f"{number}-{turn}", agent=f"a{number}") for number in range(60) for turn in range(1 + (number < 50))),
    )
    found = figures(store, "2026-01-01", "2026-01-01")
    assert (51, "…", 10, 110) == (len(found.agents), found.agents[-1].name, found.agents[-1].runs, found.total.runs)
    assert {2} == {group.runs for group in found.agents[:-1]}


@pytest.mark.parametrize(("value", "number"), [(0.0, 0), (0.0499, 0), (0.05, 1), (0.95, 19), (1.0, 19)])
def test_bins_hold_their_lower_edge(store, value, number):
    """The last holds 1 as well."""
    put(store, run("a", score=value, confidence=value))
    found = figures(store, "2026-01-01", "2026-01-01")
    assert [number] == [place for place, count in enumerate(found.scores) if count]
    assert found.scores == found.confidence


def test_a_very_long_period_is_cut_to_its_runs(store):
    """Its sums are complete."""
    put(store, run("a", created_at="2026-01-01T00:00:00.000Z"), run("b", created_at="2026-01-03T00:00:00.000Z"))
    found = figures(store, "0001-01-01", "9999-12-31")
    assert (2, ["2026-01-01", "2026-01-02", "2026-01-03"]) == (found.total.runs, [day.name for day in found.days])


@pytest.mark.parametrize(
    ("period", "message"),
    [
        (("today", "2026-01-01"), "since must be a day like 2026-11-25, not 'today'"),
        (("2026-01-01", "2026-13-01"), "until must be a day like 2026-11-25, not '2026-13-01'"),
    ],
)
def test_a_day_that_is_none_is_refused(store, period, message):
    """The message names it."""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        figures(store, *period)


def test_runs_that_wait_are_counted_apart(store):
    """They are not among the failed runs, whatever success they state."""
    statuses = (("waiting", True), ("suspended", False), ("failed", False), ("completed", True))
    put(store, *(run(str(n), status=status, success=ok) for n, (status, ok) in enumerate(statuses)))
    total = figures(store, "2026-01-01", "2026-01-01").total
    assert (4, 1, 2) == (total.runs, total.failed, total.waiting)
