"""The page of figures: plots, tables, the period of an address, what judges cost, and whether the confidence can be trusted."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

import grace_kp as gk
from grace_kp import calibrate as cal
from grace_kp.store import CatalogQuery, Group, RunFigures
from grace_kp.testing import ScriptedJudge, make_grace
from grace_kp.web.figures import _trust
from grace_kp.web.figures._figures import (
    LONGEST,
    MOST_BARS,
    bars_of,
    confidence_plot,
    means_of,
    money_text,
    quantile,
    read_period,
    run_bars,
    spending,
    spending_values,
    wait_plot,
)
from grace_kp.web.figures._trust import (
    LabelledRow,
    Verdict,
    needed_labels,
    reliability_plot,
    risk_plot,
    threshold_values,
    verdict_of,
    watched_promises,
    wrong_at_thresholds,
)
from tests.approvals.shops import ANA, asked
from tests.pages.drawing import cells, drawings, ids, outside
from tests.pages.reading import Elements
from tests.runtime.learned import Learned
from tests.web.conftest import Office, notes, tiles, words

HOSTILE = '</table><script>alert(1)</script>"&\u202e'


def whole(page):
    """The page is found, its ids occur once, and its drawings stand in their frames."""
    assert 200 == page.status_code
    assert len(set(ids(page.text))) == len(ids(page.text))
    assert [] == [place for drawing in drawings(page.text) for place in outside(drawing)]
    assert " style=" not in page.text
    return page


def rows(page, name):
    """The rows of the first table after a heading, as texts."""
    part = page.text[page.text.index(name) :]
    body = part[part.index("<tbody") : part.index("</tbody>")]
    return [
        [
            " ".join(re.sub(r"<[^>]+>", "", cell).split())
            for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        ]
        for row in re.findall(r"<tr.*?</tr>", body, re.DOTALL)
    ]


def test_an_empty_store_says_what_to_do(office):
    page = whole(office.page())
    assert "Figures appear here as soon as an agent records a run" in words(page)
    assert "Open a run and label it with one click: right" in words(page)
    assert "silent at 5 % needs at least 67 labels without an error, and there are 0" in words(page)
    assert "No promise is watched" in words(page)
    assert [] == drawings(page.text)


def test_figures_are_the_sums_over_the_store(office):
    draw = random.Random(5)
    for _ in range(60):
        office.run(
            draw.choice(["a", "b", "c"]), days=draw.randrange(12), confidence=draw.randrange(100) / 100,
            success=draw.random() < 0.8, gates=["pay"] * draw.randrange(3),
        )  # fmt: skip
    page = whole(office.page("?days=7"))
    first = re.search(r'name="since" value="([^"]+)"', page.text)[1]
    found = [trace for trace in office.grace.store.iterate() if trace.metadata.created_at[:10] >= first]
    assert 0 < len(found) < 60
    failed = [trace for trace in found if not trace.metadata.success]
    assert (f"{len(found)}", f"{len(failed)}") == (tiles(page)["Runs"], tiles(page)["Failed"])
    confidence = sum(trace.outcome.confidence for trace in found) / len(found)
    score = sum(trace.value.score for trace in found) / len(found)
    assert (f"{confidence:.3f}", f"{score:.3f}") == (tiles(page)["Mean confidence"], tiles(page)["Mean score"])
    days, bad_days = (Counter(trace.metadata.created_at[:10] for trace in group) for group in (found, failed))
    assert 7 == len(rows(page, "Runs per day"))
    for day, good, bad in rows(page, "Runs per day"):
        assert (days[day] - bad_days[day], bad_days[day]) == (int(good), int(bad))
    agents = Counter(trace.name for trace in found)
    assert {name: str(count) for name, count in agents.items()} == {row[0]: row[1] for row in rows(page, "By agent")}
    bins = Counter(min(19, int(trace.outcome.confidence * 20)) for trace in found)
    assert [str(bins[place]) for place in range(20)] == [row[1] for row in rows(page, "<strong>Confidence</strong>")]
    levels = Counter(decision.level for trace in found for decision in trace.decisions)
    assert {level: str(levels[level]) for level in ("silent", "notify", "confirm", "escalate")} == {
        row[0]: row[1] for row in rows(page, "Gates by level")
    }


def test_links_lead_to_the_runs_of_an_agent_that_were_counted(office):
    office.run("a & b")
    office.run("c", days=1)
    browser = office.visit()
    page = browser.get("/figures?agent=a+%26+b")
    assert "1" == tiles(page)["Runs"]
    assert '<option value="a &amp; b" selected>' in page.text
    assert all("agent=a+%26+b" in link for link in Elements(page.text).links if "days=" in link)
    links = [link for link in Elements(page.text).links if link.startswith("/runs?")]
    assert 2 <= len(links)
    for link in links:
        found = browser.get(link)
        assert 200 == found.status_code
        assert "kp:trace:" in found.text


def test_a_period_without_runs_leads_to_all(office):
    office.run(days=100)
    page = whole(office.page("?until=tomorrow"))
    assert any("Last day cannot be used" in note for note in notes(page))
    assert "No runs in this period" in page.text
    assert '<a class="button" href="/figures?days=all">Show all days</a>' in page.text
    assert "1" == tiles(office.page("?days=all"))["Runs"]
    assert "Runs per week" in office.page("?days=all").text


def test_names_of_agents_are_text(office):
    office.run(HOSTILE, objective=HOSTILE)
    office.run("エージェント", label=True)
    page = whole(office.page())
    assert "alert(1)" not in "".join(re.findall(r"<script[^>]*>(.*?)</script>", page.text))
    assert "⟨U+202E⟩" in page.text
    assert "\u202e" not in page.text
    assert "エージェント" in page.text
    assert 200 == office.page("?agent=" + "%3C%2Ftable%3E%E2%80%AE%22").status_code


def test_it_is_said_where_the_confidence_says_nothing(office):
    for number in range(20):
        office.run(confidence=0.7 if number else 0.2)
    (note,) = [note for note in notes(office.page()) if "distinguish" in note]
    assert "95% of the newest 20 runs have a confidence of 0.7, so the confidence does not distinguish them" in note


def test_approvals_are_counted(office):
    desk = office.visit().app.state.site.requests
    requests = [desk.file(asked({"invoice": f"R-{number}", "euros": 1})) for number in range(4)]
    for request in requests[:2]:
        desk.approve(request.id, by=ANA)
    desk.reject(requests[2].id, by=ANA, reason="no")
    page = whole(office.page())
    shown = tiles(page)
    assert ("1", "3", "67%", "0") == tuple(
        shown[name] for name in ("Pending now", "Decided or closed", "Approved by people", "Expired")
    )
    assert {"Median wait", "90 % decided within"} <= set(shown)
    assert [["approved", "2", "66.7%"], ["rejected", "1", "33.3%"]] == rows(page, "How requests were decided")
    assert 3 == sum(int(row[1]) for row in rows(page, "Time until people decided"))


@pytest.mark.parametrize("prices", [{}, {"*": (1_000.0, "EUR")}])
def test_judges_cost_what_their_price_says(tmp_path, prices):
    office = Office(tmp_path, evaluator=ScriptedJudge(0.8), prices=prices)
    office.grace.agent(lambda question: f"It is {question}.")("4")
    page = whole(office.page())
    office.close()
    (row,) = rows(page, "Judge spending")
    assert int(row[1]) >= 1
    cost = f"{int(row[2].replace(',', '')) / 1_000:,.2f} EUR" if prices else "no price set"
    assert ["1,000 EUR" if prices else "no price set", cost] == row[4:]
    assert cost == tiles(page)["Money"]


def test_labels_show_what_the_confidence_is_worth(office):
    for number in range(12):
        office.run(confidence=number / 12, label=number > 4, objective=f"Refund {number}")
    page = whole(office.page())
    assert "12 labelled runs (12 test), 58% correct." in words(page)
    assert {"AUROC", "Calibration error", "Brier score"} <= set(tiles(page))
    assert "1.00" == tiles(page)["AUROC"]
    assert "<strong>Reliability</strong>" in page.text
    assert "<strong>Risk and coverage</strong>" in page.text
    assert "notify at 15 % needs at least 21 labels without an error, and there are 12" in words(page)
    levels = {row[0]: row for row in rows(page, "Thresholds in force")}
    assert ["silent", "0.9", "default"] == levels["silent"][:3]
    assert levels["notify"][3].startswith("0.0% wrong (0.0% to ")


def test_a_refuted_promise_is_shown(tmp_path):
    office = Office(tmp_path, monitor=cal.Monitor({"silent": 0.05}), unmeasured="silent")
    for _ in range(4):
        office.run(label=False, gates=["pay"])
    page = whole(office.page())
    assert any("Refuted." in note and "all actions, silent: " in note for note in notes(page))
    table = rows(page, "Watched promises")
    assert [["all actions", "silent", "5.0%", "4 of 4"], ["pay", "silent", "5.0%", "4 of 4"]] == [
        row[:4] for row in table
    ]
    assert {"refuted"} == {row[5] for row in table}
    office.close()


def test_everybody_who_may_see_sees_figures(office):
    office.run()
    page = office.visit(role="viewer", root_path="/desk").get("/desk/figures")
    assert 200 == page.status_code
    links = [link for link in Elements(page.text).links if not link.startswith(("#", "data:"))]
    assert len(links) > 9
    assert all(link.startswith("/desk/") for link in links)


def test_runs_that_wait_are_counted_apart(office):
    office.run("job", success=False)
    with pytest.raises(gk.ActionPending), office.grace.run("pay", name="job"):
        office.grace.gate(name="pay", key="one", floor="confirm", reviewer=gk.InboxReviewer(wait="raise"))(print)()
    page = whole(office.page())
    assert ("2", "1", "1") == tuple(tiles(page)[name] for name in ("Runs", "Failed", "Waiting"))
    assert ["2", "1 (100.0%)", "1"] == rows(page, "By agent")[0][1:4]


TODAY = date(2026, 11, 25)


def period(query, oldest=date(2026, 1, 2)):
    return read_period(QueryParams(query), TODAY, lambda: oldest)


@pytest.mark.parametrize(
    ("query", "since", "until"),
    [
        ("", "2026-10-27", "2026-11-25"),
        ("days=7", "2026-11-19", "2026-11-25"),
        ("days=all", "2026-01-02", "2026-11-25"),
        ("since=2026-11-01", "2026-11-01", "2026-11-25"),
        ("until=2026-11-01", "2026-10-03", "2026-11-01"),
        ("since=2026-11-01&until=2026-11-01&days=7", "2026-11-01", "2026-11-01"),
        ("since=&until=&agent=", "2026-10-27", "2026-11-25"),
    ],
)
def test_a_period_is_a_preset_or_two_days(query, since, until):
    """30 days up to today where nothing is asked for; stated days come first, and empty fields are none."""
    found = period(query)
    assert (since, until, {}, None) == (str(found.since), str(found.until), found.problems, found.agent)


@pytest.mark.parametrize(
    ("query", "field", "problem"),
    [
        ("days=8", "days", "'8'"),
        ("since=yesterday", "since", "'yesterday'"),
        ("until=2026-02-30", "until", "day is out of range"),
        ("since=2026-11-02&until=2026-11-01", "since", "must not be after until: 2026-11-02 is after 2026-11-01"),
        ("until=9999-12-31", "until", "must be 2026-11-25 (today in UTC) or earlier, not 9999-12-31"),
        ("days=7&days=30", "days", "not a list of 2"),
    ],
)
def test_an_unusable_value_is_left_out_with_its_problem(query, field, problem):
    found = period(query)
    assert [field] == list(found.problems)
    assert problem in found.problems[field]
    assert (date(2026, 10, 27), TODAY) == (found.since, found.until)


def test_a_period_has_a_longest_length():
    """So that a run with a wrong clock does not make a page of a thousand years."""
    found = period("days=all", oldest=date(1970, 1, 1))
    assert (LONGEST, date(2006, 11, 11)) == (found.days, found.since)
    assert "a period has at most 7,320 days" in found.problems["since"]
    assert date(2026, 11, 25) == period("days=all", oldest=date(2030, 1, 1)).since
    begin, end = period("since=2026-11-24&until=2026-11-25").seconds
    assert (datetime(2026, 11, 24, tzinfo=UTC).timestamp(), 2 * 86_400) == (begin, end - begin)


@given(st.lists(st.floats(0, 1e9), min_size=1), st.floats(0.01, 1))
def test_a_quantile_is_a_value_that_enough_do_not_exceed(values, share):
    ordered = sorted(values)
    found = quantile(ordered, share)
    assert found in ordered
    assert sum(value <= found for value in ordered) >= share * len(ordered)
    smaller = [value for value in ordered if value < found]
    assert all(sum(value <= other for value in ordered) < share * len(ordered) for other in smaller[-1:])


def test_waits_are_shown_in_times_that_people_name():
    waits = (0.0, 9.9, 10.0, 3_599.0, 86_400.0, 604_800.0)
    rows = {row[0]: row[1] for row in cells(wait_plot(waits))}
    assert {"0 to 10s": "2", "10s to 1m": "1", "10m to 1h": "1", "1d to 7d": "2"} == {
        name: count for name, count in rows.items() if count != "0"
    }
    rows = [row[1] for row in cells(wait_plot((*waits, 10_000_000.0)))]
    assert (8, "2", 7) == (len(rows), rows[-1], sum(map(int, rows)))


GROUP = Group(name="2026-11-25", runs=4, failed=1, score=1.0, confidence=1.5, with_confidence=3)


def test_means_are_of_the_runs_that_have_a_value():
    assert {"failed": 0.25, "score": 0.25, "confidence": 0.5} == means_of(GROUP)
    assert {"failed": 0.0, "score": 0.0, "confidence": None} == means_of(Group(name="empty"))
    assert [["2026-11-25", "3", "1"]] == cells(run_bars([GROUP]))


@given(st.dates(date(1, 1, 1), date(2_100, 1, 1)), st.integers(0, 3_000))
def test_each_day_is_in_one_bar(first, count):
    """In order, and there are never too many bars for a phone."""
    days = [Group(name=(first + timedelta(days=place)).isoformat(), runs=place) for place in range(count)]
    unit, bars = bars_of(days)
    assert days == [day for _, group in bars for day in group]
    assert len(bars) <= MOST_BARS or unit == "year"
    assert all(str(begin) == group[0].name for begin, group in bars)


@pytest.mark.parametrize(
    ("count", "unit", "second"),
    [
        (30, "day", "2026-01-02"),
        (90, "week", "2026-01-05"),
        (700, "month", "2026-02-01"),
        (3_000, "year", "2027-01-01"),
    ],
)
def test_bars_are_units_of_a_calendar(count, unit, second):
    days = [Group(name=(date(2026, 1, 1) + timedelta(days=place)).isoformat()) for place in range(count)]
    found, bars = bars_of(days)
    assert (unit, ["2026-01-01", second]) == (found, [str(begin) for begin, _ in bars[:2]])


def test_reachable_thresholds_are_drawn_in_the_distribution_of_the_confidence():
    figures = RunFigures(total=GROUP, confidence=(0,) * 14 + (3,) + (0,) * 5)
    plot = confidence_plot(figures, gk.Thresholds(math.inf, 0.7, 0.4))
    assert [True, True, False] == [word in plot for word in ("notify 0.7", "confirm 0.4", "silent")]
    assert ["0.7 to 0.75", "3", "100.0%"] == cells(plot)[14]


MODELS = {"gemini-a": (10, 2_000_000, 1), "gemini-b": (1, 500_000, 0), "local": (5, 9_000_000, 0), "<b>": (3, 100, 0)}
PRICES = {"gemini-*": (0.3, "USD"), "gemini-b": (2.0, "USD"), "local": (0.0, "EUR")}


def test_money_is_tokens_times_price():
    """The most tokens stand first; an exact name comes before a glob, and what has no price has no money."""
    found = [(each.model, each.money) for each in spending(MODELS, PRICES)]
    assert [("local", 0.0), ("gemini-a", 0.6), ("gemini-b", 1.0), ("<b>", None)] == found
    shown = spending_values(MODELS, PRICES)
    assert (["0.00 EUR", "1.60 USD"], ["<b>"]) == (shown["money"], shown["unpriced"])
    assert 2 == shown["spending_table"].count(">no price set<")
    assert "&lt;b&gt;" in shown["spending_table"]
    assert "0.0004 USD" == money_text(0.0004, "USD")  # small amounts do not read as nothing


def verdict(rows, weights=None):
    weights = weights or [1.0] * len(rows)
    return Verdict(
        rows=[LabelledRow(*row, weight, task) for task, (row, weight) in enumerate(zip(rows, weights, strict=True))]
    )


ROWS = [(0.95, True)] * 9 + [(0.95, False)] + [(0.35, True), (0.35, False)]


def test_reliability_and_risk_are_drawn():
    """With the number of runs, an interval where each label counts once, and the threshold of each point."""
    found = verdict(ROWS)
    low, high = cells(reliability_plot(found, found.assessment))
    assert (["0.35", "0.5"], "2") == (low[:2], low[3])
    assert ["0.95", "0.9", "0.555 to 0.997", "10"] == high[:4]
    weighted = verdict(ROWS, [1.0] * 11 + [20.0])
    assert "95 % interval" not in reliability_plot(weighted, weighted.assessment)
    strict, mild = cells(risk_plot(found.curve(), found.tasks))
    assert (["0.833", "0.1"], "0.95") == (strict[:2], strict[3])
    assert (["1", "0.167"], "0.35") == (mild[:2], mild[3])


def test_thresholds_are_shown_with_their_origin():
    grace = make_grace(threshold_silent="never", threshold_confirm=0.3)
    found = wrong_at_thresholds(grace, verdict(ROWS))
    assert {"notify": "10.0% wrong (0.3% to 44.5%)", "confirm": "16.7% wrong (2.1% to 48.4%)"} == found
    assert [
        ("silent", "never", "keyword threshold_silent", "–"),
        ("notify", "0.7", "default", found["notify"]),
        ("confirm", "0.3", "keyword threshold_confirm", found["confirm"]),
    ] == [tuple(row.values()) for row in threshold_values(grace, found)["thresholds"]]


def test_a_profile_states_its_promise():
    """As calibration does; a formula promises nothing, and what cannot be read is none."""

    def words(promise):
        profile = Learned(thresholds=gk.Thresholds(math.inf, 0.8, 0.5))
        profile.promise = promise
        grace = make_grace(profile=profile)
        assert grace.thresholds
        return threshold_values(grace, {})["promise"]

    stated = {"risks": {"notify": 0.15}, "delta": 0.1, "kind": "selective", "moment": "action", "approximate": True}
    assert cal.Promise(risks={"notify": 0.15}).in_words + " The promise is approximate." == words(stated)
    assert "" == words({"risks": {"notify": 7}})
    assert "" == words(None)
    assert "" == threshold_values(make_grace(), {})["promise"]


def test_promises_are_read_from_the_store(office, caplog):
    """With every level; the log names a state that cannot be read."""
    assert ([], "") == watched_promises(office.grace.store)
    office.grace.store.change_states(lambda read: {"monitor:x:y": "{}"})
    found, problem = watched_promises(office.grace.store)
    assert [] == found
    assert "Watched promises cannot be read: the store cannot be read or written at the moment." == problem
    assert "cannot be read as a monitor" in caplog.text


def test_missing_labels_are_counted():
    assert ("silent at 5 % needs at least 67 labels without an error, and there are 60",) == needed_labels(60)
    assert 3 == len(needed_labels(0))
    assert () == needed_labels(67)


LABELLED = CatalogQuery(feedback=True)


def read_verdict(office, query=LABELLED):
    return verdict_of(office.visit().app.state.site, query)


def test_the_newest_labels_are_read(office, monkeypatch):
    monkeypatch.setattr(_trust, "AT_MOST_READ", 5)
    monkeypatch.setattr(_trust, "PAGE", 2)
    for number in range(7):
        office.run(days=7 - number, label=number % 2 == 0, confidence=number / 10)
    found = read_verdict(office)
    assert [0.6, 0.5, 0.4, 0.3, 0.2] == [row.confidence for row in found.rows]
    assert found.is_cut
    monkeypatch.setattr(_trust, "AT_MOST_READ", 7)
    assert not read_verdict(office).is_cut


def test_a_threshold_has_a_share_of_wrong_runs(office):
    assert (None, ()) == (verdict([]).assessment, verdict([]).curve())
    office.run(confidence=0.99, label=0.5)
    found = read_verdict(office)
    assert (0.5, ()) == (found.assessment.accuracy, found.curve())
    for confidence, right in ((0.9, True), (0.8, False), (0.8, True), (0.2, False)):
        office.run(confidence=confidence, label=right)
    found = read_verdict(office)
    risks = [found.curve(threshold, points=2)[-1].risk for threshold in (0.8, 0.85, 0.0)]
    assert pytest.approx([1 / 3, 0.0, 0.5], abs=0.15) == risks
    assert () == found.curve(0.95)


def test_alarms_of_gates_are_counted_by_name(office):
    """Decisions with each alarm, in the period and of the agent that the page is about."""
    send = office.grace.gate(name="send", alarms="all")(office.grace.tool(name="send")(lambda to: "sent"))
    office.run()
    assert "alarms about their arguments" not in words(office.page())
    for to in ("bob@nowhere.example", "eve@nowhere.example"):
        with office.grace.run("Write to somebody", name="writer"):
            office.grace.thought("whom?")
            send(to)
    assert "Calls with alarms about their arguments: 2 from no known source." in words(office.page())
    assert "alarms about their arguments" not in words(office.page("?agent=refunds"))
