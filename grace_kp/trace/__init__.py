"""What a run looks like: the JSON contract, bounded rendering, redaction, JSON lines, foreign formats.

The names are resolved on first use: recording needs the rendering, and must not load pydantic for it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grace_kp.trace._jsonl import read_traces, write_traces
    from grace_kp.trace._model import (
        Entity,
        KnowledgeGraphDelta,
        Metadata,
        Outcome,
        ReasoningTrace,
        Relationship,
        Step,
        Task,
        ToolRef,
    )
    from grace_kp.trace._records import (
        CallRecord,
        ConfidenceRecord,
        DecisionRecord,
        ErrorRecord,
        EvaluationRecord,
        JudgementRecord,
        NoticeRecord,
        ResponseRecord,
        ScoreRecord,
        SearchRecord,
        UnusableScore,
        ValueRecord,
    )
    from grace_kp.trace._redact import Redaction, redact
    from grace_kp.trace.formats import from_openai_messages

__all__ = [
    "CallRecord",
    "ConfidenceRecord",
    "DecisionRecord",
    "Entity",
    "ErrorRecord",
    "EvaluationRecord",
    "JudgementRecord",
    "KnowledgeGraphDelta",
    "Metadata",
    "NoticeRecord",
    "Outcome",
    "ReasoningTrace",
    "Redaction",
    "Relationship",
    "ResponseRecord",
    "ScoreRecord",
    "SearchRecord",
    "Step",
    "Task",
    "ToolRef",
    "UnusableScore",
    "ValueRecord",
    "from_openai_messages",
    "read_traces",
    "redact",
    "write_traces",
]

_ELSEWHERE = {
    "CallRecord": "_records",
    "ConfidenceRecord": "_records",
    "DecisionRecord": "_records",
    "ErrorRecord": "_records",
    "EvaluationRecord": "_records",
    "JudgementRecord": "_records",
    "NoticeRecord": "_records",
    "ResponseRecord": "_records",
    "ScoreRecord": "_records",
    "SearchRecord": "_records",
    "UnusableScore": "_records",
    "ValueRecord": "_records",
    "Redaction": "_redact",
    "from_openai_messages": "formats",
    "read_traces": "_jsonl",
    "redact": "_redact",
    "write_traces": "_jsonl",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_ELSEWHERE.get(name, '_model')}")
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
