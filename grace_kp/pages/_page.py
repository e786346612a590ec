"""The frame of a page: its head, its style in light and dark, and texts that are safe in HTML."""

from __future__ import annotations

import html

from grace_kp.trace import printable

# The colours of figures differ in lightness as well as in hue, so that they can be told apart in grey.
_STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--line:#d8dee4;--box:#f6f8fa;--soft:#57606a;--first:#0550ae;--second:#bc4c00}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--paper:#0d1117;--line:#30363d;--box:#161b22;--soft:#8b949e;--first:#79c0ff;--second:#f0883e}}
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 1rem;color:var(--ink);background:var(--paper);overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.25}h2{font-size:1.2rem;line-height:1.3;margin:2.2rem 0 .4rem}p,li{max-width:46rem}table{border-collapse:collapse;width:100%;margin:1rem 0}
th,td{padding:.35rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}tbody th{font-weight:400;min-width:5rem}
td,thead th{overflow-wrap:break-word}.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap;overflow-wrap:normal}thead .n{white-space:normal}
caption{text-align:left;font-size:13px;color:var(--soft);padding-bottom:.3rem}
.verdict{font-size:1.15rem;padding:.7rem 1rem;border-left:4px solid #2f81f7;background:var(--box)}
.note{padding:.5rem 1rem;border-left:4px solid var(--soft);background:var(--box)}summary{cursor:pointer;color:var(--soft)}
figure{margin:1.5rem 0;max-width:44rem;color:inherit}svg{width:100%;height:auto}figcaption{font-size:13px;color:var(--soft)}
@media(max-width:45rem){
.wide thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}.wide,.wide caption,.wide tbody,.wide tr,.wide th,.wide td{display:block}
.wide tr{border-bottom:1px solid var(--line);padding:.4rem 0}.wide th,.wide td{border:0;padding:.1rem 0}.wide tbody th{font-weight:600}
.wide [data-label]{display:flex;justify-content:space-between;gap:1rem;text-align:right}
.wide [data-label]:empty{display:none}.wide [data-label]::before{content:attr(data-label);content:attr(data-label) / "";color:var(--soft);text-align:left;font-weight:400;flex:1;white-space:normal}}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Whatever a page should hold by mistake, a browser runs no script of it and loads nothing for it."""


def page(title: str, body: str) -> str:
    """Return a whole page.

    Args:
        title: plain text, for the tab and the heading.
        body: HTML.
    """
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{safe(title)}</title><style>{_STYLE}</style><main><h1>{safe(title)}</h1>{body}</main></html>\n"
    )


def safe(text: str) -> str:
    """Return a text for HTML, also within an attribute: no markup, no control characters."""
    return html.escape(printable(text))
