"""A request as lines for a terminal: in full, or folded so that it fits on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.confidence import part_text, penalties_text
from grace_kp.gating._view import view
from grace_kp.gating.reviewers._facts import Facts
from grace_kp.gating.reviewers._layout import STEP, Page, fold, prose, units, value_lines

if TYPE_CHECKING:
    from collections.abc import Collection

    from grace_kp.gating._request import InterventionRequest
    from grace_kp.gating._view import View

LABEL = 13
"""Columns of a label with its colon."""
MAX_CHARACTERS = 1_000_000
"""Size up to which an argument is shown in full: some 500 screens."""
FOLDS = ((12, 4), (6, 3), (3, 1))
"""Numbers of lines that stay at the beginning and end of each part; the first pair that fits on the screen is used."""
_PARTS = {
    "search_quality": "search quality",
    "source_agreement": "source agreement",
    "llm_self_eval": "self-evaluation",
    "tool_success": "tool success",
    "query_coverage": "query coverage",
}


class Question:
    """A request and how it is laid out.

    Args:
        request: the request, or what is to be shown of it.
        changed: names of arguments that the reviewer has replaced; they are marked.
    """

    def __init__(self, request: InterventionRequest | Facts, changed: Collection[str] = ()) -> None:
        self._facts = facts = request if isinstance(request, Facts) else Facts.of(request)
        self._changed = {*changed, *facts.before}
        self._views: dict[str, View] = {
            name: view(value, max_characters=MAX_CHARACTERS) for name, value in facts.arguments.items()
        }
        self._laid_out: dict[tuple[str, Page], list[str]] = {}

    @property
    def opaque(self) -> list[str]:
        """Names of the arguments that cannot be shown in full."""
        return [name for name, seen in self._views.items() if seen.opaque]

    def argument(self, name: str, page: Page) -> list[str]:
        """Lay out one argument in full."""
        if (name, page) in self._laid_out:
            return self._laid_out[name, page]
        mark = " * " if name in self._changed else "   "
        lines = value_lines(name, self._views[name].root, page, len(mark))
        lines[0] = mark + lines[0][len(mark) :]
        if name in self._facts.before:
            lines += value_lines("was", view(self._facts.before[name]).root, page, len(mark) + STEP)
        if name in self._facts.remarks:
            lines += prose(" " * (len(mark) + STEP), self._facts.remarks[name], page, len(mark) + 2 * STEP)
        self._laid_out[name, page] = lines
        return lines

    def in_full(self, page: Page) -> list[str]:
        """Lay out everything."""
        return _flat(self._parts(page, with_bars=True))

    def in_short(self, page: Page, head: int, tail: int, more: str) -> list[str]:
        """Lay out everything, with only `head` and `tail` lines of each long part; `more` says how to see the others."""
        return _flat([fold(part, head, tail, page, more) for part in self._parts(page, with_bars=True)])

    def on_screen(self, page: Page, rows: int) -> tuple[list[str], bool]:
        """Lay out the question for a screen of `rows` lines; the flag says whether everything that matters is shown.

        Where there is not enough room, the parts of the confidence go first. Then long parts are folded.
        """
        for with_bars in (True, False):
            lines = _flat(self._parts(page, with_bars=with_bars))
            if len(lines) <= rows:
                return lines, True
        parts = self._parts(page, with_bars=False)
        for head, tail in FOLDS:
            folded = _flat([fold(part, head, tail, page) for part in parts])
            if len(folded) <= rows:
                return folded, False
        return fold(lines, max(rows - 8, 4), 4, page), False

    def _parts(self, page: Page, *, with_bars: bool) -> list[list[str]]:
        facts = self._facts
        rule = ("─" if page.shows("─") else "-") * page.width
        parts = [[rule], prose(f" {_shown(facts.level.upper(), page)}  may ", f"{facts.action} run?", page, 3), [rule]]
        parts += [labelled("for", facts.objective, page), labelled("problem", facts.problem, page)]
        parts.append([" arguments:" + ("" if facts.arguments else "  none")])
        parts.extend(self.argument(name, page) for name in self._views)
        parts.append(labelled("hidden", facts.hidden, page))
        parts.append(self._confidence(page, with_bars=with_bars))
        parts.append(labelled("because", facts.reason, page))
        parts += [labelled("missing", gap, page) for gap in facts.gaps]
        parts += [labelled("earlier", before, page) for before in facts.earlier]
        return [*parts, labelled("time", facts.time, page), [rule]]

    def _confidence(self, page: Page, *, with_bars: bool) -> list[str]:
        total = self._facts.score
        if total is None:
            return [" confidence: could not be computed"]
        lines = [f" confidence: {total:.3f}" + _bar(total, page, LABEL + 6)]
        if not with_bars:
            return lines
        for part, value in self._facts.parts.items():
            if part not in _PARTS:
                lines += prose("   ", f"{part}: {part_text(value)}", page, 5)
                continue
            bar = _bar(value, page, 27) if isinstance(value, float | int) else ""
            lines.append(f"   {_PARTS[part]:<17} {part_text(value)}{bar}")
        if self._facts.penalties:
            lines += prose("   penalties         ", penalties_text(self._facts.penalties), page, 5)
        return lines


def labelled(label: str, text: str, page: Page) -> list[str]:
    """A text beside its label, indented less where the page is narrow; nothing for an empty text."""
    if not text:
        return []
    if page.width >= 4 * LABEL:
        return prose(f" {label + ':':<{LABEL - 1}}", text, page, LABEL)
    return prose(f" {label}: ", text, page, 3)


def _shown(text: str, page: Page) -> str:
    return "".join(character for character, _ in units(text, page))


def _flat(parts: list[list[str]]) -> list[str]:
    return [line for part in parts for line in part]


def _bar(value: float, page: Page, used: int) -> str:
    """A bar of 20 columns; nothing where the line has no room for it."""
    if used + 21 > page.width:
        return ""
    filled = round(min(max(value, 0.0), 1.0) * 20)
    full, empty = "█░" if page.shows("█░") else "#."
    return " " + full * filled + empty * (20 - filled)
