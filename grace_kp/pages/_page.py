"""The frame of a page: its head, its style in light and dark, and texts that are safe in HTML."""

from __future__ import annotations

import html
from importlib.resources import files

from grace_kp.pages._printable import visible

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Whatever a page should hold by mistake, a browser runs no script of it and loads nothing for it."""


def style() -> str:
    """Return the style sheet of reports, notebooks and the web pages."""
    return files("grace_kp.pages").joinpath("look.css").read_text(encoding="utf-8")


def page(title: str, body: str) -> str:
    """Return a whole page.

    Args:
        title: plain text, for the tab and the heading.
        body: HTML.
    """
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<title>{safe(title)}</title><style>{style()}</style></head><body class="report"><main><h1>{safe(title)}</h1>{body}</main></body></html>\n'
    )


def safe(text: str, *, lines: bool = False) -> str:
    """Return a text for HTML, also within an attribute: no markup, and characters that are obeyed or hidden as their code.

    Args:
        text: any text.
        lines: keep line breaks and tabs, for an element that shows them.
    """
    return html.escape(visible(text, lines=lines))
