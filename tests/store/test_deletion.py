"""Selections of runs to delete, the report of a deletion, and the retention of old runs."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

import grace_kp as gk
from grace_kp.store import Deleted, Selection, open_store
from tests.store.samples import MARK, document, holding, put


def test_retention_deletes_old_runs_when_new_ones_are_written(tmp_path):
    """At most once a day, and nothing without the setting."""
    url = f"sqlite:///{tmp_path}/t.db"
    then = f"{datetime.now(UTC) - timedelta(days=31):%Y-%m-%dT%H:%M:%SZ}"
    store = open_store(url)
    put(store, document("old", created_at=then, text=MARK))
    for days, expected in ((0, 2), (30, 2)):
        with gk.Grace(store=url, evaluator=None, embedder=None, reviewer=None, retention_days=days) as grace:
            with grace.run("new"):
                pass
            assert grace.flush()
        assert expected == store.count()
    assert [] == holding(tmp_path)
    put(store, document("old", created_at=then))
    assert 0 == store.retain(30)
    store.close()


def test_the_report_is_a_number_with_facts():
    """It compares as the number of runs; its JSON holds the rest."""
    report = Deleted(2, actions=1, open=["kp:trace:x"], remains="somebody reads it")
    assert (2, False) == (report, report.clean)
    assert {
        "deleted": 2, "actions": 1, "open": ["kp:trace:x"], "clean": False, "remains": "somebody reads it"
    } == report.to_dict()  # fmt: skip


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({}, "delete needs a condition: id, session, user or older_than; use clear() to delete everything"),
        ({"id": ""}, "id must be a non-empty text, not ''"),
        ({"user": 3}, "user must be a non-empty text, not 3"),
        ({"older_than": "soon"}, "older_than must be a time like 2026-01-02T03:04:05Z or 2h, not 'soon'"),
    ],
)
def test_a_selection_names_what_it_cannot_use(conditions, message):
    """Nothing is deleted by a slip."""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Selection(**conditions)


@pytest.mark.parametrize(
    ("age", "day"), [(timedelta.max, "0001-01-01"), (timedelta.min, "9999-12-31"), ("2026-01-02", "2026-01-02")]
)
def test_an_age_beyond_all_dates_means_none_or_all(age, day):
    """An age of any size gives a date."""
    assert f"{day}T00:00:00.000Z" == Selection(older_than=age).query.until


def test_a_run_must_meet_every_condition():
    """Id, age and attributes."""
    selection = Selection(user="ana", older_than="2026-01-02")
    ana = [("user", "", "ana")]
    assert selection.matches("a", "2026-01-01T00:00:00.000Z", ana)
    assert not selection.matches("a", "2026-01-03T00:00:00.000Z", ana)
    assert not selection.matches("a", "2026-01-01T00:00:00.000Z", [])
    assert not Selection(id="b").matches("a", "2026-01-01T00:00:00.000Z", ana)
