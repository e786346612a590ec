"""The decision of a gate as labelled facts for a page in the terminal: arguments, edits, reviewer, answer.

An entry may come from other programs, so its form is never taken for granted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.cli._figures import mapping, number
from grace_kp.cli._output import clean, visible_json
from grace_kp.pages import outcome_text

if TYPE_CHECKING:
    from collections.abc import Iterator

_REST = ("reason", "digest", "executed_digest")


def facts_of(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the label and the text of each fact, most important first; every field of the entry is among them."""
    entry = dict(entry)
    response = mapping(entry.pop("response", None))
    level, score = entry.pop("level", None), entry.pop("score", None)
    if level is not None:
        yield "level", clean(f"{level}, at a confidence of {score}")
    yield from _arguments(entry, response)
    if response:
        yield "answer", clean(_answer(response, entry))
    approval = entry.get("approval")
    if isinstance(approval, dict) and isinstance(approval.get("id"), str):
        del entry["approval"]
        yield from _approval(dict(approval))
    notice = mapping(entry.get("notice"))
    if notice.get("text"):
        del entry["notice"]
        yield "notice", clean(f"{_receiver(notice.get('to'))}: {notice['text']}")
    if isinstance(entry.get("mismatches"), list):
        for mismatch in entry.pop("mismatches"):
            yield "does not fit", clean(str(mismatch))
    for name in _REST:
        if entry.get(name):
            yield spaced(name), clean(str(entry.pop(name)))
    if _is_count(entry.get("step")):  # an entry counts the steps before the decision; steps are numbered from 0
        before = entry.pop("step")
        yield "after step", f"{before - 1}" if before else "none"
    waited = number(entry.get("waited_ms"))
    if waited is not None:
        del entry["waited_ms"]
        yield "waited", f"{waited / 1_000:,.1f} s"
    for name, value in entry.items():
        yield spaced(name), clean(value) if isinstance(value, str) else visible_json(value)


def spaced(name: object) -> str:
    """Return the name of a field in words."""
    return str(name).replace("_", " ")


def _arguments(entry: dict[str, Any], response: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield arguments, edits and executed arguments, each with the number of hidden characters."""
    arguments, edits = mapping(entry.pop("arguments", None)), mapping(response.pop("modified", None))
    for name, value in arguments.items():
        yield "argument", f"{clean(name)} = {visible_json(value)}"
    yield from _hidden("hidden", entry)
    for name, value in edits.items():
        before = visible_json(arguments[name]) if name in arguments else "nothing"
        yield "edited", f"{clean(name)} = {before} -> {visible_json(value)}"
    yield from _hidden("hidden", response, label="hidden in edits")
    for name, value in mapping(entry.pop("executed_arguments", None)).items():
        yield "executed with", f"{clean(name)} = {visible_json(value)}"
    yield from _hidden("executed_hidden", entry, label="hidden of these")


def _hidden(field: str, entry: dict[str, Any], label: str = "hidden") -> Iterator[tuple[str, str]]:
    """Yield the number of hidden characters by argument; a field of another form stays in the entry."""
    counts = entry.get(field)
    if not isinstance(counts, dict) or not all(_is_count(count) for count in counts.values()):
        return
    del entry[field]
    for name, count in counts.items():
        yield label, f"{clean(name)}, {count:,} character{'' if count == 1 else 's'}"


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _answer(response: dict[str, Any], entry: dict[str, Any]) -> str:
    """Return the answer, or why there is none; an error that explains it is removed from the entry."""
    action, reviewer = response.get("action"), response.get("reviewer")
    if response.get("timeout_reached"):
        runs = "; the policy lets the action run then" if action == "proceed" else ""
        return f"none: nobody answered in time{runs}"
    if not reviewer and action == "cancel":
        if entry.get("error"):
            return f"none: asking failed: {entry.pop('error')}"
        return "none: there was nobody to ask"
    words = [f"{action} by {reviewer or 'an unknown reviewer'}"]
    took = number(response.get("response_time_ms"))
    if took is not None:
        words.append(f"after {took / 1_000:,.1f} s")
    stated = (name for name in ("user_input", "selected_option") if response.get(name) is not None)
    words += [f"{spaced(name)}: {response[name]}" for name in stated]
    return ", ".join(words)


def _approval(approval: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the request in an inbox: where it stood when the call was decided, and by whom."""
    words = f"{approval.pop('id')}, {approval.pop('state', 'of unknown state')}"
    if approval.get("by"):
        words += (
            f" by {approval.pop('by')} ({approval.pop('identity', 'stated')}, {approval.pop('channel', 'unknown')})"
        )
    yield "approval", clean(words)
    if outcome := outcome_text(approval):
        del approval["now"]
        yield "since then", clean(outcome)
    for name, value in approval.items():
        yield spaced(name), clean(value) if isinstance(value, str) else visible_json(value)


def _receiver(place: object) -> str:
    return f"to {'the ' if place in {'log', 'terminal'} else ''}{place}" if isinstance(place, str) else "not delivered"
