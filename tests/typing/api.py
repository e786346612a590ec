"""The public names as a user writes them. Never run: a strict type checker reads it, and has nothing to say."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping
from typing import Any, assert_type

import grace_kp as gk
from grace_kp.testing import FakeClock, ScriptedReviewer, capture, make_grace

grace = gk.Grace(store="memory:", domain="finance", thresholds=gk.Thresholds(), evaluator=None, reviewer=None)


# What is recorded keeps its type, with and without parentheses.


@grace.agent
def analyst(ticker: str, *, depth: int = 1) -> str:
    return ticker * depth


@grace.agent(domain="finance", objective="Analyse {ticker}", name="analyst", release=False)
def configured(ticker: str) -> list[str]:
    return [ticker]


@grace.agent(objective=lambda ticker: f"Analyse {ticker}")
def described(ticker: str) -> None: ...


@grace.tool
async def fetch(url: str, retries: int = 3) -> bytes:
    return url.encode() * retries


@grace.tool(name="fetch", kind="search")
async def fetch_named(url: str) -> bytes:
    return url.encode()


@grace.retriever
def search(query: str) -> list[dict[str, Any]]:
    return [{"text": query, "score": 0.9, "source": "a.md"}]


@grace.retriever(name="find")
def find(query: str) -> list[tuple[str, float]]:
    return [(query, 0.9)]


@grace.tool
def stream(n: int) -> Iterator[int]:
    yield from range(n)


@grace.agent
def talk(question: str) -> Generator[str, int, bool]:
    answer = yield question
    return answer > 0


@grace.agent
async def tokens(question: str) -> AsyncIterator[str]:
    yield question


@grace.agent(domain="code")
async def exchange(question: str) -> AsyncGenerator[str, int]:
    number = yield question
    yield str(number)


class Desk:
    @grace.tool
    def look_up(self, customer: str) -> int:
        return len(customer)

    @grace.agent(name="answer")
    async def answer(self, question: str) -> str:
        return question

    @staticmethod
    @grace.tool
    def rate(currency: str) -> float:
        return float(len(currency))

    @classmethod
    @grace.tool
    def named(cls, name: str) -> str:
        return name


async def recorded() -> None:
    assert_type(analyst("ACME", depth=2), str)
    assert_type(configured("ACME"), list[str])
    assert_type(described("ACME"), None)
    assert_type(await fetch("https://example.com", retries=1), bytes)
    assert_type(await fetch_named("https://example.com"), bytes)
    assert_type(search("refunds"), list[dict[str, Any]])
    assert_type(find("refunds"), list[tuple[str, float]])
    assert_type(stream(3), Iterator[int])
    assert_type(talk("sure?"), Generator[str, int, bool])
    assert_type(talk("sure?").send(1), str)
    assert_type(exchange("sure?"), AsyncGenerator[str, int])
    async for token in tokens("hello"):
        assert_type(token, str)
    desk = Desk()
    assert_type(desk.look_up("Ana"), int)
    assert_type(await desk.answer("When?"), str)
    assert_type(Desk.rate("EUR"), float)
    assert_type(Desk.named("x"), str)


# A gate may skip the action, so None is added to what comes back.


@grace.gate
def pay(customer: str, euros: int) -> str:
    return f"{customer} {euros}"


@grace.gate(floor="confirm")
@grace.tool
def pay_back(customer: str, *, euros: int) -> str:
    return f"{customer} {euros}"


@grace.gate(floor=gk.InterventionLevel.ESCALATE, name="wire", timeout=5.0)
async def wire(euros: int) -> int:
    return euros


@grace.gate(floor="confirm", identity={"client": "url", "account": lambda account: account.number})
def charge(client: object, account: object) -> str:
    return ""


@grace.gate(identity=lambda owner: owner.number)
def refund(self: object) -> str:
    return ""


@grace.gate(key="refund:{invoice}", ignore=("session",), sealed=("iban",), version="2", reviewer=gk.InboxReviewer("4h"))
def pay_out(invoice: str, iban: str, session: object = None) -> float:
    return 1.0


@grace.gate
async def send(to: str) -> bytes:
    return to.encode()


@grace.gate(floor="deny")
def forbidden() -> None: ...


class Teller:
    @grace.gate(floor="confirm")
    def hand_out(self, euros: int) -> list[int]:
        return [euros]


async def gated() -> None:
    assert_type(pay("Ana", 5), str | None)
    assert_type(pay_back("Ana", euros=5), str | None)
    assert_type(await wire(5), int | None)
    assert_type(pay_out("A1", "DE"), float | None)
    assert_type(grace.approvals.approve("ap-1", by="ana"), gk.Approval)
    assert_type(await grace.approvals.aapprove("ap-1", by="ana"), gk.Approval)
    assert_type(gk.idempotency_key(), str)
    assert_type(await send("Ana"), bytes | None)
    assert_type(Teller().hand_out(5), list[int] | None)
    forbidden()


# The same on the default runtime.


@gk.agent
def root(question: str) -> str:
    return question


@gk.agent(domain="code")
def root_named(question: str) -> str:
    return question


@gk.tool
def add(a: int, b: int) -> int:
    return a + b


@gk.retriever
async def look(query: str) -> list[str]:
    return [query]


@gk.gate(floor="notify")
def act(n: int) -> int:
    return n


async def by_default() -> None:
    assert_type(gk.configure(store="memory:", profile="strict"), gk.Grace)
    assert_type(gk.default(), gk.Grace)
    assert_type(root("?"), str)
    assert_type(root_named("?"), str)
    assert_type(add(1, 2), int)
    assert_type(await look("?"), list[str])
    assert_type(act(1), int | None)
    gk.thought("hm")
    gk.outcome(confidence=0.9, success=True)


# Threads: what is carried keeps its signature.


def work(item: int, *, fast: bool = False) -> str:
    return str(item)


async def work_async(item: int) -> str:
    return str(item)


async def carried() -> None:
    assert_type(gk.propagate(work)(1, fast=True), str)
    assert_type(await gk.propagate(work_async)(1), str)
    undo = gk.instrument_threads()
    assert_type(undo, Callable[[], None])
    undo()


# Runs, traces, figures.


async def used() -> None:
    with grace.run("look around", domain="code") as run:
        grace.thought("so many files")
        grace.outcome(confidence=0.5, success=False, result="none")
    assert_type(run, gk.Run)
    assert_type(run.trace, gk.ReasoningTrace)
    async with grace.run("again") as again:
        assert_type(again.id, str)
    with grace.collect() as traces:
        assert_type(traces, list[gk.ReasoningTrace])
    assert_type(grace.flush(timeout=1.0), bool)
    assert_type(traces[0].to_dict(), dict[str, Any])
    assert_type(traces[0].steps[0].content, str | None)
    assert_type(traces[0].metadata.quality_score, int | float)
    assert_type(traces[0].status, str | None)
    assert_type(traces[0].confidence, gk.ConfidenceRecord | None)
    if traces[0].confidence is not None:
        assert_type(traces[0].confidence.score, float)
        assert_type(traces[0].confidence.breakdown["search_quality"], float | None)
        assert_type(traces[0].confidence.penalties, tuple[str, ...])
    assert_type(traces[0].value, gk.ValueRecord | None)
    assert_type(traces[0].decisions, list[gk.DecisionRecord])
    assert_type(traces[0].decisions[0].level, gk.InterventionLevel | None)
    assert_type(traces[0].decisions[0].arguments, Mapping[str, Any])
    assert_type(traces[0].calls[0].latency_ms, float | None)
    assert_type(traces[0].scores[0].passed, bool | None)
    assert_type(traces[0].tags, tuple[str, ...])
    assert_type(traces[0].user, str | None)
    assert_type(traces[0].run_metadata, Mapping[str, Any])
    assert_type(traces[0].usage, Mapping[str, int])
    assert_type(traces[0].children, tuple[str, ...])
    assert_type(grace.thresholds, gk.Thresholds)
    assert_type(grace.thresholds.to_dict(), dict[str, float | str])
    assert_type(gk.ReasoningTrace.model_validate({}), gk.ReasoningTrace)
    assert_type(gk.evaluate_value(traces[0]), float)
    assert_type(gk.ValueScorer().score(traces[0]), gk.ValueScore)

    calculator = gk.ConfidenceCalculator(profile="strict", thresholds=gk.Thresholds(silent=0.95))
    score = calculator.calculate(gk.ConfidenceFactors(search_result_count=3, search_max_score=0.9))
    assert_type(score, gk.ConfidenceScore)
    assert_type(score.score, float)
    decision = calculator.decide_action(score)
    assert_type(decision, gk.ActionDecision)
    assert_type(decision.level, gk.InterventionLevel)

    @grace.on_complete
    def told(trace: gk.ReasoningTrace) -> None: ...

    with capture() as captured:
        analyst("ACME")
    assert_type(captured.only, gk.ReasoningTrace)
    assert_type(make_grace(clock=FakeClock(), reviewer=ScriptedReviewer("proceed")), gk.Grace)


def review(request: gk.InterventionRequest) -> gk.InterventionResponse:
    return gk.InterventionResponse(action=gk.InterventionAction.PROCEED, reviewer="ana")


async def review_later(request: gk.InterventionRequest) -> gk.InterventionResponse:
    return gk.InterventionResponse(action=gk.InterventionAction.CANCEL)


asked = gk.Grace(reviewer=review, policies={"delete_*": "confirm"})
asked_later = gk.Grace(reviewer=review_later)

try:
    pay("Ana", 5)
except gk.ActionRedirected as error:
    assert_type(error.user_input, str)
except gk.ActionNotApproved as error:
    print(error.decision, error.request, error.response)


# A decorated function goes wherever the plain one would.


def takes(function: Callable[[int, int], int]) -> None: ...


def takes_async(function: Callable[[int], Coroutine[Any, Any, int | None]]) -> None: ...


takes(add)
takes_async(wire)


# Sub-packages are attributes, without an import of their own.

assert_type(gk.scorers.Suite.preset("standard"), gk.scorers.Suite)
assert_type(gk.scorers.OperationAccuracy().score(gk.scorers.EditResult([]), gk.scorers.EditExpectation()), float)
assert_type(gk.rubric.converged([]), bool)
assert_type(gk.testing.make_grace(), gk.Grace)
handler = gk.integrations.langchain.GraceCallbackHandler(grace)
assert_type(handler, gk.integrations.langchain.GraceCallbackHandler)
