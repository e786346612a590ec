"""Traces: the JSON contract, bounded rendering, redaction, JSON lines, foreign formats.

Names are resolved on first use: recording needs the rendering and must not load pydantic for it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grace_kp.trace._files import default_mode, keep_private, refuse_planted_link, whole_file, write_whole
    from grace_kp.trace._json_text import TooLong, lines_of, object_without_duplicates, refuse_constant
    from grace_kp.trace._jsonl import FileRun, SpanFormat, read_runs, read_traces, write_traces
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
        refuse_what_json_cannot_hold,
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
        read_decisions,
    )
    from grace_kp.trace._render import (
        MAX_ITEMS,
        MAX_TEXT,
        SCALARS,
        Getter,
        class_mro,
        class_namespace,
        cut,
        describe_error,
        dictionary_getter,
        error_text,
        hidden_fields,
        render,
        render_text,
        slots_of,
        storable,
        stored_fields,
        to_text,
    )
    from grace_kp.trace._rules import (
        MAX_METADATA,
        MAX_TAGS,
        MAX_VALUE,
        METADATA,
        PARENT,
        SESSION,
        TAG,
        USER,
        Failure,
        Failures,
        attributes_in,
        comparable,
        label,
        outcomes_of_calls,
    )
    from grace_kp.trace._source_file import SourceFields, SourceFile, problem_at, yaml_package
    from grace_kp.trace.formats import from_openai_messages, is_native, success_field, verdict
    from grace_kp.trace.html import Links, run_head, run_timeline, run_title, run_tree, run_waterfall
    from grace_kp.trace.redaction import (
        UNSCANNED,
        Redaction,
        Redactor,
        have_plain_names,
        redact,
        redact_text,
        redact_value,
        redacted_arguments,
        redacted_error,
        texts_in,
    )

__all__ = [
    "MAX_ITEMS", "MAX_METADATA", "MAX_TAGS", "MAX_TEXT", "MAX_VALUE", "METADATA", "PARENT", "SCALARS", "SESSION",
    "TAG", "UNSCANNED", "USER", "CallRecord", "ConfidenceRecord", "DecisionRecord", "Entity", "ErrorRecord",
    "EvaluationRecord", "Failure", "Failures", "FileRun", "Getter", "JudgementRecord", "KnowledgeGraphDelta", "Links", "Metadata", "NoticeRecord",
    "Outcome", "ReasoningTrace", "Redaction", "Redactor", "Relationship", "ResponseRecord", "ScoreRecord", "SearchRecord",
    "SourceFields", "SourceFile", "SpanFormat", "Step", "Task", "TooLong", "ToolRef", "UnusableScore", "ValueRecord", "attributes_in",
    "class_mro", "class_namespace", "comparable", "cut", "default_mode", "describe_error", "dictionary_getter", "error_text",
    "from_openai_messages", "have_plain_names", "hidden_fields", "is_native", "keep_private", "label", "lines_of", "object_without_duplicates", "outcomes_of_calls", "problem_at", "read_decisions", "read_runs", "read_traces", "redact",
    "redact_text", "redact_value", "redacted_arguments", "redacted_error", "refuse_constant", "refuse_planted_link", "refuse_what_json_cannot_hold", "render", "render_text", "run_head", "run_timeline", "run_title", "run_tree", "run_waterfall",
    "slots_of", "storable", "stored_fields", "success_field", "texts_in", "to_text", "verdict", "whole_file", "write_traces", "write_whole", "yaml_package",
]  # fmt: skip

# Where a name is looked for: the modules that load the least come first.
_MODULES = (
    "_render", "_rules", "_files", "redaction", "_records", "_json_text", "_model", "_source_file", "_jsonl", "formats", "html",
)  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = (importlib.import_module(f"{__name__}.{module}") for module in _MODULES)
    value: object = next(getattr(module, name) for module in modules if hasattr(module, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
