"""The evidence of a run, gathered into confidence factors: tool calls, searches and sources.

It counts, and marks which figures were measured. It asks no model; `grace_kp.judge` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from grace_kp.confidence._judgements import FALLBACK_SCORE
from grace_kp.confidence._profiles import strict_quality
from grace_kp.confidence._score import ConfidenceFactors
from grace_kp.confidence._score_kinds import NONE
from grace_kp.confidence._search_result import usable_score
from grace_kp.confidence._search_results import SearchResults
from grace_kp.trace import outcomes_of_calls

if TYPE_CHECKING:
    from collections.abc import Iterable

    from grace_kp.trace import ReasoningTrace

MAX_SOURCES = 10_000
MAX_WORST = 16
BEFORE = -(1 << 62)
"""Before every live call. The steps of the part of a run before it was resumed are stamped from here on, `PER_STEP` apart."""
PER_STEP = 1 << 20
STILL_OPEN = 1 << 62
"""After every live call."""
PARTLY_READ = ("closed", "unfinished")
"""Statuses of a call that say nothing about the tool, though a search has found what was read of it."""
_ADDED = (
    "call_count", "_succeeded", "_searches", "_found", "unusable_scores", "unread_searches", "_empty", "unscored_searches", "_lost_failures",
)  # fmt: skip
"""Counts of evidence that are added up when two parts are merged."""
_ENDED = {"ok": True, "error": False, "cancelled": False, "exited": False}
"""Statuses of a call that count for the tool; a pause or a refusal by a person does not."""


class RunEvidence:
    """Gathers evidence while a run goes on; not for sharing between threads. Its size follows from the number of tools and searches.

    A retriever is a tool: pass its call to `call_finished`, and its results to `search_finished` too.
    """

    __slots__ = (
        "_best", "_beyond", "_counted", "_counted_ok", "_empty", "_failing", "_found", "_has_scored_source", "_lost_failures", "_mean", "_scoring",
        "_searches", "_shares_tools", "_source_count", "_sources", "_spread", "_succeeded", "_tools", "_words_at", "_worst", "call_count",
        "unread_searches", "unscored_searches", "unusable_scores", "usable_scores",
    )  # fmt: skip

    def __init__(self) -> None:
        self.call_count = 0
        """Number of calls so far."""
        self._succeeded = 0
        self._searches = 0
        self._found = 0
        self.usable_scores = 0
        """Number of results so far with a score that can be used."""
        self._best = 0.0
        self._mean = 0.0
        self._spread = 0.0
        self._sources: dict[str, None] = {}
        """The sources so far; in a snapshot, the sources of the original, which may have grown since."""
        self._source_count = 0
        self._beyond: set[str] | None = None
        """In a snapshot: the sources that it alone has."""
        self.unusable_scores = 0
        """Number of results so far with a score that cannot be used."""
        self.unread_searches = 0
        """Number of searches so far whose results could not all be read."""
        self._empty = 0
        self.unscored_searches = 0
        """Number of searches so far with results of which none carries a score, and that are not declared to have none."""
        self._tools: dict[str, list[int]] = {}
        """For each tool: its calls, its successful calls, when the last call ended, and whether that call succeeded."""
        self._shares_tools = False
        self._failing = 0
        """Number of tools whose last call failed."""
        self._counted = self._counted_ok = 0
        """Calls and successful calls of the tools that failed at least once or whose results carry scores."""
        self._lost_failures = 0
        """Failures of tools without a name, for which no later call can make up."""
        self._worst: list[tuple[int, float, dict[str, Any]]] = []
        """Scored searches, each with its end, its quality and its figures. A search is dropped when a later one is as bad, so qualities rise.

        Of those before the user's last words only the worst is kept. Of more than `MAX_WORST`, the oldest two after them are taken for one: the
        worse, at the end of the later. That can only make the reading stricter.
        """
        self._scoring: frozenset[str] = frozenset()
        """Tools whose results carried scores."""
        self._has_scored_source = False
        self._words_at = BEFORE

    def call_finished(self, status: object, inside: str | None, name: str | None = None, at: int = 0) -> bool:
        """Count a call as a tool's success or failure, and return whether it counts.

        A call that waits, or that a person refused, says nothing about its tool. An agent that is used as a tool counts once.
        """
        ok = _ENDED.get(status) if isinstance(status, str) else None
        if ok is None or (inside is not None and (ok or _ENDED.get(inside) is False)):
            if ok and name in self._tools:  # it makes up for its failures all the same
                self._tool_ended(name, 0, 0, at, True)
            return False
        self.call_count += 1
        self._succeeded += ok
        if name is None:
            self._lost_failures += not ok
        else:
            self._tool_ended(name, 1, int(ok), at, ok)
        return True

    def calls_succeeded(self, count: int, name: str | None = None, at: int = 0) -> None:
        """Count so many calls that returned a result and opened no run, as `call_finished` does."""
        self.call_count += count
        self._succeeded += count
        if name is not None:
            self._tool_ended(name, count, count, at, True)

    def _tool_ended(self, name: str, executed: int, succeeded: int, at: int, ok: bool) -> None:
        if self._shares_tools:
            self._tools, self._shares_tools = {each: [*tool] for each, tool in self._tools.items()}, False
        tool = self._tools.get(name)
        if tool is None:
            tool = self._tools[name] = [0, 0, at, ok]
            self._failing += not ok
        was_counted = tool[0] > tool[1] or name in self._scoring
        tool[0] += executed
        tool[1] += succeeded
        if was_counted:
            self._counted += executed
            self._counted_ok += succeeded
        elif tool[0] > tool[1] or name in self._scoring:
            self._counted += tool[0]
            self._counted_ok += tool[1]
        if at > tool[2] or (at == tool[2] and not ok):  # parallel calls: the failure counts
            self._failing += bool(tool[3]) - bool(ok)
            tool[2], tool[3] = at, ok

    def _has_scores(self, name: str) -> None:
        if name in self._scoring:
            return
        self._scoring |= {name}
        executed, succeeded, *_ = self._tools.get(name, (0, 0))
        if executed == succeeded:  # else they are counted already
            self._counted += executed
            self._counted_ok += succeeded

    def user_spoke(self, at: int) -> None:
        """Note that a person wrote something: the pessimistic reading then leaves out the searches that had ended before."""
        self._words_at = max(self._words_at, at)
        self._bound_worst()

    def search_finished(self, results: SearchResults, name: str | None = None, at: int = 0) -> None:
        """Count the results of a search, possibly none."""
        if results.scores:
            if name is not None:
                self._has_scores(name)
            self._has_scored_source |= bool(results.sources)
            alone = RunEvidence()
            alone._count_search(results)
            fields = alone._of_searches()
            average = fields.get("search_avg_with_unusable", fields["search_avg_score"])
            variance = fields.get("search_variance_with_unusable", fields["search_score_variance"])
            self._keep_worst([(at, strict_quality(alone._best, average, variance), fields)])
        self._count_search(results)

    def _count_search(self, results: SearchResults) -> None:
        self._searches += 1
        self._found += results.count
        for score in results.scores:
            self.usable_scores += 1
            self._best = max(self._best, score)
            deviation = score - self._mean
            self._mean += deviation / self.usable_scores
            self._spread += deviation * (score - self._mean)
        self.unusable_scores += results.unusable_scores
        self.unread_searches += results.unreadable
        self._empty += not results.count
        self.unscored_searches += results.lacks_scores
        self._add_sources(results.sources)

    def _keep_worst(self, searches: list[tuple[int, float, dict[str, Any]]]) -> None:
        kept: list[tuple[int, float, dict[str, Any]]] = []
        for search in sorted([*self._worst, *searches], key=itemgetter(0)):
            while kept and kept[-1][1] >= search[1]:
                kept.pop()
            kept.append(search)
        self._worst = kept
        self._bound_worst()

    def _bound_worst(self) -> None:
        worst = self._worst
        before = sum(search[0] < self._words_at for search in worst)
        if before > 1:
            del worst[1:before]
        while len(worst) > MAX_WORST:
            (_, quality, figures), (at, *_) = worst[1:3]
            worst[1:3] = [(at, quality, figures)]

    @property
    def has_failed(self) -> bool:
        """Whether the last call of a tool failed, of any tool."""
        return self._lost_failures > 0 or self._failing > 0

    def has_calls_of(self, name: str) -> bool:
        """Return whether a call of this tool was counted."""
        return name in self._tools

    def snapshot(self) -> RunEvidence:
        """Return the evidence as it is now, in constant time. More evidence may be added to the original afterwards, in any thread.

        More may be added to the snapshot, too, as long as nothing was added to the original since. Calls without a name may be added later.
        """
        snapshot = object.__new__(RunEvidence)
        for name in RunEvidence.__slots__:
            setattr(snapshot, name, getattr(self, name))
        snapshot._worst, snapshot._beyond, snapshot._shares_tools = [*self._worst], set(), True
        return snapshot

    def merge(self, other: RunEvidence) -> None:
        """Add the evidence of another run, such as a nested one."""
        if other._beyond is not None:
            raise ValueError("a snapshot cannot be merged into other evidence")
        for name in _ADDED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        scored = self.usable_scores + other.usable_scores
        if other.usable_scores:
            distance = other._mean - self._mean
            self._spread += other._spread + distance * distance * self.usable_scores * other.usable_scores / scored
            self._mean += distance * other.usable_scores / scored
            self._best = max(self._best, other._best)
        self.usable_scores = scored
        self._add_sources(other._sources)
        for name, (executed, succeeded, at, ok) in other._tools.items():
            self._tool_ended(name, executed, succeeded, at, bool(ok))
        for name in other._scoring:
            self._has_scores(name)
        self._has_scored_source |= other._has_scored_source
        self._words_at = max(self._words_at, other._words_at)
        if other._worst:
            self._keep_worst(other._worst)

    def pessimistic(self, factors: ConfidenceFactors) -> ConfidenceFactors:
        """Return factors of this evidence, with or without judgements, in the pessimistic reading.

        Tool success is 0 if the last call of any tool failed, else 1. Of the scored searches since the user's last words, or before them if
        there was none since, only the worst counts, and sources only if a scored search had any.
        """
        if self._searches == len(self._worst) == 1 and self._words_at == BEFORE and self.call_count == self._succeeded:
            return factors  # its only search, and nothing failed
        return replace(factors, **self._pessimistic())

    def _pessimistic(self) -> dict[str, Any]:
        succeeded = 0 if self.has_failed else 1
        # Words of the user alone are not evidence: until a search follows them, the searches before them count.
        worst = next(
            (figures for at, _, figures in self._worst if at >= self._words_at),
            self._worst[0][2] if self._worst else {},
        )
        return {
            **_NO_SEARCH,
            **worst,
            "tool_execution_count": 1,
            "tool_success_count": succeeded,
            "tool_success_rate": float(succeeded),
            "source_count": self._source_count if self._has_scored_source else 0,
        }

    def without_idle_calls(self, factors: ConfidenceFactors) -> ConfidenceFactors:
        """Return factors of this evidence without the calls of tools that never failed and whose results carry no scores.

        Calls that do nothing would otherwise make up for the failures of other tools, and in `strict` raise a run that was judged.
        """
        return replace(factors, **self._without_idle_calls())

    def _without_idle_calls(self) -> dict[str, Any]:
        return {**_NO_TOOLS, **_of_tools(self._counted + self._lost_failures, self._counted_ok)}

    def readings(self) -> dict[str, Any]:
        """Return all that gates take from this evidence, as JSON values; see `RecordedEvidence`."""
        factors = self.factors()

        def changes(fields: dict[str, Any], to: ConfidenceFactors) -> dict[str, Any]:
            return {name: value for name, value in fields.items() if value != getattr(to, name)}

        return {
            "factors": changes({name: getattr(factors, name) for name in _EVERY}, _DEFAULTS),
            "pessimistic": changes(self._pessimistic(), factors),
            "without_idle_calls": changes(self._without_idle_calls(), factors),
            "usable_scores": self.usable_scores,
            "has_failed": self.has_failed,
        }

    def factors(self) -> ConfidenceFactors:
        """Return the factors so far. Unmeasured ones are left out, or marked as fallbacks."""
        if not self._searches:
            if self.call_count == self._succeeded < len(_ALL_SUCCEEDED):
                return _ALL_SUCCEEDED[self.call_count]
            return ConfidenceFactors(**_of_tools(self.call_count, self._succeeded))
        known = {**_of_tools(self.call_count, self._succeeded), **self._of_searches()}
        if self._source_count:
            known["source_count"] = self._source_count
        if self._source_count > 1:
            known["source_agreement"] = FALLBACK_SCORE
            known["agreement_evaluated"] = False
        return ConfidenceFactors(**known)

    def _of_searches(self) -> dict[str, Any]:
        known: dict[str, Any] = {"search_result_count": self._found}
        # A search without results counts against the run; results without any score count neither for it nor against it.
        known["search_made"] = bool(self.usable_scores or self.unusable_scores or self.unread_searches or self._empty)
        if self.unusable_scores:
            every = self.usable_scores + self.unusable_scores
            known["search_avg_with_unusable"] = min(self._best, max(0.0, self._mean * self.usable_scores / every))
            spread = self._spread + self._mean * self._mean * self.usable_scores * self.unusable_scores / every
            known["search_variance_with_unusable"] = max(0.0, spread / every)
        if self.usable_scores:
            known["search_max_score"] = self._best
            known["search_avg_score"] = min(self._best, max(0.0, self._mean))
            known["search_score_variance"] = max(0.0, self._spread / self.usable_scores)
        return known

    def _add_sources(self, sources: Iterable[str]) -> None:
        if self._source_count >= MAX_SOURCES:
            return
        if self._beyond is not None:
            more = {source for source in sources if source not in self._sources} - self._beyond
            self._beyond |= more
            self._source_count += len(more)
            return
        self._sources.update(dict.fromkeys(sources))
        self._source_count = len(self._sources)


class RecordedEvidence:
    """The evidence that the readings of a gate record, for a replay."""

    def __init__(self, readings: Mapping[str, Any]) -> None:
        self._readings = readings
        self.usable_scores = _count(readings, "usable_scores")
        self.has_failed = readings["has_failed"] is True
        for read in (self.pessimistic, self.without_idle_calls):
            read(self.factors())

    def factors(self) -> ConfidenceFactors:
        """Return what `RunEvidence.factors` returned."""
        factors = self._readings["factors"]
        agreement = FALLBACK_SCORE if _count(factors, "source_count") > 1 else 0.0
        known = {"search_made": False, **factors, "source_agreement": agreement}
        return ConfidenceFactors(**known, agreement_evaluated=False)

    def pessimistic(self, factors: ConfidenceFactors) -> ConfidenceFactors:
        """Return what `RunEvidence.pessimistic` returned."""
        return replace(factors, **self._readings["pessimistic"])

    def without_idle_calls(self, factors: ConfidenceFactors) -> ConfidenceFactors:
        """Return what `RunEvidence.without_idle_calls` returned."""
        return replace(factors, **self._readings["without_idle_calls"])


def _of_tools(executed: int, succeeded: int) -> dict[str, Any]:
    if not executed:
        return {}
    return {
        "tool_execution_count": executed,
        "tool_success_count": succeeded,
        "tool_success_rate": succeeded / executed,
    }


_NO_TOOLS: dict[str, Any] = {"tool_execution_count": 0, "tool_success_count": 0, "tool_success_rate": 1.0}
_NO_SEARCH: dict[str, Any] = {
    "search_result_count": 0, "search_avg_score": 0.0, "search_max_score": 0.0, "search_score_variance": 1.0, "search_made": False,
    "search_avg_with_unusable": None, "search_variance_with_unusable": None,
}  # fmt: skip
_EVERY = (*_NO_SEARCH, *_NO_TOOLS, "source_count")
_DEFAULTS = ConfidenceFactors()
_ALL_SUCCEEDED = tuple(ConfidenceFactors(**_of_tools(count, count)) for count in range(33))
"""The factors of runs without searches whose calls all succeeded, by the number of calls. Most runs are of this kind."""


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
        kinds = [str(step.get("type", "")) if isinstance(step, Mapping) else "" for step in trace.get("steps") or ()]
    else:
        kinds = [step.type for step in trace.steps]
    evidence = RunEvidence()
    for ok in outcomes_of_calls(kinds):
        evidence.call_finished("ok" if ok else "error", None)
    return evidence.factors()


def evidence_of_calls(calls: list[Any], *, since: int | None = None, per_step: int = PER_STEP) -> RunEvidence:
    """Return the evidence of calls as a trace holds them under `grace.calls`."""
    evidence = RunEvidence()
    if since is not None:
        calls = sorted((call for call in calls if isinstance(call, Mapping)), key=_number_of_end)
    statuses: dict[Any, Any] | None = None
    name: str | None = None
    at = BEFORE
    for call in calls:
        if type(call) is not dict and not isinstance(call, Mapping):
            continue
        if since is not None:
            name, at = str(call.get("name")), max(at + 1, since + per_step * _number_of_end(call))
        if "child" not in call and "search" not in call:
            evidence.call_finished(call.get("status"), None, name, at)
            continue
        inside: str | None = None
        if "child" in call and isinstance(parent := call.get("parent"), str):
            if statuses is None:
                known = [(each.get("call_id"), each.get("status")) for each in calls if isinstance(each, Mapping)]
                statuses = {
                    call_id: ended for call_id, ended in known if isinstance(call_id, str) and isinstance(ended, str)
                }
            inside = str(statuses.get(parent, ""))
        search = call.get("search")
        counts = evidence.call_finished(call.get("status"), inside, name, at) or call.get("status") in PARTLY_READ
        if counts and search is not None and isinstance(search, Mapping):
            evidence.search_finished(_recorded_results(search), name, at)
    return evidence


def _number_of_end(call: Mapping[str, Any]) -> int:
    """Return the number of the step at which a call ended; calls without one come first, searches without one last."""
    number = call.get("observation", PER_STEP if "search" in call else 0)
    return min(max(number, 0), PER_STEP) if type(number) is int else 0


def _recorded_results(search: Mapping[str, Any]) -> SearchResults:
    """Return the results that a trace records; every figure is checked again, because any program may have written the trace."""
    values = _list_field(search, "scores")
    scores = [score for value in values if (score := usable_score(value)) is not None]
    unusable = len(values) - len(scores) + _count(search, "unusable_scores")
    count = max(_count(search, "count"), len(scores) + unusable)
    return SearchResults(
        count=count,
        scores=tuple(scores),
        sources=tuple(source for source in _list_field(search, "sources") if isinstance(source, str) and source),
        unusable_scores=unusable,
        unreadable=bool(search.get("unreadable")),
        kind=NONE if search.get("kind") == NONE else "",
    )


def _count(search: Mapping[str, Any], name: str) -> int:
    value = search.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _list_field(search: Mapping[str, Any], name: str) -> list[Any]:
    values = search.get(name)
    return values if isinstance(values, list) else []
