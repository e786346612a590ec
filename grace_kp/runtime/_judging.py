"""Judgements of finished runs, and of runs that stand before a gate: made by a few threads of their own, never by the agent's.

A run that has ended is judged while others go on; the writer takes it up when the judgement is there. What cannot be judged (no answer,
no judge, too many waiting, the process ends) says so in the trace.
"""

from __future__ import annotations

import queue
import threading
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grace_kp.confidence import ConfidenceFactors, Evaluation, factors_from_trace
from grace_kp.trace import describe_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grace_kp.confidence import ConfidenceCalculator, ConfidenceScore
    from grace_kp.judge import LLMSelfEvaluator, SourceAgreementCalculator, SpendingLimit
    from grace_kp.levels import InterventionLevel

MODES = ("always", "when_needed", "never")
MAX_WAITING = 256
MAX_SOURCE_TEXTS = 20
NOT_NEEDED = "not needed: no answer could change the level"
NEVER = "not asked for"


class Judgement:
    """What judging a run has come to, or will."""

    __slots__ = ("_result", "mode")

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self._result: Result | None = None

    @property
    def is_done(self) -> bool:
        """Whether it is there."""
        return self._result is not None

    def end(self, result: Result) -> None:
        """It is there; the first result counts."""
        if self._result is None:
            self._result = result

    def put_into(self, factors: ConfidenceFactors, *, cautious: bool) -> ConfidenceFactors:
        """The factors with what was judged and measured."""
        result = self._result
        if result is None:
            return factors
        if result.agreement is not None:
            factors = with_agreement(factors, result.agreement)
        if result.own is None and result.coverage is None:
            return factors
        from grace_kp.confidence import with_judgements

        return with_judgements(factors, result.own, result.coverage, cautious=cautious)

    def to_dict(self) -> dict[str, Any]:
        """What was evaluated, what was a fallback and why, and what it cost; as it stands in a trace."""
        result = self._result or Result(skipped="not judged")
        return {"mode": self.mode, **result.to_dict()}


class Result:
    """Judgements, or the reason why there are none."""

    __slots__ = ("agreement", "coverage", "own", "skipped")

    def __init__(
        self,
        own: Evaluation | None = None,
        coverage: Evaluation | None = None,
        agreement: Evaluation | None = None,
        skipped: str | None = None,
    ) -> None:
        self.own, self.coverage, self.agreement, self.skipped = own, coverage, agreement, skipped

    def to_dict(self) -> dict[str, Any]:
        """As it stands in a trace."""
        out: dict[str, Any] = {}
        if self.skipped is not None:
            out["skipped"] = self.skipped
        made = {"self_evaluation": self.own, "coverage": self.coverage}
        asked = [one for one in made.values() if one is not None]
        for name, one in (*made.items(), ("source_agreement", self.agreement)):
            if one is not None:
                out[name] = one.to_dict()
        if asked and self.coverage is None:
            out["coverage_skipped"] = NOT_NEEDED
        if asked:
            # Judgements of one call share its time; what the call has cost is told with the first of them.
            calls = asked[:1] if _is_combined(asked) else asked
            tokens = [count for one in asked for count in (one.tokens_in, one.tokens_out) if count is not None]
            out["calls"] = sum(one.attempts for one in calls)
            out["tokens"] = sum(tokens) if tokens else None
            out["latency_ms"] = round(sum(one.latency_ms or 0.0 for one in calls), 3)
        return out


def _is_combined(asked: list[Evaluation]) -> bool:
    return len(asked) == 2 and asked[0].latency_ms == asked[1].latency_ms and asked[0].attempts == asked[1].attempts


def with_agreement(factors: ConfidenceFactors, measured: Evaluation) -> ConfidenceFactors:
    """The factors with the agreement of the sources; a fallback is marked as not made."""
    if factors.source_count < 2:
        return factors
    return replace(factors, source_agreement=measured.score, agreement_evaluated=not measured.fallback)


