"""The features of a run, from which a learned confidence is computed: counts, rates, lengths, wording, judgements.

Each is a number, or None where nothing was measured. They are computed from a `Transcript`, which holds only what exists when the decision
is made.
"""

from __future__ import annotations

import math
import tomllib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from grace_kp.calibrate._facts import NOTHING, document_of, list_in, mapping_in
from grace_kp.confidence import factors_from_trace, wording
from grace_kp.errors import is_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.confidence import ConfidenceFactors
    from grace_kp.trace import ReasoningTrace


_FAILED = ("error", "cancelled")
_ENDED = ("ok", "error", "cancelled", "closed")
MAX_LATENCY = 1e12
"""Milliseconds; more than any run takes, and a number that can be summed."""


@dataclass(slots=True)
class SeenCall:
    """A call of a tool, as far as it is known."""

    name: str
    signature: str
    """Name and arguments as a string, to recognise a repeated call."""
    size: int
    """Characters of the arguments."""
    record: Mapping[str, Any]
    """The entry of `grace.calls`; empty without one."""
    result: str | None = None
    """The text of the result; None for a call without a result."""
    latency: float | None = None
    """Milliseconds that the call took. It counts once there is a result: a trace states it for calls that were still running, too."""
    failed: bool = False


@dataclass(slots=True)
class Transcript:
    """The part of a run that a decision may use."""

    kinds: list[str] = field(default_factory=list)
    """The types of the steps."""
    calls: list[SeenCall] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    """The texts of the results of calls."""
    messages: list[str] = field(default_factory=list)
    """Observations that no call returned: what a user or another agent wrote."""
    thoughts: list[str] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    objective: str = ""
    answer: str | None = None
    """The answer; None before the run has ended."""
    evaluation: Mapping[str, Any] = field(default_factory=dict)
    """`grace.evaluation`; empty before the run has ended."""


def transcript_of(trace: Mapping[str, Any] | ReasoningTrace, *, has_ended: bool, upto: int | None) -> Transcript:
    """Return the part of a trace that a decision may use."""
    document = document_of(trace)
    seen = Transcript()
    steps = [step for step in list_in(document, "steps")[:upto] if isinstance(step, Mapping)]
    while steps and steps[-1].get("type") == "error_recovery":
        # A run that ended well is said to have recovered from its last error. A reader that knows the label adds this step.
        steps.pop()
    grace = mapping_in(document, "grace")
    _read_steps(seen, steps, [call for call in list_in(grace, "calls") if isinstance(call, Mapping)])
    seen.objective = _text(mapping_in(document, "task").get("objective"))
    if has_ended:
        seen.answer = _text(mapping_in(document, "outcome").get("result_summary"))
        seen.evaluation = mapping_in(grace, "evaluation")
    return seen


def _read_steps(seen: Transcript, steps: list[Mapping[str, Any]], records: list[Mapping[str, Any]]) -> None:
    by_call = {number: record for record in records if type(number := record.get("tool_call")) is int}
    waiting: deque[SeenCall] = deque()
    linked: dict[int, SeenCall] = {}
    last: SeenCall | None = None
    for place, step in enumerate(steps):
        kind = step.get("type")
        kind = kind if isinstance(kind, str) else str(getattr(kind, "value", kind))
        number = step.get("step_id")
        number = number if type(number) is int else place
        seen.kinds.append(kind)
        latency = step.get("latency_ms")
        took = min(latency, MAX_LATENCY) if isinstance(latency, int | float) and 0 <= latency < math.inf else None
        content = _text(step.get("content"))
        if kind == "tool_call":
            last = _call(step, by_call.get(number, NOTHING))
            last.latency = took
            seen.calls.append(last)
            if type(observation := last.record.get("observation")) is int:
                linked[observation] = last
            else:
                waiting.append(last)
        elif kind == "observation":
            last = linked.pop(number, None)
            if last is None and number not in linked and waiting and not waiting[0].record:
                last = waiting.popleft()
            if last is None:
                seen.messages.append(content)
                continue
            seen.results.append(content)
            last.result = content
            if last.latency is not None:
                seen.latencies.append(last.latency)
            last.failed = last.record.get("status") in _FAILED or wording.shows_failure(content)
        elif kind == "error_recovery":
            if last is not None and not last.record:
                last.failed = True
            last = None
        else:
            last = None
            if took is not None:
                seen.latencies.append(took)
            if kind == "thought":
                seen.thoughts.append(content)


