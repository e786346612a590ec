"""Attributes and gate entries of a run in the form that its trace holds them: redacted, bounded, without contents that are not captured.

Secrets that only the name of an argument gives away are removed from the whole document. A reviewer's words and the message of an error
often repeat an argument. Where that stood under a name such as `password`, its text alone shows no pattern that redaction could find.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from grace_kp.levels import UNSETTLED
from grace_kp.record._arguments import SEALED
from grace_kp.record._attributes import Attributes
from grace_kp.record._gaps import nearest, root_of
from grace_kp.record._run import NOT_CAPTURED
from grace_kp.trace import MAX_TAGS, label, redact_value, redacted_arguments, render

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from grace_kp.record._run import Run

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
AUDIT_TAG = "audit:selected"
"""The tag of runs of which an action is put up for an audit."""
MIN_LENGTH = 6
"""Characters below which a text is too common to be removed wherever it occurs."""
MIN_NUMBER = 10_000_000
"""Numbers below which one is too common to be removed wherever it occurs."""
REMOVED = "[REDACTED:password]"
# Fields that hold rendered arguments, each with the field that counts the characters they do not show.
_ARGUMENTS = {"arguments": "hidden", "executed_arguments": "executed_hidden", "modified": "hidden"}
# Texts that quote neither arguments nor a reviewer; every other text of an entry may.
_STRUCTURE = frozenset(
    [
        "action",
        "digest",
        "evidence_gaps",
        "executed_digest",
        "fitted_at",
        "floor",
        "id",
        "level",
        "mismatches",
        "mode",
        "model",
        "outcome",
        "policy_version",
        "profile",
        "profile_gaps",
        "reason",
        "reviewer",
        "skipped",
        "to",
    ]
)
_ERRORS = frozenset({"error", "ledger_error", "notify_error"})


def attributes_of(run: Run, clean: Callable[[str], str], clean_all: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the attributes of a run for its trace, under `grace`; empty if none were stated."""
    if run.attributes is None and run.via is None and run.earlier is None:
        return {}
    before = (run.earlier or {}).get("grace") or {}
    with run.owner.lock:
        own = run.attributes or Attributes()
        tags, metadata = list(own.tags), dict(own.metadata)
        dropped = {"dropped_tags": own.dropped_tags, "dropped_metadata": own.dropped_metadata}

    def clean_id(text: str) -> str:
        return label(
            text if _UUID.fullmatch(text) else clean(text)
        )  # the digits of a UUID may look like a phone number

    stated = {name: nearest(run, name) for name in ("user", "session")}
    found: dict[str, Any] = {
        "tags": list(dict.fromkeys([*(before.get("tags") or ()), *map(clean_id, tags)]))[:MAX_TAGS],
        **{name: before.get(name) if value is None else clean_id(value) for name, value in stated.items()},
        "metadata": {
            **(before.get("metadata") or {}),
            **{label(key): value for key, value in clean_all(metadata).items()},
        },
        **dropped,
    }
    return {name: value for name, value in found.items() if value}


