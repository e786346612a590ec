"""What a suite said of many cases, for people as a page and for build servers as JUnit XML."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = tuple[str, dict[str, Any]]
"""The id of a case, and its report as plain data."""

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1b1f24;background:#fff}
table{border-collapse:collapse;width:100%}th,td{padding:.35rem .6rem;border-bottom:1px solid #d8dee4;text-align:left;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}.ok{color:#1a7f37}.bad{color:#b42318;font-weight:600}
tr:has(+.why) td{border-bottom:0}
pre{white-space:pre-wrap;margin:.3rem 0;font-size:13px;background:#f6f8fa;padding:.6rem;border-radius:.3rem}summary{cursor:pointer}
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}th,td{border-color:#30363d}pre{background:#161b22}
.ok{color:#3fb950}.bad{color:#ff7b72}}
"""


def to_html(rows: Sequence[Row], title: str) -> str:
    """A page of its own, without anything from elsewhere: a summary, and a row for each case with its diagnosis."""
    passed = sum(report["passed"] for _, report in rows)
    kinds = [one["type"] for one in rows[0][1]["results"]] if rows else []
    head = "".join(f'<th class="n">{html.escape(kind)}</th>' for kind in kinds)
    body = "".join(_html_row(name, report) for name, report in rows)
    mean = sum(report["overall"] for _, report in rows) / len(rows) if rows else 0.0
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style><h1>{html.escape(title)}</h1>"
        f"<p>{passed:,} of {len(rows):,} cases pass; overall {mean:.3f} on average.</p>"
        f'<table><thead><tr><th>case</th><th></th><th class="n">overall</th>{head}</tr></thead><tbody>{body}</tbody></table></html>\n'
    )


def _html_row(name: str, report: dict[str, Any]) -> str:
    word = '<td class="ok">passes</td>' if report["passed"] else '<td class="bad">fails</td>'
    cells = "".join(
        f'<td class="n {"ok" if one["passed"] else "bad"}">{one["score"]:.2f}</td>' for one in report["results"]
    )
    lines = html.escape("\n".join(report["diagnosis"]))
    row = f'<tr><td>{html.escape(name)}</td>{word}<td class="n">{report["overall"]:.3f}</td>{cells}</tr>'
    if not lines:
        return row
    width = 3 + len(report["results"])
    return f'{row}<tr class="why"><td colspan="{width}"><details><summary>why</summary><pre>{lines}</pre></details></td></tr>'


def to_junit(rows: Sequence[Row], title: str) -> str:
    """JUnit XML: a test case for each case, whose failure is the diagnosis."""
    failed = sum(not report["passed"] for _, report in rows)
    suite = ElementTree.Element("testsuite", name=_plain(title), tests=str(len(rows)), failures=str(failed), errors="0")
    for name, report in rows:
        case = ElementTree.SubElement(suite, "testcase", classname=_plain(title), name=_plain(name))
        if not report["passed"]:
            failure = ElementTree.SubElement(case, "failure", message=f"overall {report['overall']:.3f}")
            failure.text = _plain("\n".join(report["diagnosis"]))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _plain(text: str) -> str:
    """Without the control characters that XML cannot hold."""
    return "".join(
        sign if sign in "\n\t" or (sign.isprintable() and not "\ud800" <= sign <= "\udfff") else " " for sign in text
    )
