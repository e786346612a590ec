"""The steps after the end of a run, in this order: document, confidence, value score, store; then slower parts, and the hooks.

Runs are settled on the writer's thread (or in a thread that flushes), one at a time, in the order in which they ended. A run that
awaits a judgement, its novelty or scores is stored before that, and completed by `_completion`.
"""

from __future__ import annotations

import inspect
import os
import re
import threading
import weakref
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from time import time_ns
from typing import TYPE_CHECKING, Any

from grace_kp.background import Resident, finish, is_mine, watch
from grace_kp.errors import GraceError, is_unit
from grace_kp.levels import UNSETTLED
from grace_kp.record import (
    SUSPENDED,
    TROUBLES,
    Documents,
    Recorder,
    Run,
    attempt,
    facts_of,
    keep_events,
    keep_evidence,
    node_of,
    note,
    root_of,
    to_json,
)
from grace_kp.runtime._assessment import Assessor
from grace_kp.runtime._completion import JUDGEMENT, SCORES, VALUE, Completer, Completion
from grace_kp.store import JournalEntry, Record, moment, scorer_name
from grace_kp.trace import attributes_in, storable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from grace_kp.approvals import RequestStore, Tables
    from grace_kp.record import Conversations, Pause
    from grace_kp.runtime._assessment import Judgement
    from grace_kp.runtime._choices import ModelChoice
    from grace_kp.runtime._profiles import ProfileSet
    from grace_kp.runtime._scoring import TraceScorers
    from grace_kp.settings import Settings
    from grace_kp.trace import ReasoningTrace
    from grace_kp.value import ValueScorer

    Hook = Callable[[ReasoningTrace], Any]

