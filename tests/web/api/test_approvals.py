"""Approvals as JSON: lists, one approval, the verbs with their digest, the audit trail, and every way of being refused."""

from __future__ import annotations

import time

import pytest

from grace_kp.approvals import Standing
from tests.web.api.conftest import CY, MISSING


def problem(response):
    return response.status_code, response.json()["code"]


def path(approval, verb=""):
    return f"/api/v1/approvals/{approval.id}" + (f"/{verb}" if verb else "")


def test_pending_approvals_are_listed_by_page(house, ana):
    filed = [house.request(action=f"refund.{number % 2}", run_id=f"run-{number}") for number in range(5)]
    first = ana.get("/api/v1/approvals", params={"limit": 3}).json()
    second = ana.get("/api/v1/approvals", params={"limit": 3, "offset": first["next"]}).json()
    assert (3, None) == (first["next"], second["next"])
    assert [each.id for each in filed] == [each["id"] for each in first["approvals"] + second["approvals"]]
    assert not {"run", "schema"} & set(first["approvals"][0])
    assert 2 == len(ana.get("/api/v1/approvals", params={"action": "refund.1"}).json()["approvals"])
    assert 5 == len(ana.get("/api/v1/approvals", params={"action": "refund.*"}).json()["approvals"])


def test_past_approvals_are_found_by_person_and_time(house, ana):
    mine, theirs = house.request(), house.request(arguments={"invoice": "R-2", "euros": 1})
    ana.post(path(mine, "reject"), json={})
    house.desk.reject(theirs.id, by=CY)

    def past(**conditions):
        response = ana.get("/api/v1/approvals", params={"state": "past", **conditions})
        return [each["id"] for each in response.json()["approvals"]]

    assert {mine.id, theirs.id} == set(past())
    assert [mine.id] == past(by="ana")
    assert {mine.id, theirs.id} == set(past(since="1h"))
    assert [] == past(since="2100-01-01")


@pytest.mark.parametrize(("state", "name"), [("pending", "by"), ("pending", "since"), ("past", "group")])
def test_a_condition_of_the_other_list_is_refused(ana, state, name):
    refused = ana.get("/api/v1/approvals", params={"state": state, name: "1h"})
    assert (422, "invalid") == problem(refused)
    assert {name: f"is not a condition of the list state={state}"} == refused.json()["fields"]


def test_seeing_an_approval_is_recorded(house):
    """Once per account and revision, also for programs; asking for the headers alone shows nothing."""
    approval = house.request()
    for name in ("vic", "vic", "bot"):
        shown = house.client(name).get(path(approval)).json()
        assert (approval.digest, {"invoice": "R-1", "euros": 500}) == (shown["digest"], shown["arguments"])
    assert 200 == house.client("ana").head(path(approval)).status_code
    assert ["requested", "viewed", "viewed"] == house.kinds(approval)


def test_an_approval_states_its_alarms_in_words(house, ana):
    """With the value, which is among the arguments; lists have the facts without it."""
    alarm = {"name": "nowhere", "parameter": "invoice", "tool": "", "words": "", "is_part": False}
    approval = house.request(facts={"alarms": [alarm]})
    shown = ana.get(path(approval)).json()["facts"]
    assert [alarm] == shown["alarms"]
    assert {"invoice": "`invoice` 'R-1' is in no tool result and not in the user's words"} == shown["alarm_sentences"]
    assert (
        "alarm_sentences" not in ana.get(path(house.request(arguments={"invoice": "R-2", "euros": 1}))).json()["facts"]
    )


def test_consent_names_what_was_seen(house, ana):
    """Approval with the digest that was shown, and never without one; the decision is recorded under the account."""
    approval = house.request()
    for verb, body in (("approve", {}), ("edit", {"changes": {"euros": 1}})):
        refused = ana.post(path(approval, verb), json=body)
        assert (422, {"digest": "is missing"}) == (refused.status_code, refused.json()["fields"])
    decided = ana.post(path(approval, "approve"), json={"digest": approval.digest, "note": "checked"})
    assert (200, "approved") == (decided.status_code, decided.json()["state"])
    decision = decided.json()["decision"]
    assert "checked" == decision["note"]
    assert {"name": "ana", "channel": "web", "authenticated": True}.items() <= decision["actor"].items()
    again = ana.post(path(approval, "approve"), json={"digest": approval.digest})
    assert (200, decided.json()["revision"]) == (again.status_code, again.json()["revision"])


def test_an_edit_replaces_arguments(house, ana):
    """The values are encoded JSON, and the result has another digest; one that does not fit is refused with the state of the approval."""
    approval = house.request()
    refused = ana.post(path(approval, "edit"), json={"digest": approval.digest, "changes": {"pounds": 20}})
    assert (422, "edit_refused") == problem(refused)
    brief = {"id": approval.id, "state": "pending", "revision": 1, "digest": approval.digest}
    assert brief == refused.json()["approval"]
    body = {"digest": approval.digest, "changes": {"euros": 20}, "note": "less"}
    edited = ana.post(path(approval, "edit"), json=body).json()
    assert ("edited", {"invoice": "R-1", "euros": 20}) == (edited["state"], edited["arguments"])
    assert {"invoice": "R-1", "euros": 500} == edited["asked"]
    assert approval.digest != edited["digest"]


@pytest.mark.parametrize(
    ("verb", "body", "state", "note"),
    [
        ("reject", {"reason": "no receipt"}, "rejected", "no receipt"),
        ("respond", {"words": "ask first"}, "responded", "ask first"),
        ("skip", {"note": "not needed"}, "skipped", "not needed"),
        ("retry", {}, "retried", ""),
        ("withdraw", {"reason": "obsolete"}, "cancelled", "obsolete"),
    ],
)
def test_the_other_verbs(house, ana, verb, body, state, note):
    approval = house.request()
    closed = ana.post(path(approval, verb), json=body)
    assert (200, state, note) == (closed.status_code, closed.json()["state"], closed.json()["decision"]["note"])


