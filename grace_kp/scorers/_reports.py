"""Reports of a suite over many cases: a page for people, and JUnit XML for build servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from grace_kp.pages import page, printable, safe, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.scorers._cases import Row

_STYLE = """
.cases thead th:has(small){overflow-wrap:anywhere;min-width:6.5rem}.cases td[data-label]{white-space:nowrap}.cases small{display:block;font-weight:400;white-space:nowrap}
.cases .bad{font-weight:600}.cases tr:has(+.why)>*{border-bottom:0}
fieldset{border:1px solid var(--line);border-radius:.3rem;padding:.2rem .8rem .5rem;margin:0}
label{display:inline-block;margin:.2rem 1.2rem .2rem 0;padding:.2rem 0;cursor:pointer}
"""
_CARDS = """
.cases thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}.cases,.cases caption,.cases tbody,.cases tr,.cases th,.cases td{display:block}
.cases tbody{border-bottom:1px solid var(--line);padding:.4rem 0}.cases th,.cases td{border:0;padding:.1rem 0}.cases tbody th{font-weight:600}
.cases td[data-label]{display:flex;justify-content:space-between;gap:1rem;text-align:right}
.cases td[data-label]::before{content:attr(data-label);content:attr(data-label) / "";color:var(--soft);text-align:left;white-space:normal;font-weight:400;flex:1}
"""
"""Rows below each other, for a page that is too narrow for the columns, of which each scorer adds one. The elements have roles, because
`display` takes those that they have by themselves away from screen readers."""


def html_report(rows: Sequence[Row], title: str) -> str:
    """Return a page without external resources and scripts.

    It holds a summary, each scorer with its threshold, and each case with its diagnosis. Cases can be filtered by result and by the
    scorer that they fail.
    """
    passed = sum(report["passed"] for _, report in rows)
    mean = sum(report["overall"] for _, report in rows) / len(rows) if rows else 0.0
    scorers = rows[0][1]["results"] if rows else []
    needed = 16 + 6.5 * len(scorers)
    style = f"{_STYLE}.report{{max-width:{max(70, needed):g}rem}}@media(max-width:{needed:g}rem){{{_CARDS}}}"
    choices = _choices(rows, scorers) if passed < len(rows) > 1 else []
    hiding = "".join(f"body:has(#{name}:checked) .case:not(.{name}){{display:none}}" for name, *_ in choices[1:])
    return page(
        title,
        f"<p>{passed:,} of {len(rows):,} cases pass; overall {mean:.3f} on average.</p><style>{style}{hiding}</style>"
        f"{_scorers_table(rows, scorers)}{_filters(choices)}{_cases_table(rows, scorers)}",
    )


def _choices(rows: Sequence[Row], scorers: Sequence[dict[str, Any]]) -> list[tuple[str, str, int]]:
    """What cases can be filtered by: a name, which those cases have as their class, its words, and the number of cases."""
    failing = sum(not report["passed"] for _, report in rows)
    choices = [("all", "all", len(rows)), ("fails", "failed", failing), ("passes", "passed", len(rows) - failing)]
    for place, scorer in enumerate(scorers):
        count = sum(not report["results"][place]["passed"] for _, report in rows)
        choices.append((f"fails-{place}", f"failed in {scorer['type']}", count))
    return choices[:1] + [choice for choice in choices[1:] if choice[2]]


def _filters(choices: Sequence[tuple[str, str, int]]) -> str:
    if not choices:
        return ""
    inputs = "".join(
        f'<label><input type="radio" name="show" id="{name}"{" checked" if name == "all" else ""}> {safe(words)} ({count:,})</label>'
        for name, words, count in choices
    )
    return f"<fieldset><legend>Show cases</legend>{inputs}</fieldset>"


def _scorers_table(rows: Sequence[Row], scorers: Sequence[dict[str, Any]]) -> str:
    lines = []
    for place, scorer in enumerate(scorers):
        results = [report["results"][place] for _, report in rows]
        scores = [result["score"] for result in results]
        passing = sum(result["passed"] for result in results)
        figures = (
            f"{scorer['threshold']:.2f}",
            f"{scorer['weight']:g}",
            f"{sum(scores) / len(scores):.3f}",
            f"{min(scores):.3f}",
        )
        lines.append((scorer["type"], *figures, f"{passing:,} of {len(results):,}"))
    header = ("scorer", "threshold", "weight", "mean", "least", "passes")
    return table(header, lines, caption="Scorers") if lines else ""


def _cases_table(rows: Sequence[Row], scorers: Sequence[dict[str, Any]]) -> str:
    head = "".join(
        f'<th role="columnheader" scope="col" class="n">{safe(scorer["type"])}<small>at least {scorer["threshold"]:.2f}</small></th>'
        for scorer in scorers
    )
    body = "".join(_case_rows(name, report) for name, report in rows)
    return (
        f'<table role="table" class="cases"><caption>Cases</caption><thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">case</th><th role="columnheader" scope="col">result</th>'
        f'<th role="columnheader" scope="col" class="n">overall</th>{head}</tr></thead>{body}</table>'
    )


def _case_rows(name: str, report: dict[str, Any]) -> str:
    results = report["results"]
    failed = "".join(f" fails-{place}" for place, result in enumerate(results) if not result["passed"])
    word = '<td role="cell" class="good" data-label="result">passes</td>' if report["passed"] else '<td role="cell" class="bad" data-label="result">fails</td>'  # fmt: skip
    row = (
        f'<tbody role="rowgroup" class="case {"passes" if report["passed"] else "fails"}{failed}"><tr role="row"><th role="rowheader" scope="row">{safe(name)}</th>{word}'
        f'<td role="cell" class="n" data-label="overall">{report["overall"]:.3f}</td>{"".join(map(_score_cell, results))}</tr>'
    )
    lines = safe("\n".join(report["diagnosis"]), lines=True)
    if lines:
        row += f'<tr role="row" class="why"><td role="cell" colspan="{3 + len(results)}"><details><summary>why</summary><pre>{lines}</pre></details></td></tr>'
    return f"{row}</tbody>"


def _score_cell(result: dict[str, Any]) -> str:
    """A score, with a mark beside the colour where it is below its threshold."""
    text = "not scored" if result.get("error") else f"{result['score']:.2f}"
    mark = "" if result["passed"] else "✗ "
    label = safe(f"{result['type']}, at least {result['threshold']:.2f}")
    return f'<td role="cell" class="n {"good" if result["passed"] else "bad"}" data-label="{label}">{mark}{text}</td>'


def junit_report(rows: Sequence[Row], title: str) -> str:
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
    return printable(text, keep="\n\t")
