"""What happens when a run has ended, in this order: confidence, value score, scorers, hooks, store.

It runs on the writer's thread (or in a thread that waits for it), one run at a time, in the order in which the runs ended.
"""

from __future__ import annotations

import contextlib
import inspect
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.record import SUSPENDED, Documents, Recorder, Run, note, to_json
from grace_kp.runtime._confidence_record import confidence_record, failure_of
from grace_kp.runtime._records import record_of
from grace_kp.value import embedded_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grace_kp.confidence import ConfidenceCalculator, ConfidenceFactors
    from grace_kp.record import Conversations, Pause
    from grace_kp.runtime._judging import Judgement, RunJudge
    from grace_kp.runtime._scoring import Scoring, TraceScorers
    from grace_kp.store import JournalEntry, Record
    from grace_kp.trace import ReasoningTrace
    from grace_kp.value import ValueScorer

    Hook = Callable[[ReasoningTrace], Any]

MAX_WAITING = 2_000
"""Runs that may wait for scorers; beyond it they are stored without, so that slow scorers do not fill the memory."""


class Lost:
    """A run whose process died, as its journal left it."""

    __slots__ = ("prepared", "rows")

    def __init__(self, rows: Sequence[JournalEntry]) -> None:
        self.rows = rows
        self.prepared: Prepared | None = None

    @property
    def journaled_id(self) -> str:
        """The run whose journal is done with when its trace is stored."""
        return self.rows[0].run_id


class Assessor:
    """Fills in the two figures of a document: the confidence, then the value score."""

    def __init__(self, calculator: ConfidenceCalculator, scorer: ValueScorer) -> None:
        self.calculator = calculator
        self.scorer = scorer

    def assess(
        self,
        document: dict[str, Any],
        *,
        own_confidence: float | None = None,
        factors: ConfidenceFactors | None = None,
        judgement: Judgement | None = None,
    ) -> None:
        """Set `outcome.confidence` and `metadata.quality_score`, and say under `grace` how they came about."""
        if factors is None:
            from grace_kp.confidence import factors_from_trace

            factors = factors_from_trace(document)
        grace = document.setdefault("grace", {})
        if judgement is not None:
            factors = judgement.put_into(factors, cautious=self.calculator.profile == "strict")
            grace["evaluation"] = judgement.to_dict()
        score = self.calculator.calculate(factors)
        grace.pop("unscored", None)
        grace["confidence"] = told = confidence_record(score, self.calculator.profile)
        failure = failure_of(document)
        if failure:
            told["run_failed"] = True
            told["reason"] = f"{failure} {told['reason']}"
        if own_confidence is not None:
            told["own"] = own_confidence
        document["outcome"]["confidence"] = score.score if own_confidence is None else own_confidence
        if grace.get("status") == SUSPENDED:
            grace["unscored"] = True  # it is scored when it has ended; its novelty counts once
        else:
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


@dataclass(slots=True)
class Prepared:
    """A run that has ended, as a document that still lacks its figures."""

    document: dict[str, Any] | None
    """None for a run that is sampled out."""
    factors: ConfidenceFactors | None = None
    judgement: Judgement | None = None
    assessed: bool = False
    """Its figures are worked out."""
    scoring: Scoring | None = None
    """What the user's scorers say, or will."""
    staged: bool = False


