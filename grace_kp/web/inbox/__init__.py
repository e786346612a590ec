"""The inbox: pending requests, one request with everything that would run, the verbs as forms, and the audit trail.

`grace_kp.approvals` makes every decision; these pages show it and pass verbs on with the displayed digest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.web._site import Right, route
from grace_kp.web.inbox._audit import Audit, export_lines
from grace_kp.web.inbox._events import Feed, stop_events
from grace_kp.web.inbox._lists import attention, decide_several, history, waiting
from grace_kp.web.inbox._request import decide, edit, request_page, request_state
from grace_kp.web.inbox._standing import end, grant, grant_form, standing
from grace_kp.web.inbox._words import WORDS

if TYPE_CHECKING:
    from grace_kp.web._site import PageRoute

__all__ = ["WORDS", "routes", "stop_events"]


def routes() -> list[PageRoute]:
    """Return the routes of the inbox, for one application."""
    audit, feed = Audit(), Feed()
    post = ("POST",)
    return [
        route("/inbox", waiting, Right.SEE),
        route("/inbox/attention", attention, Right.SEE),
        route("/events", feed.stream, Right.SEE),
        route("/approvals/history", history, Right.SEE),
        route("/approvals/standing", standing, Right.SEE),
        route("/approvals/standing/{id}/end", end, Right.DECIDE, methods=post),
        route("/approvals/audit", audit.page, Right.SEE),
        route("/approvals/audit/verify", audit.verify, Right.SEE, methods=post),
        route("/approvals/audit/export", export_lines, Right.SEE),
        route("/approvals/decide", decide_several, Right.DECIDE, methods=post),
        route("/approvals/{id}", request_page, Right.SEE),
        route("/approvals/{id}/state", request_state, Right.SEE),
        route("/approvals/{id}/grant", grant_form, Right.DECIDE),
        route("/approvals/{id}/grant", grant, Right.DECIDE, methods=post),
        route("/approvals/{id}/edit", edit, Right.DECIDE, methods=post),
        route("/approvals/{id}/{verb}", decide, Right.DECIDE, methods=post),
    ]
