"""The conformance kit: one story in every agent framework, with a scripted model, one expected trace and one expected list of effects.

An adapter's test states a `Driver` and inherits `Conformance`. Everything else is the same for all: the stories, the tools, the people who
decide, the processes that are killed. `program` is the program that is killed and started again.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import signal
import sqlite3
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import pytest

import grace_kp as gk
from tests import warm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT = Path(__file__).resolve().parents[2]
HANDOFF, HELPER = "handoff", "helper"
AGENTS = {"main": ("lookup", "flaky", "pay", "refund"), "second": ("pay",), "helper": ("lookup", "pay")}
"""The plain tools of each agent. `main` can also hand off to `second`, and has the agent `helper` as a tool."""


@dataclass(frozen=True)
class Call:
    """A tool call of a scripted model. `Call(id, HANDOFF, {"to": "second"})` hands off; `Call(id, HELPER, {"task": text})` calls the nested agent."""

    id: str
    tool: str
    args: dict[str, Any]


@dataclass(frozen=True)
class Turn:
    """One answer of a scripted model: calls, or the text that ends its agent."""

    text: str = ""
    calls: tuple[Call, ...] = ()


def calls(*each: tuple[str, str, dict[str, Any]]) -> Turn:
    return Turn(calls=tuple(Call(*call) for call in each))


DONE = Turn("done")
PAY = ("p1", "pay", {"to": "ann", "amount": 5, "memo": "tea"})
REFUND = ("r1", "refund", {"to": "bob", "amount": 7})
PAID = {"tool": "pay", "to": "ann", "amount": 5, "memo": "tea"}
REASON = "Bob is not a customer."
LOOK = (
    calls(("l1", "lookup", {"query": "ann"}), ("l2", "lookup", {"query": "bob"})),
    calls(("f1", "flaky", {"n": 1})),
    calls(("f2", "flaky", {"n": 1})),
)
STORIES: dict[str, dict[str, tuple[Turn, ...]]] = {
    "look": {"main": (*LOOK, DONE)},
    "whole": {"main": (*LOOK, calls(PAY, REFUND), DONE)},
    "pay": {"main": (calls(PAY), DONE)},
    "again": {"main": (calls(PAY), calls(("p2", *PAY[1:])), DONE)},
    "no model": {"main": (calls(("l1", "lookup", {"query": "ann"})),)},
    "handoff": {"main": (calls(("h1", HANDOFF, {"to": "second"})),), "second": (calls(PAY), DONE)},
    "nested": {
        "main": (calls(("n1", HELPER, {"task": "Pay Ann."})), DONE),
        "helper": (calls(("l1", "lookup", {"query": "ann"})), calls(PAY), Turn("helped")),
    },
}


def crash() -> None:
    """End as a power cut does: nothing is flushed, no `finally` runs."""
    os.kill(os.getpid(), signal.SIGKILL)


def append(path: Path, entry: object) -> None:
    """Add a line in one write, which holds when the process is killed next, and beside other threads and processes."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, (json.dumps(entry) + "\n").encode())
    finally:
        os.close(file)


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@dataclass
class Case:
    """What a driver runs: the scripted models and the tools of one conversation, in a folder that outlives the process."""

    folder: Path
    turns: Mapping[str, tuple[Turn, ...]]
    session: str = "s1"
    kill: str = ""
    """Where the process kills itself: `claimed` before the effect, `effect` after it, `reported` at the model's next turn."""

    prompt: ClassVar[str] = "Pay Ann, and give Bob his money back."

    def next_turn(self, agent: str, answers: Mapping[str, str]) -> Turn:
        """Return what the model of `agent` answers.

        The model has no state, so it plays on in another process: it takes the first turn whose calls have not all been answered.

        Args:
            agent: `main`, `second` or `helper`.
            answers: the text that the model was given for each tool call in its history, by call id.
        """
        append(self.folder / "heard.jsonl", {"agent": agent, "session": self.session, "answers": dict(answers)})
        if self.kill == "reported" and PAY[0] in answers:
            crash()
        for turn in self.turns[agent]:
            if not turn.calls or any(call.id not in answers for call in turn.calls):
                return turn
        raise RuntimeError("the model is not there")

    def tools_of(self, agent: str) -> list[Callable[..., str]]:
        """Return the plain tools of an agent: functions with annotations and docstrings, without its nested agent and its handoff."""
        return [getattr(self, name) for name in AGENTS[agent]]

    def lookup(self, query: str) -> str:
        """Look a customer up."""
        return f"{query} is a customer"

    def flaky(self, n: int) -> str:
        """Fail at the first call of a conversation."""
        path = self.folder / f"flaky-{self.session}"
        if not path.exists():
            path.touch()
            raise RuntimeError(f"try {n} failed")
        return f"try {n} worked"

    def pay(self, to: str, amount: int, memo: str = "") -> str:
        """Send money."""
        return self._move("pay", to, amount, memo)

    def refund(self, to: str, amount: int, memo: str = "") -> str:
        """Give money back."""
        return self._move("refund", to, amount, memo)

    def _move(self, tool: str, to: str, amount: int, memo: str) -> str:
        if self.kill == "claimed":
            crash()
        append(self.folder / "effects.jsonl", {"tool": tool, "to": to, "amount": amount, "memo": memo})
        if self.kill == "effect":
            crash()
        return f"moved {amount} to {to}"