class Pipeline:
    """From an ended run to a stored record."""

    def __init__(
        self,
        *,
        documents: Documents,
        assessor: Assessor,
        sample_rate: float,
        recorder: Recorder,
        judge: RunJudge | None = None,
        embedder: Any = None,
        scorers: TraceScorers | None = None,
    ) -> None:
        self.scorers = scorers
        self.waiting: Callable[[], int] = lambda: 0
        """How many runs have ended and are not settled yet."""
        self.judge = judge
        self.embedder = embedder
        self.documents = documents
        self.assessor = assessor
        self.sample_rate = sample_rate
        self.recorder = recorder
        self.hooks: list[Hook] = []
        self.collectors: list[list[ReasoningTrace]] = []
        self.sampled_out = 0
        self.conversations: Conversations | None = None
        self._lock = threading.RLock()  # a run's steps are built in one thread at a time, journal or finish

    def after_fork(self) -> None:
        """In a forked child no other thread is there to give the lock back."""
        self._lock = threading.RLock()

    def ready(self, item: Run | Lost) -> bool:
        """Whether a run can be settled; the first time, its judgement is set going."""
        if isinstance(item, Lost):
            return True
        prepared = item.prepared
        if prepared is None:
            prepared = item.prepared = self._prepare(item)
        return prepared.judgement is None or prepared.judgement.is_done

    def warm(self, items: Sequence[Run | Lost]) -> None:
        """Embed what is settled next in one go; what fails is met again, and told, one by one."""
        embed = getattr(self.embedder, "embed", None)
        if not callable(embed):
            return
        documents = [item.prepared.document for item in items if isinstance(item, Run) and item.prepared is not None]
        texts = [embedded_text(document) for document in documents if document is not None]
        with contextlib.suppress(Exception):
            embed(texts)

    def give_up(self) -> None:
        """Wait for no judgement any longer."""
        if self.judge is not None:
            self.judge.give_up()
        if self.scorers is not None:
            self.scorers.give_up()

    def _prepare(self, item: Run) -> Prepared:
        with self._lock:
            if self._sampled_out(item):
                return Prepared(None)
            document = self.documents.finished(item)
            texts = item.steps.hit_texts
            item.events = []  # what it held is in the document now
            item.steps.release()
        if item.status == SUSPENDED:
            item.suspended = document  # for whoever goes on with it in this process
            item.prepared = prepared = Prepared(document)
            return prepared
        if self.judge is None:
            return Prepared(document)
        factors, judgement = self.judge.begin(document, texts)
        return Prepared(document, factors, judgement)

    def _assessed(self, item: Run | Lost) -> Prepared:
        """A run with its figures; they are worked out once, in the order in which runs ended."""
        with self._lock:
            if isinstance(item, Lost):
                own = None
                prepared = item.prepared or Prepared(self.documents.lost([entry.data for entry in item.rows]))
            else:
                own = item.own_confidence
                prepared = item.prepared or self._prepare(item)
            item.prepared = prepared
            if prepared.document is not None and not prepared.assessed:
                self.assessor.assess(
                    prepared.document, own_confidence=own, factors=prepared.factors, judgement=prepared.judgement
                )
                prepared.assessed = True
        return prepared

    def stage(self, item: Run | Lost) -> bool:
        """Whether the user's scorers are through with a run; the first time, they are set going. They run in a thread of their own."""
        scorers = self.scorers
        if scorers is None:
            return True
        prepared = self._assessed(item)
        if not prepared.staged:
            prepared.staged = True
            document = prepared.document
            told_by_scorer = isinstance(item, Run) and scorers.is_own(item.id)
            if document is not None and document["grace"].get("status") != SUSPENDED and not told_by_scorer:
                from grace_kp.trace import ReasoningTrace

                trace = ReasoningTrace.model_validate_json(to_json(document))
                prepared.scoring = scorers.begin(trace, self.documents.clean)
        if prepared.scoring is None:
            return True
        if not scorers.is_done(prepared.scoring) and self.waiting() > MAX_WAITING:
            scorers.skip(f"more than {MAX_WAITING:,} runs wait")
        return scorers.is_done(prepared.scoring)

    def settle(self, item: Run | Lost) -> Record | None:
        """The finished trace of a run, as the store keeps it; None where it is sampled out."""
        prepared = self._assessed(item)
        item.prepared = None
        document = prepared.document
        if document is None:
            self.sampled_out += 1
            return None
        if prepared.scoring is not None and prepared.scoring.entries:
            document["grace"]["scores"] = self.documents.clean_all(prepared.scoring.entries)
        resumed = isinstance(item, Run) and item.earlier is not None and not item.asked
        if resumed and self.conversations is not None and self.conversations.has_rival(document):
            document["id"] = self.recorder.new_id()
        record = record_of(document)
        if isinstance(item, Run):
            if item.keep or item.capture is not None:
                item.document = record.data
            self._close_superseded(document)
        if (self.hooks or self.collectors) and record.status != SUSPENDED:
            self._tell(record.data)
        return record

    def asking(self, waiting: Sequence[tuple[Run, Pause]]) -> list[Record]:
        """Open runs as they would be stored if they were suspended now."""
        records = []
        with self._lock:
            for run, pause in waiting:
                if run.open:
                    document = self.documents.asking(run, pause)
                    self.assessor.assess(document)
                    records.append(record_of(document))
        return records

    def _close_superseded(self, document: dict[str, Any]) -> None:
        """Close the traces that waited for an answer on this run's thread and will not get any more."""

        def assessed(item: dict[str, Any]) -> Record:
            self.assessor.assess(item)
            return record_of(item)

        for closed in self.conversations.close_superseded(document, assessed) if self.conversations else ():
            self._tell(to_json(closed))

    def recall(self, run: Run) -> None:
        """Give a resumed run the document of the run that it continues. If that is not found, or taken already, it is a new run."""
        with self._lock:
            pause, conversations = run.resumes, self.conversations
            if pause is None:
                return
            earlier: dict[str, Any] | None = None
            previous = pause.previous
            if isinstance(previous, Run):
                if previous.suspended is None:
                    self._prepare(previous)
                earlier = previous.suspended
            elif conversations is not None:
                earlier = conversations.find(pause, self.documents.clean(pause.thread))
            if earlier is not None and conversations is not None and not conversations.claim(earlier):
                earlier = None  # another run answers the same question; each of the two has a trace of its own
            run.resume(earlier)

    def journal(self) -> list[JournalEntry]:
        """What has come of the open runs since the last time."""
        from grace_kp.store import JournalEntry

        entries: list[JournalEntry] = []
        for run in list(self.recorder.open_runs):
            with self._lock:
                if run.open and not run.asked:
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
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 — also what would end the writer's thread, such as SystemExit
                note(f"hook {getattr(hook, '__name__', type(hook).__name__)}", error, theirs=True)
        for collector in tuple(self.collectors):
            collector.append(trace)
