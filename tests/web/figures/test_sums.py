"""Figures as plots and tables: runs, decisions, and what judges cost."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.approvals import ApprovalFigures
from grace_kp.store import CatalogQuery, Group, RunFigures
from grace_kp.web.figures._sums import (
    agent_rows,
    alike,
    approved_share,
    confidence_plot,
    failure_rate,
    level_plot,
    mean_confidence,
    mean_score,
    money_text,
    outcome_plot,
    price_of,
    quantile,
    run_bars,
    spending,
    spending_table,
    sums_by_currency,
    wait_plot,
    waits_of,
)
from tests.pages.drawing import cells


@given(st.lists(st.floats(0, 1e9), min_size=1), st.floats(0.01, 1))
def test_a_quantile_is_a_value_that_enough_do_not_exceed(values, share):
    """And no smaller value would do."""
    ordered = sorted(values)
    found = quantile(ordered, share)
    assert found in ordered
    assert sum(value <= found for value in ordered) >= share * len(ordered)
    smaller = [value for value in ordered if value < found]
    assert all(sum(value <= other for value in ordered) < share * len(ordered) for other in smaller[-1:])


def test_waits_are_summed_up():
    """In seconds; nothing where nobody decided."""
    found = waits_of(ApprovalFigures(pending=0, waits=tuple(map(float, range(1, 11)))))
    assert {"count": 10, "median": 5.0, "most": 9.0, "longest": 10.0} == found
    assert waits_of(ApprovalFigures(pending=3)) is None


def test_waits_are_shown_in_times_that_people_name():
    """Each wait is in one bin; a wait beyond a week makes a bin of its own."""
    waits = (0.0, 9.9, 10.0, 3_599.0, 86_400.0, 604_800.0)
    rows = {row[0]: row[1] for row in cells(wait_plot(ApprovalFigures(pending=0, waits=waits)))}
    assert {"0 to 10s": "2", "10s to 1m": "1", "10m to 1h": "1", "1d to 7d": "2"} == {
        name: count for name, count in rows.items() if count != "0"
    }
    longer = ApprovalFigures(pending=0, waits=(*waits, 10_000_000.0))
    rows = [row[1] for row in cells(wait_plot(longer))]
    assert (8, "2") == (len(rows), rows[-1])
    assert 7 == sum(map(int, rows))


def test_outcomes_are_words():
    """A standing approval is no person."""
    rows = cells(outcome_plot(ApprovalFigures(pending=0, outcomes={"approved": 3, "standing": 1})))
    assert [["approved", "3", "75.0%"], ["by a standing approval", "1", "25.0%"]] == rows


@pytest.mark.parametrize(
    ("outcomes", "share"),
    [({"approved": 2, "edited": 1, "rejected": 1}, 0.75), ({"expired": 3, "standing": 2}, None), ({"skipped": 1}, 0.0)],
)
def test_the_share_of_consent_is_of_what_people_decided(outcomes, share):
    """Expired and withdrawn requests, and standing approvals, are none of it."""
    assert share == approved_share(ApprovalFigures(pending=0, outcomes=outcomes))


GROUP = Group(name="2026-11-25", runs=4, failed=1, score=1.0, confidence=1.5, with_confidence=3)


def test_means_are_of_the_runs_that_have_a_value():
    """Without runs there is a rate of 0, and no confidence."""
    assert (0.25, 0.25, 0.5) == (failure_rate(GROUP), mean_score(GROUP), mean_confidence(GROUP))
    nothing = Group(name="nobody")
    assert (0.0, 0.0, None) == (failure_rate(nothing), mean_score(nothing), mean_confidence(nothing))


def test_days_are_stacked_bars():
    """Runs that succeeded, and runs that failed."""
    assert [["2026-11-25", "3", "1"]] == cells(run_bars([GROUP]))


def test_agents_link_to_their_runs():
    """With a name that is quoted; what the catalog sums up, and runs without a name, have no link."""
    groups = [Group(name='a&b="<x>', runs=2), Group(name="…", runs=1), Group(name="", runs=1)]
    rows = agent_rows(groups, {"since": "2026-11-01"}, "/sub")
    assert ["/sub/runs?agent=a%26b%3D%22%3Cx%3E&since=2026-11-01", "", ""] == [row["address"] for row in rows]


def test_thresholds_stand_in_the_distribution_of_the_confidence():
    """Those that can be reached."""
    figures = RunFigures(total=GROUP, confidence=(0,) * 14 + (3,) + (0,) * 5)
    plot = confidence_plot(figures, gk.Thresholds(math.inf, 0.7, 0.4))
    assert "notify 0.7" in plot
    assert "confirm 0.4" in plot
    assert "silent" not in plot
    assert ["0.7 to 0.75", "3", "100.0%"] == cells(plot)[14]


def test_each_level_has_a_bar():
    """From mild to strict, also those that never occurred."""
    rows = cells(level_plot(RunFigures(total=GROUP, levels={"escalate": 1, "notify": 3})))
    assert [
        ["silent", "0", "0.0%"],
        ["notify", "3", "75.0%"],
        ["confirm", "0", "0.0%"],
        ["escalate", "1", "25.0%"],
    ] == rows


@pytest.mark.parametrize(
    ("confidences", "found"),
    [
        ([0.7] * 19 + [0.1], (0.7, 0.95, 20)),
        ([0.7] * 19, None),
        ([0.70, 0.71, 0.72, 0.73] * 5, None),
        ([0.1, 0.3, 0.5, 0.7] * 5, None),
        ([0.7], None),
        ([], None),
    ],
)
def test_it_is_said_where_most_runs_have_one_confidence(confidences, found, office):
    """One and the same value, not only one bin, of enough runs."""
    for confidence in confidences:
        office.run(confidence=confidence)
    catalog = office.visit().app.state.site.catalog
    query = CatalogQuery()
    figures = (
        catalog.figures("2000-01-01", "2100-01-01") if confidences else RunFigures(total=GROUP, confidence=(0,) * 20)
    )
    same = alike(catalog, query, figures)
    assert found == (same if same is None else tuple(same.values()))


MODELS = {"gemini-a": (10, 2_000_000, 1), "gemini-b": (1, 500_000, 0), "local": (5, 9_000_000, 0), "other": (3, 100, 0)}
PRICES = {"gemini-*": (0.3, "USD"), "gemini-b": (2.0, "USD"), "local": (0.0, "EUR")}


def test_money_is_tokens_times_price():
    """A million tokens cost the price; what has no price has no money, and is no 0."""
    found = {each.model: each.money for each in spending(MODELS, PRICES)}
    assert {"gemini-a": 0.6, "gemini-b": 1.0, "local": 0.0, "other": None} == pytest.approx(found)
    assert {"USD": 1.6, "EUR": 0.0} == pytest.approx(sums_by_currency(spending(MODELS, PRICES)))
    assert {} == sums_by_currency(spending(MODELS, {}))


def test_the_model_with_the_most_tokens_stands_first():
    """Then the one with more calls."""
    assert ["local", "gemini-a", "gemini-b", "other"] == [each.model for each in spending(MODELS, {})]


def test_an_exact_name_comes_before_a_glob():
    """And a glob before nothing."""
    assert (2.0, "USD") == price_of("gemini-b", PRICES)
    assert (0.3, "USD") == price_of("gemini-x", PRICES)
    assert price_of("Gemini-x", PRICES) is None


def test_the_table_says_where_a_price_is_missing():
    """In the place of the money."""
    table = spending_table(spending({"<b>": (1, 10, 1)}, {}))
    assert 2 == table.count(">no price set<")
    assert "&lt;b&gt;" in table
    assert ">1.60 USD<" in spending_table(spending({"a": (1, 1_000_000, 0)}, {"a": (1.6, "USD")}))


@pytest.mark.parametrize(
    ("amount", "text"), [(0.0, "0.00 USD"), (0.0004, "0.0004 USD"), (0.5, "0.50 USD"), (1_234.5, "1,234.50 USD")]
)
def test_small_amounts_do_not_read_as_nothing(amount, text):
    """Two decimals, and more where they are needed."""
    assert text == money_text(amount, "USD")
