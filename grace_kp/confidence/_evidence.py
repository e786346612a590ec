"""The evidence of a run, gathered into confidence factors: tool calls, searches and sources.

It counts, and marks which figures were measured. It asks no model; `grace_kp.judge` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grace_kp.confidence._evaluation import FALLBACK_SCORE
from grace_kp.confidence._factors import ConfidenceFactors
from grace_kp.confidence._score_kinds import NONE
from grace_kp.confidence._search_result import usable_score
from grace_kp.confidence._search_results import SearchResults
from grace_kp.trace import outcomes_of_calls

if TYPE_CHECKING:
    from collections.abc import Iterable

    from grace_kp.trace import ReasoningTrace

MAX_SOURCES = 10_000
_ENDED = {"ok": True, "error": False, "cancelled": False}
"""Statuses of a call that count for the tool; a pause or a refusal by a person does not."""


class Evidence:
    """Gathers evidence while a run goes on, in constant memory; not for sharing between threads.

    A retriever is a tool: pass its call to `tool_finished`, and its results to `search_finished` too.
    """

    __slots__ = (
        "_best",
        "_empty",
        "_executed",
        "_found",
        "_mean",
        "_scored",
        "_searches",
        "_sources",
        "_spread",
        "_succeeded",
        "_unread",
        "_unscored",
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
        self._empty = 0
        self._unscored = 0

    def tool_finished(self, ok: bool) -> None:
        """Count a call of a tool or retriever: `ok` when it returned a result."""
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
        self._executed += 1
        self._succeeded += ok
        return True

    def calls_succeeded(self, count: int) -> None:
        """Count so many calls that returned a result and opened no run, as `call_finished` does."""
        self._executed += count
        self._succeeded += count

    def search_finished(self, results: SearchResults) -> None:
        """Count the results of a search, possibly none."""
        self._searches += 1
        self._found += results.count
        for score in results.scores:
            self._scored += 1
            self._best = max(self._best, score)
            deviation = score - self._mean
            self._mean += deviation / self._scored
            self._spread += deviation * (score - self._mean)
        self._unusable += results.unusable_scores
        self._unread += results.unreadable
        self._empty += not results.count
        self._unscored += results.lacks_scores
        self._add_sources(results.sources)

    @property
    def unusable_scores(self) -> int:
        """Number of results so far with a score that cannot be used."""
        return self._unusable

    @property
    def unread_searches(self) -> int:
        """Number of searches so far whose results could not all be read."""
        return self._unread

    @property
    def unscored_searches(self) -> int:
        """Number of searches so far with results of which none carries a score, and that are not declared to have none."""
        return self._unscored

    def merge(self, other: Evidence) -> None:
        """Add the evidence of another run, such as a nested one."""
        self._executed += other._executed
        self._succeeded += other._succeeded
        self._searches += other._searches
        self._found += other._found
        scored = self._scored + other._scored
        if other._scored:
            distance = other._mean - self._mean
            self._spread += other._spread + distance * distance * self._scored * other._scored / scored
            self._mean += distance * other._scored / scored
            self._best = max(self._best, other._best)
        self._scored = scored
        self._unusable += other._unusable
        self._unread += other._unread
        self._empty += other._empty
        self._unscored += other._unscored
        self._add_sources(other._sources)

    def factors(self) -> ConfidenceFactors:
        """Return the factors so far. What was not measured is left out, or marked as a fallback."""
        if not self._searches:
            if self._executed == self._succeeded < len(_ALL_SUCCEEDED):
                return _ALL_SUCCEEDED[self._executed]
            return ConfidenceFactors(**_of_tools(self._executed, self._succeeded))
        known = _of_tools(self._executed, self._succeeded)
        known["search_result_count"] = self._found
        # A search without results counts against the run; results without any score count neither for it nor against it.
        known["search_made"] = bool(self._scored or self._unusable or self._unread or self._empty)
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


def _of_tools(executed: int, succeeded: int) -> dict[str, Any]:
    """Return what the counts of calls say."""
    if not executed:
        return {}
    return {
        "tool_execution_count": executed,
        "tool_success_count": succeeded,
        "tool_success_rate": succeeded / executed,
    }


_ALL_SUCCEEDED = tuple(ConfidenceFactors(**_of_tools(count, count)) for count in range(33))
"""The factors of most runs: those that searched nothing, by the number of calls, all of which succeeded."""


def factors_from_trace(trace: Mapping[str, Any] | ReasoningTrace) -> ConfidenceFactors:
    """Return the factors of a finished run, as model or in its dict form.

    The recorded calls (`grace.calls`) are read where the trace has them. In any other trace every tool_call counts as executed, and as
    successful unless it, or its observation, is followed by an error_recovery.
    """
    grace = trace.get("grace") if type(trace) is dict or isinstance(trace, Mapping) else trace.grace
    calls = grace.get("calls") if type(grace) is dict or isinstance(grace, Mapping) else None
    if isinstance(calls, list):
        return evidence_of_calls(calls).factors()
    if isinstance(trace, Mapping):
        kinds = [_kind(step) for step in trace.get("steps") or ()]
    else:
        kinds = [step.type for step in trace.steps]
    evidence = Evidence()
    for ok in outcomes_of_calls(kinds):
        evidence.tool_finished(ok)
    return evidence.factors()


def evidence_of_calls(calls: list[Any]) -> Evidence:
    """Return the evidence of calls as a trace holds them under `grace.calls`."""
    evidence = Evidence()
    _read_calls(calls, evidence)
    return evidence


def _kind(step: object) -> str:
    return str(step.get("type", "")) if isinstance(step, Mapping) else ""


def _read_calls(calls: list[Any], evidence: Evidence) -> None:
    statuses: dict[Any, Any] | None = None
    succeeded = 0
    for call in calls:
        if type(call) is not dict and not isinstance(call, Mapping):
            continue
        if "child" not in call and "search" not in call:
            status = call.get("status")
            if type(status) is str and status == "ok":
                succeeded += 1
            else:
                evidence.call_finished(status, None)
            continue
        inside: str | None = None
        if "child" in call and isinstance(parent := call.get("parent"), str):
            if statuses is None:
                statuses = {call.get("call_id"): call.get("status") for call in calls if _has_id(call)}
            inside = str(statuses.get(parent, ""))
        search = call.get("search")
        if evidence.call_finished(call.get("status"), inside) and search is not None and isinstance(search, Mapping):
            evidence.search_finished(_recorded_results(search))
    evidence.calls_succeeded(succeeded)


def _has_id(call: object) -> bool:
    return isinstance(call, Mapping) and isinstance(call.get("call_id"), str) and isinstance(call.get("status"), str)


def _recorded_results(search: Mapping[str, Any]) -> SearchResults:
    """Return the results that a trace records; every figure is checked again, as anybody may have written the trace."""
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
        kind=NONE if search.get("kind") == NONE else "",
    )


def _count(search: Mapping[str, Any], name: str) -> int:
    value = search.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _listed(search: Mapping[str, Any], name: str) -> list[Any]:
    values = search.get(name)
    return values if isinstance(values, list) else []
