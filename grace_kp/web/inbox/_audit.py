"""The audit trail: its newest entries, its verification in the background, the checkpoint to keep elsewhere, and an export."""

from __future__ import annotations

import itertools
import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, StreamingResponse

from grace_kp.approvals import checkpoint, export, parse_checkpoints, verdict_text, verify
from grace_kp.errors import ApprovalError, StoreError
from grace_kp.web._errors import explain_error
from grace_kp.web._site import form_of, root_of, site_of, whole_of
from grace_kp.web.inbox._lists import counts, texts_of
from grace_kp.web.inbox._request import sentence_of, show_entry, value_of
from grace_kp.web.inbox._words import query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.approvals import Checkpoint, Verification
    from grace_kp.web._site import Site

PAGE = 100
"""Entries on a page."""
SHOWN = 50
"""Problems of a verification that are shown."""
CHUNK = 100
"""Entries of an export that are sent at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationState:
    """The last verification."""

    is_running: bool = False
    ended: float = 0.0
    found: Verification | None = None
    problem: str = ""
    """Why the verification could not be carried out."""


class Audit:
    """The pages of the audit trail of one application, and its one verification at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = VerificationState()

    def verify(self, request: Request) -> Response:
        """Begin a verification, which runs after the response; refuse a second one until it ends."""
        site, text = site_of(request), value_of(form_of(request), "checkpoints")
        try:
            points = parse_checkpoints(text.strip(), secret=site.inbox.secret, place="the checkpoints")
        except ApprovalError as error:
            return self.page(request, problem=sentence_of(error), status=422)
        with self._lock:
            if self._state.is_running:
                raise HTTPException(409, "A verification is running. The page of the audit trail will show its result.")
            self._state = VerificationState(is_running=True)
        task = BackgroundTask(self._run, site, points)
        return RedirectResponse(f"{root_of(request)}/approvals/audit", 303, background=task)

    def _run(self, site: Site, points: Sequence[Checkpoint]) -> None:
        found, problem = None, "It ended before it was complete. Begin it again."
        try:
            found, problem = verify(site.tables, at=site.clock(), checkpoint=points or None), ""
        except (ApprovalError, StoreError) as error:
            problem = explain_error(error, "the verification of the audit trail")
        finally:
            self._state = VerificationState(ended=site.clock(), found=found, problem=problem)

    def page(self, request: Request, *, problem: str = "", status: int = 200) -> Response:
        site, state = site_of(request), self._state
        values = texts_of(request, "approval")
        before = whole_of(request.query_params.get("before", "")) or 0
        links = site.tables.links_before(before or None, limit=PAGE + 1, approval=values["approval"] or None)
        older = links[PAGE - 1].seq if len(links) > PAGE else 0
        point = checkpoint(site.tables, at=site.clock())
        found = state.found
        return site.page(
            request,
            "inbox/audit.html",
            status=status,
            tab="audit",
            entries=[show_entry(link) for link in links[:PAGE]],
            values=values,
            older=query(values, before=older) if older else None,
            newer=query(values) if before else None,
            point=point,
            point_line=json.dumps(point.to_dict(site.inbox.secret)),
            verification=state,
            problem=problem,
            verdict="" if found is None else verdict_text(found),
            shown=() if found is None else found.problems[:SHOWN],
            **counts(site),
        )


def export_lines(request: Request) -> Response:
    """Send the chain as JSON lines, which can be verified without this library."""
    with_contents = request.query_params.get("contents", "1") != "0"
    name = "approvals.jsonl" if with_contents else "approvals-without-contents.jsonl"
    lines = (f"{json.dumps(line)}\n" for line in export(site_of(request).tables, with_contents=with_contents))
    chunks = iter(lambda: "".join(itertools.islice(lines, CHUNK)), "")
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(chunks, media_type="application/jsonl", headers=headers)
