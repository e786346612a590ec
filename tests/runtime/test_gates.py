"""What a runtime gives its gates: who is asked, where executions are kept, and the confidence of the run."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import math
import sys

import pytest

import grace_kp as gk
from grace_kp.gating import LedgerEntry
from grace_kp.runtime import GateSpec
from grace_kp.testing import ScriptedJudge, ScriptedReviewer, capture, make_grace
from tests.store.samples import Own


class Terminal(io.StringIO):
    """A stream that says whether it is a terminal."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def isatty(self):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("terminal", "is_asked"), [(True, True), (False, False), (ValueError("closed"), False), (OSError("gone"), False)]
)
def test_auto_asks_at_a_terminal(monkeypatch, terminal, is_asked):
    """Without one, no reviewer is asked and the gate cancels."""
    monkeypatch.setattr(sys, "stdin", Terminal(terminal))
    grace = make_grace(reviewer="auto")
    assert is_asked == isinstance(grace._gates().reviewer, gk.ConsoleReviewer)
    if not is_asked:
        with pytest.raises(gk.ActionCancelled, match="no reviewer is available"):
            grace.gate(floor="confirm")(lambda: 1)()


def test_the_ledger_is_the_store_where_it_keeps_actions(tmp_path):
    lasting = make_grace(store=f"sqlite:///{tmp_path}/t.db")
    LedgerEntry(lambda: lasting._gates().ledger, "key").claim()
    assert b"running" in lasting.store.action("key")
    lasting.close()
    gates = make_grace(store=Own())._gates()
    assert gates.in_memory is gates.ledger


def test_confidence_that_cannot_be_computed_asks_for_help(monkeypatch):
    reviewer = ScriptedReviewer("proceed")
    grace = make_grace(reviewer=reviewer)

    def broken(run):
        raise RuntimeError("no evidence")

    monkeypatch.setattr("grace_kp.runtime._gates.survey_of", broken)
    with capture() as captured:
        grace.gate(lambda: 1)()
    assert "escalate" == reviewer.requests[0].level
    assert "the confidence could not be computed: RuntimeError: no evidence" in captured.only.decisions[0].reason


@pytest.mark.parametrize("options", [{"timeout": -1}, {"floor": "maybe"}, {"policy": "maybe"}, {"judge": "maybe"}])
def test_what_cannot_be_used_is_an_error_when_the_gate_is_put_up(options):
    with pytest.raises(ValueError, match="must be"):
        make_grace().gate(**options)(lambda: 1)


NEVER = gk.Thresholds(math.inf, math.inf, 0.4)
MILD = gk.Thresholds(0, 0, 0)


def refuses(asked, name):
    def review(request):
        asked.append(name)
        return "cancel"

    return review


@pytest.mark.parametrize(
    ("runtime", "own", "options", "expected"),
    [
        (gk.Policy(thresholds=NEVER), gk.Policy(thresholds=MILD), {}, ["runtime"]),
        (None, gk.Policy(thresholds=MILD), {"thresholds": NEVER}, ["runtime"]),
        (None, gk.Policy(thresholds=MILD), {"threshold_silent": "never", "threshold_notify": "never"}, ["runtime"]),
        (gk.Policy(floor="confirm", reviewer="refuses"), gk.Policy(reviewer=lambda request: "proceed"), {}, ["policy"]),
        (gk.Policy(floor="confirm", timeout=300), gk.Policy(timeout=0, auto_proceed_on_timeout=True), {}, ["runtime"]),
        ("confirm", gk.Policy(timeout=0, auto_proceed_on_timeout=True), {}, ["runtime"]),
        (gk.Policy(floor="confirm", group="finance"), gk.Policy(reviewer=lambda request: "proceed"), {}, ["runtime"]),
        (gk.Policy(floor="confirm", quorum=2), gk.Policy(reviewer=lambda request: "proceed"), {"reviewer": None}, []),
        ("deny", gk.Policy(thresholds=MILD, reviewer=lambda request: "proceed"), {}, []),
    ],
)  # fmt: skip
def test_a_gate_cannot_talk_the_runtime_s_policy_down(runtime, own, options, expected):
    """Neither by thresholds, nor by its reviewer, nor by its timeout; the runtime's reviewers are asked, and nothing runs."""
    asked, ran = [], []
    if getattr(runtime, "reviewer", None) == "refuses":
        runtime = dataclasses.replace(runtime, reviewer=refuses(asked, "policy"))
    options = {"reviewer": refuses(asked, "runtime"), **options}
    grace = make_grace(policies=None if runtime is None else {"wire": runtime}, **options)

    @grace.gate(policy=own)
    def wire():
        ran.append(1)

    with pytest.raises(gk.ActionNotApproved):
        wire()
    assert (expected, []) == (asked, ran)


