"""The features of a run, from which a learned confidence is computed: counts, rates, lengths, wording, judgements.

Each is a number, or None where nothing was measured. They use only what exists when the decision is made, which `_transcript` ensures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from grace_kp.calibrate._transcript import Transcript, finished_calls, transcript_of
from grace_kp.calibrate._wording import (
    count_apologies,
    count_hedges,
    count_refusals,
    count_thanks,
    is_empty_result,
    plain,
    shows_failure,
    shows_trouble,
    stated_confidence,
    words_of,
)
from grace_kp.confidence import factors_from_trace
from grace_kp.errors import is_unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.trace import ReasoningTrace

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
    found["trouble"] = _mean([shows_trouble(text) for text in results])
    found["empty_results"] = _mean([is_empty_result(text) for text in results])
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
        found["thanks"] = math.log1p(count_thanks(plain(_beginning(seen.messages[-1]))))
    if seen.thoughts:
        latest = [plain(_beginning(text)) for text in seen.thoughts[-MAX_THOUGHTS:]]
        found["thought_length"] = math.log1p(_mean([len(text) for text in seen.thoughts]))
        found["doubt"] = _mean([min(count_hedges(words), 3) for words in latest])
        found["last_doubt"] = math.log1p(count_hedges(latest[-1]))
        found["apologies"] = _mean([min(count_apologies(words), 3) for words in latest])
    return found


def _of_answer(seen: Transcript, answer: str) -> dict[str, float | None]:
    words = plain(answer)
    own = words_of(words)
    found: dict[str, float | None] = {
        "answer_length": math.log1p(len(answer)),
        "hedging": math.log1p(count_hedges(words)),
        "refusal": math.log1p(count_refusals(words)),
        "asks": float("?" in answer[-400:] or "？" in answer[-400:]),
        "numbers": math.log1p(sum(word.isdigit() for word in own)),
        "answer_is_error": float(shows_failure(answer)),
        "stated": stated_confidence(answer),
    }
    if own:
        if seen.results:
            read: set[str] = set()
            for text in seen.results[-MAX_RESULTS:]:
                read |= words_of(plain(_beginning(text)))
            found["grounding"] = len(own & read) / len(own)
        asked = words_of(plain(seen.objective))
        if asked:
            found["on_topic"] = len(own & asked) / len(asked)
    return found


def _of_evidence(seen: Transcript) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    ended = finished_calls(seen)
    if any("search" in call for call in ended):
        factors = factors_from_trace({"grace": {"calls": ended}})
        if factors.search_made:
            found["search_quality"] = factors.search_max_score
            found["search_average"] = factors.search_avg_score
        found["search_results"] = math.log1p(factors.search_result_count)
        found["sources"] = math.log1p(factors.source_count)
    for name, field in _JUDGEMENTS.items():
        found[name] = _judged(seen.evaluation.get(field))
    return found


_JUDGEMENTS = {"self_evaluation": "self_evaluation", "coverage": "coverage", "agreement": "source_agreement"}


def _judged(record: object) -> float | None:
    """Return a judgement that a model returned; None for a fallback."""
    if not isinstance(record, dict) or record.get("fallback"):
        return None
    score = record.get("score")
    return float(score) if is_unit(score) else None


def _beginning(text: str) -> str:
    return text[:MAX_RESULT] if text.isascii() else text[:MAX_WIDE_RESULT]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


FEATURES = (
    "steps", "thoughts", "messages", "recoveries", "ends_with_call", "ends_with_result", "since_call", "latency",
    "calls", "tools", "tool_variety", "repeated_calls", "arguments",
    "errors", "error_rate", "error_at_end", "trouble", "empty_results", "repeated_results",
    "objective_length", "result_length", "last_result_length", "message_length", "messages_length", "thanks",
    "thought_length", "doubt", "last_doubt", "apologies",
    "answer_length", "hedging", "refusal", "asks", "numbers", "answer_is_error", "stated", "grounding", "on_topic",
    "search_quality", "search_average", "search_results", "sources", "self_evaluation", "coverage", "agreement",
)  # fmt: skip
"""Names of the features. Lengths and counts are logarithms of 1 + n; rates, overlaps, scores and judgements are from 0 to 1."""