@dataclass
class Ran:
    """How far a driver came: the text that ends the agent; or it waits for people, and `saved` resumes it, also in another process."""

    text: str | None = None
    waiting: bool = False
    saved: str | None = None
    error: Exception | None = field(default=None, compare=False)


class Driver(Protocol):
    """One framework with its adapter. `run` builds the agents of a case anew each time, as a program does that starts again."""

    framework: str
    """The adapter's name of the framework: `metadata.framework` of its traces."""
    lacks: frozenset[str]
    """What the framework itself does not have, of `handoff`, `nested` and `stream`; each is shown in the table of results."""

    def run(
        self, case: Case, grace: gk.Grace | None, gates: Mapping[str, object], saved: str | None, *, stream: bool
    ) -> Ran:
        """Run the agent `main` with `case.prompt`, or go on from `saved`, until it ends or waits. Exceptions of the framework pass through.

        Args:
            grace: None runs the framework without the adapter.
            gates: the policies by the name of the tool.
            saved: None at first, also after a kill before the program kept it. A framework that keeps sessions itself finds them
                by `case.session` in `case.folder`.
            stream: whether the framework's streaming entry point is used.
        """
        ...


EARLY = ("asked", "saved")
"""Places of a kill in the process that asks: before and after the program keeps what it needs to go on."""
LATE = ("claiming", "claimed", "effect", "reported")
"""Places in the process that goes on: before the claim, between claim and effect, before and after the report."""
ENDS = {("done", 1), ("unknown", 0), ("unknown", 1)}
"""States of an approval, and numbers of effects, that are right after a kill."""
HEARD = {"done": "moved 5 to ann", "unknown": "unknown"}
"""What the model has to hear then."""
GATES = {"pay": "confirm", "refund": "confirm"}


def open_grace(folder: Path, reviewer: object = None, **more: Any) -> gk.Grace:
    reviewer = gk.InboxReviewer() if reviewer is None else reviewer
    return gk.Grace(store=f"sqlite:///{folder}/traces.db", evaluator=None, embedder=None, reviewer=reviewer, **more)


class Shop:
    """A conversation, and what became of it."""

    def __init__(self, driver: Driver, folder: Path, story: str, grace: gk.Grace | None, **case: Any) -> None:
        self.driver, self.grace = driver, grace
        self.case = Case(folder, STORIES[story], **case)

    def run(self, saved: str | None = None, *, gates: Mapping[str, object] = GATES, stream: bool = False) -> Ran:
        try:
            return self.driver.run(self.case, self.grace, gates, saved, stream=stream)
        except Exception as error:
            return Ran(error=error)

    @property
    def effects(self) -> list[dict[str, Any]]:
        return lines(self.case.folder / "effects.jsonl")

    @property
    def heard(self) -> dict[str, str]:
        """The last text that a model of this conversation was given for each call."""
        kept = [each for each in lines(self.case.folder / "heard.jsonl") if each["session"] == self.case.session]
        return {call: text for each in kept for call, text in each["answers"].items()}

    @property
    def pending(self) -> dict[str, gk.Approval]:
        return {each.action: each for each in self.grace.approvals.pending()}


