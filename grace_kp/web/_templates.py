"""The templates: everything they show is escaped, and characters that cannot be seen are made visible.

Templates use these filters and functions beside Jinja's own: `when` (a time), `duration`, `spaced`, `badge`, `meter`, `facts`, `fold`, `linked`,
`count`. All but `spaced`, `duration` and `count` return HTML.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from grace_kp.pages import badge, count_text, duration_text, facts, fold, linked, meter, spaced, visible

if TYPE_CHECKING:
    from collections.abc import Callable


def templates() -> Environment:
    """Return the Jinja environment of the pages."""
    look = Environment(
        loader=PackageLoader("grace_kp.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    markup = {name: _as_markup(part) for name, part in _PARTS.items()}
    look.globals.update(markup)
    look.filters.update(markup)
    look.filters.update(when=when, duration=duration_text, spaced=spaced, count=count_text)
    return look


def when(seconds: float | None, otherwise: str = "never") -> Markup:
    """Return a time as HTML: the script of the pages shows it in the reader's time zone, and without script it is in UTC.

    Args:
        seconds: seconds since the epoch; None or infinite for never.
        otherwise: plain text for never.
    """
    if seconds is None or not math.isfinite(seconds):
        return Markup.escape(otherwise)
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return Markup.escape(otherwise)
    return Markup('<time datetime="{0}">{1}</time>').format(
        moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"), moment.strftime("%Y-%m-%d %H:%M:%S UTC")
    )


def _shown(value: object) -> object:
    if isinstance(value, Markup):
        return value
    return "" if value is None else visible(str(value), lines=True)


def _as_markup(part: Callable[..., str]) -> Callable[..., Markup]:
    def markup(*args: Any, **kwargs: Any) -> Markup:
        return Markup(part(*args, **kwargs))  # noqa: S704 — the parts of pages escape every text

    return markup


_PARTS: dict[str, Callable[..., str]] = {
    "badge": badge,
    "meter": meter,
    "facts": facts,
    "fold": fold,
    "linked": linked,
}
