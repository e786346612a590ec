"""The page of one request: exactly what would run, and controls that decide nothing by themselves."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings

from grace_kp.approvals import PolicyNow, append, canonical, forget
from tests.approvals.values import values
from tests.web.inbox.forms import forms
from tests.web.inbox.shop import HOSTILE, Shop, anything, person

PLACE = Shop()
READER = PLACE.browser(role="approver")


def page_of(browser, approval, status=200):
    answer = browser.get(f"/approvals/{approval.id}")
    assert status == answer.status_code, answer.text
    return answer.text


def test_the_sentence_the_arguments_and_the_reason_stand_there(shop, ana):
    """And what happens at the deadline, and who may decide."""
    text = page_of(ana, shop.ask({"invoice": "A-17", "euros": 40, "memo": "one\ntwo"}, quorum=2, groups=("finance",)))
    for words in (
        "wants to run with",
        "Exactly this would run",
        "one\ntwo",
        "at least CONFIRM",
        "expires and the action does not run",
        "2 people",
    ):
        assert words in text
    assert "not evaluated" in page_of(ana, shop.ask(breakdown={"search_quality": None}))


def test_a_view_is_recorded_once(shop, ana):
    """Per person and revision; nothing else changes."""
    approval = shop.ask()
    for _ in range(3):
        page_of(ana, approval)
    assert ["requested", "viewed"] == shop.kinds(approval)
    assert 1 == shop.get(approval).revision


def test_who_asks_for_the_headers_has_seen_nothing(shop, ana):
    """No view is recorded."""
    approval = shop.ask()
    for path in ("", "/grant"):
        assert 200 == ana.head(f"/approvals/{approval.id}{path}").status_code
    assert ["requested"] == shop.kinds(approval)


def test_a_request_that_is_not_there_is_said_so(ana):
    """With a page and the status 404."""
    assert 404 == ana.get("/approvals/ap-0000000000000000").status_code


def test_hostile_texts_are_only_texts(shop, ana):
    """In every field that somebody else writes."""
    approval = shop.ask(
        {"value": {HOSTILE: [HOSTILE]}, }, anything, reason=HOSTILE, objective=HOSTILE, gaps=(HOSTILE,), user=HOSTILE, penalties=(HOSTILE,),
        policy={HOSTILE: HOSTILE}, facts={HOSTILE: HOSTILE}, key=HOSTILE, breakdown={HOSTILE: 0.5}, groups=(HOSTILE,), name=HOSTILE,
        run={"steps": [{"step_id": 0, "type": HOSTILE, "content": HOSTILE}]},
    )  # fmt: skip
    shop.desk.withdraw(approval.id, actor=person(f"bo{HOSTILE[:20]}"), reason=HOSTILE)
    for path in (
        f"/approvals/{approval.id}",
        "/approvals/history",
        "/approvals/audit",
        f"/approvals/{approval.id}/grant",
    ):
        text = ana.get(path).text
        assert "<script>alert" not in text
        assert not {"\u202e", "\u200b", "\x1b", "\x00"} & set(text)
    assert "{{7*7}}" in page_of(ana, approval)


def test_a_template_renders_with_autoescape_everywhere(shop, ana):
    """The inbox shows a hostile request as text, too."""
    shop.ask({"value": HOSTILE}, anything, name="x<b>y")
    text = ana.get("/inbox").text
    assert "x&lt;b&gt;y" in text
    assert "<b>y" not in text


def test_what_is_not_shown_says_why(shop, ana):
    """Sealed, not covered, held by the process only, or deleted."""
    approval = shop.ask({"invoice": "A", "euros": 1, "memo": "x"}, not_covered=("memo",), unencoded=("handle",))
    text = page_of(ana, approval)
    assert "not covered by the decision" in text
    assert "only the waiting process holds" in text
    assert "cannot be edited" in text
    gone = shop.ask()
    shop.desk.reject(gone.id, actor=person("bo"))
    forget(shop.tables, before=1e12, at=1e12, actor=person("bo"))
    assert "retention has deleted the contents" in page_of(ana, gone)


def test_a_stranger_sees_the_page_and_cannot_decide(shop):
    """The reason stands there, and every button that decides is disabled."""
    approval = shop.ask(groups=("finance",))
    text = page_of(shop.browser("cy", role="approver"), approval)
    assert "needs a member of finance" in text
    found = forms(text)
    assert "disabled" in found["approve"].buttons[0]
    assert "disabled" in found["reject"].buttons[0]
    assert "disabled" not in found["withdraw"].buttons[0]  # it only prevents
    viewer = forms(page_of(shop.browser("vi", role="viewer"), approval))
    assert all("disabled" in form.buttons[0] for name, form in viewer.items() if name != "logout")


def test_no_text_field_submits_a_decision(shop, ana):
    """Enter in a text field presses the first button of its form: forms that decide have no field in which it does."""
    found = forms(page_of(ana, shop.ask()))
    for verb in ("approve", "reject", "respond", "skip", "retry", "withdraw"):
        assert {"hidden", "textarea"} == set(found[verb].kinds)
    assert "data-decides" not in found["edit"].buttons[0]


def test_every_form_carries_the_digest(shop, ana):
    """So that nobody decides on what was not shown."""
    approval = shop.ask()
    found = forms(page_of(ana, approval))
    verbs = ("approve", "reject", "respond", "skip", "retry", "withdraw", "edit")
    assert {approval.digest} == {found[verb].value("digest") for verb in verbs}


def test_an_edit_by_somebody_else_shows_old_and_new(shop, ana):
    """With marks for both, beyond colour."""
    approval = shop.ask(quorum=2)
    shop.desk.edit(approval.id, {"euros": 21}, actor=person("bo"))
    text = page_of(ana, approval)
    assert re.search(r"was</p><del>.*?40.*?</del>.*?is now</p><ins>.*?21", text, re.DOTALL)


def test_earlier_decisions_stand_beside(shop, ana):
    """On the same action, and on the same operation."""
    before = shop.ask({"invoice": "A-1", "euros": 1}, key="k1", key_fields=("invoice",))
    shop.desk.reject(before.id, actor=person("bo"), reason="no receipt")
    shop.ask(name="other")
    text = page_of(ana, shop.ask({"invoice": "A-1", "euros": 1}, key="k1", key_fields=("invoice",), run_id="another"))
    assert 2 == text.count("no receipt")
    assert before.id in text


def test_the_state_of_an_open_page_is_json(shop, ana):
    """Without a record of a view."""
    approval = shop.ask()
    shop.desk.reject(approval.id, actor=person("bo"))
    state = ana.get(f"/approvals/{approval.id}/state").json()
    assert ("rejected", "bo", approval.digest) == (state["state"], state["by"], state["digest"])
    assert "handed over" == state["process"]
    assert "viewed" not in shop.kinds(approval)
    assert 404 == ana.get("/approvals/ap-0/state").status_code


def test_the_newest_change_is_stated_whatever_came_after_it(shop, ana):
    """Views and refused attempts, of which there may be thousands, are no changes; the page lists the newest entries."""
    approval = shop.ask()
    row = shop.tables.row(approval.id)
    with shop.tables.transaction() as writes:
        for _ in range(1_005):
            append(writes, "refused", at=1.0, approval=row.id, revision=row.revision, actor=person("mallory"))
    shop.desk.reject(approval.id, actor=person("bo"))
    revision = shop.get(approval).revision
    with shop.tables.transaction() as writes:
        for kind in ("refused", "viewed"):
            for _ in range(60):
                shown = append(writes, kind, at=2.0, approval=row.id, revision=revision, actor=person("mallory"))
    state = ana.get(f"/approvals/{approval.id}/state").json()
    assert ("rejected", "rejected", "bo") == (state["state"], state["event"], state["by"])
    text = page_of(ana, approval)
    assert "The newest 50 entries" in text
    assert f">{shown.seq}</span>" in text


def test_an_unknown_outcome_asks_to_be_reconciled(shop, ana):
    """And so does an action that was started and whose process is gone."""
    approval = shop.desk.approve(shop.ask().id, actor=person("ana"))
    claim = shop.desk.claim(
        approval.id, digest=approval.digest, version=approval.version, policy=PolicyNow(), actor=person("x")
    )
    shop.desk.settle(approval.id, claim.token, state="unknown")
    assert {"hidden", "radio", "textarea"} == set(forms(page_of(ana, approval))["reconcile"].kinds)


@given(values())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_form_that_comes_back_unchanged_changes_nothing(value):
    """Rendered as a page, read as a browser reads it, and submitted with its line breaks."""
    approval = PLACE.ask({"value": value}, anything)
    form = forms(page_of(READER, approval))["edit"]
    answer = READER.post(f"/approvals/{approval.id}/edit", data=form.submitted())
    assert 422 == answer.status_code
    assert "No value was changed" in answer.text
    assert canonical(approval.encoded) == canonical(PLACE.get(approval).encoded)


@pytest.mark.parametrize("state", ["approve", "reject", "respond", "skip", "retry", "withdraw"])
def test_an_ended_request_offers_what_is_left(shop, ana, state):
    """An approval that nothing has used can be withdrawn; others offer nothing."""
    approval = shop.ask()
    shop.desk.decide_all([approval.id], state, actor=person("bo"), note="because")
    found = forms(page_of(ana, approval))
    assert ({"withdraw"} if state == "approve" else set()) == {"withdraw", "approve", "reject", "edit"} & found.keys()
    assert "because" in page_of(ana, approval)


def test_a_person_who_has_voted_waits_for_others(shop, ana):
    """The button is disabled, and says why."""
    approval = shop.ask(quorum=2)
    shop.desk.approve(approval.id, actor=person("ana"))
    text = page_of(ana, approval)
    assert "You have approved exactly this" in text
    assert "disabled" in forms(text)["approve"].buttons[0]


def test_the_next_request_is_offered_after_a_decision(shop, ana):
    """The first that this person may decide."""
    approval, following = shop.ask(), shop.ask({"invoice": "B", "euros": 2})
    shop.desk.approve(approval.id, actor=person("ana"))
    assert f'href="/approvals/{following.id}">Next' in page_of(ana, approval)
