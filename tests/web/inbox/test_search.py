"""Searching requests by what they hold."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from grace_kp.approvals import ApprovalState as State
from grace_kp.approvals import Decided
from grace_kp.web.inbox._search import AT_MOST, PAGE, contains, find
from tests.web.inbox.shop import person


def ids(text):
    return list(dict.fromkeys(re.findall(r'href="/approvals/(ap-[0-9a-f]+)"', text)))


def test_waiting_requests_are_found_by_their_arguments(shop, ana):
    """Whatever the case, in any language, over line breaks and quotes; other filters narrow the search."""
    first = shop.ask({"invoice": "A-17", "euros": 5, "memo": 'say "Hello"\nplease'})
    second = shop.ask({"invoice": "返金-2", "euros": 6, "memo": "x"})
    for text, found in (
        ("a-17", [first]), ("返金", [second]), ('"hello"\nplease', [first]), ("nothing", []), ("refund", [first, second]),
    ):  # fmt: skip
        assert {each.id for each in found} == set(ids(ana.get("/inbox", params={"text": text}).text)), text
    assert [] == ids(ana.get("/inbox", params={"text": "A-17", "action": "mail"}).text)


def test_ended_requests_are_found_by_the_words_of_people(shop, ana):
    """The note of a decision, beside the arguments."""
    ended = shop.ask({"invoice": "A-17", "euros": 5})
    other = shop.ask({"invoice": "B-1", "euros": 5})
    shop.desk.reject(ended.id, actor=person("ana"), reason="Paid twice already")
    shop.desk.reject(other.id, actor=person("ana"))
    for text in ("paid TWICE", "a-17"):
        assert [ended.id] == ids(ana.get("/approvals/history", params={"text": text}).text)


def test_hostile_searches_are_texts(ana):
    """In the field that shows them."""
    text = ana.get("/inbox", params={"text": '"><script>x</script>'}).text
    assert "<script>x" not in text


@pytest.fixture
def many(shop):
    one = shop.ask({"invoice": "A-17", "euros": 5})
    return [replace(one, id=f"ap-{number}", encoded={"invoice": f"N-{number:05}"}) for number in range(AT_MOST + 500)]


def reader(approvals):
    return lambda limit, offset: approvals[offset : offset + limit]


def test_a_search_looks_at_a_bounded_number_of_requests(many):
    """And continues where it has ended."""
    wanted = f"n-{AT_MOST + 200:05}"
    begun = find(reader(many), wanted, offset=0, limit=10)
    assert ([], AT_MOST, True) == (list(begun.approvals), begun.older, begun.is_cut)
    rest = find(reader(many), wanted, offset=AT_MOST, limit=10)
    assert ([many[AT_MOST + 200]], None, False) == (list(rest.approvals), rest.older, rest.is_cut)


def test_pages_of_a_search_join_without_gap(many):
    """Each match stands on one page."""
    offset, found = 0, []
    while offset is not None:
        page = find(reader(many), "n-0", offset=offset, limit=70)
        found += page.approvals
        offset = page.older
    assert many == found
    assert PAGE > 70


def test_without_a_text_the_list_is_paged_as_it_is(many):
    """By the limit."""
    page = find(reader(many), "", offset=5, limit=10)
    assert (many[5:15], 15, False) == (list(page.approvals), page.older, page.is_cut)


def test_sealed_arguments_are_not_searched_in_the_clear(shop):
    """Not even where this process can open them."""
    one = shop.ask({"invoice": "A-17", "euros": 5})
    opened = replace(one, arguments={"card": "4111-secret"}, encoded={"card": {"$sealed": "abc"}})
    assert not contains(opened, "4111-secret")


def test_notes_of_outcomes_are_searched(shop):
    """As those of decisions."""
    one = shop.ask({"invoice": "A-17", "euros": 5})
    decided = Decided(state=State.REJECTED, actor=person("ana"), at=1.0, note="Zweimal bezahlt")
    assert contains(replace(one, decision=decided), "zweimal")