def stored_entry(
    entry: dict[str, Any],
    *,
    identifiers: bool,
    capture_input: bool = True,
    capture_output: bool = True,
    sealed: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the entry as a JSON value without secrets.

    `hidden` has the number of characters that a cut or redaction has removed from `arguments`, by name; `response["hidden"]` the same for
    arguments that a reviewer replaced. `digest` is that of the real arguments.
    """
    out: dict[str, Any] = {}
    fields = list(entry.items())  # in one step, because the action may be running and changing its entry
    for name, value in fields:
        if name in _ARGUMENTS and isinstance(value, dict):
            names = sealed or entry.get("sealed", ())
            clear = {argument: SEALED if argument in names else item for argument, item in value.items()}
            out[name], removed = redacted_arguments(clear, identifiers=identifiers)
            counts = {**entry.get(_ARGUMENTS[name], {})}
            for argument, count in removed.items():
                counts[argument] = counts.get(argument, 0) + count
            if not capture_input:
                out[name] = dict.fromkeys(out[name], NOT_CAPTURED)
            elif counts:
                out[_ARGUMENTS[name]] = counts
        elif name == "response" and isinstance(value, dict):
            out[name] = stored_entry(
                value,
                identifiers=identifiers,
                capture_input=capture_input,
                capture_output=capture_output,
                sealed=entry.get("sealed", ()),
            )
        elif name not in _ARGUMENTS.values():
            out[name] = redact_value(render(value), identifiers=identifiers)
            if not (capture_input and capture_output):
                out[name] = _without_texts(name, out[name])
    return out


def merged_entries(earlier: list[dict[str, Any]], later: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of both parts of a resumed run, one for each decision.

    The later entry replaces the earlier one. Only an action that ended in the earlier part keeps that outcome when the later part
    states merely that it ran before.
    """
    ended = {entry.get("id") for entry in earlier if entry.get("outcome") not in UNSETTLED}
    new = [entry for entry in later if not (str(entry.get("outcome")).endswith("_before") and entry.get("id") in ended)]
    replaced = {entry["id"] for entry in new if "id" in entry}
    return [entry for entry in earlier if entry.get("id") not in replaced] + new


def tag_audits(grace: dict[str, Any]) -> None:
    """Tag a run of which an action was selected for a check by a person, so that a store finds it."""
    drawn = (entry.get("audit") for entry in grace.get("decisions") or ())
    if any(isinstance(audit, dict) and audit.get("selected") is True for audit in drawn):
        tags = [tag for tag in grace.get("tags") or () if tag != AUDIT_TAG]
        grace["tags"] = [AUDIT_TAG, *tags][:MAX_TAGS]


def _without_texts(name: str, value: object, *, inside: bool = False) -> Any:
    """Return a field of an entry without texts that may quote contents. Of an error, the name of its type stays."""
    if name in _STRUCTURE and not (inside and name == "reason"):  # a nested reason is that of a judge
        return value
    if isinstance(value, dict):
        return {key: _without_texts(key, item, inside=True) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_texts("", item, inside=True) for item in value]
    if not isinstance(value, str):
        return value
    kind = value.partition(":")[0]
    return kind if name in _ERRORS and kind.isidentifier() else NOT_CAPTURED


def named_secrets(decisions: Iterable[dict[str, Any]]) -> list[str]:
    """Return the secret arguments of gated calls, longest first."""
    decisions = list(decisions)
    found = set(sealed_texts(decisions))
    for _, arguments in _arguments_of(decisions):
        found.update(_find_removed(arguments, redact_value(arguments, identifiers=False)))
    return sorted(found, key=len, reverse=True)


def secrets_of(run: Run) -> list[str]:
    """Return the secret arguments of the gated calls in a run, and the sealed ones of those around it and inside of it, longest first."""
    sealed = root_of(run).sealed
    if sealed is None:
        return named_secrets(run.decisions) if run.decisions else []
    return sorted({*named_secrets(run.decisions), *sealed_texts(sealed)}, key=len, reverse=True)


def sealed_texts(decisions: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the texts and numbers inside of the sealed arguments of gated calls."""
    for entry, arguments in _arguments_of(decisions):
        yield from _texts([arguments.get(name) for name in entry.get("sealed", ())])


def _arguments_of(decisions: Iterable[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the arguments of gated calls, those of the execution and those of a reviewer, each with its entry."""
    for entry in list(decisions):
        response = entry.get("response")
        modified = response.get("modified") if isinstance(response, dict) else None
        for arguments in (entry.get("arguments"), entry.get("executed_arguments"), modified):
            if isinstance(arguments, dict):
                yield entry, arguments


def _texts(values: object) -> Iterator[str]:
    """Yield the texts and numbers inside of arguments that are sealed."""
    if isinstance(values, dict):
        values = [*values, *values.values()]
    if isinstance(values, list):
        for value in values:
            yield from _texts(value)
    elif isinstance(values, str | int | float) and len(text := str(values)) >= MIN_LENGTH:
        yield text


def without(value: object, secrets: list[str]) -> Any:
    """Return a JSON value with these texts removed wherever they occur; the same object if there are none."""
    if not secrets:
        return value
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, REMOVED)
        return value
    if isinstance(value, int | float) and abs(value) >= MIN_NUMBER and str(value) in secrets:
        return REMOVED
    if isinstance(value, dict):
        return {name: without(item, secrets) for name, item in value.items()}
    return [without(item, secrets) for item in value] if isinstance(value, list) else value


def _find_removed(before: object, after: object) -> Iterator[str]:
    """Yield the texts that redaction has replaced as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for value, clean in zip(before.values(), after.values(), strict=False):
            yield from _find_removed(value, clean)
    elif isinstance(before, list) and isinstance(after, list):
        for value, clean in zip(before, after, strict=False):
            yield from _find_removed(value, clean)
    elif isinstance(before, str) and after == REMOVED and before != REMOVED and len(before) >= MIN_LENGTH:
        yield before