class RunJudge:
    """Judges runs with one evaluator, in threads that are started when they are first needed."""

    def __init__(
        self,
        *,
        evaluator: LLMSelfEvaluator | None,
        missing: str,
        mode: str,
        calculator: ConfidenceCalculator,
        agreement: SourceAgreementCalculator | None = None,
        workers: int = 4,
        limit: SpendingLimit | None = None,
    ) -> None:
        self.evaluator = evaluator
        self.missing = missing
        self.mode = mode
        self.limit = limit
        self._calculator = calculator
        self._agreement = agreement
        self._workers = workers
        self.landed: Callable[[], Any] = lambda: None
        self._fresh()

    def _fresh(self) -> None:
        self._tasks: queue.SimpleQueue[Callable[[], Any]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._waiting: dict[int, Judgement] = {}
        self._given_up = False

    @property
    def is_active(self) -> bool:
        """Whether anything may be asked of a model when a run has ended."""
        return (self.evaluator is not None and self.mode != "never") or self._agreement is not None

    def after_fork(self) -> None:
        """In a forked child the threads are gone, and what they were at is the parent's."""
        self._fresh()

    def begin(self, document: dict[str, Any], hit_texts: Sequence[str]) -> tuple[ConfidenceFactors, Judgement]:
        """Set the judgement of a finished run going; it is done at once where there is nothing to ask."""
        factors = factors_from_trace(document)
        judgement = Judgement(self.mode)
        texts = list(hit_texts)
        measures = self._agreement is not None and factors.source_count > 1 and len(texts) > 1
        why_not = self._why_not(document)
        if not measures and (why_not is not None or (self.mode == "when_needed" and not self._could_change(factors))):
            judgement.end(Result(skipped=why_not or NOT_NEEDED))
            return factors, judgement
        with self._lock:
            full = len(self._waiting) >= MAX_WAITING or self._given_up
            if not full:
                self._waiting[id(judgement)] = judgement
        if full:
            why = "the process ended first" if self._given_up else f"more than {MAX_WAITING} runs wait for a judgement"
            failed = Evaluation.failed(why, attempts=0)
            judgement.end(Result(failed, failed))
            return factors, judgement
        query, answer, sources = _material(document)
        run = document["id"]

        def work() -> None:
            result = self._made(factors, why_not, texts if measures else [], query, answer, sources, run)
            judgement.end(result)
            with self._lock:
                self._waiting.pop(id(judgement), None)
            self.landed()

        self._start(work)
        return factors, judgement

    def _asked(
        self,
        mode: str,
        factors: ConfidenceFactors,
        level: Callable[[float], InterventionLevel] | None,
        material: tuple[str, str, list[str]],
        run: str | None,
    ) -> tuple[Evaluation, Evaluation | None]:
        """Both judgements; the second, where it is a call of its own, only if it can still matter."""
        evaluator = self.evaluator
        assert evaluator is not None  # noqa: S101
        query, answer, sources = material
        if mode != "when_needed" or evaluator.combined:
            return evaluator.evaluate_both(query, answer, sources, run=run)
        from grace_kp.confidence import could_change, with_judgements

        own = evaluator.evaluate_detailed(query, answer, sources, run=run)
        judged = with_judgements(factors, own, None, cautious=self._calculator.profile == "strict")
        if not could_change(self._calculator, judged, level, own_is_known=True):
            return own, None
        return own, evaluator.cover_detailed(query, answer, run=run)

    def _could_change(
        self, factors: ConfidenceFactors, level: Callable[[float], InterventionLevel] | None = None
    ) -> bool:
        from grace_kp.confidence import could_change

        return could_change(self._calculator, factors, level)

    def _why_not(self, document: dict[str, Any]) -> str | None:
        if self.evaluator is None:
            return self.missing
        if self.mode == "never":
            return NEVER
        if document["grace"].get("status") != "completed":
            return "the run did not complete"
        if not document["outcome"].get("result_summary"):
            return "the run gave no answer to judge"
        return None

    def _made(
        self,
        factors: ConfidenceFactors,
        why_not: str | None,
        texts: list[str],
        query: str,
        answer: str,
        sources: list[str],
        run: str,
    ) -> Result:
        agreement = None
        try:
            if texts and self._agreement is not None:
                agreement = self._agreement.calculate_detailed(texts)
                factors = with_agreement(factors, agreement)
            if why_not is None and self.mode == "when_needed" and not self._could_change(factors):
                why_not = NOT_NEEDED
            if why_not is not None or self.evaluator is None:
                return Result(agreement=agreement, skipped=why_not)
            own, coverage = self._asked(self.mode, factors, None, (query, answer, sources), run)
            return Result(own, coverage, agreement)
        except Exception as error:  # noqa: BLE001 — as everywhere: a judgement that fails is a fallback
            failed = Evaluation.failed(": ".join(describe_error(error, 300)), attempts=0)
            return Result(failed, failed, agreement)

    def _start(self, work: Callable[[], None]) -> None:
        self._tasks.put(work)
        with self._lock:
            if self._threads < min(self._workers, len(self._waiting)):
                self._threads += 1
                thread = threading.Thread(
                    target=_work, args=(weakref.ref(self), self._tasks), name="grace_kp judge", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError:  # no thread can be started any more when the interpreter exits
                    self._threads -= 1
        if not self._threads:
            self.give_up()

    def give_up(self) -> None:
        """End everything that waits with a fallback; what comes later is not heard."""
        with self._lock:
            self._given_up = True
            waiting, self._waiting = list(self._waiting.values()), {}
        failed = Evaluation.failed("the process ended first", attempts=0)
        for judgement in waiting:
            judgement.end(Result(failed, failed))
        self.landed()

    def before_gate(
        self,
        mode: str,
        factors: ConfidenceFactors,
        level: Callable[[float], InterventionLevel],
        material: Callable[[], tuple[str, str, list[str]]],
        run: str | None,
    ) -> tuple[ConfidenceScore, dict[str, Any]]:
        """The confidence that a gate acts on, judged where the gate asks for it, and what it cost; waits for the judge."""
        calculator = self._calculator
        result = Result()
        if mode == "never" or self.evaluator is None:
            result.skipped = NEVER if mode == "never" else self.missing
        elif mode == "when_needed" and not self._could_change(factors, level):
            result.skipped = NOT_NEEDED
        else:
            result.own, result.coverage = self._asked(mode, factors, level, material(), run)
            from grace_kp.confidence import with_judgements

            factors = with_judgements(factors, result.own, result.coverage, cautious=calculator.profile == "strict")
        return calculator.calculate(factors), {"mode": mode, **result.to_dict()}


def _material(document: dict[str, Any]) -> tuple[str, str, list[str]]:
    """Question, answer and sources of a finished run."""
    steps = document["steps"]
    sources: list[str] = []
    searched: list[str] = []
    for call in document["grace"].get("calls", ()):
        number = call.get("observation")
        if not isinstance(number, int) or call.get("status") != "ok" or number >= len(steps):
            continue
        content = steps[number].get("content")
        if isinstance(content, str) and content:
            (searched if "search" in call else sources).append(content)
    return (
        document["task"]["objective"],
        document["outcome"]["result_summary"],
        (searched or sources)[:MAX_SOURCE_TEXTS],
    )


def _work(reference: weakref.ref[RunJudge], tasks: queue.SimpleQueue[Callable[[], Any]]) -> None:
    while True:
        try:
            task = tasks.get(timeout=30.0)
        except queue.Empty:
            judge = reference()
            if judge is None:
                return
            del judge
            continue
        task()
        del task