MAX_SEARCH_TEXT = 20_000
MAX_SCORES = 200
_ATTRIBUTES = frozenset({"tags", "user", "session", "metadata", "parent"})
"""Fields of `grace` that hold attributes."""
_SORTABLE = re.compile(r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d\.\d{3}Z", re.ASCII)
"""Times that `moment` would not change."""


class Lost:
    """A run whose process died, with the journal that it left."""

    __slots__ = ("__weakref__", "prepared", "rows")

    def __init__(self, rows: Sequence[JournalEntry]) -> None:
        self.rows = rows
        self.prepared: Prepared | None = None

    @property
    def journaled_id(self) -> str:
        """The run whose journal is deleted when its trace is stored."""
        return self.rows[0].run_id


@dataclass(slots=True)
class Prepared:
    """An ended run as a document."""

    document: dict[str, Any] | None
    """None for a run that is sampled out."""
    texts: Sequence[str] = ()
    """Texts of its search results, which are not part of the document."""


class Pipeline(Resident):
    """From an ended run to a stored record. Models and calculators are loaded when the first run has ended."""

    def __init__(
        self,
        settings: Settings,
        recorder: Recorder,
        models: ModelChoice,
        profiles: Callable[[], ProfileSet],
        scorers: TraceScorers | None,
        conversations: Conversations,
        *,
        put_later: Callable[[Record], object],
        write_settled: Callable[[], object],
    ) -> None:
        self.documents = Documents(
            privacy_level=settings.privacy_level, visibility=settings.visibility, max_text=settings.max_text
        )
        self.recorder = recorder
        self.scorers = scorers
        self.hooks: list[Hook] = []
        self.collectors: list[list[ReasoningTrace]] = []
        self.sampled_out = 0
        self._settings, self._conversations = settings, conversations
        self._put_later, self._write_settled = put_later, write_settled
        self._models, self._profiles = models, profiles
        self._born, self._reported = time_ns(), (0, 0, 0)
        self.completer = Completer(
            models,
            scorers,
            lambda: self.assessor,
            self.documents.clean,
            self._finish,
            self._hand_out,
            settings.max_pending_mb << 20,
        )
        self.after_fork()
        watch(self)

    def after_fork(self) -> None:
        """Replace the lock in the child: the thread that would release it exists only in the parent."""
        self._settled: Callable[[], Run | Lost | None] = lambda: None
        self._lock = threading.RLock()  # a run's steps are built in one thread at a time, for the journal or at the end

    @cached_property
    def assessor(self) -> Assessor:
        return Assessor(self._profiles(), self._value_scorer)

    def _value_scorer(self) -> ValueScorer:
        from grace_kp.value import ValueScorer

        settings = self._settings
        return ValueScorer(
            # Choosing models may import for seconds, so it is left where there can be no embedder.
            self._models.get().embedder if self._models.may_embed else None,
            max_elements=settings.novelty_cache_size,
            ttl_seconds=settings.novelty_cache_ttl or None,
        )

    @property
    def has_open_runs(self) -> bool:
        return bool(self.recorder.open_runs)

    @property
    def parts(self) -> frozenset[str]:
        """Parts that this runtime can add to a stored run of a dead process. It leaves other parts to other processes."""
        return self._select_parts(judgement=self._models.has_judge, value=self._models.has_embedder)

    def _select_parts(self, *, judgement: bool, value: bool) -> frozenset[str]:
        present = {JUDGEMENT: judgement, VALUE: value, SCORES: self.scorers is not None}
        return frozenset(part for part, is_present in present.items() if is_present)

    @property
    def is_mine(self) -> bool:
        """Whether the current thread is at work in it."""
        return is_mine(self._lock)

    @cached_property
    def _possible(self) -> frozenset[str]:
        """Parts that this runtime may be able to add to its own runs."""
        may_embed = self._models.may_embed  # the agreement of sources is measured by an embedder
        return self._select_parts(judgement=self._models.may_judge or may_embed, value=may_embed)

    def report(self, dropped: int, lost: int) -> tuple[str, bytes] | None:
        """Return the name of this process and what it could not record; None where that is not news."""
        counts = (sum(TROUBLES.counts.values()), dropped, lost)
        if not any(counts) or counts == self._reported:
            return None
        self._reported = counts
        from grace_kp.trace import redact_value

        report = {"troubles": dict(TROUBLES.counts), "last_trouble": TROUBLES.last, "dropped": dropped, "lost": lost}
        return f"{os.getpid()}-{self._born}", to_json(redact_value(report, identifiers=False))

    def _prepare(self, run: Run | Lost) -> Prepared:
        if isinstance(run, Lost):
            return Prepared(self.documents.rebuild([entry.data for entry in run.rows]))
        with self._lock:
            if self._is_sampled_out(run):
                return Prepared(None)
            document = self.documents.build(run)
            texts = run.steps.hit_texts
            if run.via is not None:
                attempt("keeping evidence of a nested run", lambda: keep_evidence(run))
            keep_events(run)
            run.events = []  # the document holds them now
            run.steps.release()
        prepared = Prepared(document, texts)
        if run.status == SUSPENDED:
            run.suspended = document  # for a run of this process that continues it
            run.prepared = prepared
        return prepared

    def prepare(self) -> None:
        """Load what settling needs, while the first run is still open."""
        self.documents.clean(self._settings.domain)
        _ = self.assessor
        to_json({})
        if not (self._models.may_judge or self._models.may_embed):
            self._models.get()
            _ = self.assessor.scorer

    def settle(self, item: Run | Lost) -> tuple[Record | None, Completion | None]:
        """Return the record of a run, and what completes it once it is stored; no record for a run that is sampled out."""
        run = item if isinstance(item, Run) else None
        with self._lock:
            earlier = self._settled()
            if earlier is not item:
                if earlier is not None:
                    earlier.prepared = None
                self._settled = weakref.ref(item)  # weak, because the run may be needed no longer
            # Kept until the next run, because a run whose settling is interrupted is settled once more.
            if item.prepared is None:
                item.prepared = self._prepare(item)
            prepared = item.prepared
            document = prepared.document
            if document is None:
                self.sampled_out += 1
                return None, None
            judgement, awaits = self._plan(document, run, prepared.texts)
            self.assessor.assess(
                document,
                own_confidence=None if run is None else run.own_confidence,
                factors=None if judgement is None else judgement.factors,
                judgement=judgement if judgement is not None and judgement.is_done else None,
                has_value=VALUE not in awaits,
            )
        if awaits:
            document["grace"]["awaits"] = sorted(awaits)
        else:
            document["grace"].pop("awaits", None)
        resumed = run is not None and run.earlier is not None and not run.asked
        if resumed and self._conversations.has_rival(document):
            document["id"] = self.recorder.new_id()
        record = record_of(document, awaits=awaits)
        labels: list[Callable[[], object]] = []
        if run is not None:
            if not awaits and (run.keep or run.capture is not None):
                run.document = record.data
            self._close_superseded(document)
            labels, run.checks = [partial(check, record.id) for check in run.checks], []
        calls_hooks = record.status != SUSPENDED
        if awaits:
            return record, Completion(
                record.data, document, awaits, prepared.texts, run, judgement=judgement, labels=labels
            )
        if labels or ((self.hooks or self.collectors) and calls_hooks):
            return record, Completion(record.data, labels=labels, calls_hooks=calls_hooks)
        return record, None

    def _plan(
        self, document: dict[str, Any], run: Run | None, texts: Sequence[str]
    ) -> tuple[Judgement | None, frozenset[str]]:
        """Return the judgement of a run, if that is known already, and what the run awaits after it is stored."""
        if document["grace"].get("status") == SUSPENDED:
            return None, frozenset()
        models, scorers = self._models, self.scorers
        judgement, awaits = None, set(self._possible)
        # Choosing a model may import for seconds, and nothing delays the storing of a run.
        if models.are_chosen or JUDGEMENT not in awaits:
            chosen = models.get()
            if chosen.embedder is None:
                awaits.discard(VALUE)
            if run is not None:
                judgement = chosen.judge.plan(document, texts)
                if judgement.is_done:
                    awaits.discard(JUDGEMENT)
        if run is None:
            awaits.discard(JUDGEMENT)
        elif scorers is not None and scorers.is_own(run.id):
            awaits.discard(SCORES)
        return judgement, frozenset(awaits)

    def _finish(self, completion: Completion) -> None:
        document = completion.document
        if document is None:
            return
        if completion.scoring is not None and completion.scoring.entries:
            document["grace"]["scores"] = self.documents.clean_all(completion.scoring.entries)
        record = record_of(document, awaits=completion.left, completes=True)
        completion.data = record.data
        run = completion.run
        if run is not None and (run.keep or run.capture is not None):
            run.document = record.data
        self._put_later(record)

    def suspended_records(self, waiting: Sequence[tuple[Run, Pause]]) -> list[Record]:
        """Return open runs as they would be stored if they were suspended now."""
        records = []
        with self._lock:
            for run, pause in waiting:
                if run.open:
                    document = self.documents.build_asking(run, pause)
                    self.assessor.assess(document)
                    records.append(record_of(document))
        return records

    def _close_superseded(self, document: dict[str, Any]) -> None:
        """Close the traces that waited for an answer on this run's thread and will not get any more."""

        def assess(item: dict[str, Any]) -> Record:
            self.assessor.assess(item)
            return record_of(item)

        closed = self._conversations.close_superseded(document, assess)
        if closed and (self.hooks or self.collectors):
            self.completer.add([Completion(to_json(item)) for item in closed])

    def recall(self, run: Run) -> None:
        """Give a resumed run the document of the run that it continues. If that is not found, or taken already, it is a new run.

        A run that has the document already gets the documents of its nested runs.
        """
        conversations = self._conversations
        if run.resumes is None and run.earlier is not None:
            run.earlier_nested = conversations.nested_in(run.earlier)
            return
        with self._lock:
            pause = run.resumes
            if pause is None:
                return
            earlier: dict[str, Any] | None = None
            previous = pause.previous
            if isinstance(previous, Run):
                if previous.suspended is None:
                    self._prepare(previous)
                earlier = previous.suspended
            else:
                earlier = conversations.find(pause, self.documents.clean(pause.thread))
            if earlier is not None and not conversations.claim(earlier, once=pause.once):
                earlier = None  # another run answers the same question; each of the two has its own trace
            run.resume(earlier)

    def journal(self) -> Iterator[list[JournalEntry]]:
        """Yield for each open run what has happened in it since the last call."""
        for run in list(self.recorder.open_runs):
            with self._lock:
                rows = self.documents.journal(run) if run.open and not run.asked else ()
                entries = [JournalEntry(run.id, number, data) for number, data in rows]
            yield entries

    def _is_sampled_out(self, run: Run) -> bool:
        # Failed and gated runs are always kept; the draw is made once per root, so that a run is kept or left out whole.
        if self._settings.sample_rate >= 1 or run.status != "completed" or run.decisions or run.own_success is False:
            return False
        root = root_of(run)
        if root.sample is None:
            import random

            root.sample = random.random()  # noqa: S311
        return root.sample >= self._settings.sample_rate

    def _hand_out(self, completion: Completion) -> None:
        for label in completion.labels:
            attempt("a label by the result of an action", label)
        if completion.is_adopted or not (completion.calls_hooks and (self.hooks or self.collectors)):
            return
        from grace_kp.trace import ReasoningTrace

        if completion.document is not None:
            self._write_settled()
        trace = ReasoningTrace.model_validate_json(completion.data)
        for hook in tuple(self.hooks):
            try:
                answer = hook(trace)
                if inspect.iscoroutine(answer):
                    finish(answer)
            except KeyboardInterrupt as error:
                if threading.current_thread() is threading.main_thread():
                    raise  # it may be the user's
                note(f"hook {getattr(hook, '__name__', type(hook).__name__)}", error, theirs=True)
            except BaseException as error:  # noqa: BLE001 — also what would end the writer's thread, such as SystemExit
                note(f"hook {getattr(hook, '__name__', type(hook).__name__)}", error, theirs=True)
        for collector in tuple(self.collectors):
            collector.append(trace)


def record_of(document: dict[str, Any], *, awaits: Collection[str] = (), completes: bool = False) -> Record:
    """Return a finished document in the form of a store."""
    metadata = document["metadata"]
    texts = [document["task"]["objective"], document["outcome"]["result_summary"]]
    texts += [step["content"] for step in document["steps"] if "content" in step]
    grace = document.get("grace") or {}
    status = grace.get("status", "completed")
    if thread := facts_of(document).get("thread_id") or node_of(document).get("thread_id"):
        texts.insert(0, str(thread))  # first, because what is too long is cut
    return Record(
        id=storable(document["id"]),
        created_at=_sortable(metadata["created_at"]),
        domain=storable(metadata["task_domain"]),
        score=metadata["quality_score"],
        success=metadata["success"],
        status=storable(status) if isinstance(status, str) else "unknown",
        text=storable("\n".join(texts)[:MAX_SEARCH_TEXT]),
        data=to_json(document),
        scores=_scores_of(document),
        attributes=() if _ATTRIBUTES.isdisjoint(grace) else tuple(attributes_in(document)),
        awaits=tuple(sorted(awaits)),
        completes=completes,
    )


def _sortable(created_at: str) -> str:
    """Return when a run began, in the form in which stores compare times."""
    if _SORTABLE.fullmatch(created_at):
        return created_at
    try:
        return moment(created_at, "created_at") or created_at
    except ValueError:  # the year 0
        return created_at


def _scores_of(document: dict[str, Any]) -> tuple[tuple[str, float | None, bool | None], ...]:
    """Return the rows of scores. A document from elsewhere may hold anything under the name."""
    entries = (document.get("grace") or {}).get("scores")
    rows = []
    for entry in entries[:MAX_SCORES] if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            score, passed = entry.get("score"), entry.get("passed")
            number = float(score) if is_unit(score) else None
            rows.append((scorer_name(entry["name"]), number, passed if isinstance(passed, bool) else None))
    return tuple(rows)


def with_outcomes(trace: ReasoningTrace, tables: Tables | None) -> ReasoningTrace:
    """Return a run that states under `now` of each `approval` what has become of the request since the run ended.

    These are the approvals of its decisions, and of `pending`: the gate that ended the run, perhaps one of a nested run.
    """
    grace = trace.grace or {}
    asked = {name: grace[name] for name in ("decisions", "pending") if name in grace}
    if tables is None or not asked:
        return trace
    from grace_kp.approvals import RequestStore  # only where there are gates

    requests = RequestStore(tables)
    found = {name: _with_outcome(value, requests) for name, value in asked.items()}
    return trace if found == asked else type(trace).model_validate({**trace.to_dict(), "grace": {**grace, **found}})


def _with_outcome(entry: Any, requests: RequestStore) -> Any:
    if isinstance(entry, list):
        return [_with_outcome(each, requests) for each in entry]
    asked = entry.get("approval") if isinstance(entry, dict) and str(entry.get("outcome")) in UNSETTLED else None
    if not isinstance(asked, dict):
        return entry
    try:
        approval = requests.get(asked.get("id", ""))
    except (GraceError, OSError):  # it belongs to another store, or this store cannot be read now
        return entry
    if approval.state == asked.get("state"):
        return entry
    now: dict[str, Any] = {"state": approval.state.value}
    if (decision := approval.decision) is not None:
        at = datetime.fromtimestamp((approval.outcome or approval.claim or decision).at, UTC)
        now |= {"decision": decision.state.value, "by": decision.actor.name, "at": moment(at, "at")}
    return {**entry, "approval": {**asked, "now": now}}
