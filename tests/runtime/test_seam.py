"""Calls of frameworks: decided as values, identified by more than the call id, and run at most once under a claim."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading

import pytest

import grace_kp as gk
from grace_kp.gating import approval_alarms
from grace_kp.testing import make_grace

SCHEMA = {
    "type": "object",
    "properties": {
        "to": {"type": "string"},
        "amount": {"type": "number"},
        "memo": {"type": "string"},
        "from": {"type": "string"},
        "user-id": {"type": "string"},
    },
    "required": ["to", "amount"],
}
CALL = {"to": "ana", "amount": 10, "memo": "rent zyxwv", "from": "bo", "user-id": "u1"}
SAYS_NO = "Not run; do not call it again."


class Desk:
    """A runtime on a file, which can be opened again as another process does."""

    def __init__(self, path, reviewer=None):
        self.url, self.reviewer, self.opened = f"sqlite:///{path / 'desk.db'}", reviewer or gk.InboxReviewer(), []

    def open(self, **settings):
        grace = gk.Grace(store=self.url, evaluator=None, embedder=None, **{"reviewer": self.reviewer, **settings})
        self.opened.append(grace)
        return grace


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path)
    yield desk
    for grace in desk.opened:
        grace.close()


def pay_action(grace, policy="confirm", **more):
    return grace.action("pay", schema=SCHEMA, policy=policy, **more)


def run_of(grace, **more):
    return grace.open_run("pay the rent", **{"name": "payer", "framework": "toy", "session": "s1", **more})


def answering(action, **fields):
    asked = []

    def review(request):
        asked.append(dict(request.arguments))
        return gk.InterventionResponse(action, reviewer="bo", **fields)

    review.asked = asked
    return review


@pytest.mark.parametrize(
    ("reviewer", "policy", "outcome", "error", "words"),
    [
        (answering("proceed"), "confirm", "approved", None, ""),
        (None, gk.Policy(unmeasured="silent", alarms="none"), "silent", None, ""),
        (None, gk.Policy(unmeasured="notify"), "notify", None, ""),
        (
            answering("cancel", user_input="too much"),
            "confirm",
            "rejected",
            gk.ActionCancelled,
            "bo refused pay: too much",
        ),
        (answering("skip"), "confirm", "skipped", None, "`pay` was skipped by the reviewer"),
        (answering("input", user_input="ask Cy"), "confirm", "answered", gk.ActionRedirected, "ask Cy"),
        (answering("input"), "confirm", "answered", gk.ActionRedirected, "bo answered"),
        (answering("cancel", timeout_reached=True), "confirm", "timed_out", gk.ActionTimedOut, "no answer arrived"),
        (None, "confirm", "not_asked", gk.ActionCancelled, "no reviewer is available"),
        (lambda request: 1 / 0, "confirm", "not_asked", gk.ActionCancelled, "ZeroDivisionError"),
        (answering("proceed"), "deny", "denied", gk.ActionDenied, "forbidden by its policy"),
        (gk.InboxReviewer(), "confirm", "pending", gk.ActionPending, "waits for a person"),
    ],
)
def test_a_no_is_a_value(reviewer, policy, outcome, error, words):
    """The outcome, the message for the model and the error of a gated function, whatever the reviewer does."""
    grace = make_grace(reviewer=reviewer)
    run = run_of(grace)
    action = pay_action(grace, policy, alarms="none")
    verdict = action.decide(CALL, call_id="c1", run=run, wait=False if outcome == "pending" else None)
    assert outcome == verdict.outcome
    assert (verdict.runs, verdict.waits) == (outcome in {"approved", "silent", "notify"}, outcome == "pending")
    assert words in verdict.message
    assert verdict.runs == (not verdict.message)
    if outcome != "answered" and not verdict.runs:
        assert SAYS_NO in verdict.message
    if error is None:
        assert verdict.unwrap() is None
    else:
        with pytest.raises(error) as raised:
            verdict.unwrap()
        assert raised.value is verdict.error
        with pytest.raises(error):
            verdict.run(lambda arguments: pytest.fail("it ran"))
        with pytest.raises(gk.GateError, match="may not begin"):
            verdict.begin(CALL)


def test_the_error_is_that_of_a_gated_function():
    grace = make_grace(reviewer=answering("cancel", user_input="too much"))

    @grace.gate(floor="confirm")
    def pay(**arguments): ...

    with grace.run("x", session="s"), pytest.raises(gk.ActionCancelled) as raised:
        pay(to="ana")
    verdict = grace.action("pay", policy="confirm").decide({"to": "ana"}, call_id="1")
    assert (str(raised.value), type(raised.value)) == (str(verdict.error), type(verdict.error))


@pytest.mark.parametrize(
    "reviewer", [None, gk.ConsoleReviewer(), lambda request: pytest.fail("asked"), gk.InboxReviewer()]
)
def test_wait_false_asks_nobody(reviewer):
    """Whatever the reviewer is; with an answer through the framework the call is settled."""
    grace = make_grace(reviewer=reviewer)
    verdict = pay_action(grace).decide(CALL, call_id=("s", "c"), wait=False)
    assert verdict.waits
    assert (verdict.approval is not None) == isinstance(reviewer, gk.InboxReviewer)
    settled = verdict.answer(gk.InterventionResponse("modify", modified={"amount": 3, "memo": None}))
    assert (settled.outcome, settled.problem, settled.edited) == ("approved", "", True)
    assert settled.arguments == {"to": "ana", "amount": 3, "from": "bo", "user-id": "u1"}
    with pytest.raises(gk.GateError, match="does not wait"):
        settled.answer(gk.InterventionResponse("cancel"))
    assert settled.run(lambda arguments: arguments["amount"]) == 3


@pytest.mark.parametrize("action", ["cancel", "skip", "input", "retry"])
def test_every_answer_of_a_framework_settles_the_request(action):
    grace = make_grace(reviewer=gk.InboxReviewer())
    verdict = pay_action(grace).decide(CALL, call_id=("s", "c"), wait=False)
    settled = verdict.answer(gk.InterventionResponse(action, user_input="no", reviewer="cy"))
    assert settled.outcome == {"cancel": "rejected", "skip": "skipped", "input": "answered", "retry": "pending"}[action]
    assert not settled.runs


def test_an_answer_obeys_the_rules_of_the_inbox():
    """A quorum is not met by one answer, and an edit must fit the schema."""
    grace = make_grace(reviewer=gk.InboxReviewer(quorum=2, identity="stated"))
    verdict = pay_action(grace).decide(CALL, call_id=("s", "c"), wait=False)
    first = verdict.answer(gk.InterventionResponse("proceed", reviewer="cy"))
    assert (first.outcome, "1 of 2" in first.problem) == ("pending", True)
    misfit = first.answer(gk.InterventionResponse("modify", modified={"amount": "ten"}, reviewer="di"))
    assert misfit.waits
    assert "amount" in misfit.problem
    assert misfit.answer(gk.InterventionResponse("proceed", reviewer="di")).runs


@pytest.mark.parametrize(
    ("before", "edit"),
    [
        ({"amount": 1}, {}),
        ({"amount": 1}, {"amount": True}),
        ({"amount": 1}, {"amount": {2}}),
        ({"amount": 1, "memo": "x"}, {"memo": [9]}),
    ],
)
@pytest.mark.parametrize("reviewer", [None, gk.InboxReviewer()], ids=["framework", "inbox"])
def test_an_edit_that_does_not_fit_settles_nothing(before, edit, reviewer):
    """Also where Python finds the values equal; the next answer counts."""
    action = pay_action(make_grace(reviewer=reviewer), sealed=["memo"] if reviewer is None else ())
    verdict = action.decide({"to": "ana", **before}, call_id=("s", "c"), wait=False)
    misfit = verdict.answer(gk.InterventionResponse("modify", modified=edit, reviewer="cy"))
    assert misfit.waits
    assert misfit.problem
    assert reviewer is not None or "[9]" not in misfit.problem
    assert misfit.answer(gk.InterventionResponse("proceed")).arguments == {"to": "ana", **before}


def test_only_an_answer_that_counts_is_kept(desk):
    """Neither one to hidden contents nor a misfit edit; of two answers at once, the first."""
    answers = iter(["proceed", "cancel"])

    class Wire:
        stores = staticmethod(lambda text: False)

        def review(self, request):
            return gk.InterventionResponse(next(answers), reviewer="bo")

    action = pay_action(desk.open(reviewer=Wire()))
    call = {**CALL, "memo": f"sk-proj-{'Ab1' * 16}"}
    assert [action.decide(call, call_id=("s", "c")).outcome for _ in range(2)] == ["rejected"] * 2
    edits = iter([{"amount": "ten"}, {"amount": 9}])
    action = pay_action(desk.open(reviewer=lambda request: gk.InterventionResponse("modify", modified=next(edits))))
    verdict = action.decide(CALL, call_id=("s", "d"))
    assert verdict.run(lambda arguments: arguments["amount"]) == 9
    assert action.decide(CALL, call_id=("s", "d")).outcome == "ran_before"

    def twice(request):
        answer = "proceed" if asked else "cancel"
        asked.append(1)
        if len(asked) == 1:
            verdicts.append(action.decide(CALL, call_id=("s", "e")))  # another caller is asked meanwhile
        return gk.InterventionResponse(answer)

    asked, verdicts = [], []
    action = pay_action(desk.open(reviewer=twice))
    verdicts.append(action.decide(CALL, call_id=("s", "e")))
    assert [each.outcome for each in verdicts] == ["approved"] * 2


@pytest.mark.parametrize("stated", [{"group": "finance"}, {"quorum": 2}])
def test_only_an_inbox_counts_people(stated):
    action = pay_action(make_grace(reviewer=None), gk.Policy(floor="confirm", **stated))
    answered = action.decide(CALL, call_id="c", wait=False).answer(gk.InterventionResponse("proceed"))
    assert (answered.waits, "inbox" in answered.problem) == (True, True)


def test_the_first_answer_counts():
    action = pay_action(make_grace(reviewer=None))
    first, second = (action.decide(CALL, call_id=("s", "c"), wait=False) for _ in range(2))
    assert first.answer(gk.InterventionResponse("cancel")).outcome == "rejected"
    later = second.answer(gk.InterventionResponse("proceed"))
    assert (later.outcome, "first" in later.problem) == ("rejected", True)


@pytest.mark.parametrize("then", ["refused", "denied"])
def test_no_message_denies_that_a_call_ran(desk, then):
    """Neither after a refusal of an equal call nor under a policy that forbids it by now."""
    grace = desk.open()
    action, run = pay_action(grace), run_of(grace)
    calls = [gk.Call(action, CALL, id=(1, f"c{n}")) for n in range(2)]
    first, second = run.decide(calls, wait=False)
    grace.approvals.approve(first.approval.id, by="bo")
    if then == "refused":
        grace.approvals.reject(second.approval.id, by="bo")
    run.decide(calls, wait=False)[0].run(lambda arguments: "paid")
    if then == "denied":
        calls = [gk.Call(pay_action(grace, "deny"), CALL, id=(1, f"c{n}")) for n in range(2)]
    ran, other = run.decide(calls, wait=False)
    assert (ran.outcome, other.runs) == ("ran_before", False)


PLACES = {
    "framework": ("f2", "s1", 1, "c1"),
    "session": ("f1", "s2", 1, "c1"),
    "turn": ("f1", "s1", 2, "c1"),
    "call id": ("f1", "s1", 1, "c2"),
    "number for text": ("f1", "s1", "1", "c1"),
}


@pytest.mark.parametrize("other", PLACES.values(), ids=PLACES)
def test_an_approval_is_for_one_place(desk, other):
    """Framework, session, turn and call id: none of them alone lets another call use the approval."""
    grace = desk.open()
    action = pay_action(grace)
    verdict = action.decide(CALL, call_id=("f1", "s1", 1, "c1"), wait=False)
    grace.approvals.approve(verdict.approval.id, by="bo")
    assert action.decide(CALL, call_id=other, wait=False).waits
    assert action.decide(dict(reversed(CALL.items())), call_id=("f1", "s1", 1, "c1"), wait=False).runs


@pytest.mark.parametrize("change", [{"amount": 11}, {"amount": 10.0}, {"more": None}, {"amount": True}])
def test_the_same_id_with_other_arguments_is_a_new_decision(desk, change):
    grace = desk.open()
    action = pay_action(grace)
    verdict = action.decide(CALL, call_id=("s1", 1, "c1"), wait=False)
    grace.approvals.approve(verdict.approval.id, by="bo")
    assert action.decide({**CALL, **change}, call_id=("s1", 1, "c1"), wait=False).waits
    assert (
        grace.action("refund", schema=SCHEMA, policy="confirm").decide(CALL, call_id=("s1", 1, "c1"), wait=False).waits
    )


def test_a_key_of_the_program_adds_to_the_identity(desk):
    """Two conversations about one invoice need two approvals."""
    grace = desk.open()
    action = pay_action(grace, key="pay:{to}")
    first = action.decide(CALL, call_id=("s1", 1, "c1"), wait=False)
    grace.approvals.approve(first.approval.id, by="bo")
    assert action.decide(CALL, call_id=("s2", 1, "c1"), wait=False).waits
    assert action.decide(CALL, call_id=("s1", 1, "c1"), wait=False).runs
    missing = action.decide({"amount": 1}, call_id=("s1", 1, "c1"), wait=False)
    assert (missing.outcome, "key" in missing.message) == ("not_asked", True)


def test_calls_without_a_session_share_nothing():
    grace = make_grace(reviewer=answering("proceed"))
    action = pay_action(grace)
    first = action.decide(CALL, call_id="call_1")
    first.run(lambda arguments: "paid")
    assert action.decide(CALL, call_id="call_1").outcome == "approved"
    assert gk.Verdict.from_dict(first.to_dict(), action).outcome == "ran_before"
    with grace.run("one"):
        action.decide(CALL, call_id="call_1").run(lambda arguments: "paid")
        assert action.decide(CALL, call_id="call_1").outcome == "ran_before"


def test_equal_calls_of_one_turn_are_two(desk):
    grace = desk.open()
    action, run = pay_action(grace), run_of(grace)
    calls = [gk.Call(action, CALL, id=(1, "c1")) for _ in range(2)]
    first, second = run.decide(calls, wait=False)
    assert first.approval.id != second.approval.id
    again = run.decide(calls, wait=False)
    assert [first.id, second.id] == [each.id for each in again]
    run.close()
    assert len(run.trace.grace["decisions"]) == 2


def test_a_turn_is_decided_on_one_snapshot():
    """What is recorded while the first call is asked about changes nothing for the second."""
    grace = make_grace()
    run = run_of(grace)
    levels = []

    def review(request):
        levels.append(request.level)
        run.open_tool("lookup", {}).fail("down")
        return gk.InterventionResponse("proceed")

    action = pay_action(grace, gk.Policy(floor="confirm", reviewer=review, alarms="none"))
    run.decide([gk.Call(action, {"to": "ana", "amount": n}, id=f"c{n}") for n in range(3)])
    later = action.decide({"to": "ana", "amount": 9}, call_id="c9", run=run)
    assert (len({*levels[:3]}), later.level) == (1, "escalate")


@pytest.mark.parametrize("reviewer", [gk.InboxReviewer(), answering("proceed")], ids=["inbox", "callable"])
def test_a_call_runs_once(desk, reviewer):
    """With hooks before and after, in one process and in the next; the reviewer is asked once."""
    grace = desk.open(reviewer=reviewer)
    action = pay_action(grace)
    verdict = action.decide(CALL, call_id=("s1", 1, "c1"), wait=False if action.pauses else None)
    kept = json.loads(json.dumps(verdict.to_dict()))
    if action.pauses:
        grace.approvals.approve(verdict.approval.id, by="bo")
    grace = desk.open(reviewer=reviewer)
    action = pay_action(grace)
    verdict = gk.Verdict.from_dict(kept, action)
    assert verdict.runs
    claim = verdict.begin(verdict.arguments)
    assert claim.started
    twin = verdict.begin(verdict.arguments)
    assert (twin.started, isinstance(twin.error, gk.ActionOutcomeUnknown)) == (False, True)
    claim.done({"paid": True})
    with pytest.raises(gk.GateError, match="has ended"):
        claim.done()
    again = pay_action(desk.open(reviewer=reviewer)).verdict(kept)
    assert (again.outcome, again.result, again.has_result) == ("ran_before", {"paid": True}, True)
    assert again.run(lambda arguments: pytest.fail("it ran")) == {"paid": True}
    assert len(getattr(reviewer, "asked", [1])) == 1


@pytest.mark.parametrize("change", [{"amount": 11}, {"amount": object()}, {"memo": "x"}, {"extra": 1}])
def test_only_what_was_decided_on_begins(desk, change):
    grace = desk.open(reviewer=answering("proceed"))
    verdict = pay_action(grace).decide(CALL, call_id=("s1", "c1"))
    claim = verdict.begin({**CALL, **change})
    assert (claim.started, SAYS_NO in claim.message) == (False, True)
    assert verdict.begin(dict(reversed(CALL.items()))).started


@pytest.mark.parametrize(
    ("end", "later"),
    [
        (lambda claim: claim.failed("declined"), "ran_before"),
        (lambda claim: claim.failed(ValueError("declined")), "ran_before"),
        (lambda claim: claim.unknown(), "unknown"),
        (lambda claim: claim.release(), "approved"),
        (lambda claim: None, "unknown"),
        (lambda claim: claim.done(object()), "ran_before"),
        (lambda claim: claim.done({"isError": True, "content": []}), "ran_before"),
    ],
)
def test_ends_of_a_claim(desk, end, later):
    grace = desk.open(reviewer=gk.InboxReviewer())
    action, run = pay_action(grace), run_of(grace)
    verdict = action.decide(CALL, call_id="c1", run=run, wait=False)
    grace.approvals.approve(verdict.approval.id, by="bo")
    claim = action.decide(CALL, call_id="c1", run=run, wait=False).begin(CALL)
    end(claim)
    run.close()
    after = gk.Verdict.from_dict(verdict.to_dict(), pay_action(desk.open()))
    assert (after.outcome, after.has_result) == (later, False)
    assert after.runs or "not run again" in after.message


@pytest.mark.parametrize("end", ["close", "fail", "suspend"])
def test_a_claim_that_a_live_run_leaves_open_is_unknown(desk, end):
    grace = desk.open()
    action, run = pay_action(grace), run_of(grace)
    verdict = action.decide(CALL, call_id="c1", run=run, wait=False)
    grace.approvals.approve(verdict.approval.id, by="bo")
    claim = action.decide(CALL, call_id="c1", run=run, wait=False).begin(CALL)
    getattr(run, end)("x")
    assert grace.approvals.get(verdict.approval.id).state == gk.ApprovalState.UNKNOWN
    with pytest.raises(gk.GateError, match="has ended"):
        claim.done()


@pytest.mark.parametrize("way", ["live", "plain"])
def test_nothing_begins_once_its_run_has_ended(desk, way):
    """Nobody would end the claim. The call may begin in another run."""
    grace = desk.open(reviewer=answering("proceed"))
    action = pay_action(grace)
    with run_of(grace) if way == "live" else grace.run("x", session="s1") as run:
        verdict = action.decide(CALL, call_id=("f", "s1", 1, "c1"), run=run)
    claim = verdict.begin(CALL)
    assert (claim.started, "its run has ended" in claim.message, run.claims) == (False, True, set())
    with run_of(grace) as other:
        assert action.decide(CALL, call_id=("f", "s1", 1, "c1"), run=other).begin(CALL).started


def test_calls_without_an_id_are_new_each_time():
    grace = make_grace(reviewer=answering("proceed"))
    action = pay_action(grace)
    with grace.run("x", session="s"):
        paid = [action.decide(CALL).run(lambda arguments: "paid") for _ in range(2)]
    assert paid == ["paid", "paid"]


def test_a_claim_that_its_run_leaves_open_is_unknown(desk):
    grace = desk.open(reviewer=answering("proceed"))
    action = pay_action(grace)
    with grace.run("x", session="s2") as plain:
        claim = action.decide(CALL, call_id="c1").begin(CALL)
    with pytest.raises(gk.GateError, match="has ended"):
        claim.done()
    assert plain.trace.grace["decisions"][0]["outcome"] == "running"
    assert action.decide(CALL, call_id=("s2", "c1")).outcome == "unknown"


def test_arguments_are_shown_as_themselves(desk):
    """Names that Python could not bind, and an edit that removes an optional argument."""
    grace = desk.open()
    action = pay_action(grace)
    verdict = action.decide(CALL, call_id=("s1", "c1"), wait=False)
    assert verdict.approval.arguments == CALL
    with pytest.raises(gk.EditRefused):
        grace.approvals.edit(verdict.approval.id, {"to": None}, by="bo")
    grace.approvals.edit(verdict.approval.id, {"memo": None, "from": "cy"}, by="bo")
    edited = action.decide(CALL, call_id=("s1", "c1"), wait=False)
    assert edited.arguments == {"to": "ana", "amount": 10, "from": "cy", "user-id": "u1"}
    assert not edited.begin(CALL).started
    assert edited.run(lambda arguments: arguments) == edited.arguments


def test_a_refusal_is_found_by_a_process_that_died_while_it_filed_the_request(desk, monkeypatch):
    action = pay_action(desk.open())

    def dies(*_):
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr("grace_kp.gating._paused.Questions.file", dies)
        with pytest.raises(SystemExit):
            action.decide(CALL, call_id=("s1", 1, "c1"), wait=False)
    grace = desk.open()
    [asked] = grace.approvals.pending()
    grace.approvals.reject(asked.id, by="bo")
    assert pay_action(grace).decide(CALL, call_id=("s1", 1, "c1"), wait=False).outcome == "rejected"


def test_an_alarm_stands_beside_the_argument_that_it_is_about(desk):
    """Also where its name holds dots and brackets."""
    grace = desk.open()
    run = run_of(grace)
    run.open_tool("look", {}).close("nothing")
    call = {"to.iban": "DE8912345678901234", "to": "ana"}
    verdict = grace.action("pay", policy="confirm").decide(call, call_id="c1", run=run, wait=False)
    assert "`to.iban`" in approval_alarms(verdict.approval).get("to.iban", "")


def test_a_refusal_holds_under_a_new_id(desk):
    """For the same arguments, in nested and resumed runs, until a person writes again."""
    grace = desk.open(reviewer=gk.InboxReviewer())
    action, run = pay_action(grace), run_of(grace)
    verdict = action.decide(CALL, call_id="c1", run=run, wait=False)
    grace.approvals.reject(verdict.approval.id, by="bo", reason="too much")
    refused = action.decide(CALL, call_id="c1", run=run, wait=False)
    nested = run_of(grace, name="helper", inside=run)
    assert action.decide(dict(reversed(CALL.items())), call_id="c7", run=nested, wait=False).message == refused.message
    nested.close()
    assert action.decide({**CALL, "amount": 9}, call_id="c7", run=run, wait=False).waits
    run.suspend("k")
    grace = desk.open(reviewer=gk.InboxReviewer())
    action, run = pay_action(grace), run_of(grace, resume="k")
    held = action.decide(CALL, call_id="c8", run=run, wait=False)
    assert (held.outcome, held.message) == ("rejected", refused.message)
    run.user_message("please pay it after all")
    assert action.decide(CALL, call_id="c9", run=run, wait=False).waits


def test_a_refusal_in_a_nested_run_holds_when_both_are_resumed(desk):
    grace = desk.open(reviewer=answering("cancel"))
    run = run_of(grace)
    nested = run_of(grace, name="helper", inside=run)
    assert pay_action(grace).decide(CALL, call_id="c1", run=nested).outcome == "rejected"
    nested.suspend("k")
    run.suspend("k")
    grace = desk.open(reviewer=answering("proceed"))
    run = run_of(grace, resume="k")
    nested = run_of(grace, name="helper", inside=run, resume="k")
    for each in (nested, run):
        assert pay_action(grace).decide(CALL, call_id="c2", run=each).outcome == "rejected"
    run.user_message("please pay it after all")
    assert pay_action(grace).decide(CALL, call_id="c3", run=nested).runs


def test_the_past_of_a_run_is_not_read_on_an_event_loop(desk, monkeypatch):
    grace = desk.open()
    kept = pay_action(grace).decide(CALL, call_id=("s1", "c1"), wait=False).to_dict()
    run_of(grace).suspend("k")
    grace = desk.open()
    here, query = threading.get_ident(), grace.store.query
    read_in = []
    monkeypatch.setattr(grace.store, "query", lambda **asked: read_in.append(threading.get_ident()) or query(**asked))
    run = run_of(grace, resume="k")
    assert asyncio.run(pay_action(grace).averdict(kept, run=run)).waits
    assert read_in
    assert here not in read_in


def test_a_kept_verdict_entitles_to_nothing(desk):
    grace = desk.open()
    action = pay_action(grace)
    kept = action.decide(CALL, call_id=("s1", "c1"), wait=False).to_dict()
    for forged in ({"outcome": "approved"}, {"level": "silent"}, {"arguments": {**CALL, "amount": 1}}):
        assert gk.Verdict.from_dict({**kept, **forged}, action).waits
    for broken in (
        {},
        {**kept, "place": {}},
        {**kept, "place": {**kept["place"], "turn": []}},
        {**kept, "action": "refund"},
        {**kept, "version": 0},
    ):
        with pytest.raises(gk.GateError):
            gk.Verdict.from_dict(broken, action)
    # A milder policy since then decides nothing anew: the level that was stated stays.
    milder = make_grace(reviewer=None).action(
        "pay", schema=SCHEMA, policy=gk.Policy(unmeasured="silent", alarms="none")
    )
    assert gk.Verdict.from_dict(kept, milder).waits


@pytest.mark.parametrize("change", [{"policy": "escalate"}, {"version": "2"}, {"schema": {**SCHEMA, "required": []}}])
@pytest.mark.parametrize("answer", ["proceed", "cancel"])
def test_an_answer_is_for_the_action_and_policy_that_it_was_given_for(desk, change, answer):
    """As an approval is; a refusal holds all the same, and what ran has run."""
    action = pay_action(desk.open(reviewer=None))
    kept = [action.decide(CALL, call_id=("s", n), wait=False) for n in range(2)]
    settled = [each.answer(gk.InterventionResponse(answer)) for each in kept]
    assert not settled[0].runs or settled[0].run(lambda arguments: "paid") == "paid"
    later = desk.open(reviewer=None).action("pay", **{"schema": SCHEMA, "policy": "confirm", **change})
    outcomes = [later.verdict(each.to_dict()).outcome for each in kept]
    assert outcomes == (["ran_before", "not_asked"] if answer == "proceed" else ["rejected", "rejected"])


def test_an_answer_is_for_one_domain(desk):
    verdict = pay_action(desk.open(reviewer=None)).decide(CALL, call_id=("s", 1, "c"), wait=False)
    assert verdict.answer(gk.InterventionResponse("proceed")).runs
    assert pay_action(desk.open(reviewer=None, domain="other")).decide(CALL, call_id=("s", 1, "c"), wait=False).waits


def test_sealed_and_ignored_arguments(desk, monkeypatch, tmp_path):
    """Sealed ones are in no kept verdict and in no step; ignored ones may differ."""
    pytest.importorskip("cryptography")  # has no wheel for some interpreters
    monkeypatch.setenv("GRACE_KP_KEY", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
    grace = desk.open()
    action, run = pay_action(grace, sealed=["memo"], ignore=["user-id"]), run_of(grace)
    verdict = action.decide(CALL, call_id="c1", run=run, wait=False)
    kept = verdict.to_dict()
    assert "zyxwv" not in json.dumps(kept)
    assert kept["sealed"] == ["memo"]
    with pytest.raises(gk.GateError, match="memo is sealed"):
        gk.Verdict.from_dict(kept, action)
    assert verdict.waits, verdict.message
    grace.approvals.approve(verdict.approval.id, by="bo")
    verdict = gk.Verdict.from_dict(kept, action, run=run, arguments={**CALL, "user-id": "u2"})
    call = run.open_tool(action, verdict.arguments)
    claim = verdict.begin(verdict.arguments)
    call.close("paid for rent zyxwv")
    claim.done("paid for rent zyxwv")
    run.close()
    trace = json.dumps(run.trace.to_dict())
    grace.close()
    assert claim.started
    assert "zyxwv" not in trace
    assert "u2" not in trace
    assert all(b"zyxwv" not in each.read_bytes() for each in tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [{"a": {1: 2}}, {"a": float("nan")}, {"a": {1, 2}}, {"a": b"x"}, [("a", 1)], {"a": [object()]}, {"a": 10**5000}],
)
def test_misuse_raises(arguments):
    action = pay_action(make_grace())
    with pytest.raises(gk.GateError):
        action.decide(arguments)


@pytest.mark.parametrize("value", [2**80, -0.0, 1e300, "\ud800", "", [[]] * 3, {"": None}, {"a" * 300: {"b": []}}])
def test_any_json_can_be_decided_on(desk, value):
    grace = desk.open(reviewer=answering("proceed"))
    action = grace.action("pay", policy="confirm")
    verdict = action.decide({"x": value}, call_id=("s" * 5_000, 2**70, "c" * 5_000))
    assert verdict.outcome == "approved" or "cannot" in verdict.message
    assert verdict.waits is False


@pytest.mark.parametrize("id", [(), (1, 2, 3, 4, 5), 1.5, ("s", ["c"]), {"a": 1}])
def test_an_id_is_plain(id):  # noqa: A002 — the name of the parameter
    with pytest.raises(gk.GateError, match="the id of a call"):
        gk.Call(pay_action(make_grace()), CALL, id=id)


@pytest.mark.parametrize(
    "stated", [{"key": "pay:{invoice}"}, {"sealed": ["iban"]}, {"ignore": ["iban"]}, {"schema": {"a": {1}}}]
)
def test_an_action_that_cannot_be_meant_is_refused(stated):
    with pytest.raises(gk.GateError):
        make_grace().action("pay", **{"schema": SCHEMA, **stated})


def test_a_store_that_fails_lets_nothing_run(desk):
    """Neither a decision nor a claim that cannot be kept lets a call run."""
    grace = desk.open(reviewer=answering("proceed"))
    action = pay_action(grace)
    verdict = action.decide(CALL, call_id=("s1", "c1"))

    class Broken:
        lasting = True

        def action(self, key):
            raise gk.StoreError("locked, api_key=sk-proj-" + "Ab1" * 16)

        put_action = action

    grace._gates().store = Broken
    claim = verdict.begin(CALL)
    assert (claim.started, "could not be recorded" in claim.message) == (False, True)
    refused = action.decide(CALL, call_id=("s1", "c2"))
    assert (refused.outcome, "cannot be kept" in refused.message) == ("not_asked", True)
    assert "Ab1" not in claim.message + refused.message


@pytest.mark.parametrize("way", ["run", "begin"])
def test_the_async_twins_do_the_same(desk, way):
    grace = desk.open(reviewer=answering("proceed"))
    action, run = pay_action(grace), run_of(grace)
    effects = []

    async def pay(arguments):
        effects.append(gk.idempotency_key())
        return arguments["amount"]

    async def main():
        verdicts = await run.adecide([gk.Call(action, {**CALL, "amount": n}, id=f"c{n}") for n in range(2)])
        for verdict in verdicts:
            if way == "run":
                assert await verdict.arun(pay) == verdict.arguments["amount"]
                continue
            claim = await verdict.abegin(verdict.arguments)
            effects.append(claim.key)
            await claim.adone(verdict.arguments["amount"])
        again = await action.adecide({**CALL, "amount": 1}, call_id="c1", run=run)
        assert (again.outcome, again.result) == ("ran_before", 1)
        assert (await action.averdict(again.to_dict(), run=run)).outcome == "ran_before"

    asyncio.run(main())
    assert len({*effects}) == 2


def test_threads_that_begin_at_once_run_it_once(desk):
    grace = desk.open(reviewer=answering("proceed"))
    verdicts = [pay_action(grace).decide(CALL, call_id=("s1", "c1")) for _ in range(2)]
    ready, started = threading.Barrier(8), []

    def begin(verdict):
        ready.wait()
        started.append(verdict.begin(CALL).started)

    threads = [threading.Thread(target=begin, args=(each,)) for each in itertools.islice(itertools.cycle(verdicts), 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(started) == [False] * 7 + [True]


def test_gates_of_an_adapter(caplog):
    """Names and globs, names that only look alike, misspelt ones, and tools that no hook sees."""
    grace = make_grace(reviewer=None, policies={"wire": "confirm"})
    table = grace.tool_gates({"pay": "confirm", "delete_*": "deny", "send-mail": "confirm"}, "Adapter")
    assert [table.action(name).gated for name in ("pay", "PAY", "delete_all", "wire", "look")] == [True] * 4 + [False]
    assert table.action("pay", SCHEMA) is table.action("pay")
    with pytest.raises(gk.GateError, match="did you mean 'send_mail'"):
        table.offer(["pay", "send_mail"])
    table.offer(["pay"])
    table.refuse(["web_search"], "the provider runs it")
    with pytest.raises(gk.GateError, match="cannot gate 'delete_index'"):
        table.refuse(["delete_index"], "the provider runs it")
    table.warn_unmatched()
    table.warn_unmatched()
    assert [each for each in caplog.messages if "web_search" in each and "neither" in each]
    assert len([each for each in caplog.messages if "'delete_*'" in each]) <= 1