def test_a_gate_does_not_shorten_the_time_after_which_a_policy_proceeds():
    """Without it, the reviewer has the time of the runtime; where the gate allows it itself, the longer one holds."""
    timeouts = []

    def review(request):
        timeouts.append(request.timeout)
        return "proceed"

    own = gk.Policy(auto_proceed_on_timeout=True)
    grace = make_grace(
        reviewer=review,
        gate_timeout=70,
        policies={
            "open": gk.Policy(floor="confirm", auto_proceed_on_timeout=True),
            "timed": gk.Policy(floor="confirm", timeout=40, auto_proceed_on_timeout=True),
            "asks": gk.Policy(floor="confirm", timeout=40),
        },
    )
    for name, options in (
        ("open", {}),
        ("open", {"policy": own}),
        ("timed", {}),
        ("timed", {"policy": own}),
        ("asks", {}),
    ):
        grace.gate(name=name, timeout=1, **options)(lambda: None)()
    assert [70, 1, 40, 40, 1] == timeouts


def test_defaults_are_no_statement():
    """A gate's own thresholds replace those that nobody stated."""
    own = gk.Policy(thresholds=MILD, unmeasured="silent")
    assert MILD == make_grace()._gates().policy_for("wire", GateSpec(policy=own)).thresholds
    stated = make_grace(threshold_silent=0.95)._gates().policy_for("wire", GateSpec(policy=own)).thresholds
    assert gk.Thresholds(0.95, 0, 0) == stated


def test_thresholds_of_the_environment_hold_for_policies_in_code(monkeypatch):
    policies = {"wire": gk.Policy(thresholds=MILD, unmeasured="silent")}
    argument = make_grace(policies=policies, threshold_silent=0.95)._gates().entry_for("wire")
    assert MILD == argument.thresholds
    monkeypatch.setenv("GRACE_KP_THRESHOLD_SILENT", "0.95")
    stated = make_grace(policies=policies)._gates().entry_for("wire")
    assert (0.95, MILD.notify, "silent") == (stated.thresholds.silent, stated.thresholds.notify, stated.unmeasured)


def test_two_inboxes_of_one_action_become_one():
    grace = make_grace(policies={"wire": gk.Policy(floor="confirm", reviewer=gk.InboxReviewer("1h", group=["a", "b"]))})
    spec = GateSpec(reviewer=gk.InboxReviewer("2h", "skip", group="b", quorum=2))
    found = grace._gates().policy_for("wire", spec).reviewer
    assert (3_600, "cancel", ("b",), 2) == (found.deadline, found.on_deadline, found.groups, found.quorum)


def level_of(grace, before=lambda grace: None, **gate):
    with grace.run("work") as run:
        before(grace)
        with contextlib.suppress(gk.ActionCancelled):
            grace.gate(**gate)(lambda: "ran")()
    return run.trace.grace["decisions"][0]


@pytest.mark.parametrize(
    ("runtime", "policy", "gate", "level"),
    [
        (None, None, None, "confirm"), ("silent", None, None, "silent"), (None, "notify", None, "notify"),
        (None, None, "silent", "silent"), ("silent", "notify", None, "notify"), ("confirm", None, "silent", "confirm"),
        ("silent", "silent", "notify", "notify"),
    ],
)  # fmt: skip
def test_with_nothing_measured_the_strictest_stated_level_holds(runtime, policy, gate, level):
    """CONFIRM where none is stated; the entry and its reason say that nothing was measured."""
    policies = {} if policy is None else {"act": gk.Policy(unmeasured=policy)}
    entry = level_of(make_grace(unmeasured=runtime, policies=policies), name="act", unmeasured=gate)
    assert (level, [], level) == (entry["level"], entry["measured"], entry["unmeasured"])
    assert entry["reason"].startswith("Nothing was measured: no search scores, no judgement")


def test_unmeasured_lifts_no_floor_no_gap_and_no_failure():
    def fail(grace):
        @grace.tool
        def broken():
            raise LookupError

        with contextlib.suppress(LookupError):
            broken()

    def unusable(grace):
        grace.retriever(lambda: [("text", 0.3)])()

    assert "confirm" == level_of(make_grace(unmeasured="silent"), floor="confirm")["level"]
    assert "confirm" == level_of(make_grace(unmeasured="silent"), unusable)["level"]
    assert "escalate" == level_of(make_grace(unmeasured="silent"), fail)["level"]
    never = gk.Thresholds(silent=float("inf"))
    assert "notify" == level_of(make_grace(unmeasured="silent", thresholds=never))["level"]


