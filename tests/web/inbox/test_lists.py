"""Lists of requests: filters in the address, pages, and what needs attention."""

from __future__ import annotations

import re

import pytest

from grace_kp.approvals import PolicyNow
from grace_kp.web.inbox._lists import PAGE, pattern_of, since_of
from tests.web.inbox.shop import HOSTILE, anything, person


def ids(text):
    return list(dict.fromkeys(re.findall(r'href="/approvals/(ap-[0-9a-f]+)"', text)))


def test_an_empty_inbox_says_what_to_do_next(ana):
    """So do the other empty lists."""
    assert "InboxReviewer" in ana.get("/inbox").text
    for path in ("/inbox/attention", "/approvals/history", "/approvals/standing"):
        assert 'class="empty"' in ana.get(path).text
    assert "matches these filters" in ana.get("/inbox?action=x").text


def test_the_start_page_is_the_inbox(ana):
    """By a redirect."""
    assert "/inbox" == ana.get("/").headers["location"]


def test_requests_stand_by_deadline_and_level(shop, ana):
    """Those that end first stand first; each names what decides."""
    late = shop.ask(deadline_seconds=9_000.0)
    soon = shop.ask(
        {"invoice": "A-18", "euros": 7},
        deadline_seconds=600.0,
        level="escalate",
        groups=("finance",),
        quorum=2,
        run_id="kp:trace:1",
    )
    never = shop.ask(deadline_seconds=None)
    text = ana.get("/inbox").text
    assert [soon.id, late.id, never.id] == ids(text)
    for words in (
        "escalate",
        "finance, 0 of 2 consents",
        "handed over",
        'href="/runs/kp:trace:1"',
        "confidence 0.61",
        "no deadline",
    ):
        assert words in text


def test_filters_narrow_the_list(shop, ana):
    """By action, level, group, and what is mine to decide."""
    one = shop.ask(name="send_mail", level="escalate")
    two = shop.ask(groups=("board",))
    three = shop.ask(groups=("finance",))
    for query, found in (
        ("action=mail", [one]), ("action=send_*", [one]), ("action=Mail", []), ("level=escalate", [one]), ("group=board", [one, two]), ("mine=1", [one, three]),
        ("mine=1&level=confirm", [three]), ("level=nonsense", [one, two, three]), ("offset=x", [one, two, three]),
    ):  # fmt: skip
        assert {each.id for each in found} == set(ids(ana.get(f"/inbox?{query}").text)), query
    text = ana.get("/inbox?action=%22%3E%3Cscript%3E").text
    assert "<script>" not in text.replace("<script defer", "")


def test_the_list_is_paged(shop, ana):
    """Filters stay in the links."""
    made = [shop.ask({"invoice": f"A-{n}", "euros": n}) for n in range(PAGE + 3)]
    text = ana.get("/inbox?action=refund").text
    assert PAGE == len(ids(text))
    (older,) = re.findall(r'rel="next" href="([^"]+)"', text)
    rest = ana.get(f"/inbox{older.replace('&amp;', '&')}").text
    assert {each.id for each in made} == {*ids(text), *ids(rest)}
    assert 3 == len(ids(rest))
    assert 'rel="prev"' in rest
    assert "This page is empty now" in ana.get("/inbox?offset=5000").text


def test_who_may_not_decide_cannot_select(shop):
    """A viewer has no boxes; a stranger reads why."""
    shop.ask(groups=("board",))
    assert 'name="id"' not in shop.browser("vi", role="viewer").get("/inbox").text
    assert "Not yours: it needs a member of board" in shop.browser("ana", role="approver").get("/inbox").text


def test_what_needs_attention(shop, ana):
    """Unknown outcomes, approvals that nothing has used, and actions under way."""
    unused = shop.desk.approve(shop.ask().id, actor=person("ana"))
    started, lost = (shop.desk.approve(shop.ask().id, actor=person("ana")) for _ in range(2))
    for approval in (started, lost):
        claim = shop.desk.claim(
            approval.id, digest=approval.digest, version=approval.version, policy=PolicyNow(), actor=person("x")
        )
    shop.desk.settle(lost.id, claim.token, state="unknown")
    text = ana.get("/inbox/attention").text
    assert [lost.id, unused.id, started.id] == ids(text)
    for words in ("Outcome unknown", "Approved, not started", "Running"):
        assert words in text
    assert '<span class="count warn">2</span>' in ana.get("/inbox").text


def test_the_history_is_searched(shop, ana):
    """By action or id, person, time and state."""
    one, two = shop.ask(name="send_mail"), shop.ask()
    shop.desk.reject(one.id, actor=person("bo"), reason=HOSTILE)
    shop.desk.approve(two.id, actor=person("ana"))
    for query, found in (
        ("", [one, two]), ("q=mail", [one]), (f"q={two.id[:8]}", [two]), ("by=bo", [one]), ("state=approved", [two]), ("state=rejected&by=ana", []),
        ("since=2020-01-01", [one, two]), ("since=2999-01-01", []), ("state=pending", [one, two]),
    ):  # fmt: skip
        assert {each.id for each in found} == set(ids(ana.get(f"/approvals/history?{query}").text)), query
    answer = ana.get("/approvals/history?since=yesterday")
    assert 422 == answer.status_code
    assert "is no date such as" in answer.text


def test_a_text_without_wildcards_is_looked_for_anywhere():
    """A glob is taken as it is."""
    assert ["*mail*", "mail*", None] == [pattern_of(text) for text in ("mail", "mail*", "")]


@pytest.mark.parametrize("text", ["0001-01-01", "9999-12-31T23:59:59-23:59", "x", "2026-13-01"])
def test_any_date_is_a_time_or_a_problem(text):
    """No text raises."""
    at, problem = since_of(text)
    assert (at is None) == bool(problem)


def test_ten_thousand_pending_requests(filed):
    """Every page has its fifty, filters that match few find them, and what is not mine is left out."""
    new = filed.ask({"value": 0}, anything, groups=("board",))
    row, link = filed.tables.row(new.id), filed.tables.links(approval=new.id)[0]
    with filed.tables.transaction() as writes:
        import dataclasses

        for number in range(10_000):
            writes.put(dataclasses.replace(row, id=f"ap-{number:016x}", revision=1, deadline=row.deadline + number))
    assert link.seq
    browser = filed.browser("ana", role="approver")
    for path, count in (
        ("/inbox", PAGE),
        ("/inbox?offset=9950", PAGE),
        ("/inbox?offset=10000", 1),
        ("/inbox?mine=1", 0),
        ("/inbox?group=board", PAGE),
    ):
        answer = browser.get(path)
        assert (200, count) == (answer.status_code, len(ids(answer.text))), path
    assert "10,001" in browser.get("/inbox").text
