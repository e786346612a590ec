"""A gate's entry as it is stored: redacted, with the number of characters that it does not show, and without contents that are not captured."""

from __future__ import annotations

from typing import Any

from grace_kp.record._captured import NOT_CAPTURED
from grace_kp.trace import redact_value, redacted_arguments, render

# Fields that hold arguments, rendered already, with the field that counts what they do not show.
_ARGUMENTS = {"arguments": "hidden", "executed_arguments": "executed_hidden", "modified": "hidden"}
# Texts that quote neither arguments nor a reviewer; every other text of an entry may.
_STRUCTURE = frozenset(
    {
        "action",
        "digest",
        "evidence_gaps",
        "executed_digest",
        "floor",
        "id",
        "level",
        "mode",
        "model",
        "outcome",
        "policy_version",
        "reason",
        "reviewer",
        "skipped",
        "to",
    }
)
_OPEN = frozenset({"undecided", "waiting", "approved", "running"})
"""Outcomes of a decision whose action may still run."""
_ERRORS = frozenset({"error", "ledger_error", "notify_error"})


def stored_entry(
    entry: dict[str, Any], *, identifiers: bool, capture_input: bool = True, capture_output: bool = True
) -> dict[str, Any]:
    """Return the entry as a JSON value without secrets.

    `hidden` has the number of characters that a cut or redaction has removed from `arguments`, by name; `response["hidden"]` the same for
    arguments that a reviewer replaced. `digest` is that of the real arguments.

    Args:
        entry: what the gate recorded.
        identifiers: remove e-mail addresses and the like, too.
        capture_input: False keeps the names of arguments without their values.
        capture_output: False, like `capture_input`, keeps no text that may quote arguments, a reviewer or a judge.
    """
    out: dict[str, Any] = {}
    fields = list(entry.items())  # in one step: the action may be running, and its entry filled in
    for name, value in fields:
        if name in _ARGUMENTS and isinstance(value, dict):
            out[name], removed = redacted_arguments(value, identifiers=identifiers)
            counts = {**entry.get(_ARGUMENTS[name], {})}
            for argument, count in removed.items():
                counts[argument] = counts.get(argument, 0) + count
            if not capture_input:
                out[name] = dict.fromkeys(out[name], NOT_CAPTURED)
            elif counts:
                out[_ARGUMENTS[name]] = counts
        elif name == "response" and isinstance(value, dict):
            out[name] = stored_entry(
                value, identifiers=identifiers, capture_input=capture_input, capture_output=capture_output
            )
        elif name not in _ARGUMENTS.values():
            out[name] = redact_value(render(value), identifiers=identifiers)
            if not (capture_input and capture_output):
                out[name] = _without_texts(name, out[name])
    return out


def merged_entries(earlier: list[dict[str, Any]], later: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of both parts of a run that was suspended in between, one for each decision.

    The later entry replaces the earlier one. Only an action that ended in the earlier part keeps that outcome when the later part
    states merely that it ran before.
    """
    ended = {entry.get("id") for entry in earlier if entry.get("outcome") not in _OPEN}
    new = [entry for entry in later if not (str(entry.get("outcome")).endswith("_before") and entry.get("id") in ended)]
    replaced = {entry["id"] for entry in new if "id" in entry}
    return [entry for entry in earlier if entry.get("id") not in replaced] + new


def _without_texts(name: str, value: Any, *, inside: bool = False) -> Any:
    """A field of an entry without texts that may quote contents. Of an error, the name of its type stays."""
    if name in _STRUCTURE and not (inside and name == "reason"):  # further inside, it is the reason of a judge
        return value
    if isinstance(value, dict):
        return {key: _without_texts(key, item, inside=True) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_texts("", item, inside=True) for item in value]
    if not isinstance(value, str):
        return value
    kind = value.partition(":")[0]
    return kind if name in _ERRORS and kind.isidentifier() else NOT_CAPTURED