@pytest.mark.parametrize("profile", ["grace", "strict"])
@pytest.mark.parametrize(
    ("reply", "level", "measured"),
    [(1.0, "silent", ["self-evaluation", "coverage"]), (0.0, "confirm", None), (RuntimeError("down"), "confirm", [])],
)
def test_when_needed_asks_the_judge_where_nothing_was_measured(profile, reply, level, measured):
    """An answer could change the level, although without one it is the same for every score. A fallback is no measurement."""
    model = ScriptedJudge(reply)
    entry = level_of(make_grace(evaluator=model, profile=profile), judge="when_needed")
    assert model.prompts
    assert level == entry["level"] or (reply == 0.0 and entry["level"] == "escalate")
    assert measured is None or measured == entry["measured"]


@pytest.mark.parametrize("profile", ["grace", "strict"])
def test_a_judgement_that_failed_is_missing_evidence(profile):
    """A good search does not make up for it: a judge that is made to fail must not be milder than one that answers low."""

    def search(grace):
        grace.retriever(lambda: [{"text": "t", "source": "s", "score": 0.95}])()

    assert "silent" == level_of(make_grace(profile=profile), search)["level"]
    for judge in (ScriptedJudge(RuntimeError("down")), ScriptedJudge("no idea"), None):
        entry = level_of(make_grace(evaluator=judge, profile=profile), search, judge="always")
        gap = "this gate asks for a judgement and got none"
        assert ("confirm", [gap]) == (entry["level"], entry["evidence_gaps"])


def test_when_needed_asks_no_judge_where_a_floor_decides():
    model = ScriptedJudge(1.0)
    assert "escalate" == level_of(make_grace(evaluator=model), judge="when_needed", floor="escalate")["level"]
    assert not model.prompts


def under_trio(scene):
    return pytest.importorskip("trio").run(scene)


def test_recording_works_under_trio():
    """Without gates that ask, nothing needs asyncio; a cancelled run is cancelled, also where a nursery groups the cancellations."""
    trio = pytest.importorskip("trio")
    grace = gk.Grace(store="memory:", evaluator=None, embedder=None, unmeasured="silent")
    tool, act = grace.tool(trio.sleep, name="tool"), grace.gate(trio.sleep, name="act")

    @grace.agent
    async def agent(question):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tool, 0)
            nursery.start_soon(tool, 0)
        await act(0)
        return question

    @grace.agent
    async def sleeper(question):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tool, float("inf"))
            await trio.sleep_forever()

    async def scene():
        await agent("q")
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(sleeper, "q")
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()

    under_trio(scene)
    found = {trace.name: trace for trace in grace.store.query()}
    assert ("completed", "cancelled") == (found["agent"].status, found["sleeper"].status)
    assert ["ok", "ok"] == [call["status"] for call in found["agent"].grace["calls"] if call["name"] == "tool"]
    assert ["cancelled"] == [call["status"] for call in found["sleeper"].grace["calls"]]


async def awaited_reviewer(request):
    return gk.InterventionResponse("proceed")


@pytest.mark.parametrize("reviewer", [awaited_reviewer, lambda request: True, gk.InboxReviewer(deadline="1h")])
def test_a_gate_that_needs_asyncio_names_it(reviewer):
    """The action does not run, and its trace says why; a plain function in a worker thread can be gated."""
    grace, ran = gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=reviewer), []

    @grace.gate(floor="confirm")
    async def act():
        ran.append(1)

    with pytest.raises(RuntimeError, match=r"need asyncio.*trio\.to_thread"):
        under_trio(act)
    assert [] == ran
    (trace,) = grace.store.query()
    assert "need asyncio" in trace.grace["decisions"][0]["error"]


def test_a_judge_and_an_inbox_that_need_asyncio_name_it():
    grace = gk.Grace(store="memory:", evaluator=None, embedder=None)
    for verb in (
        lambda: gk.LLMSelfEvaluator(lambda prompt: "0.8").aevaluate("q", "a"),
        lambda: gk.SourceAgreementCalculator(None).acalculate(["a", "b"]),
        lambda: grace.approvals.apending(),
    ):
        with pytest.raises(RuntimeError, match="need asyncio"):
            under_trio(verb)
