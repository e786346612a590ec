"""The audit trail: its newest entries, its verification in the background, the checkpoint to keep elsewhere, and an export."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
    from collections.abc import Iterator, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.approvals import Checkpoint, Link, Tables, Verification
    from grace_kp.web._site import Site

PAGE = 100
"""Entries on a page."""
SHOWN = 50
"""Problems of a verification that are shown."""
CHUNK = 1 << 16
"""Characters of an export that are sent at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationProgress:
    """State of the verification."""

    is_running: bool = False
    read: int = 0
    """Entries that were read so far."""
    total: int = 0
    begun: float = 0.0
    ended: float = 0.0
    found: Verification | None = None
    problem: str = ""
    """Why the verification could not be carried out."""


class Audit:
    """The pages of the audit trail of one application, and its one verification at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._progress = VerificationProgress()

    def page(self, request: Request) -> Response:
        """Show the newest entries, and what the last verification has found."""
        return self._page(request)

    def verify(self, request: Request) -> Response:
        """Begin a verification, which runs after the answer was sent; refuse a second one meanwhile."""
        site, text = site_of(request), value_of(form_of(request), "checkpoints")
        try:
            points = parse_checkpoints(text.strip(), secret=site.inbox.secret, place="the checkpoints")
        except ApprovalError as error:
            return self._page(request, problem=sentence_of(error), status=422)
        head = site.tables.head()[0]
        with self._lock:
            if self._progress.is_running:
                raise HTTPException(
                    409, "A verification is running. Its progress stands on the page of the audit trail."
                )
            self._progress = VerificationProgress(is_running=True, total=head, begun=site.clock())
        task = BackgroundTask(self._run, site, points)
        return RedirectResponse(f"{root_of(request)}/approvals/audit", 303, background=task)

    def _run(self, site: Site, points: Sequence[Checkpoint]) -> None:
        begun, total, found, problem = self._progress.begun, self._progress.total, None, ""
        try:
            found = verify(CountedTables(site.tables, self._count), at=site.clock(), checkpoint=points or None)
        except (ApprovalError, StoreError) as error:
            problem = explain_error(error, "the verification of the audit trail")
        finally:
            self._progress = VerificationProgress(
                read=total,
                total=total,
                begun=begun,
                ended=site.clock(),
                found=found,
                problem=problem or ("It ended before it was complete. Begin it again." if found is None else ""),
            )

    def _count(self, seq: int) -> None:
        now = self._progress
        self._progress = VerificationProgress(
            is_running=True, read=max(now.read, seq), total=now.total, begun=now.begun
        )

    def _page(self, request: Request, *, problem: str = "", status: int = 200) -> Response:
        site, progress = site_of(request), self._progress
        values = texts_of(request, "approval")
        before = whole_of(request.query_params.get("before", "")) or 0
        entries, older = entries_before(site.tables, before, values["approval"] or None)
        point = checkpoint(site.tables, at=site.clock())
        found = progress.found
        return site.page(
            request,
            "inbox/audit.html",
            status=status,
            tab="audit",
            entries=entries,
            values=values,
            older=query(values, before=older) if older else None,
            newer=query(values) if before else None,
            point=point,
            point_line=json.dumps(point.to_dict(site.inbox.secret)),
            progress=progress,
            problem=problem,
            verdict="" if found is None else verdict_text(found),
            shown=() if found is None else found.problems[:SHOWN],
            **counts(site),
        )


class CountedTables:
    """Tables that report the number of the last entry which was read."""

    def __init__(self, tables: Tables, report: Any) -> None:
        self._tables, self._report = tables, report

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tables, name)

    def links(
        self, *, after: int = 0, limit: int = 1_000, approval: str | None = None, kept: bool = False
    ) -> list[Link]:
        """Return entries, as `Reads.links` does."""
        found = self._tables.links(after=after, limit=limit, approval=approval, kept=kept)
        if found and approval is None:
            self._report(found[-1].seq)
        return found


def entries_before(tables: Tables, before: int, approval: str | None) -> tuple[list[dict[str, Any]], int]:
    """Return a page of entries, newest first, and the number before which the next page begins; 0 where there is none."""
    links = tables.links_before(before or None, limit=PAGE + 1, approval=approval)
    shown = links[:PAGE]
    return [show_entry(link) for link in shown], shown[-1].seq if len(links) > PAGE else 0


def export_lines(request: Request) -> Response:
    """Send the chain as JSON lines, which can be verified without this library."""
    with_contents = request.query_params.get("contents", "1") != "0"
    name = "approvals.jsonl" if with_contents else "approvals-without-contents.jsonl"
    return StreamingResponse(
        _chunks(site_of(request).tables, with_contents),
        media_type="application/jsonl",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _chunks(tables: Tables, with_contents: bool) -> Iterator[str]:
    kept: list[str] = []
    size = 0
    for line in export(tables, with_contents=with_contents):
        kept.append(f"{json.dumps(line, ensure_ascii=True)}\n")
        size += len(kept[-1])
        if size >= CHUNK:
            yield "".join(kept)
            kept, size = [], 0
    yield "".join(kept)
