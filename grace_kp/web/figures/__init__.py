"""Figures of a period: what the runs were like, how people decided, what judges cost, and whether the confidence can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.web._site import Right, route
from grace_kp.web.figures._page import figures_page

if TYPE_CHECKING:
    from grace_kp.web._site import PageRoute

__all__ = ["routes"]


def routes() -> list[PageRoute]:
    """Return the routes of this part."""
    return [route("/figures", figures_page, Right.SEE)]
