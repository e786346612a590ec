"""What happens when a run has ended, in this order: confidence, value score, hooks, store.

It runs on the writer's thread (or in a thread that waits for it), one run at a time, in the order in which the runs ended.
"""

from __future__ import annotations

import inspect
import threading
from typing import TYPE_CHECKING, Any

from grace_kp.record import Documents, Recorder, Run, note, to_json
from grace_kp.trace._render import storable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grace_kp.confidence import ConfidenceCalculator, ConfidenceScore
    from grace_kp.store import JournalEntry, Record
    from grace_kp.trace import ReasoningTrace
    from grace_kp.value import ValueScorer

    Hook = Callable[[ReasoningTrace], Any]

MAX_SEARCH_TEXT = 20_000


class Lost:
    """A run whose process died, as its journal left it."""

    __slots__ = ("rows",)

    def __init__(self, rows: Sequence[JournalEntry]) -> None:
        self.rows = rows

    @property
    def journaled_id(self) -> str:
        """The run whose journal is done with when its trace is stored."""
        return self.rows[0].run_id


class Assessor:
    """Fills in the two figures of a document: the confidence, then the value score."""

    def __init__(self, calculator: ConfidenceCalculator, scorer: ValueScorer) -> None:
        self.calculator = calculator
        self.scorer = scorer

    def assess(self, document: dict[str, Any], *, own_confidence: float | None = None) -> None:
        """Set `outcome.confidence` and `metadata.quality_score`, and say under `grace` how they came about."""
        from grace_kp.confidence import factors_from_trace

        score = self.calculator.calculate(factors_from_trace(document))
        grace = document.setdefault("grace", {})
        grace.pop("unscored", None)
        grace["confidence"] = told = confidence_record(score, self.calculator.profile)
        if own_confidence is not None:
            told["own"] = own_confidence
        document["outcome"]["confidence"] = score.score if own_confidence is None else own_confidence
        self.value(document)

    def value(self, document: dict[str, Any]) -> None:
        """Set `metadata.quality_score` from what the document says, its confidence included."""
        value = self.scorer.score(document)
        document["metadata"]["quality_score"] = value.score
        document.setdefault("grace", {})["value"] = told = {
            "score": value.score,
            "complexity": value.complexity,
            "novelty": value.novelty,
            "tool_diversity": value.tool_diversity,
            "outcome_confidence": value.outcome_confidence,
            "profile": value.profile,
            "overrides": list(value.overrides),
        }
        if value.novelty_fallback is not None:
            told["novelty_fallback"] = value.novelty_fallback


def confidence_record(score: ConfidenceScore, profile: str) -> dict[str, Any]:
    """A confidence as it stands in a trace: the score, its parts, its penalties, and what was not evaluated."""
    return {
        "score": score.score,
        "level": score.level,
        "profile": profile,
        "reason": score.reason,
        "breakdown": dict(score.breakdown),
        "penalties": list(score.penalties_applied),
        "not_evaluated": list(score.not_evaluated),
    }


class Pipeline:
    """From an ended run to a stored record."""

    def __init__(self, *, documents: Documents, assessor: Assessor, sample_rate: float, recorder: Recorder) -> None:
        self.documents = documents
        self.assessor = assessor
        self.sample_rate = sample_rate
        self.recorder = recorder
        self.hooks: list[Hook] = []
        self.collectors: list[list[ReasoningTrace]] = []
        self.sampled_out = 0
        self._lock = threading.RLock()  # a run's steps are built in one thread at a time, journal or finish

    def after_fork(self) -> None:
        """In a forked child no other thread is there to give the lock back."""
        self._lock = threading.RLock()

    def settle(self, item: Run | Lost) -> Record | None:
        """The finished trace of a run, as the store keeps it; None where it is sampled out."""
        with self._lock:
            if isinstance(item, Lost):
                document = self.documents.lost([entry.data for entry in item.rows])
                own, keep, capture = None, False, None
            else:
                if self._sampled_out(item):
                    self.sampled_out += 1
                    return None
                document = self.documents.finished(item)
                own, keep, capture = item.own_confidence, item.keep, item.capture
                item.events = []  # what it held is in the document now
                item.steps.release()
            self.assessor.assess(document, own_confidence=own)
            record = record_of(document)
            if isinstance(item, Run) and (keep or capture is not None):
                item.document = record.data
        if self.hooks or self.collectors:
            self._tell(record.data)
        return record

    def journal(self) -> list[JournalEntry]:
        """What has come of the open runs since the last time."""
        from grace_kp.store import JournalEntry

        entries: list[JournalEntry] = []
        for run in list(self.recorder.open_runs):
            with self._lock:
                if run.open:
                    entries += [JournalEntry(run.id, number, data) for number, data in self.documents.journal(run)]
        return entries

    def _sampled_out(self, run: Run) -> bool:
        # Failed and gated runs are always kept; the draw is made once per root, so that a run is kept or left out whole.
        if self.sample_rate >= 1 or run.status != "completed" or run.decisions or run.own_success is False:
            return False
        root = run
        while root.via is not None:
            root = root.via.run
        if root.sample is None:
            import random

            root.sample = random.random()  # noqa: S311
        return root.sample >= self.sample_rate

    def _tell(self, data: bytes) -> None:
        from grace_kp.trace import ReasoningTrace

        trace = ReasoningTrace.model_validate_json(data)
        for hook in tuple(self.hooks):
            try:
                answer = hook(trace)
                if inspect.iscoroutine(answer):
                    import asyncio

                    asyncio.run(answer)
            except Exception as error:  # noqa: BLE001
                note(f"hook {getattr(hook, '__name__', type(hook).__name__)}", error, theirs=True)
        for collector in tuple(self.collectors):
            collector.append(trace)


def record_of(document: dict[str, Any]) -> Record:
    """A finished document as a store keeps it."""
    from grace_kp.store import Record

    metadata = document["metadata"]
    texts = [document["task"]["objective"], document["outcome"]["result_summary"]]
    texts += [step["content"] for step in document["steps"] if "content" in step]
    return Record(
        id=document["id"],
        created_at=metadata["created_at"],
        domain=metadata["task_domain"],
        score=metadata["quality_score"],
        success=metadata["success"],
        status=document.get("grace", {}).get("status", "completed"),
        text=storable("\n".join(texts)[:MAX_SEARCH_TEXT]),
        data=to_json(document),
    )
