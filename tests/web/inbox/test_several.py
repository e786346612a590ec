"""Several requests at once: each is named in full before, and what came of each is named after."""

from __future__ import annotations

import pytest

from tests.web.inbox.forms import forms
from tests.web.inbox.shop import HOSTILE, person


def selected(browser, *approvals):
    return browser.post_form("/approvals/decide", {"id": [approval.id for approval in approvals]})


def test_nothing_is_decided_before_it_was_shown(shop, ana):
    """Each with its arguments in full and its digest; the views are recorded."""
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
    [("approve", "approved"), ("reject", "rejected"), ("respond", "responded"), ("skip", "skipped"), ("retry", "retried"), ("withdraw", "cancelled")],
)  # fmt: skip
def test_each_verb_is_applied_to_each(shop, ana, verb, state):
    """A second submission changes nothing."""
    made = [shop.ask({"invoice": f"A-{n}", "euros": n}) for n in range(3)]
    form = forms(selected(ana, *made).text)["decide"].submitted(verb=verb, note="all of them")
    for _ in range(2):
        answer = ana.post("/approvals/decide", data=form)
        assert 200 == answer.status_code
        assert "3 requests" in answer.text
    assert [state] * 3 == [shop.get(each).state for each in made]
    assert ["all of them"] * 3 == [shop.get(each).decision.note for each in made]


def test_what_was_changed_or_decided_meanwhile_is_left_as_it_is(shop, ana):
    """And named with its reason, beside those that were decided."""
    edited, decided, free = (shop.ask({"invoice": f"A-{n}", "euros": n}, quorum=2 if n == 0 else 1) for n in range(3))
    form = forms(selected(ana, edited, decided, free).text)["decide"].submitted(verb="approve")
    shop.desk.edit(edited.id, {"euros": 9}, actor=person("bo"))
    shop.desk.reject(decided.id, actor=person("bo"))
    text = ana.post("/approvals/decide", data=form).text
    assert "2 requests could not be decided" in text
    assert "changed the arguments" in text
    assert "was rejected by bo" in text
    assert ["pending", "rejected", "approved"] == [shop.get(each).state for each in (edited, decided, free)]


def test_what_cannot_be_decided_together_is_left_out(shop, ana):
    """Other groups, arguments that cannot be shown, and what has ended."""
    other, hidden, ended, free = shop.ask(groups=("board",)), shop.ask(unencoded=("handle",)), shop.ask(), shop.ask()
    shop.desk.reject(ended.id, actor=person("bo"))
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


def test_an_empty_selection_says_what_to_do(shop, ana):
    """And unknown ids are no error."""
    assert "Nothing is selected" in selected(ana).text
    assert "Nothing is selected" in ana.post_form("/approvals/decide", {"id": ["ap-0"]}).text


def test_incomplete_forms_are_refused(shop, ana):
    """No digest, an unknown verb, no words, and too many at once."""
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


def test_a_viewer_decides_nothing(shop):
    """The route is for approvers."""
    approval = shop.ask()
    viewer = shop.browser("vi", role="viewer")
    fields = {"id": [approval.id], "verb": "approve", f"digest-{approval.id}": approval.digest}
    assert 403 == viewer.post_form("/approvals/decide", fields).status_code
