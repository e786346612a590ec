"""Stub."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grace_kp.web._route import PageRoute


def routes() -> list[PageRoute]:
    """Return the routes of this part."""
    return []
