"""Search in what requests hold: their arguments, their purpose, and what people wrote about them.

Requests are read one by one. A search therefore looks at a bounded number of them, says so, and can be continued from there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grace_kp.approvals import Approval

AT_MOST = 1_000
"""Requests that one search looks at."""
PAGE = 200
"""Requests that are read together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A page of requests."""

    approvals: Sequence[Approval]
    older: int | None = None
    """Offset at which the next page begins; None at the end of the list."""
    is_cut: bool = False
    """Whether the search has ended for its bound, so that the next page may hold more."""


def find(read: Callable[[int, int], list[Approval]], text: str, *, offset: int, limit: int) -> Found:
    """Return the requests of a list that contain a text.

    Args:
        read: returns a part of the list, by limit and offset.
        text: a text, whatever its case; empty for all requests.
        offset: requests of the list that are left out.
        limit: requests of a page.
    """
    if not text:
        found = read(limit + 1, offset)
        return Found(approvals=found[:limit], older=offset + limit if len(found) > limit else None)
    wanted = text.casefold()
    matching: list[Approval] = []
    end = offset + AT_MOST
    while offset < end:
        part = read(min(PAGE, end - offset), offset)
        for place, approval in enumerate(part):
            if len(matching) == limit:
                return Found(approvals=matching, older=offset + place)
            if contains(approval, wanted):
                matching.append(approval)
        offset += len(part)
        if len(part) < PAGE:
            return Found(approvals=matching)
    return Found(approvals=matching, older=offset, is_cut=True)


def contains(approval: Approval, wanted: str) -> bool:
    """Return whether a request contains a case-folded text. Sealed arguments are compared as they are kept, so that no search reveals them."""
    texts = [approval.id, approval.action, approval.key, approval.objective, approval.user, approval.reason]
    texts += [vote.note for vote in approval.votes]
    texts += [part.note for part in (approval.decision, approval.outcome) if part is not None]
    if any(wanted in text.casefold() for text in texts if text):
        return True
    # As JSON, in which a quote or a line break of an argument has another form.
    return _json(wanted)[1:-1] in _json(approval.encoded).casefold()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
