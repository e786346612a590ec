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
KINDS = {"agents": "agent", "models": "model", "tools": "tool", "domains": "domain"}
"""The kinds of names, each with the word for one of them."""
MAX_NAMES = 500
MAX_SHOWN = 3
HASH_DIGITS = 12
"""Hexadecimal digits of the hash of a run. Among 20,000 fitted runs, one other run in 10^10 is mistaken for one of them."""
_NOT_OF_THE_RUN = ("unknown", "file")
"""Sources of a time that say nothing about when a run took place."""
_TASK_IDS = ("task_id", "instance_id", "problem_id", "question_id", "sample_id")
"""Fields of a recorded run that name its task."""


def facts_of(trace: Mapping[str, Any] | ReasoningTrace) -> dict[str, list[str]]:
    """Return the distinct agents, models, tools and task domains that a trace names. A gated action counts as a tool, also if no step records its call."""
    document = document_of(trace)
    grace = mapping_in(document, "grace")
    models = [as_mapping(call).get("model") for call in list_in(grace, "model_calls")]
    tools = [mapping_in(as_mapping(step), "tool").get("name") for step in list_in(document, "steps")]
    tools += [as_mapping(entry).get("action") for entry in list_in(grace, "decisions")]
    return {
        "agents": _texts([mapping_in(document, "metadata").get("agent_id")]),
        "models": _texts([*models, mapping_in(grace, "source").get("model")]),
        "tools": _texts(tools),
        "domains": _texts([mapping_in(document, "metadata").get("task_domain")]),
    }


def hash_of(trace: Mapping[str, Any] | ReasoningTrace) -> str | None:
    """Return the hash by which a profile knows a run that it was fitted on; None for a run without an id.

    The objective is part of it, because programs that number their runs use the same ids again.
    """
    document = document_of(trace)
    name, objective = document.get("id"), mapping_in(document, "task").get("objective", "")
    if not isinstance(name, str) or not name:
        return None
    return hashlib.sha256(f"{name}\n{objective}".encode("utf-8", "surrogatepass")).hexdigest()[:HASH_DIGITS]


def fitted_facts(traces: Iterable[Mapping[str, Any] | ReasoningTrace], tasks: int) -> dict[str, Any]:
    """Return the facts of the runs that a profile was fitted on, the times of the first and of the last one, and when it was fitted.

    The time of the file that a run was read from is not the time of the run, and is left out.
    """
    documents = [document_of(trace) for trace in traces]
    facts = [facts_of(document) for document in documents]
    times = _texts(
        mapping_in(document, "metadata").get("created_at")
        for document in documents
        if mapping_in(document, "grace").get("created_from") not in _NOT_OF_THE_RUN
    )
    return {
        "runs": len(documents),
        "tasks": tasks,
        **{kind: sorted({name for each in facts for name in each[kind]})[:MAX_NAMES] for kind in KINDS},
        "from": min(times, default=None),
        "to": max(times, default=None),
        "fitted_at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    }


def listed(names: Sequence[str], unnamed: str) -> str:
    """Return a few of some names, to be read in a sentence; `unnamed` stands for none, and for a name that is empty."""
    shown = ", ".join(repr(name) if name else unnamed for name in names[:MAX_SHOWN]) or unnamed
    return f"{shown} and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else shown


def task_of(trace: Mapping[str, Any] | ReasoningTrace) -> str:
    """Return what identifies the task of a run: a task id that its document or its metadata names, or else its objective."""
    document = document_of(trace)
    return stated_task(document) or str(mapping_in(document, "task").get("objective", ""))


def stated_task(document: Mapping[str, Any]) -> str:
    """Return the task id that a run or its metadata names; empty without one."""
    grace = mapping_in(document, "grace")
    for place in (mapping_in(grace, "metadata"), mapping_in(grace, "source")):
        for name in _TASK_IDS:
            value = place.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
                return f"{name}={value}"
    return ""


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
