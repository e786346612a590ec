"""The audit trail with its verification and export, and standing approvals on pages."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import replace

import pytest

from grace_kp.approvals import checkpoint
from grace_kp.errors import StoreError
from grace_kp.web.inbox import _audit
from grace_kp.web.inbox._audit import PAGE
from tests.web.inbox.conftest import HOSTILE, forms, person


def numbers(text):
    return [int(found.replace(",", "")) for found in re.findall(r'data-label="number">([\d,]+)<', text)]


def verify(browser, checkpoints=""):
    return browser.post_form("/approvals/audit/verify", {"checkpoints": checkpoints})


def test_the_newest_entries_stand_first(shop, ana):
    assert 'class="empty"' in ana.get("/approvals/audit").text
    approval = shop.ask()
    shop.desk.reject(approval.id, by=person("bo"), reason="secret words")
    text = ana.get("/approvals/audit").text
    assert [2, 1] == numbers(text)
    for words in ("rejected", "requested", "bo", approval.id):
        assert words in text
    assert "secret words" not in text  # contents stand on the page of the request


def test_entries_are_paged(shop, ana):
    made = [shop.ask({"invoice": f"A-{n}", "euros": n}) for n in range(PAGE + 5)]
    text = ana.get("/approvals/audit").text
    assert list(range(PAGE + 5, 5, -1)) == numbers(text)
    (older,) = re.findall(r'rel="next" href="([^"]+)"', text)
    assert [5, 4, 3, 2, 1] == numbers(ana.get(f"/approvals/audit{older}").text)
    assert [7] == numbers(ana.get(f"/approvals/audit?approval={made[6].id}").text)
    for query in ("before=x", "before=-1", "before=99999999999", "approval=nobody"):
        assert 200 == ana.get(f"/approvals/audit?{query}").status_code


def test_a_verification_says_what_it_has_found(shop):
    shop.ask()
    ana = shop.browser("vi", role="viewer")
    answer = verify(ana)
    assert (303, "/approvals/audit") == (answer.status_code, answer.headers["location"])
    text = ana.get("/approvals/audit").text
    assert "1 entries verified without a checkpoint: no accident found; a deliberate change would not show" in text
    assert "anyone who can write to the store can rewrite the whole chain" in text


def test_a_checkpoint_that_was_kept_elsewhere_is_compared(shop, ana):
    shop.ask()
    line = json.loads(
        re.search(r"<pre data-copy[^>]*>(.*?)</pre>", ana.get("/approvals/audit").text)[1].replace("&#34;", '"')
    )
    shop.ask()
    verify(ana, json.dumps(line))
    assert "2 entries verified against the checkpoint: no problem found" in ana.get("/approvals/audit").text
    other = checkpoint(shop.tables, at=1.0)
    verify(ana, json.dumps(dataclasses.replace(other, hash="ab" * 32).to_dict()))
    text = ana.get("/approvals/audit").text
    assert "verified against the checkpoint: 1 problem" in text
    assert 'class="bad"' in text


@pytest.mark.parametrize("text", ["x", "{}", '{"seq": 1}', HOSTILE])
def test_what_is_no_checkpoint_is_refused(shop, ana, text):
    answer = verify(ana, text)
    assert 422 == answer.status_code
    assert "line 1" in answer.text
    assert "<script>alert" not in answer.text


def test_a_damaged_chain_is_found(filed):
    import sqlite3

    filed.ask()
    browser = filed.browser("ana")
    with sqlite3.connect(filed.grace.store.path) as connection:
        connection.execute("UPDATE approval_chain SET data = replace(data, 'requested', 'forged')")
    verify(browser)
    text = browser.get("/approvals/audit").text
    assert "problem" in text
    assert "forged" in text


def test_a_store_that_fails_meanwhile_does_not_tell_where_it_is(shop, ana, monkeypatch, caplog):

    def fail(*_, **__):
        raise StoreError("cannot read /secret/place.db")

    monkeypatch.setattr(_audit, "verify", fail)
    verify(ana)
    text = ana.get("/approvals/audit").text
    assert "could not be carried out: the store cannot be read or written at the moment" in text
    assert "place" not in text.partition('id="verification"')[2].partition("</div>")[0]
    assert "/secret/place.db" in caplog.text


def test_two_verifications_do_not_run_at_once(shop, ana, monkeypatch):
    shop.ask()
    answers, verified = [], _audit.verify

    def verify_slowly(*args, **options):
        answers.extend([verify(ana).status_code, ana.get("/approvals/audit").text])
        return verified(*args, **options)

    monkeypatch.setattr(_audit, "verify", verify_slowly)
    verify(ana)
    assert 409 == answers[0]
    assert "The chain is being read" in answers[1]
    assert "no accident found" in ana.get("/approvals/audit").text


def test_the_export_is_the_chain(shop, ana):
    approval = shop.ask()
    answer = ana.get("/approvals/audit/export")
    assert 'attachment; filename="approvals.jsonl"' == answer.headers["content-disposition"]
    (line,) = map(json.loads, answer.text.splitlines())
    assert approval.id == line["entry"]["approval"]
    assert "A-17" in line["contents"]
    (bare,) = map(json.loads, ana.get("/approvals/audit/export?contents=0").text.splitlines())
    assert bare["contents"] is None
    assert line["hash"] == bare["hash"]


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
