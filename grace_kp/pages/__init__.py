"""Reports as HTML pages for people: one self-contained file with text, tables and figures, without scripts and external resources.

The page of a suite of scorers has controls and rows of its own and stands in `scorers`.
"""

from __future__ import annotations

from grace_kp.pages._figure import FIRST, INK, PAPER, SECOND, SOFT, can_draw, figure
from grace_kp.pages._page import page, safe
from grace_kp.pages._table import table

__all__ = ["FIRST", "INK", "PAPER", "SECOND", "SOFT", "can_draw", "figure", "page", "safe", "table"]
