"""What a run has to show for itself, gathered into confidence factors: tools that worked, searches, sources.

It counts, and says for every figure whether it was really made. It asks no model; that is the evaluators' work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grace_kp.confidence._evaluation import FALLBACK_SCORE
from grace_kp.confidence._factors import ConfidenceFactors
from grace_kp.confidence._search_result import usable_score
from grace_kp.confidence._search_results import SearchResults
from grace_kp.trace import outcomes_of_calls

if TYPE_CHECKING:
    from collections.abc import Iterable

    from grace_kp.trace import ReasoningTrace

MAX_SOURCES = 10_000
_ENDED = {"ok": True, "error": False, "cancelled": False}
"""Ways a call can end that say something about the tool; a pause or a person's no does not."""


class Evidence:
    """Gathers while a run goes on, in constant memory; not for sharing between threads.

    A retriever is a tool: its call is told to `tool_finished`, and what it found to `search_finished` besides.
    """

    __slots__ = (
        "_best",
        "_executed",
        "_found",
        "_mean",
        "_scored",
        "_searches",
        "_sources",
        "_spread",
        "_succeeded",
        "_unread",
        "_unusable",
    )

    def __init__(self) -> None:
        self._executed = 0
        self._succeeded = 0
        self._searches = 0
        self._found = 0
        self._scored = 0
        self._best = 0.0
        self._mean = 0.0
        self._spread = 0.0
        self._sources: set[str] = set()
        self._unusable = 0
        self._unread = 0

    def tool_finished(self, ok: bool) -> None:
        """A tool, retriever or other, came to its end: with a result, or not."""
        self._executed += 1
        self._succeeded += bool(ok)

    def call_finished(self, status: object, inside: str | None) -> bool:
        """Count a call as a tool's success or failure, and return whether it counts.

        A call that waits, or that a person refused, says nothing about its tool. An agent that is used as a tool counts once.

        Args:
            status: how the call ended, as in `grace.calls`.
            inside: for a call that opened a run, the status of the call around it, or "" while that is open; else None.
        """
        ok = _ENDED.get(status) if isinstance(status, str) else None
        if ok is None or (inside is not None and (ok or _ENDED.get(inside) is False)):
            return False
        self.tool_finished(ok)
        return True

    def search_finished(self, hits: SearchResults) -> None:
        """A search found this, possibly nothing."""
        self._searches += 1
        self._found += hits.count
        for score in hits.scores:
            self._scored += 1
            self._best = max(self._best, score)
            away = score - self._mean
            self._mean += away / self._scored
            self._spread += away * (score - self._mean)
        self._unusable += hits.unusable_scores
        self._unread += hits.unreadable
        self._add_sources(hits.sources)

    @property
    def unusable_scores(self) -> int:
        """Results so far with a score that cannot be used."""
        return self._unusable

    @property
    def unread_searches(self) -> int:
        """Searches so far whose results could not be read, or not all of them."""
        return self._unread

    def merge(self, other: Evidence) -> None:
        """Take over all that another one has gathered, such as that of a nested run."""
        self._executed += other._executed
        self._succeeded += other._succeeded
        self._searches += other._searches
        self._found += other._found
        scored = self._scored + other._scored
        if other._scored:
            away = other._mean - self._mean
            self._spread += other._spread + away * away * self._scored * other._scored / scored
            self._mean += away * other._scored / scored
            self._best = max(self._best, other._best)
        self._scored = scored
        self._unusable += other._unusable
        self._unread += other._unread
        self._add_sources(other._sources)

    def factors(self) -> ConfidenceFactors:
        """The factors so far. What was not made is not given, or marked as a fallback."""
        known: dict[str, Any] = {}
        if self._executed:
            known["tool_execution_count"] = self._executed
            known["tool_success_count"] = self._succeeded
            known["tool_success_rate"] = self._succeeded / self._executed
        if self._searches:
            known["search_result_count"] = self._found
            # Results without any score are neither good nor bad; no results are bad.
            known["search_made"] = bool(self._scored or self._unusable or self._unread) or not self._found
        if self._unusable:
            every = self._scored + self._unusable
            known["search_avg_with_unusable"] = min(self._best, max(0.0, self._mean * self._scored / every))
            spread = self._spread + self._mean * self._mean * self._scored * self._unusable / every
            known["search_variance_with_unusable"] = max(0.0, spread / every)
        if self._scored:
            known["search_max_score"] = self._best
            known["search_avg_score"] = min(self._best, max(0.0, self._mean))
            known["search_score_variance"] = max(0.0, self._spread / self._scored)
        if self._sources:
            known["source_count"] = len(self._sources)
        if len(self._sources) > 1:
            known["source_agreement"] = FALLBACK_SCORE
            known["agreement_evaluated"] = False
        return ConfidenceFactors(**known)

    def _add_sources(self, sources: Iterable[str]) -> None:
        if len(self._sources) < MAX_SOURCES:
            self._sources.update(sources)


def factors_from_trace(trace: Mapping[str, Any] | ReasoningTrace) -> ConfidenceFactors:
    """The factors of a finished run, given as model or in its dict form.

    Where the trace tells how each call ended (`grace.calls`), that is read. In any other trace every tool_call counts as
    executed, and as successful unless it, or its observation, is followed by an error_recovery.
    """
    if isinstance(trace, Mapping):
        grace, kinds = trace.get("grace"), [_kind(step) for step in trace.get("steps") or ()]
    else:
        grace, kinds = trace.grace, [step.type for step in trace.steps]
    calls = grace.get("calls") if isinstance(grace, Mapping) else None
    if isinstance(calls, list):
        return evidence_of_calls(calls).factors()
    evidence = Evidence()
    for ok in outcomes_of_calls(kinds):
        evidence.tool_finished(ok)
    return evidence.factors()


def evidence_of_calls(calls: list[Any]) -> Evidence:
    """What calls say, as they stand in a trace under `grace.calls`."""
    evidence = Evidence()
    _read_calls(calls, evidence)
    return evidence


def _kind(step: Any) -> str:
    return str(step.get("type", "")) if isinstance(step, Mapping) else ""


def _read_calls(calls: list[Any], evidence: Evidence) -> None:
    statuses = {call.get("call_id"): call.get("status") for call in calls if _has_id(call)}
    for call in calls:
        if not isinstance(call, Mapping):
            continue
        parent, search = call.get("parent"), call.get("search")
        inside = str(statuses.get(parent, "")) if "child" in call and isinstance(parent, str) else None
        if evidence.call_finished(call.get("status"), inside) and isinstance(search, Mapping):
            evidence.search_finished(_recorded_hits(search))


def _has_id(call: Any) -> bool:
    return isinstance(call, Mapping) and isinstance(call.get("call_id"), str) and isinstance(call.get("status"), str)


def _recorded_hits(search: Mapping[str, Any]) -> SearchResults:
    """Hits as they stand in a trace; anybody may have written it, so every figure is looked at again."""
    values = _listed(search, "scores")
    scores = [score for value in values if (score := usable_score(value)) is not None]
    unusable = len(values) - len(scores) + _count(search, "unusable_scores")
    count = max(_count(search, "count"), len(scores) + unusable)
    sources = tuple(source for source in _listed(search, "sources") if isinstance(source, str) and source)
    return SearchResults(
        count=count,
        scores=tuple(scores),
        sources=sources,
        unusable_scores=unusable,
        unreadable=bool(search.get("unreadable")),
    )


def _count(search: Mapping[str, Any], name: str) -> int:
    value = search.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _listed(search: Mapping[str, Any], name: str) -> list[Any]:
    values = search.get(name)
    return values if isinstance(values, list) else []
