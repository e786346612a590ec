"""What happens when a run has ended, in this order: confidence, value score, scorers, hooks, store.

It runs on the writer's thread (or in a thread that waits for it), one run at a time, in the order in which the runs ended.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import threading
from dataclasses import dataclass
from functools import cached_property
from time import time_ns
from typing import TYPE_CHECKING, Any

from grace_kp.background import Resident, finish, watch
from grace_kp.record import SUSPENDED, TROUBLES, Documents, Recorder, Run, note, to_json
from grace_kp.runtime._assessor import Assessor
from grace_kp.runtime._records import record_of
from grace_kp.value import embedded_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grace_kp.confidence import ConfidenceFactors
    from grace_kp.record import Conversations, Pause
    from grace_kp.runtime._judging import Judgement
    from grace_kp.runtime._models import ModelChoice
    from grace_kp.runtime._scoring import Scoring, TraceScorers
    from grace_kp.settings import Settings
    from grace_kp.store import JournalEntry, Record
    from grace_kp.trace import ReasoningTrace

    Hook = Callable[[ReasoningTrace], Any]

MAX_WAITING = 2_000
"""Runs that may wait for scorers; beyond it they are stored without, so that slow scorers do not fill the memory."""


class Lost:
    """A run whose process died, with the journal that it left."""

    __slots__ = ("prepared", "rows")

    def __init__(self, rows: Sequence[JournalEntry]) -> None:
        self.rows = rows
        self.prepared: Prepared | None = None

    @property
    def journaled_id(self) -> str:
        """The run whose journal is deleted when its trace is stored."""
        return self.rows[0].run_id


@dataclass(slots=True)
class Prepared:
    """An ended run as a document, on its way through the pipeline."""

    document: dict[str, Any] | None
    """None for a run that is sampled out."""
    factors: ConfidenceFactors | None = None
    judgement: Judgement | None = None
    is_assessed: bool = False
    """Whether the document has its confidence and its value score."""
    scoring: Scoring | None = None
    is_staged: bool = False
    """Whether scoring has been started, where there is any."""


class Pipeline(Resident):
    """From an ended run to a stored record. Models and calculators are loaded when the first run has ended."""

    def __init__(
        self, settings: Settings, recorder: Recorder, models: ModelChoice, scorers: TraceScorers | None = None
    ) -> None:
        self.documents = Documents(
            privacy_level=settings.privacy_level, visibility=settings.visibility, max_text=settings.max_text
        )
        self.recorder = recorder
        self.scorers = scorers
        self.waiting: Callable[[], int] = lambda: 0
        """Returns the number of runs that have ended and are not settled yet."""
        self.hooks: list[Hook] = []
        self.collectors: list[list[ReasoningTrace]] = []
        self.sampled_out = 0
        self.conversations: Conversations | None = None
        self._settings = settings
        self._models = models
        self._given_up = False
        self._born, self._reported = time_ns(), (0, 0)
        self.after_fork()
        watch(self)

    def after_fork(self) -> None:
        """Replace the lock in the child, where nobody else is to give it back."""
        self._lock = threading.RLock()  # a run's steps are built in one thread at a time, for the journal or at the end

    @cached_property
    def assessor(self) -> Assessor:
        """Computes confidence and value score."""
        from grace_kp.value import ValueScorer

        models, settings = self._models.get(), self._settings
        scorer = ValueScorer(
            models.embedder,
            max_elements=settings.novelty_cache_size,
            ttl_seconds=settings.novelty_cache_ttl or None,
        )
        return Assessor(models.calculator, scorer)

    @property
    def uses_models(self) -> bool:
        """Whether settling may take a model's time."""
        return self._models.is_active

    @property
    def has_open_runs(self) -> bool:
        """Whether there is anything to journal."""
        return bool(self.recorder.open_runs)

    def lost(self, rows: Sequence[JournalEntry]) -> Lost:
        """Return the run whose process died and left this journal."""
        return Lost(rows)

    def report(self, dropped: int) -> tuple[str, bytes] | None:
        """Return the name of this process and what it could not record; None where that is not news."""
        counts = (sum(TROUBLES.counts.values()), dropped)
        if not any(counts) or counts == self._reported:
            return None
        self._reported = counts
        from grace_kp.trace import redact_value

        report = {"troubles": dict(TROUBLES.counts), "last_trouble": TROUBLES.last, "dropped": dropped}
        return f"{os.getpid()}-{self._born}", to_json(redact_value(report, identifiers=False))

    def is_ready(self, item: Run | Lost) -> bool:
        """Return whether a run can be settled; the first call starts its judgement."""
        if isinstance(item, Lost):
            return True
        prepared = item.prepared
        if prepared is None:
            prepared = item.prepared = self._prepare(item)
        return prepared.judgement is None or prepared.judgement.is_done

    def warm(self, items: Sequence[Run | Lost]) -> None:
        """Embed the runs that are settled next in one go. What fails here fails again, and is reported, one by one."""
        embed = getattr(self._models.get().embedder, "embed", None)
        if not callable(embed):
            return
        documents = [item.prepared.document for item in items if isinstance(item, Run) and item.prepared is not None]
        texts = [embedded_text(document) for document in documents if document is not None]
        with contextlib.suppress(Exception):
            embed(texts)

    def give_up(self) -> None:
        """Wait for no judgement and no score any longer."""
        self._given_up = True
        if self._models.are_chosen:
            self._models.get().judge.give_up()
        if self.scorers is not None:
            self.scorers.give_up()

    def _prepare(self, run: Run) -> Prepared:
        with self._lock:
            if self._is_sampled_out(run):
                return Prepared(None)
            document = self.documents.finished(run)
            texts = run.steps.hit_texts
            run.events = []  # the document holds them now
            run.steps.release()
        if run.status == SUSPENDED:
            run.suspended = document  # for a run of this process that continues it
            run.prepared = prepared = Prepared(document)
            return prepared
        judge = self._models.get().judge
        if self._given_up:
            judge.give_up()
        return Prepared(document, *judge.begin(document, texts))

    def _assess(self, item: Run | Lost) -> Prepared:
        """Return a run with confidence and value score. They are computed once, in the order in which runs ended."""
        with self._lock:
            if isinstance(item, Lost):
                own = None
                prepared = item.prepared or Prepared(self.documents.lost([entry.data for entry in item.rows]))
            else:
                own = item.own_confidence
                prepared = item.prepared or self._prepare(item)
            item.prepared = prepared
            if prepared.document is not None and not prepared.is_assessed:
                self.assessor.assess(
                    prepared.document, own_confidence=own, factors=prepared.factors, judgement=prepared.judgement
                )
                prepared.is_assessed = True
        return prepared

    def is_scored(self, item: Run | Lost) -> bool:
        """Return whether the user's scorers have scored a run; the first call starts them. They run in their own thread."""
        scorers = self.scorers
        if scorers is None:
            return True
        prepared = self._assess(item)
        if not prepared.is_staged:
            prepared.is_staged = True
            document = prepared.document
            by_scorer = isinstance(item, Run) and scorers.is_own(item.id)
            if document is not None and document["grace"].get("status") != SUSPENDED and not by_scorer:
                from grace_kp.trace import ReasoningTrace

                trace = ReasoningTrace.model_validate_json(to_json(document))
                prepared.scoring = scorers.begin(trace, self.documents.clean)
        if prepared.scoring is None:
            return True
        if not scorers.is_done(prepared.scoring) and self.waiting() > MAX_WAITING:
            scorers.skip(f"more than {MAX_WAITING:,} runs wait")
        return scorers.is_done(prepared.scoring)

    def settle(self, item: Run | Lost) -> Record | None:
        """Return the record of a run; None for a run that is sampled out."""
        prepared = self._assess(item)
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
            self._hand_out(record.data)
        return record

    def asking(self, waiting: Sequence[tuple[Run, Pause]]) -> list[Record]:
        """Return open runs as they would be stored if they were suspended now."""
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
            self._hand_out(to_json(closed))

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
        """Return what has happened in the open runs since the last call."""
        from grace_kp.store import JournalEntry

        entries: list[JournalEntry] = []
        for run in list(self.recorder.open_runs):
            with self._lock:
                if run.open and not run.asked:
                    entries += [JournalEntry(run.id, number, data) for number, data in self.documents.journal(run)]
        return entries

    def _is_sampled_out(self, run: Run) -> bool:
        # Failed and gated runs are always kept; the draw is made once per root, so that a run is kept or left out whole.
        if self._settings.sample_rate >= 1 or run.status != "completed" or run.decisions or run.own_success is False:
            return False
        root = run
        while root.via is not None:
            root = root.via.run
        if root.sample is None:
            import random

            root.sample = random.random()  # noqa: S311
        return root.sample >= self._settings.sample_rate

    def _hand_out(self, data: bytes) -> None:
        """Call hooks and collectors with a finished trace."""
        from grace_kp.trace import ReasoningTrace

        trace = ReasoningTrace.model_validate_json(data)
        for hook in tuple(self.hooks):
            try:
                answer = hook(trace)
                if inspect.iscoroutine(answer):
                    finish(answer)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 — also what would end the writer's thread, such as SystemExit
                note(f"hook {getattr(hook, '__name__', type(hook).__name__)}", error, theirs=True)
        for collector in tuple(self.collectors):
            collector.append(trace)