def outline(grace: gk.Grace) -> dict[str, Any]:
    """The parts of the traces that do not depend on the framework: which runs there are, calls with arguments and success, decisions."""
    grace.flush()
    traces = grace.store.query()
    called = [
        (each["name"], each["status"], *sorted((trace.steps[each["tool_call"]].input or {}).items()))
        for trace in traces
        for each in trace.grace.get("calls", ())
    ]
    return {
        "runs": sorted((trace.metadata.framework, trace.status, trace.parent_id is not None) for trace in traces),
        "calls": sorted(each for each in called if each[0] in AGENTS["main"]),
        "decisions": sorted((each.action, each.outcome) for trace in traces for each in trace.decisions),
        "ends": [(trace.task.objective, trace.outcome.result_summary) for trace in traces if trace.parent_id is None],
    }


LOOKED = [("lookup", "ok", ("query", "ann")), ("lookup", "ok", ("query", "bob"))]
PAID_ANN = ("pay", "ok", *sorted(PAY[2].items()))
WHOLE = {
    "calls": [("flaky", "error", ("n", 1)), ("flaky", "ok", ("n", 1)), *LOOKED, PAID_ANN],
    "decisions": [("pay", "executed"), ("refund", "cancelled")],
    "ends": [(Case.prompt, "done")],
}


def program(place: str, folder: str, story: str, kill: str) -> None:
    """A program that starts or goes on, and keeps what it needs to go on; `kill` is a place, or seconds until it is killed."""
    at = Path(folder)
    if kill == "claiming":
        for name in ("run", "arun", "begin", "abegin"):
            setattr(gk.Verdict, name, lambda *_args, **_kwargs: crash())
    shop, kept = Shop(driver_of(place), at, story, open_grace(at), kill=kill), at / "saved"
    begun, saved = time.perf_counter(), kept.read_text() if kept.exists() else None
    if re.fullmatch(r"[\d.]+", kill):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the default action ends the process, wherever it is
        signal.setitimer(signal.ITIMER_REAL, float(kill))
    ran = shop.driver.run(shop.case, shop.grace, GATES, saved, stream=False)
    append(at / "seconds.jsonl", time.perf_counter() - begun)
    if kill == "asked":
        crash()
    if ran.waiting and ran.saved is not None:
        (at / "saving").write_text(ran.saved)
        (at / "saving").replace(kept)
    if kill == "saved":
        crash()
    shop.grace.close()
    print("waits" if ran.waiting else ran.text)


def driver_of(place: str) -> Driver:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)()


def place_of(driver: Driver) -> str:
    """Where another process finds the class of a driver; a test module is imported by its path, so it is named from the root."""
    kind = type(driver)
    return f"{kind.__module__}:{kind.__qualname__}"


