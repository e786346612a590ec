"""Requests and durations in words, and a request in a notebook."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.approvals import (
    NOT_COVERED,
    Actor,
    Approval,
    ApprovalState,
    Checkpoint,
    Claimed,
    Decided,
    Earlier,
    Ended,
    Secret,
    Standing,
    Verification,
    Vote,
    actor_text,
    consents,
    constraint_texts,
    deadline_text,
    encode,
    event_text,
    fact_text,
    json_text,
    new_key,
    process_text,
    remarks_of,
    rule_text,
    seconds_of,
    verdict_text,
)
from tests.approvals.shops import ANA, BO, Shop, asked, sealing
from tests.pages.reading import Elements, problems


def test_remarks_say_what_an_argument_is():
    approval = Shop().requests.file(asked({"a": b"123", "b": 1}, not_covered=("b",), key_fields=("a",)))
    assert {"a": "identifies the operation: an edit cannot change it; 3 bytes", "b": NOT_COVERED} == remarks_of(
        approval
    )


def test_the_rule_names_groups_quorum_and_the_excluded_user():
    shop = Shop(groups={"ana": ["finance"], "bo": ["finance"]})
    approval = shop.requests.file(asked(quorum=2, groups=("finance",), identity="stated", user="cy"))
    voted = shop.requests.approve(approval.id, by=ANA)
    assert 1 == consents(voted)
    assert "2 people (stated names), members of finance; 1 of 2 so far; not cy, for whom the agent runs" == rule_text(
        voted
    )
    assert "anybody" == rule_text(shop.requests.file(asked()))


REQUEST = Shop().requests.file(asked())
POINT = Checkpoint(store="store-1", seq=3, hash="ab" * 32, at=1.5)
SOUND = Verification(
    ok=True,
    entries=1_200,
    problems=(),
    problem_count=0,
    against="checkpoint",
    deleted=0,
    checkpoint=POINT,
    unchecked=(),
)
DAMAGED = dataclasses.replace(SOUND, ok=False, problem_count=1)
WORDS = [
    (verdict_text(SOUND), "1,200 entries verified against the checkpoint: no problem found"),
    (verdict_text(dataclasses.replace(SOUND, against="nothing")), "1,200 entries verified without a checkpoint: no accident found; a deliberate change would not show"),
    (verdict_text(DAMAGED), "1,200 entries verified against the checkpoint: 1 problem"),
    (verdict_text(dataclasses.replace(DAMAGED, problem_count=2_000, against="nothing")), "1,200 entries verified without a checkpoint: 2,000 problems"),
    (deadline_text("cancel"), "the request expires and the action does not run"),
    (deadline_text("skip"), "the action is skipped and the agent goes on"),
    (deadline_text("proceed"), "the action runs without an answer"),
    (deadline_text("escalate:board"), "the group board may decide"),
    (process_text(REQUEST), "a live process waits for the decision"),
    (process_text(dataclasses.replace(REQUEST, is_awaited=None)), "it cannot be known whether the process still waits"),
    (process_text(dataclasses.replace(REQUEST, waits="interrupt")), "no process waits; the agent is resumed with the decision"),
    (actor_text(dataclasses.replace(BO, authenticated=True, os_user="www", host="web-1")), "bo (authenticated, python, as www on web-1)"),
    (actor_text(BO), "bo (stated, python)"),
    (event_text({"kind": "decided", "facts": {"state": "rejected"}}), "rejected"),
    (event_text({"kind": "viewed", "facts": {"state": "pending"}}), "viewed"),
    (fact_text("thresholds", {"notify": 0.9, "confirm": 0.7}), "thresholds: notify from 0.9, confirm from 0.7"),
    (fact_text("step", 3), "the 3 steps of the run, before the request"),
    (fact_text("step", 1), "the first step of the run, before the request"),
    (fact_text("own_fact", {"a": 1}), 'own fact: {"a": 1}'),
    (fact_text("action_confidence", {"score": 0.1, "reason": "Learned from 9 actions"}), "confidence in the action: Learned from 9 actions"),
]  # fmt: skip


@pytest.mark.parametrize(("found", "words"), WORDS)
def test_facts_read_as_sentences(found, words):
    assert words == found


def test_constraints_read_as_sentences():
    forms = {"a": {"is": "x\u202e"}, "b": {"in": [1, 2]}, "c": {"from": 0, "to": 50}, "d": {"any": True}}
    standing = Standing(action="refund", domain="shop", parameters=forms, until=1.0, uses=1)
    assert [("a", '"x\\u202e"'), ("b", "one of [1, 2]"), ("c", "from 0 to 50"), ("d", "any value")] == constraint_texts(
        standing
    )


def test_json_keeps_every_character():
    import json

    text = json_text({"a\u200b": ["\U000e0041\u00a0é", "\r\n"]}, indent=1)
    assert text.replace("\n", "").isprintable()
    assert {"a\u200b": ["\U000e0041\u00a0é", "\r\n"]} == json.loads(text)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(5, 5.0), (0.5, 0.5), ("90s", 90.0), ("1.5h", 5_400.0), ("1h30m", 5_400.0), ("2d", 172_800.0), ("1w", 604_800.0)],
)
def test_texts_and_numbers(value, seconds):
    assert seconds == seconds_of("deadline", value)


@pytest.mark.parametrize(
    "value",
    [0, -1, "", "5", "5 h", "1m1h", "1h1h", "h", None, True, float("nan"), float("inf"), 10**40, "99999999w", "１h"],
)
def test_anything_else_is_refused(value):
    with pytest.raises(ValueError, match="until must be a number of seconds above 0"):
        seconds_of("until", value)


HOSTILE = '<img src=x onerror=alert(1)>"&\u202e'
IBAN = "DE89370400440532013000"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def approval(arguments=None, **more):
    encoded, _ = encode({"euros": 5} if arguments is None else arguments)
    fields = {"id": "ap-1", "state": ApprovalState.PENDING, "revision": 1, "action": "refund", "version": "1", "domain": "shop", "digest": "sha256:0"}  # fmt: skip
    return Approval(**{**fields, "arguments": arguments or {}, "encoded": encoded, **more})


def text_of(request):
    html = request._repr_html_()
    assert [] == problems(html)
    return Elements(html.partition("</style>")[2]).text


def test_a_pending_request_shows_what_would_run_and_who_may_decide():
    shop = Shop()
    text = text_of(
        shop.requests.file(
            asked(score=0.42, breakdown={"search_quality": 0.4}, penalties=("no_sources",), reason="Below 0.7.", groups=("finance",), quorum=2, objective="Refund R-1", gaps=("a step is gone",))
        )
    )  # fmt: skip
    for words in (
        "refund", "confirm", "pending", 'invoice"R-1"', "euros500", "0.420", "search quality", "no sources", "Below 0.7.", "decide by", "then the request expires", "processa live process waits for the decision", "asked1970-01-01", "objectiveRefund R-1", "missing evidencea step is gone",
        "2 people (authenticated names), members of finance; 0 of 2 so far", "Refund R-1",
    ):  # fmt: skip
        assert words in text


def test_what_came_of_it_is_shown():
    found = approval(
        state=ApprovalState.DONE,
        votes=(
            Vote(actor=ANA, at=1.0, digest="sha256:0"),
            Vote(actor=BO, at=2.0, digest="other", counts=False, note="ok"),
        ),
        decision=Decided(state=ApprovalState.APPROVED, actor=ANA, at=3.0, note="fine"),
        claim=Claimed(at=4.0, process="p1", actor=Actor(name="gate")),
        outcome=Ended(state=ApprovalState.DONE, at=5.0, actor=Actor(name="gate"), has_result=True, result={"sent": 5}),
        earlier=(Earlier(id="ap-0", state=ApprovalState.REJECTED, at=0.5, by="cy", note="no"),),
    )
    text = text_of(found)
    for words in ("voteana", "decisionapproved", "started1970-01-01", "outcomedone", "result{", "earlierrejected", "done", "does not count: the name is only stated, for the arguments before the edit: ok", "approved by ana", "fine", "process p1", '"sent": 5', "rejected by cy", "ap-0"):  # fmt: skip
        assert words in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("R-1", '"R-1"'),
        (5, "5"),
        (2**60, str(2**60)),
        (1.0, "1.0"),
        (None, "null"),
        (decimal.Decimal("1.10"), "1.10 decimal number"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001 UUID"),
        (b"\xff\x00", "/wA= bytes in base64"),
        ("a\ud800b", '"a\\ud800b"'),
        ("a\u202eb", '"a\\u202eb"'),
        ([1, "a"], '[1, "a"]'),
        ({"day": dt.date(2026, 1, 31)}, '{"day": {"$date": "2026-01-31"}}'),
        ((1, 2), '{"$tuple": [1, 2]}'),
        ("first\nsecond", "first\nsecond"),
        ("x" * 700, f"{'x' * 160}… 700 characters"),
    ],
)
def test_an_argument_is_shown_exactly(value, shown):
    text = text_of(approval({"value": value}))
    assert f"value{shown}" in text.replace("\u00a0", " ")


def test_consent_that_is_not_used_yet_shows_until_when_and_whose_it_is():
    text = text_of(approval(state=ApprovalState.APPROVED, use_by=60.0, standing="st-1"))
    assert "use by1970-01-01" in text
    assert "approved bythe standing approval st-1" in text
    assert "use by" not in text_of(approval(state=ApprovalState.REJECTED, use_by=60.0))
    assert "use by" not in text_of(approval(state=ApprovalState.APPROVED))


def test_an_edit_is_shown_as_a_difference():
    shop = Shop()
    request = shop.requests.file(asked())
    edited = shop.requests.edit(request.id, {"euros": 300}, by=ANA)
    html = edited._repr_html_()
    assert '<del><span class="mono">500</span></del> <ins><span class="mono">300</span></ins>' in html
    assert 2 == html.count("invoice</dt>") + html.count("euros</dt>") - 1


def test_sealed_arguments_stay_sealed():
    secret = Secret(new_key())
    shop = Shop(secret=secret)
    request = shop.requests.file(*sealing(secret, {"iban": IBAN, "euros": 5}, ("iban",)))
    assert IBAN == request.arguments["iban"]
    edited = shop.requests.edit(request.id, {"euros": 7}, by=ANA)
    for found in (request, edited):
        html = found._repr_html_()
        assert IBAN not in html
        assert "$sealed" not in html
        assert "sealed: it is kept encrypted" in html
    hidden = approval({"token": "ghp_" + "a1B2" * 9, "note": "hello"})._repr_html_()
    assert "ghp_" not in hidden
    assert "it looks like a secret" in hidden


def test_arguments_that_nobody_can_show_are_named():
    assert "connection: only the waiting process holds the object" in text_of(approval(unencoded=("connection",)))
    assert "retention has deleted the contents" in text_of(approval({}, deleted=True))
    assert "It has no arguments." in text_of(approval({}, encoded={}))


def test_nothing_is_cut_without_a_note():
    assert "5,000 more characters are not shown here" in text_of(approval({"a": "x" * 25_000}))
    assert "10 more arguments are not shown." in text_of(approval({f"a{place}": place for place in range(50)}))
    large = approval({f"a{place}": "x" * 25_000 for place in range(40)})
    assert "The arguments are too long for a notebook." in text_of(large)
    many = approval(votes=(Vote(actor=ANA, at=1.0, digest="x", note="y" * 999),) * 60)
    assert "10 more votes and earlier requests." in text_of(many)


def test_the_run_so_far_is_folded():
    steps = [{"type": "thought", "content": f"thought {place}"} for place in range(2_000)]
    html = approval(run={"steps": steps})._repr_html_()
    assert "the run so far" in html
    assert "thought 1<" in html
    assert len(html) < 100_000


def test_every_text_is_text():
    actor = Actor(name=HOSTILE, channel=HOSTILE, os_user=HOSTILE, host=HOSTILE)
    found = approval(
        {HOSTILE: HOSTILE, "b": [HOSTILE]},
        id=HOSTILE, action=HOSTILE, version=HOSTILE, domain=HOSTILE, digest=HOSTILE, asked_encoded={HOSTILE: "x"}, not_covered=(HOSTILE,), unencoded=(HOSTILE,),
        key=HOSTILE, level=HOSTILE, breakdown={HOSTILE: 0.5}, penalties=(HOSTILE,), reason=HOSTILE, gaps=(HOSTILE,), facts={HOSTILE: HOSTILE}, policy={HOSTILE: [HOSTILE]},
        run_id=HOSTILE, objective=HOSTILE, user=HOSTILE, groups=(HOSTILE,), on_deadline=f"escalate:{HOSTILE}", deadline=9.0, standing=HOSTILE, origin=HOSTILE,
        votes=(Vote(actor=actor, at=1.0, digest="x", note=HOSTILE),), decision=Decided(state=ApprovalState.APPROVED, actor=actor, at=1.0, note=HOSTILE),
        claim=Claimed(at=1.0, process=HOSTILE, actor=actor), earlier=(Earlier(id=HOSTILE, state=ApprovalState.REJECTED, at=1.0, by=HOSTILE, note=HOSTILE),),
        outcome=Ended(state=ApprovalState.FAILED, at=float("nan"), actor=actor, has_result=True, result=HOSTILE, error=HOSTILE, note=HOSTILE), run={"steps": [{"content": HOSTILE}]},
    )  # fmt: skip
    html = found._repr_html_()
    assert [] == problems(html)
    assert "\u202e" not in html
    assert html.count("&lt;img src=x") > 30


@given(st.dictionaries(st.text(), JSON, max_size=4), JSON)
def test_any_stored_value_can_be_shown(encoded, value):
    found = approval(
        encoded=encoded,
        asked_encoded={"a": value},
        run={"steps": value},
        breakdown={"a": value},
        policy={"a": value},
        facts={"b": value},
    )
    assert [] == Elements(found._repr_html_()).unbalanced
