"""The record of a confidence in a trace, and the sentence that says how an unsuccessful run ended. It computes no score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.record import SUSPENDED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.confidence import ConfidenceScore


def confidence_record(score: ConfidenceScore, profile: str) -> dict[str, Any]:
    """A confidence as it stands in a trace: the score, its parts (None where not evaluated), its penalties and its reason."""
    return {
        "score": score.score,
        "level": score.level,
        "profile": profile,
        "reason": score.reason,
        "breakdown": score.evaluated,
        "penalties": list(score.penalties_applied),
        "not_evaluated": list(score.not_evaluated),
    }


_FAILURES = {
    "cancelled": "The run was cancelled.",
    "closed": "The run was closed before its end.",
    "exited": "The run ended with the program's exit.",
    "interrupted": "The process ended before the run did.",
    "not_approved": "The run stopped because an action was not approved.",
}


def failure_of(document: Mapping[str, Any]) -> str:
    """Return one sentence that says how an unsuccessful run ended; empty for a run that succeeded or waits for a person."""
    grace = document.get("grace") or {}
    status = grace.get("status", "completed")
    if document["metadata"].get("success") is not False or status == SUSPENDED:
        return ""
    if isinstance(status, str) and status in _FAILURES:
        return _FAILURES[status]
    error = grace.get("error")
    if isinstance(error, dict) and isinstance(error.get("type"), str):
        return f"The run failed with {error['type']}."
    return "The run failed." if status == "failed" else "The run did not succeed."
