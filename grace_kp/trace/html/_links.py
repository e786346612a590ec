"""Addresses of other pages that the HTML of a run links to. Without them a run stands alone: only its own steps are links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grace_kp.pages import safe

if TYPE_CHECKING:
    from collections.abc import Callable


_ALLOWED = re.compile(r"[#?]|https?://|/(?![/\\])")


def _nowhere(*_: object) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Functions from ids to addresses. Each may return None, and then the id is shown as text.

    The ids are those of the document, and may be any text: the functions quote them.
    """

    run: Callable[[str], str | None] = _nowhere
    """Address of a run."""
    step: Callable[[str, int], str | None] = _nowhere
    """Address of a step, by the id of its run and its number."""
    approval: Callable[[str], str | None] = _nowhere
    """Address of a request for approval."""


ALONE = Links()
"""No other pages."""


def anchor(address: str | None, content: str) -> str:
    """Return HTML as a link; unchanged without an address.

    Args:
        address: local, or of http or https; nothing else becomes a link.
        content: HTML.
    """
    if address is None or not _ALLOWED.match(address):
        return content
    return f'<a href="{safe(address)}">{content}</a>'
