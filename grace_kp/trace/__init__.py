"""What a run looks like: the JSON contract, bounded rendering, redaction, JSON lines, foreign formats.

The names are resolved on first use: recording needs the rendering, and must not load pydantic for it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grace_kp.trace._attributes import (
        MAX_METADATA,
        MAX_TAGS,
        MAX_VALUE,
        METADATA,
        PARENT,
        SESSION,
        TAG,
        USER,
        attributes_in,
        comparable,
        label,
    )
    from grace_kp.trace._files import default_mode, keep_private, whole_file, write_whole
    from grace_kp.trace._hidden import redacted_arguments
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
    from grace_kp.trace._problems import refuse_what_json_cannot_hold
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
    from grace_kp.trace._redact import Redaction, redact, redact_text, redact_value
    from grace_kp.trace._redact_text import UNSCANNED
    from grace_kp.trace._render import MAX_ITEMS, MAX_TEXT, cut, describe_error, render, render_text, storable, to_text
    from grace_kp.trace.formats import from_openai_messages

__all__ = [
    "MAX_ITEMS",
    "MAX_METADATA",
    "MAX_TAGS",
    "MAX_TEXT",
    "MAX_VALUE",
    "METADATA",
    "PARENT",
    "SESSION",
    "TAG",
    "UNSCANNED",
    "USER",
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
    "attributes_in",
    "comparable",
    "cut",
    "default_mode",
    "describe_error",
    "from_openai_messages",
    "keep_private",
    "label",
    "read_traces",
    "redact",
    "redact_text",
    "redact_value",
    "redacted_arguments",
    "refuse_what_json_cannot_hold",
    "render",
    "render_text",
    "storable",
    "to_text",
    "whole_file",
    "write_traces",
    "write_whole",
]

_MODULES = {
    "CallRecord": "_records",
    "ConfidenceRecord": "_records",
    "DecisionRecord": "_records",
    "Entity": "_model",
    "ErrorRecord": "_records",
    "EvaluationRecord": "_records",
    "JudgementRecord": "_records",
    "KnowledgeGraphDelta": "_model",
    "MAX_ITEMS": "_render",
    "MAX_METADATA": "_attributes",
    "MAX_TAGS": "_attributes",
    "MAX_TEXT": "_render",
    "MAX_VALUE": "_attributes",
    "METADATA": "_attributes",
    "Metadata": "_model",
    "NoticeRecord": "_records",
    "Outcome": "_model",
    "PARENT": "_attributes",
    "ReasoningTrace": "_model",
    "Redaction": "_redact",
    "Relationship": "_model",
    "ResponseRecord": "_records",
    "SESSION": "_attributes",
    "ScoreRecord": "_records",
    "SearchRecord": "_records",
    "Step": "_model",
    "TAG": "_attributes",
    "Task": "_model",
    "ToolRef": "_model",
    "UNSCANNED": "_redact_text",
    "USER": "_attributes",
    "UnusableScore": "_records",
    "ValueRecord": "_records",
    "attributes_in": "_attributes",
    "comparable": "_attributes",
    "cut": "_render",
    "default_mode": "_files",
    "describe_error": "_render",
    "from_openai_messages": "formats",
    "keep_private": "_files",
    "label": "_attributes",
    "read_traces": "_jsonl",
    "redact": "_redact",
    "redact_text": "_redact",
    "redact_value": "_redact",
    "redacted_arguments": "_hidden",
    "refuse_what_json_cannot_hold": "_problems",
    "render": "_render",
    "render_text": "_render",
    "storable": "_render",
    "to_text": "_render",
    "whole_file": "_files",
    "write_traces": "_jsonl",
    "write_whole": "_files",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
