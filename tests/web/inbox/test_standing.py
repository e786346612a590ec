"""Standing approvals by form: granted from a request after a review, listed, and ended."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.web.inbox.conftest import HOSTILE, forms


def form_of(browser, approval):
    return forms(browser.get(f"/approvals/{approval.id}/grant").text)["grant"]


def grant(browser, approval, **changes):
    """Fill in the form, and confirm what the review shows."""
    review = browser.post(f"/approvals/{approval.id}/grant", data=form_of(browser, approval).submitted(**changes))
    assert 200 == review.status_code, review.text
    return browser.post(f"/approvals/{approval.id}/grant", data=forms(review.text)["grant"].submitted())


def test_the_form_begins_with_exactly_these_values(shop, ana):
    approval = shop.ask({"invoice": f"A{HOSTILE}", "euros": 40})
    review = ana.post(f"/approvals/{approval.id}/grant", data=form_of(ana, approval).submitted())
    assert "Let these calls run without asking?" in review.text
    assert [] == shop.desk.standing(ended=True)
    answer = ana.post(f"/approvals/{approval.id}/grant", data=forms(review.text)["grant"].submitted())
    assert (303, "/approvals/standing") == (answer.status_code, answer.headers["location"])
    (standing,) = shop.desk.standing()
    assert standing.covers(approval.encoded)
    assert not standing.covers({**approval.encoded, "euros": 41})
    assert ("ana", "sig:1", 10) == (standing.granted_by.name, standing.version, standing.uses)
    assert "approved" == shop.ask({"invoice": f"A{HOSTILE}", "euros": 40}).state


def test_each_kind_of_constraint(shop, ana):
    approval = shop.ask({"invoice": "A", "euros": 40, "memo": "x"})
    grant(
        ana, approval, kind0="any", kind1="range", low1="0", high1="50", kind2="in", value2='["x", "y"]', uses="3", until="30m", note="why", this_version=None
    )  # fmt: skip
    (standing,) = shop.desk.standing()
    assert {"invoice": {"any": True}, "euros": {"from": 0, "to": 50}, "memo": {"in": ["x", "y"]}} == standing.parameters
    assert (3, "why", None) == (standing.uses, standing.note, standing.version)
    text = ana.get("/approvals/standing").text
    for words in ("any value", "from 0 to 50", "one of", "0 of 3 times", "why"):
        assert words in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"uses": "0"}, "Uses must be"), ({"uses": "x"}, "Uses must be"), ({"until": "soon"}, "Until must"), ({"until": "9999d"}, "Until must"),
        ({"kind0": "in"}, "needs a list"), ({"kind0": "is", "value0": "A"}, "is not JSON"), ({"kind1": "range"}, "one or two numbers"),
        ({"kind1": "range", "low1": '"a"'}, "one or two numbers"), ({"kind0": ""}, "choose the allowed values"),
        ({"kind0": "is", "value0": "[" * 500 + "]" * 500}, ""), ({"kind0": "is", "value0": '"\\ud800"'}, ""), ({"kind1": "range", "low1": "1e400"}, ""), ({"uses": "1000001"}, ""),
    ],
)  # fmt: skip
def test_what_cannot_be_granted_stays_in_the_form(shop, ana, changes, words):
    approval = shop.ask()
    answer = ana.post(f"/approvals/{approval.id}/grant", data=form_of(ana, approval).submitted(note="mine", **changes))
    assert 422 == answer.status_code
    assert "Let these calls run" not in answer.text
    assert words in answer.text
    assert "mine" == forms(answer.text)["grant"].value("note")
    assert [] == shop.desk.standing(ended=True)


def test_it_is_ended_by_form(shop, ana):
    grant(ana, shop.ask())
    (standing,) = shop.desk.standing()
    end = forms(ana.get("/approvals/standing").text)["end"].submitted(reason="enough")
    for _ in range(2):
        assert 303 == ana.post(f"/approvals/standing/{standing.id}/end", data=end).status_code
    assert "enough" == shop.desk.standing(ended=True)[0].ended
    assert "enough" in ana.get("/approvals/standing?ended=1").text
    assert "enough" not in ana.get("/approvals/standing").text
    assert 404 == ana.post_form("/approvals/standing/st-0/end").status_code


def test_the_end_is_the_one_that_was_reviewed(shop, ana):
    """However long the review stays open before its button is pressed; a form without it grants nothing."""
    approval = shop.ask()
    state, site = ana.app.state, ana.app.state.site
    now = site.clock()
    state.site = replace(site, clock=lambda: now - 600)
    answer = ana.post(f"/approvals/{approval.id}/grant", data=form_of(ana, approval).submitted(until="1h"))
    state.site = site
    review = forms(answer.text)["grant"]
    for end in ("", "soon", "nan"):
        answer = ana.post(f"/approvals/{approval.id}/grant", data=review.submitted(until_at=end))
        assert 422 == answer.status_code
    assert 303 == ana.post(f"/approvals/{approval.id}/grant", data=review.submitted()).status_code
    assert [now + 3_000] == [each.until for each in shop.desk.standing()]


def test_a_second_click_grants_nothing_more(shop, ana):
    approval = shop.ask()
    answer = ana.post(f"/approvals/{approval.id}/grant", data=form_of(ana, approval).submitted())
    review = forms(answer.text)["grant"].submitted()
    for _ in range(3):
        assert 303 == ana.post(f"/approvals/{approval.id}/grant", data=review).status_code
    assert [10] == [each.uses for each in shop.desk.standing()]
    grant(ana, approval)
    assert 2 == len(shop.desk.standing())