def _call(step: Mapping[str, Any], record: Mapping[str, Any]) -> SeenCall:
    name = _text(mapping_in(step, "tool").get("name"))
    arguments = step.get("input")
    try:
        shown = "" if arguments is None else str(arguments)
    except RecursionError:
        shown = "nested"
    return SeenCall(name, f"{name} {shown}", len(shown), record)


def finished_calls(seen: Transcript) -> list[Any]:
    """Return the entries of `grace.calls` whose results can be seen."""
    return [call.record for call in seen.calls if call.result is not None and call.record.get("status") in _ENDED]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


with files("grace_kp.calibrate").joinpath("features.toml").open("rb") as _file:
    TABLE: Mapping[str, tuple[str, str, str]] = tomllib.load(_file)
"""By feature the words for a high and for a low value, and how it is measured."""
FEATURES = tuple(TABLE)
"""Names of the features. Lengths and counts are logarithms of 1 + n; rates, overlaps, scores and judgements are from 0 to 1."""
Moment = Literal["end", "action"]
MOMENTS = ("end", "action")
MAX_RESULTS = 12
"""Number of the latest results whose words are compared with the answer."""
MAX_RESULT, MAX_WIDE_RESULT = 1_500, 600
"""Characters of a result or thought whose words count; fewer beyond ASCII, where a character says more and takes longer."""
MAX_THOUGHTS = 12


@dataclass(frozen=True, slots=True)
class Features:
    """The features of a run at one moment."""

    moment: str
    values: tuple[float | None, ...]
    """In the order of `FEATURES`; None where nothing was measured."""
    tools: tuple[str, ...] = ()
    """The distinct tools that were called, in the order of their first calls."""

    def as_dict(self) -> dict[str, float | None]:
        """Return the values by name."""
        return dict(zip(FEATURES, self.values, strict=True))


def features(trace: Mapping[str, Any] | ReasoningTrace, *, moment: Moment = "end", upto: int | None = None) -> Features:
    """Return the features of a run at the moment of a decision.

    Args:
        trace: the trace, or its dict form.
        moment: `"end"` when the run has ended and its answer exists; `"action"` before an action of an open run, which has no answer.
        upto: number of steps that exist when the decision is made; None for all.

    Raises:
        ValueError: the moment is unknown, or `upto` is negative.
    """
    if moment not in MOMENTS:
        raise ValueError(f"moment must be 'end' or 'action' (got {moment!r})")
    if upto is not None and upto < 0:
        raise ValueError(f"upto must be a number of steps >= 0 (got {upto})")
    seen = transcript_of(trace, has_ended=moment == "end", upto=upto)
    found = {**_of_steps(seen), **_of_calls(seen), **_of_texts(seen), **_of_evidence(seen)}
    if seen.answer is not None:
        found.update(_of_answer(seen, seen.answer))
    tools = tuple(dict.fromkeys(call.name for call in seen.calls))
    return Features(moment, tuple(found.get(name) for name in FEATURES), tools)


def _of_steps(seen: Transcript) -> dict[str, float | None]:
    kinds = seen.kinds
    last = kinds[-1] if kinds else ""
    return {
        "steps": math.log1p(len(kinds)),
        "thoughts": math.log1p(len(seen.thoughts)),
        "messages": math.log1p(len(seen.messages)),
        "recoveries": math.log1p(kinds.count("error_recovery")),
        "ends_with_call": float(last == "tool_call"),
        "ends_with_result": float(last == "observation"),
        "since_call": math.log1p(kinds[::-1].index("tool_call") if "tool_call" in kinds else len(kinds)),
        "latency": math.log1p(_mean(seen.latencies)) if seen.latencies else None,
    }


