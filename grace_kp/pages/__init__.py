"""What HTML for people is made of: the one style, safe texts, tables, bars, plots and folded parts, without scripts and external resources.

Names are resolved on first use: recording needs `printable` and none of the rest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grace_kp.pages._confidence import confidence_html
    from grace_kp.pages._figure import FIRST, INK, PAPER, SECOND, SOFT, can_draw, figure
    from grace_kp.pages._page import page, safe, style
    from grace_kp.pages._parts import badge, facts, fold, linked, meter
    from grace_kp.pages._printable import hides, printable, visible
    from grace_kp.pages._table import table
    from grace_kp.pages._words import count_text, duration_text, penalty_text, spaced

__all__ = [
    "FIRST", "INK", "PAPER", "SECOND", "SOFT", "badge", "can_draw", "confidence_html", "count_text", "duration_text", "facts", "figure", "fold", "hides",
    "linked", "meter", "page", "penalty_text", "printable", "safe", "spaced", "style", "table", "visible",
]  # fmt: skip

_NAMES = {
    "_confidence": "confidence_html",
    "_figure": "FIRST INK PAPER SECOND SOFT can_draw figure",
    "_page": "page safe style",
    "_parts": "badge facts fold linked meter",
    "_printable": "hides printable visible",
    "_table": "table",
    "_words": "count_text duration_text penalty_text spaced",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