@pytest.mark.parametrize("verb", ["approve", "edit", "reject"])
def test_another_digest_is_refused(house, ana, verb):
    approval = house.request()
    body = {"digest": "sha256:00", **({"changes": {"euros": 1}} if verb == "edit" else {})}
    refused = ana.post(path(approval, verb), json=body)
    assert (409, "changed_since_shown") == problem(refused)
    assert ("pending", approval.digest) == tuple(refused.json()["approval"][name] for name in ("state", "digest"))
    assert "pending" == house.desk.get(approval.id).state


def test_the_second_decision_is_refused(house, ana):
    approval = house.request()
    house.desk.reject(approval.id, by=CY)
    refused = ana.post(path(approval, "approve"), json={"digest": approval.digest})
    assert (409, "already_decided", "rejected") == (*problem(refused), refused.json()["approval"]["state"])
    assert "cy" in refused.json()["message"]


@pytest.mark.parametrize("name", ["vic", "bot"])
@pytest.mark.parametrize("verb", ["approve", "withdraw"])
def test_viewers_and_programs_never_decide(house, name, verb):
    approval = house.request()
    assert (403, "forbidden") == problem(
        house.client(name).post(path(approval, verb), json={"digest": approval.digest})
    )
    assert ["requested", "refused"] == house.kinds(approval)
    body = {"verb": verb, "approvals": [{"id": approval.id, "digest": approval.digest}]}
    assert (403, "forbidden") == problem(house.client(name).post("/api/v1/approvals/decide", json=body))
    assert "pending" == house.desk.get(approval.id).state


@pytest.mark.parametrize(("verb", "body"), [("", None), ("history", None), ("approve", {"digest": "sha256:00"})])
def test_an_unknown_approval(ana, verb, body):
    address = f"/api/v1/approvals/{MISSING}" + (f"/{verb}" if verb else "")
    assert (404, "unknown_approval") == problem(ana.get(address) if body is None else ana.post(address, json=body))


def test_several_are_decided_each_with_what_came_of_it(house, ana):
    good, changed = house.request(), house.request(arguments={"invoice": "R-2", "euros": 1})
    barred = house.request(arguments={"invoice": "R-3", "euros": 1}, groups=("board",))
    other = "sha256:00"
    shown = {good.id: good.digest, changed.id: other, barred.id: barred.digest, MISSING: other}
    approvals = [{"id": name, "digest": digest} for name, digest in shown.items()]
    response = ana.post("/api/v1/approvals/decide", json={"verb": "approve", "approvals": approvals, "note": "all"})
    outcomes = response.json()["outcomes"]
    assert [good.id, changed.id, barred.id, MISSING] == [each["id"] for each in outcomes]
    assert [None, "changed_since_shown", "not_entitled", "unknown_approval"] == [each.get("code") for each in outcomes]
    assert [True, False, False, False] == [each["ok"] for each in outcomes]
    assert "approved" == outcomes[0]["approval"]["state"]
    assert ["requested", "refused"] == house.kinds(barred)
    twice = [{"id": changed.id, "digest": digest} for digest in (changed.digest, "sha256:00")]
    refused = ana.post("/api/v1/approvals/decide", json={"verb": "approve", "approvals": twice})
    assert (422, "invalid") == problem(refused)
    assert "pending" == house.desk.get(changed.id).state


def test_the_audit_trail_is_listed_by_page(house, ana):
    approval = house.request()
    ana.post(path(approval, "reject"), json={"reason": "private words"})
    first = ana.get(path(approval, "history"), params={"limit": 1})
    second = ana.get(path(approval, "history"), params={"after": first.json()["next"]}).json()
    kinds = [line["entry"]["kind"] for line in first.json()["entries"] + second["entries"]]
    assert (["requested", "decided"], None) == (kinds, second["next"])
    assert "private words" not in str(second)
    assert house.tables.link(first.json()["entries"][0]["entry"]["seq"]).hash == first.json()["entries"][0]["hash"]


def test_standing_approvals_are_listed(house, ana):
    parameters = {"euros": {"to": 20}}
    wanted = Standing(action="refund", domain="shop", parameters=parameters, until=time.time() + 60, uses=2)
    granted = house.desk.grant(wanted, by=CY)
    (listed,) = ana.get("/api/v1/standing").json()["standing"]
    assert (granted.id, "cy", parameters) == (listed["id"], listed["granted_by"]["name"], listed["parameters"])
    house.desk.end_standing(granted.id, by=CY)
    assert [] == ana.get("/api/v1/standing").json()["standing"]
    assert [granted.id] == [each["id"] for each in ana.get("/api/v1/standing?ended=true").json()["standing"]]


def test_unseen_arguments_need_a_word_of_their_own(house, ana):
    approval = house.request(unencoded=("invoice",))
    plain = ana.post(path(approval, "approve"), json={"digest": approval.digest})
    assert (422, "unseen", "pending") == (*problem(plain), plain.json()["approval"]["state"])
    several = {"verb": "approve", "approvals": [{"id": approval.id, "digest": approval.digest}]}
    (outcome,) = ana.post("/api/v1/approvals/decide", json=several).json()["outcomes"]
    assert (False, "unseen") == (outcome["ok"], outcome["code"])
    unseen = ana.post(path(approval, "approve"), json={"digest": approval.digest, "unseen": True})
    assert (200, "approved") == (unseen.status_code, unseen.json()["state"])
