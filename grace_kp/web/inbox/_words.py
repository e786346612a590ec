"""Functions for the templates of the inbox: times with their distance, sentences about requests, and addresses within the site."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from markupsafe import Markup

from grace_kp.approvals import (
    actor_text,
    consents,
    constraint_texts,
    deadline_text,
    event_text,
    fact_text,
    json_text,
    process_text,
    remarks_of,
    rule_text,
    unheld_text,
)
from grace_kp.pages import APPROVAL_STATES, badge, confidence_html, span_text, with_fallbacks
from grace_kp.web._templates import when
from grace_kp.web.inbox._value import call_parts, flat_text, kind_of, member_of, opaque_parts, value_html

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grace_kp.approvals import Approval

SOON = 600
"""Seconds before a deadline from which it is urgent."""
_PROCESS = MappingProxyType({"raise": "asks again", "hand_over": "handed over", "interrupt": "interrupted graph"})
_NONE_WAITS = MappingProxyType(
    {
        "raise": "no process waits (asks again later)",
        "hand_over": "no process waits (handed over)",
        "interrupt": "no process waits (the graph is resumed)",
    }
)


def moment(at: float | None, now: float, otherwise: str = "no deadline") -> Markup:
    """Return a time with its distance from now; the script of the pages keeps the distance up to date.

    Args:
        at: seconds since the epoch; None for never.
        now: the present time.
        otherwise: words for never.
    """
    if at is None or not math.isfinite(at):
        return Markup('<span class="soft">{}</span>').format(otherwise)
    distance = f"in {span_text(at - now)}" if at > now else f"{span_text(now - at)} ago"
    return Markup('{} <span class="distance" data-distance="{}">{}</span>').format(when(at), f"{at:.3f}", distance)


def process_word(approval: Approval) -> str:
    """Return in a word or two whether a process waits for the decision; scripts read it."""
    if approval.waits in _PROCESS:
        return _PROCESS[approval.waits]
    return {True: "waits", False: "gone", None: "unknown"}[approval.is_awaited]


def process_phrase(approval: Approval) -> str:
    """Return in a phrase whether a process waits for the decision, for the list of requests."""
    if approval.waits in _NONE_WAITS:
        return _NONE_WAITS[approval.waits]
    phrases = {True: "a process waits", False: "the process has ended", None: "unknown whether a process waits"}
    return phrases[approval.is_awaited]


def state_badge(state: str) -> Markup:
    """Return a state of a request as a badge."""
    kinds = {"done": "good", "claimed": "warn", "edited": "good", "not_done": "bad", "skipped": "", "retried": ""}
    return Markup(badge(APPROVAL_STATES[state], kinds.get(state) if state in kinds else _kind(state)))  # noqa: S704 — `badge` escapes


def _kind(state: str) -> str:
    return {"approved": "good", "rejected": "bad", "failed": "bad", "unknown": "bad", "pending": "warn"}.get(state, "")


def confidence(approval: Approval) -> Markup:
    """Return the confidence with its parts and penalties as HTML."""
    return Markup(  # noqa: S704 — `confidence_html` escapes
        confidence_html(
            approval.score,
            breakdown=with_fallbacks(approval.breakdown, approval.facts.get("fallbacks")),
            penalties=approval.penalties,
        )
    )


def own_text(text: str) -> Markup:
    """Return what a person has typed, for a field that brings it back unchanged: escaped, with every character as it is."""
    return Markup.escape(text)


def request_path(approval_id: str) -> str:
    """Return the path of a request within the site."""
    return f"/approvals/{quote(approval_id, safe='')}"


def run_path(run_id: str) -> str:
    """Return the path of a run within the site."""
    return f"/runs/{quote(run_id, safe=':')}"


def query(values: Mapping[str, object], **changes: object) -> str:
    """Return a query string with some values replaced; empty ones are left out."""
    kept = {name: value for name, value in {**values, **changes}.items() if value not in {"", None, 0}}
    return f"?{urlencode(kept)}" if kept else ""


WORDS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "actor": actor_text,
        "call": call_parts,
        "confidence": confidence,
        "consents": consents,
        "constraints": constraint_texts,
        "deadline": deadline_text,
        "event": event_text,
        "fact": fact_text,
        "flat": flat_text,
        "json": json_text,
        "kind": kind_of,
        "member": member_of,
        "moment": moment,
        "opaque": opaque_parts,
        "own": own_text,
        "process": process_word,
        "process_phrase": process_phrase,
        "process_sentence": process_text,
        "query": query,
        "remarks": remarks_of,
        "request_path": request_path,
        "rule": rule_text,
        "run_path": run_path,
        "state": state_badge,
        "unheld": unheld_text,
        "value": value_html,
    }
)
"""The functions, by the name under which templates call them: `words.moment(…)`."""