def restart(driver: Driver, folder: Path, story: str, kill: str = "") -> tuple[int, str]:
    """Run `program` in a process; return its exit status and what it printed."""
    start = "import sys; from tests.integrations.scenario import program; program(*sys.argv[1:])"
    command = [sys.executable, "-c", start, place_of(driver), str(folder), story, kill]
    module = place_of(driver).partition(":")[0]
    done = warm.run(command, imports=(module,), cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode in {0, -signal.SIGKILL, -signal.SIGALRM}, done.stderr
    return done.returncode, done.stdout.strip()


class Conformance:
    """What every adapter passes. A subclass states its driver."""

    driver: ClassVar[Driver]

    @pytest.fixture
    def grace(self, tmp_path):
        with contextlib.closing(open_grace(tmp_path)) as opened:
            yield opened

    def needs(self, part: str) -> None:
        if part in self.driver.lacks:
            pytest.skip(f"{self.driver.framework} has no {part}")

    def shop(self, grace: gk.Grace, story: str, **case: Any) -> Shop:
        return Shop(self.driver, Path(grace.settings.store.removeprefix("sqlite:///")).parent, story, grace, **case)

    @pytest.mark.parametrize("stream", [False, True])
    def test_the_whole_story(self, grace, stream):
        """Parallel calls, a failing tool tried again, two gated calls in a turn: one approved, one refused, and the reason is read."""
        if stream:
            self.needs("stream")
        shop = self.shop(grace, "whole")
        asked = shop.run(stream=stream)
        assert (None, True, []) == (asked.error, asked.waiting, shop.effects)
        grace.approvals.approve(shop.pending["pay"].id, by="ana")
        grace.approvals.reject(shop.pending["refund"].id, by="ana", reason=REASON)
        ran = shop.run(asked.saved, stream=stream)
        assert (None, "done", False, [PAID]) == (ran.error, ran.text, ran.waiting, shop.effects)
        assert "moved 5 to ann" in shop.heard["p1"]
        assert REASON in shop.heard["r1"]
        assert WHOLE | {"runs": [(self.driver.framework, "completed", False)]} == outline(grace)

    @pytest.mark.parametrize("stream", [False, True])
    def test_the_framework_behaves_as_without_the_adapter(self, grace, tmp_path_factory, stream):
        """The same texts for the model and the same end."""
        if stream:
            self.needs("stream")
        bare = Shop(self.driver, tmp_path_factory.mktemp("bare"), "look", None)
        shop = self.shop(grace, "look")
        assert bare.run(stream=stream) == shop.run(stream=stream) == Ran("done")
        assert bare.heard == shop.heard

    def test_an_exception_of_the_framework_is_the_same(self, grace, tmp_path_factory):
        """Its type and its message."""
        bare = Shop(self.driver, tmp_path_factory.mktemp("bare"), "no model", None).run()
        assert bare.error is not None
        assert repr(bare.error) == repr(self.shop(grace, "no model").run().error)

    @pytest.mark.parametrize("story", ["handoff", "nested"])
    def test_a_gated_tool_of_another_agent(self, grace, story):
        """Behind a handoff, and inside of an agent that is a tool."""
        self.needs(story)
        shop = self.shop(grace, story)
        asked = shop.run()
        assert (None, True, []) == (asked.error, asked.waiting, shop.effects)
        grace.approvals.approve(shop.pending["pay"].id, by="ana")
        ran = shop.run(asked.saved)
        assert (None, "done", [PAID]) == (ran.error, ran.text, shop.effects)
        nested = story == "nested"
        assert {
            "runs": [
                (self.driver.framework, "completed", inside) for inside in ((False, True) if nested else (False,))
            ],
            "calls": [*LOOKED[:nested], PAID_ANN],
            "decisions": [("pay", "executed")],
            "ends": [(Case.prompt, "done")],
        } == outline(grace)

    def test_a_refusal_behind_a_nested_agent(self, grace):
        """The reason reaches the model of the agent that asked."""
        self.needs("nested")
        shop = self.shop(grace, "nested")
        asked = shop.run()
        grace.approvals.reject(shop.pending["pay"].id, by="ana", reason=REASON)
        ran = shop.run(asked.saved)
        assert (None, "done", []) == (ran.error, ran.text, shop.effects)
        assert REASON in shop.heard["p1"]

    def test_a_refusal_holds_for_the_same_call_under_another_id(self, grace):
        """A model that insists is not asked about again."""
        shop = self.shop(grace, "again")
        asked = shop.run()
        grace.approvals.reject(shop.pending["pay"].id, by="ana", reason=REASON)
        ran = shop.run(asked.saved)
        assert (None, "done", [], {}) == (ran.error, ran.text, shop.effects, shop.pending)
        assert REASON in shop.heard["p2"]

    def test_an_edit_that_removes_an_argument(self, grace):
        """The tool gets its own default, not the model's value."""
        shop = self.shop(grace, "pay")
        asked = shop.run()
        grace.approvals.edit(shop.pending["pay"].id, {"amount": 4, "memo": None}, by="ana")
        ran = shop.run(asked.saved)
        assert (None, "done", [PAID | {"amount": 4, "memo": ""}]) == (ran.error, ran.text, shop.effects)

    def test_a_resumed_agent_still_waits(self, grace):
        """Nothing runs without a decision, however often the program goes on, and no second request is filed."""
        shop = self.shop(grace, "pay")
        asked = shop.run()
        (request,) = grace.approvals.pending()
        again = shop.run(asked.saved)
        assert (None, True, []) == (again.error, again.waiting, shop.effects)
        assert [request.id] == [each.id for each in grace.approvals.pending()]

    def test_the_same_approval_twice(self, grace):
        """The saved state is resumed twice; the second time gets the earlier result."""
        shop = self.shop(grace, "pay")
        asked = shop.run()
        grace.approvals.approve(shop.pending["pay"].id, by="ana")
        first, second = shop.run(asked.saved), shop.run(asked.saved)
        assert (None, "done", None, [PAID]) == (first.error, first.text, second.error, shop.effects)
        assert "moved 5 to ann" in shop.heard["p1"]

    def test_conversations_with_equal_call_ids(self, grace):
        """The approval of one never runs the call of the other."""
        one, other = (self.shop(grace, "pay", session=session) for session in ("s1", "s2"))
        asked = one.run()
        (request,) = grace.approvals.pending()
        asked_too = other.run()
        assert 2 == len(grace.approvals.pending())
        grace.approvals.approve(request.id, by="ana")
        waits = other.run(asked_too.saved)
        assert (None, True, []) == (waits.error, waits.waiting, other.effects)
        assert ("done", [PAID]) == (one.run(asked.saved).text, one.effects)

    @pytest.mark.parametrize("stream", [False, True])
    def test_a_reviewer_of_the_process(self, tmp_path, stream):
        """It is asked at once, and nothing pauses; what raises in it refuses the call."""
        if stream:
            self.needs("stream")
        answers = iter([gk.InterventionResponse(gk.InterventionAction.PROCEED), RuntimeError("no line to the bank")])

        def reviewer(_request: gk.InterventionRequest) -> gk.InterventionResponse:
            answer = next(answers)
            if isinstance(answer, Exception):
                raise answer
            return answer

        with contextlib.closing(open_grace(tmp_path, reviewer)) as grace:
            shop, broken = (self.shop(grace, "pay", session=session) for session in ("s1", "s2"))
            assert (Ran("done"), [PAID]) == (plain(shop.run(stream=stream)), shop.effects)
            assert (Ran("done"), [PAID]) == (plain(broken.run(stream=stream)), broken.effects)
            assert "Not run" in broken.heard["p1"]

    def test_a_timeout(self, tmp_path):
        """A reviewer who does not answer in time has not agreed."""
        ended = threading.Event()
        with contextlib.closing(open_grace(tmp_path, lambda _request: ended.wait(60))) as grace:
            shop = self.shop(grace, "pay")
            try:
                ran = shop.run(gates={"pay": gk.Policy(floor="confirm", timeout=0.05)})
            finally:
                ended.set()
            assert (Ran("done"), []) == (plain(ran), shop.effects)
            assert "Not run" in shop.heard["p1"]

    def test_an_inbox_that_is_not_answered_in_time(self, tmp_path):
        """The request expires while the agent is away."""
        with contextlib.closing(open_grace(tmp_path, gk.InboxReviewer(deadline=0.05))) as grace:
            shop = self.shop(grace, "pay")
            asked = shop.run()
            while grace.approvals.pending():
                ended = threading.Event()
                ended.wait(0.01)
            ran = shop.run(asked.saved)
            assert (Ran("done"), []) == (plain(ran), shop.effects)
            assert "Not run" in shop.heard["p1"]

    @pytest.mark.parametrize("hook", ["open_tool", "model_call", "close", "call.close", "call.fail"])
    def test_recording_that_raises(self, grace, monkeypatch, hook):
        """The agent's results are the same; only the trace lacks something."""
        call, _, method = hook.rpartition(".")
        monkeypatch.setattr(type(probe(grace)[1 if call else 0]), method, broken)
        shop = self.shop(grace, "look")
        assert (Ran("done"), None) == (plain(ran := shop.run()), ran.error)
        assert "bob is a customer" in shop.heard["l2"]

    def test_a_gate_that_raises(self, grace, monkeypatch):
        """Whatever breaks in it, the action does not run."""
        for owner in (type(probe(grace)[0]), type(grace.action("pay", schema={}, policy="confirm"))):
            for name in ("decide", "adecide"):
                monkeypatch.setattr(owner, name, broken)
        shop = self.shop(grace, "pay")
        shop.run()
        assert [] == shop.effects

    def test_a_locked_store(self, grace, tmp_path, monkeypatch):
        """The request cannot be filed: not run, and the agent goes on. The claim cannot be written: not run, and the decision stays."""
        connect = sqlite3.connect
        monkeypatch.setattr(sqlite3, "connect", lambda *args, **more: connect(*args, **more | {"timeout": 0.05}))
        shop, later = (self.shop(grace, "pay", session=session) for session in ("s1", "s2"))
        asked = later.run()
        grace.approvals.approve(later.pending["pay"].id, by="ana")
        grace.flush()
        with contextlib.closing(sqlite3.connect(tmp_path / "traces.db", isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            ran = shop.run()
            assert (Ran("done"), []) == (plain(ran), shop.effects)
            assert "Not run" in shop.heard["p1"]
            later.run(asked.saved)
            assert [] == later.effects
            other.execute("ROLLBACK")
        assert ("done", [PAID]) == (later.run(asked.saved).text, later.effects)

    @pytest.mark.parametrize("place", ["", *EARLY, *LATE])
    def test_a_process_that_is_killed(self, tmp_path, place):
        """Another process goes on: the effect is there once, or the model reads that its outcome is unknown.

        `benchmarks/adapter_kills.py` kills at any moment, too, hundreds of times.
        """
        kill = Kill(self.driver, tmp_path, place)
        assert (bool(place), []) == (kill.struck, kill.problems)
        expected = {"claimed": ("unknown", 0), "effect": ("unknown", 1)}.get(place, ("done", 1))
        assert expected == (kill.state, kill.effects)


class Kill:
    """One kill, and what another process makes of it.

    Args:
        place: one of `EARLY` and `LATE`, none for no kill, or seconds after which the process is killed.
        early: whether the process that asks is killed, and not the one that goes on after the approval.
    """

    def __init__(self, driver: Driver, folder: Path, place: str, *, early: bool | None = None) -> None:
        early = place in EARLY if early is None else early
        self.problems: list[str] = []
        shop = Shop(driver, folder, "pay", None)
        statuses = [restart(driver, folder, "pay", place if early else "")[0]]
        with contextlib.closing(open_grace(folder)) as grace:
            if not grace.approvals.pending():  # killed before it was written
                statuses.append(restart(driver, folder, "pay")[0])
            (request,) = grace.approvals.pending()
            self._expect("something ran without a decision", not shop.effects)
            grace.approvals.approve(request.id, by="ana")
            if not early:
                statuses.append(restart(driver, folder, "pay", place)[0])
            ended = restart(driver, folder, "pay")
            self.struck = any(statuses)
            self._expect(f"the last process ended with {ended}", ended == (0, "done"))
            self.state, self.effects = str(grace.approvals.get(request.id).state), len(shop.effects)
        heard = shop.heard.get("p1", "")
        self._expect("paid twice", self.effects < 2)
        self._expect(f"{self.effects} effects, and its state is {self.state}", (self.state, self.effects) in ENDS)
        self._expect(f"the model heard {heard!r}, and its state is {self.state}", HEARD.get(self.state, "?") in heard)

    def _expect(self, problem: str, holds: bool) -> None:
        if not holds:
            self.problems.append(problem)


def plain(ran: Ran) -> Ran:
    """Without what only a resumed program needs; with the error that it ended with, if any."""
    if ran.error is not None:
        raise ran.error
    return Ran(ran.text, ran.waiting)


def probe(grace: gk.Grace) -> Any:
    """A live run and a call of the kind that adapters open."""
    run = grace.open_run("probe")
    call = run.open_tool("probe", {})
    call.drop()
    run.close()
    return run, call


def broken(*_args: object, **_kwargs: object) -> Any:
    raise RuntimeError("a hook that is broken")
