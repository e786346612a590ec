"""Facts about runs that say whether a profile fits them: their agents, models, tools, times and tasks. No labels.

Anyone may have written a trace, so a part of another form than expected counts as empty.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from grace_kp.trace import ReasoningTrace

NOTHING: Mapping[str, Any] = {}
MAX_NAMES = 500
HASH_DIGITS = 12
"""Hexadecimal digits of the hash of a run. Among 20,000 fitted runs, one other run in 10^10 is mistaken for one of them."""
_NOT_OF_THE_RUN = ("unknown", "file")
"""Sources of a time that say nothing about when a run took place."""
_TASK_IDS = ("task_id", "instance_id", "problem_id", "question_id", "sample_id")
"""Fields of a recorded run that name its task."""


def facts_of(trace: Mapping[str, Any] | ReasoningTrace) -> dict[str, list[str]]:
    """Return the distinct agents, models and tools that a trace names. A gated action counts as a tool, also if no step records its call."""
    document = document_of(trace)
    grace = mapping_in(document, "grace")
    models = [as_mapping(call).get("model") for call in list_in(grace, "model_calls")]
    tools = [mapping_in(as_mapping(step), "tool").get("name") for step in list_in(document, "steps")]
    tools += [as_mapping(entry).get("action") for entry in list_in(grace, "decisions")]
    return {
        "agents": _texts([mapping_in(document, "metadata").get("agent_id")]),
        "models": _texts([*models, mapping_in(grace, "source").get("model")]),
        "tools": _texts(tools),
    }


def domain_of(trace: Mapping[str, Any] | ReasoningTrace) -> str:
    """Return the task domain of a run; empty if it names none."""
    return "".join(_texts([mapping_in(document_of(trace), "metadata").get("task_domain")]))


def hash_of(trace: Mapping[str, Any] | ReasoningTrace) -> str | None:
    """Return the hash by which a profile knows a run that it was fitted on; None for a run without an id.

    The objective is part of it, because programs that number their runs use the same ids again.
    """
    document = document_of(trace)
    name, objective = document.get("id"), mapping_in(document, "task").get("objective", "")
    if not isinstance(name, str) or not name:
        return None
    return hashlib.sha256(f"{name}\n{objective}".encode("utf-8", "surrogatepass")).hexdigest()[:HASH_DIGITS]


def facts_of_all(traces: Iterable[Mapping[str, Any] | ReasoningTrace]) -> dict[str, Any]:
    """Return the distinct agents, models and tools of several traces, sorted, and the time of the first and of the last run.

    The time of the file that a run was read from is not the time of the run, and is left out.
    """
    names: dict[str, set[str]] = {"agents": set(), "models": set(), "tools": set()}
    times = set()
    for trace in traces:
        document = document_of(trace)
        for kind, found in facts_of(document).items():
            names[kind].update(found)
        if mapping_in(document, "grace").get("created_from") not in _NOT_OF_THE_RUN:
            times.update(_texts([mapping_in(document, "metadata").get("created_at")]))
    facts: dict[str, Any] = {kind: sorted(found)[:MAX_NAMES] for kind, found in names.items()}
    return {**facts, "from": min(times, default=None), "to": max(times, default=None)}


def fitted_facts(traces: Sequence[Mapping[str, Any] | ReasoningTrace], tasks: int) -> dict[str, Any]:
    """Return the facts of the runs that a profile was fitted on, and when it was."""
    return {
        "runs": len(traces),
        "tasks": tasks,
        **facts_of_all(traces),
        "domains": sorted({domain_of(trace) for trace in traces})[:MAX_NAMES],
        "fitted_at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    }


def task_of(trace: Mapping[str, Any] | ReasoningTrace) -> str:
    """Return what identifies the task of a run: a task id that its document or its metadata names, or else its objective."""
    document = document_of(trace)
    grace = mapping_in(document, "grace")
    for place in (mapping_in(grace, "metadata"), mapping_in(grace, "source")):
        for name in _TASK_IDS:
            value = place.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
                return f"{name}={value}"
    return str(mapping_in(document, "task").get("objective", ""))


def document_of(trace: Mapping[str, Any] | ReasoningTrace) -> Mapping[str, Any]:
    return trace if isinstance(trace, Mapping) else trace.to_dict()


def as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else NOTHING


def mapping_in(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return as_mapping(document.get(name))


def list_in(document: Mapping[str, Any], name: str) -> list[Any]:
    value = document.get(name)
    return value if isinstance(value, list) else []


def _texts(values: Iterable[object]) -> list[str]:
    return list(dict.fromkeys(value for value in values if isinstance(value, str) and value))