def _of_calls(seen: Transcript) -> dict[str, float | None]:
    calls, results = seen.calls, seen.results
    found: dict[str, float | None] = {"calls": math.log1p(len(calls))}
    if not calls:
        return found
    signatures = [call.signature for call in calls]
    returned = [call for call in calls if call.result is not None]
    failed = [call.failed for call in returned]
    found["tools"] = math.log1p(len({call.name for call in calls}))
    found["tool_variety"] = len({call.name for call in calls}) / len(calls)
    found["repeated_calls"] = 1 - len(set(signatures)) / len(signatures)
    found["arguments"] = math.log1p(_mean([call.size for call in calls]))
    if not returned:
        return found
    found["errors"] = math.log1p(sum(failed))
    found["error_rate"] = (sum(failed) + 0.5) / (len(failed) + 1)
    found["error_at_end"] = float(failed[-1])
    found["trouble"] = _mean([wording.shows_trouble(text) for text in results])
    found["empty_results"] = _mean([wording.is_empty_result(text) for text in results])
    found["repeated_results"] = 1 - len(set(results)) / len(results)
    return found


def _of_texts(seen: Transcript) -> dict[str, float | None]:
    found: dict[str, float | None] = {
        "objective_length": math.log1p(len(seen.objective)),
        "messages_length": math.log1p(sum(len(text) for text in seen.messages)),
    }
    if seen.results:
        found["result_length"] = math.log1p(_mean([len(text) for text in seen.results]))
        found["last_result_length"] = math.log1p(len(seen.results[-1]))
    if seen.messages:
        found["message_length"] = math.log1p(_mean([len(text) for text in seen.messages]))
        found["thanks"] = math.log1p(wording.count_phrases(wording.plain(_beginning(seen.messages[-1])), "thanks"))
    if seen.thoughts:
        latest = [wording.plain(_beginning(text)) for text in seen.thoughts[-MAX_THOUGHTS:]]
        found["thought_length"] = math.log1p(_mean([len(text) for text in seen.thoughts]))
        found["doubt"] = _mean([min(wording.count_phrases(words, "hedges"), 3) for words in latest])
        found["last_doubt"] = math.log1p(wording.count_phrases(latest[-1], "hedges"))
        found["apologies"] = _mean([min(wording.count_phrases(words, "apologies"), 3) for words in latest])
    return found


def _of_answer(seen: Transcript, answer: str) -> dict[str, float | None]:
    words = wording.plain(answer)
    own = wording.terms_of(words)
    found: dict[str, float | None] = {
        "answer_length": math.log1p(len(answer)),
        "hedging": math.log1p(wording.count_phrases(words, "hedges")),
        "refusal": math.log1p(wording.count_phrases(words, "refusals")),
        "asks": float("?" in answer[-400:] or "？" in answer[-400:]),
        "numbers": math.log1p(sum(word.isdigit() for word in own)),
        "answer_is_error": float(wording.shows_failure(answer)),
        "stated": wording.stated_confidence(answer),
    }
    if own:
        if seen.results:
            read: set[str] = set()
            for text in seen.results[-MAX_RESULTS:]:
                read |= wording.terms_of(wording.plain(_beginning(text)))
            found["grounding"] = len(own & read) / len(own)
        asked = wording.terms_of(wording.plain(seen.objective))
        if asked:
            found["on_topic"] = len(own & asked) / len(asked)
    return found


def _of_evidence(seen: Transcript) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    ended = finished_calls(seen)
    if any("search" in call for call in ended):
        found.update(of_search(factors_from_trace({"grace": {"calls": ended}})))
    for name in ("self_evaluation", "coverage", "agreement"):
        record = mapping_in(seen.evaluation, "source_agreement" if name == "agreement" else name)
        score = None if record.get("fallback") else record.get("score")
        found[name] = float(score) if is_unit(score) else None
    return found


def of_search(factors: ConfidenceFactors) -> dict[str, float | None]:
    """Return the features of searches."""
    scores = (factors.search_max_score, factors.search_avg_score) if factors.search_made else (None, None)
    counts = math.log1p(factors.search_result_count), math.log1p(factors.source_count)
    return dict(zip(("search_quality", "search_average", "search_results", "sources"), (*scores, *counts), strict=True))


def _beginning(text: str) -> str:
    return text[:MAX_RESULT] if text.isascii() else text[:MAX_WIDE_RESULT]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
