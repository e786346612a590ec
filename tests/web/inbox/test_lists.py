"""The lists of the inbox: filters, search, pages, and decisions on several requests."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from grace_kp.web.inbox._lists import MOST_SEARCHED, PAGE, contains, find, since_of
from tests.web.inbox.conftest import HOSTILE, forms, person


def ids(text):
    return list(dict.fromkeys(re.findall(r'href="/approvals/(ap-[0-9a-f]+)"', text)))


def test_an_empty_inbox_says_what_to_do_next(ana):
    assert "InboxReviewer" in ana.get("/inbox").text
    for path in ("/inbox/attention", "/approvals/history", "/approvals/standing"):
        assert 'class="empty"' in ana.get(path).text
    assert "matches these filters" in ana.get("/inbox?action=x").text


def test_a_request_with_an_alarm_is_marked(shop, ana):
    """In the list; the page of the request says why."""
    alarm = {"name": "nowhere", "parameter": "invoice", "tool": "", "words": "", "is_part": False}
    shop.ask()
    assert '<span class="badge warn">alarm</span>' not in ana.get("/inbox").text
    shop.ask({"invoice": "A-19", "euros": 7}, facts={"alarms": [alarm]})
    assert 1 == ana.get("/inbox").text.count('<span class="badge warn">alarm</span>')


def test_requests_stand_by_deadline_and_level(shop, ana):
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
        "no process waits",
        'href="/runs/kp:trace:1"',
        "confidence 0.61",
        "no deadline",
    ):
        assert words in text


def test_filters_narrow_the_list(shop, ana):
    one = shop.ask(name="send_mail", level="escalate")
    two = shop.ask(groups=("board",))
    three = shop.ask(groups=("finance",))
    for query, found in (
        ("action=mail", [one]), ("action=send_*", [one]), ("action=Mail", []), ("level=escalate", [one]), ("group=board", [one, two]), ("mine=1", [one, three]),
        ("mine=1&level=confirm", [three]), ("level=nonsense", [one, two, three]), ("offset=x", [one, two, three]),
    ):  # fmt: skip
        assert {each.id for each in found} == set(ids(ana.get(f"/inbox?{query}").text)), query
    for field in ("action", "text"):
        assert "<script>x" not in ana.get("/inbox", params={field: '"><script>x'}).text
    assert 'name="id"' not in shop.browser("vi", role="viewer").get("/inbox").text  # who may not decide cannot select
    assert "Not yours: it needs a member of board" in ana.get("/inbox").text


def test_the_list_is_paged(shop, ana):
    made = [shop.ask({"invoice": f"A-{n}", "euros": n}) for n in range(PAGE + 3)]
    text = ana.get("/inbox?action=refund").text
    assert PAGE == len(ids(text))
    (older,) = re.findall(r'rel="next" href="([^"]+)"', text)
    rest = ana.get(f"/inbox{older.replace('&amp;', '&')}").text
    assert {each.id for each in made} == {*ids(text), *ids(rest)}
    assert 3 == len(ids(rest))
    assert 'rel="prev"' in rest
    assert "This page is empty now" in ana.get("/inbox?offset=5000").text


def test_what_needs_attention(shop, ana):
    unused = shop.desk.approve(shop.ask().id, by=person("ana"))
    started, lost = shop.ask(), shop.lose(shop.ask())
    shop.start(started)
    text = ana.get("/inbox/attention").text
    assert [lost.id, unused.id, started.id] == ids(text)
    for words in ("Outcome unknown", "Approved, not started", "Running"):
        assert words in text
    assert '<span class="count warn">2</span>' in ana.get("/inbox").text


def test_the_history_is_searched(shop, ana):
    one, two = shop.ask(name="send_mail"), shop.ask()
    shop.desk.reject(one.id, by=person("bo"), reason=HOSTILE)
    shop.desk.approve(two.id, by=person("ana"))
    for query, found in (
        ("", [one, two]), ("q=mail", [one]), (f"q={two.id[:8]}", [two]), ("by=bo", [one]), ("state=approved", [two]), ("state=rejected&by=ana", []),
        ("since=2020-01-01", [one, two]), ("since=2999-01-01", []), ("state=pending", [one, two]),
    ):  # fmt: skip
        assert {each.id for each in found} == set(ids(ana.get(f"/approvals/history?{query}").text)), query
    answer = ana.get("/approvals/history?since=yesterday")
    assert 422 == answer.status_code
    assert "is not a date such as" in answer.text


@pytest.mark.parametrize("text", ["0001-01-01", "9999-12-31T23:59:59-23:59", "x", "2026-13-01"])
def test_any_date_is_a_time_or_a_problem(text):
    at, problem = since_of(text)
    assert (at is None) == bool(problem)


def test_waiting_requests_are_found_by_their_arguments(shop, ana):
    """Whatever the case, in any language, over line breaks and quotes; other filters narrow the search."""
    first = shop.ask({"invoice": "A-17", "euros": 5, "memo": 'say "Hello"\nplease'})
    second = shop.ask({"invoice": "返金-2", "euros": 6, "memo": "x"})
    for text, found in (
        ("a-17", [first]), ("返金", [second]), ('"hello"\nplease', [first]), ("nothing", []), ("refund", [first, second]),
    ):  # fmt: skip
        assert {each.id for each in found} == set(ids(ana.get("/inbox", params={"text": text}).text)), text
    assert [] == ids(ana.get("/inbox", params={"text": "A-17", "action": "mail"}).text)
    shop.desk.reject(first.id, by=person("ana"), reason="Paid twice already")
    shop.desk.reject(second.id, by=person("ana"))
    for text in ("paid TWICE", "a-17"):
        assert [first.id] == ids(ana.get("/approvals/history", params={"text": text}).text)


@pytest.fixture
def many(shop):
    one = shop.ask({"invoice": "A-17", "euros": 5})
    return [
        replace(one, id=f"ap-{number}", encoded={"invoice": f"N-{number:05}"}) for number in range(MOST_SEARCHED + 500)
    ]


def reader(approvals):
    return lambda limit, offset: approvals[offset : offset + limit]


def test_a_search_looks_at_a_bounded_number_of_requests(many):
    wanted = f"n-{MOST_SEARCHED + 200:05}"
    begun = find(reader(many), wanted, offset=0, limit=10)
    assert ([], MOST_SEARCHED, True) == (list(begun.approvals), begun.older, begun.is_cut)
    rest = find(reader(many), wanted, offset=MOST_SEARCHED, limit=10)
    assert ([many[MOST_SEARCHED + 200]], None, False) == (list(rest.approvals), rest.older, rest.is_cut)


def test_pages_of_a_search_join_without_gap(many):
    offset, found = 0, []
    while offset is not None:
        page = find(reader(many), "n-0", offset=offset, limit=70)
        found += page.approvals
        offset = page.older
    assert many == found


def test_sealed_arguments_are_not_searched_in_the_clear(shop):
    one = shop.ask({"invoice": "A-17", "euros": 5})
    opened = replace(one, arguments={"card": "4111-secret"}, encoded={"card": {"$sealed": "abc"}})
    assert not contains(opened, "4111-secret")


def selected(browser, *approvals):
    return browser.post_form("/approvals/decide", {"id": [approval.id for approval in approvals]})


def test_nothing_is_decided_before_it_was_shown(shop, ana):
    one, two = (
        shop.ask({"invoice": "A-1", "euros": 1, "memo": "word " * 400 + "end"}),
        shop.ask({"invoice": HOSTILE, "euros": 2}),
    )
    text = selected(ana, one, two).text
    for approval in (one, two):
        assert approval.digest in text
        assert "pending" == shop.get(approval).state
        assert ["requested", "viewed"] == shop.kinds(approval)
    assert "word end" in text
    assert "<script>alert" not in text
    form = forms(text)["decide"]
    assert {"hidden", "textarea"} == set(form.kinds)  # Enter decides nothing


@pytest.mark.parametrize(
    ("verb", "state"),
    [("approve", "approved"), ("respond", "responded"), ("withdraw", "cancelled")],
)
def test_each_verb_is_applied_to_each(shop, ana, verb, state):
    made = [shop.ask({"invoice": f"A-{n}", "euros": n}) for n in range(3)]
    form = forms(selected(ana, *made).text)["decide"].submitted(verb=verb, note="all of them")
    for _ in range(2):
        answer = ana.post("/approvals/decide", data=form)
        assert 200 == answer.status_code
        assert "3 requests" in answer.text
    assert [state] * 3 == [shop.get(each).state for each in made]
    assert ["all of them"] * 3 == [shop.get(each).decision.note for each in made]


def test_what_was_changed_or_decided_meanwhile_is_left_as_it_is(shop, ana):
    edited, decided, free = (shop.ask({"invoice": f"A-{n}", "euros": n}, quorum=2 if n == 0 else 1) for n in range(3))
    form = forms(selected(ana, edited, decided, free).text)["decide"].submitted(verb="approve")
    shop.desk.edit(edited.id, {"euros": 9}, by=person("bo"))
    shop.desk.reject(decided.id, by=person("bo"))
    text = ana.post("/approvals/decide", data=form).text
    assert "2 requests could not be decided" in text
    assert "The arguments have changed since they were shown" in text
    assert "was rejected by bo" in text
    assert ["pending", "rejected", "approved"] == [shop.get(each).state for each in (edited, decided, free)]


def test_what_cannot_be_decided_together_is_left_out(shop, ana):
    """Other groups, arguments that cannot be shown, and what has ended."""
    other, hidden, ended, free = shop.ask(groups=("board",)), shop.ask(unencoded=("handle",)), shop.ask(), shop.ask()
    shop.desk.reject(ended.id, by=person("bo"))
    text = selected(ana, other, hidden, ended, free).text
    assert [free.id] == [value for name, value, _ in forms(text)["decide"].fields if name == "id"]
    assert f"You cannot decide {other.action}" in text
    assert "needs a member of board" in text
    assert "cannot be shown in full" in text
    assert "has ended meanwhile" in text


def test_arguments_that_cannot_be_shown_are_not_approved_with_others(shop, ana):
    """Also where the form was not made by the page; the others are approved, and a refusal needs nothing shown."""
    hidden, free = shop.ask(unencoded=("handle",)), shop.ask()
    fields = {"id": [hidden.id, free.id], **{f"digest-{each.id}": each.digest for each in (hidden, free)}}
    text = ana.post_form("/approvals/decide", fields, verb="approve").text
    assert "only be approved on its own page" in text
    assert ["pending", "approved"] == [shop.get(each).state for each in (hidden, free)]
    ana.post_form("/approvals/decide", {**fields, "id": [hidden.id]}, verb="reject")
    assert "rejected" == shop.get(hidden).state


def test_incomplete_forms_are_refused(shop, ana):
    approval = shop.ask()
    digest = {f"digest-{approval.id}": approval.digest}
    for fields, status in (
        ({"id": [approval.id], "verb": "approve"}, 400),
        ({"id": [approval.id], "verb": "edit", **digest}, 422),
        ({"id": [approval.id], "verb": "respond", **digest}, 422),
        ({"id": [f"ap-{number}" for number in range(201)]}, 422),
    ):
        assert status == ana.post_form("/approvals/decide", fields).status_code
    assert "pending" == shop.get(approval).state
    for fields in ({}, {"id": ["ap-0"]}):
        assert "Nothing is selected" in ana.post_form("/approvals/decide", fields).text
