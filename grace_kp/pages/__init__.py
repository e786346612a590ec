"""Parts of HTML pages: the shared style, escaped strings, tables, bars, plots and folded parts, without scripts and external resources.

Names are resolved on first use: recording needs `printable` and none of the rest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grace_kp.pages._confidence import confidence_html
    from grace_kp.pages._notebook import notebook
    from grace_kp.pages._parts import badge, facts, fold, linked, meter, page, safe, style, table
    from grace_kp.pages._plot import Curve, Plane, Rule, curves, histogram, named_bars, timeline
    from grace_kp.pages._plot_canvas import date_ticks, nice_ticks, tick_text
    from grace_kp.pages._words import (
        APPROVAL_STATES,
        count_text,
        duration_text,
        hides,
        outcome_text,
        penalty_text,
        printable,
        spaced,
        span_text,
        visible,
        with_fallbacks,
    )

__all__ = [
    "APPROVAL_STATES",
    "Curve",
    "Plane",
    "Rule",
    "badge",
    "confidence_html",
    "count_text",
    "curves",
    "date_ticks",
    "duration_text",
    "facts",
    "fold",
    "hides",
    "histogram",
    "linked",
    "meter",
    "named_bars",
    "nice_ticks",
    "notebook",
    "outcome_text",
    "page",
    "penalty_text",
    "printable",
    "safe",
    "spaced",
    "span_text",
    "style",
    "table",
    "tick_text",
    "timeline",
    "visible",
    "with_fallbacks",
]  # fmt: skip

_NAMES = {
    "_confidence": "confidence_html",
    "_notebook": "notebook",
    "_parts": "badge facts fold linked meter page safe style table",
    "_plot": "Curve Plane Rule curves histogram named_bars timeline",
    "_plot_canvas": "date_ticks nice_ticks tick_text",
    "_words": "APPROVAL_STATES count_text duration_text hides outcome_text penalty_text printable spaced span_text visible with_fallbacks",
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
