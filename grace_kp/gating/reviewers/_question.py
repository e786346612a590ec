"""A request as lines for a terminal: in full, or folded so that it fits on the screen.

The console and `grace-kp approvals` show the same facts in the same words. A reader can recover the exact string from its layout:

- Characters that are invisible, or that move others, are escaped (`\\x1b`, `\\u202e`). Backslashes are doubled, so that no content looks like
  an escape.
- A line break is `\\n`, followed by a new line.
- A line that ends in a single backslash continues without a space. Any other wrapped line ends at a single space.
- A line that continues the previous line begins with a bar, so that no content looks like a line of the question.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from grace_kp.approvals import deadline_text
from grace_kp.confidence import part_text, penalties_text
from grace_kp.gating._request import alarm_sentences, sizes_text
from grace_kp.gating._view import Node, pieces, view
from grace_kp.pages import hides, with_fallbacks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from grace_kp.gating._request import InterventionRequest, ValuePlace
    from grace_kp.gating._view import View


Unit: TypeAlias = tuple[str, int]
"""A character as it is shown, and how many columns that takes."""

MAX_MARKS = 3
"""Number of combining marks that are shown after a letter; more would cover their neighbours."""
MAX_INDENT_SHARE = 3
"""A nested value is indented by at most this share of the width: a third."""
STEP = 2
"""Columns by which a nested value, and the rest of a wrapped one, is indented: the width of `BAR`."""
BAR = "| "
"""The beginning of every line that continues the previous line."""
CODE_POINTS = "in this order: "
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\"}
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})


@dataclass(frozen=True, slots=True)
class Page:
    """Width of the lines, and the encoding of the terminal."""

    width: int
    encoding: str = "utf-8"

    def shows(self, text: str) -> bool:
        """Whether the terminal can show all characters of a string."""
        try:
            return text.encode(self.encoding).decode(self.encoding) == text
        except UnicodeError:
            return False


def escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _cells(character: str) -> int:
    """Columns that a character beyond ASCII takes at most, because terminals differ.

    A line that is wider on the screen than thought would be broken by the terminal, without our bar. So a mark counts as a column, and
    symbols and characters of ambiguous width count as two.
    """
    category = unicodedata.category(character)[0]
    is_narrow = category == "M" or (category == "L" and unicodedata.east_asian_width(character) in {"N", "Na", "H"})
    return 1 if is_narrow else 2


def units(text: str, page: Page, quote: str = "", *, ascii_only: bool = False) -> Iterator[Unit]:
    """Yield the characters as the page shows them. Characters that its encoding lacks are escaped."""
    marks, after_letter = 0, False
    for character in text:
        if " " <= character <= "~":
            shown = f"\\{character}" if character == quote else _SHORT.get(character, character)
            marks, after_letter = 0, character.isalpha()
            yield shown, len(shown)
            continue
        is_mark = unicodedata.category(character)[0] == "M"
        marks = marks + 1 if is_mark else 0
        is_visible = (
            character.isprintable()
            and not hides(character)
            and not (is_mark and (not after_letter or marks > MAX_MARKS))
            and not ascii_only
            and page.shows(character)
        )
        after_letter = character.isalpha() or (is_mark and after_letter)
        shown = character if is_visible else _SHORT.get(character) or escape(character)
        yield shown, _cells(character) if is_visible else len(shown)


def quote_units(text: str, page: Page, *, ascii_only: bool = False) -> Iterator[Unit]:
    """Yield a string in double quotes, or in single ones where it contains only double ones."""
    quote = "'" if '"' in text and "'" not in text else '"'
    yield quote, 1
    yield from units(text, page, quote, ascii_only=ascii_only)
    yield quote, 1


def wrap(shown: Iterable[Unit], width: int, hanging: int = 0) -> list[str]:
    """Break units into lines; see the module for where and how."""
    limit = max(width, 8) - 1  # the last column is for the backslash of a broken word
    later = max(width - hanging, 8) - 1
    lines: list[str] = []
    line: list[Unit] = []
    # `space`: units of the line up to and including its last single space; `earlier`: the single space before that.
    used = space = earlier = 0
    for unit, size in shown:
        if unit == " " and space == len(line):
            space = earlier  # that space was the first of several
        if line and line[-1][0] == "\\n":
            lines.append(_join(line))
            line, used, space, earlier, limit = [], 0, 0, 0, later
        while line and used + size > limit:
            kept = space or len(line)
            lines.append(_join(line[:kept]) + ("" if space else "\\"))
            line, limit = line[kept:], later
            used, space, earlier = sum(columns for _, columns in line), 0, 0
        line.append((unit, size))
        used += size
        if unit == " " and len(line) > 1 and line[-2][0] != " ":
            space, earlier = len(line), space
    return [*lines, _join(line)]


def _join(line: list[Unit]) -> str:
    return "".join(unit for unit, _ in line)


def prose(label: str, text: str, page: Page, indent: int) -> list[str]:
    """Lay out a labelled string without quotes. Lines after the first begin with a bar at column `indent`."""
    lines = wrap([*_plain_units(label), *units(text, page)], page.width, indent)
    if _is_right_to_left(text):
        lines += wrap([*_plain_units(CODE_POINTS), *units(text, page, ascii_only=True)], page.width - indent)
    return [lines[0], *(f"{BAR:>{indent}}{line}" for line in lines[1:])]


def value_lines(name: str, root: Node, page: Page, indent: int) -> list[str]:
    """Lay out a named value on as many lines as it takes; nothing of it is left out."""
    out: list[str] = []
    start = [*(units(name, page) if name.isidentifier() else quote_units(name, page)), *_plain_units(" = ")]
    # The parts still to lay out, last first: column, units before the value, the value, and the string after it.
    stack: list[tuple[int, list[Unit], Node | None, str]] = [(indent, start, root, "")]
    while stack:
        column, before, node, after = stack.pop()
        pad = " " * min(column, page.width // MAX_INDENT_SHARE)
        room = page.width - len(pad)
        if node is None:
            lines = [_join(before) + after]
        elif (line := _one_line(node, page, room - len(after) - sum(size for _, size in before))) is not None:
            lines = [_join([*before, *line]) + after]
        elif not node.brackets:
            lines = wrap([*before, *_leaf_units(node, page), *_plain_units(after)], room, STEP)
            if _is_right_to_left(node.text):
                lines += wrap([*_plain_units(CODE_POINTS), *_leaf_units(node, page, ascii_only=True)], room - STEP)
        else:
            lines = wrap([*before, *units(node.label, page), (node.brackets[0], 1)], room, STEP)
            stack.append((column, _plain_units(node.brackets[1]), None, after))
            for number in range(len(node.children) - 1, -1, -1):
                key, child = node.children[number]
                is_last = number == len(node.children) - 1
                before = [] if key is None else [*_leaf_units(key, page), *_plain_units(node.separator)]
                stack.append((column + STEP, before, child, "" if is_last else ","))
        out += [pad + lines[0], *(pad + BAR + line for line in lines[1:])]
    return out


def _leaf_units(leaf: Node, page: Page, *, ascii_only: bool = False) -> Iterator[Unit]:
    """Yield a leaf as it is shown, with the name of its class around it where it has one."""
    if leaf.label:
        yield from units(f"{leaf.label}(", page)
    yield from (quote_units if leaf.quoted else units)(leaf.text, page, ascii_only=ascii_only)
    if leaf.label:
        yield ")", 1


def _one_line(root: Node, page: Page, room: int) -> list[Unit] | None:
    """Lay out a value on one line; None where it is wider than `room`, or where the terminal may reorder it."""
    out: list[Unit] = []
    left = room
    for piece in pieces(root):
        if isinstance(piece, str):
            shown = _plain_units(piece)
        elif len(piece.text) > left or "\n" in piece.text or _is_right_to_left(piece.text):
            return None
        else:
            shown = list(_leaf_units(piece, page))
        out += shown
        left -= sum(size for _, size in shown)
        if left < 0:
            return None
    return out


def _plain_units(text: str) -> list[Unit]:
    return [(character, 1) for character in text]


def _is_right_to_left(text: str) -> bool:
    return not text.isascii() and any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in text)


def fold(lines: list[str], head: int, tail: int, page: Page, more: str = "v shows them") -> list[str]:
    """Return the first and last lines with the number of those between them; all lines where that saves nothing."""
    hidden = len(lines) - head - tail
    marker = wrap(_plain_units(f" [… {hidden:,} lines folded; {more}]"), page.width)
    return lines if hidden <= len(marker) else [*lines[:head], *marker, *lines[len(lines) - tail :]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """An action, its arguments, and why a person is asked."""

    action: str
    level: str
    arguments: Mapping[str, Any]
    """The values themselves, by parameter name."""
    before: Mapping[str, Any] = field(default_factory=dict)
    """Arguments before an edit, by parameter name."""
    remarks: Mapping[str, str] = field(default_factory=dict)
    """Remarks on arguments, by parameter name, such as that one is sealed or not covered by the decision."""
    objective: str = ""
    problem: str = ""
    """The problem of the previous answer."""
    hidden: str = ""
    """The arguments that are not shown in full."""
    score: float | None = None
    """The confidence; None where it could not be computed."""
    parts: Mapping[str, float | str | None] = field(default_factory=dict)
    """The parts of the confidence; a string such as `fallback 0.5` or None for a part that was not evaluated."""
    penalties: tuple[str, ...] = ()
    reason: str = ""
    gaps: tuple[str, ...] = ()
    """Why evidence is missing or cannot be used, where the reason does not say so already."""
    alarms: Mapping[str, str] = field(default_factory=dict)
    """What is suspicious about the arguments, by parameter name; under an empty name about the call as a whole."""
    earlier: tuple[str, ...] = ()
    """Outcomes of earlier requests for the same operation."""
    time: str = ""
    """How long there is to decide, and what happens then."""

    @classmethod
    def of(cls, request: InterventionRequest) -> Facts:
        """Return the facts of a request that a gate puts to a reviewer."""
        confidence = request.confidence
        of_action = confidence.reason if confidence and not confidence.breakdown else ""
        return cls(
            action=request.action,
            level=request.level.value,
            arguments=request.arguments,
            objective=request.objective or "",
            problem=request.problem,
            hidden=sizes_text(request.hidden),
            score=request.decision.confidence_score,
            parts={} if confidence is None else with_fallbacks(confidence.evaluated, confidence.fallbacks),
            penalties=() if confidence is None else tuple(confidence.penalties_applied),
            reason=" ".join(filter(None, (request.reason, of_action))),
            alarms=alarm_sentences(request.alarms, request.arguments, request.sealed),
            time="" if request.timeout is None else f"{request.timeout:g} s, then {deadline_text(request.on_timeout)}",
        )


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
    """A request and how it is laid out. The arguments that the reviewer has replaced, `changed`, are marked."""

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
        alarm = "" if name in self._changed else self._facts.alarms.get(name, "")
        mark = " * " if name in self._changed else " ! " if alarm else "   "
        lines = value_lines(name, self._views[name].root, page, len(mark))
        lines[0] = mark + lines[0][len(mark) :]
        if name in self._facts.before:
            lines += value_lines("was", view(self._facts.before[name]).root, page, len(mark) + STEP)
        for remark in filter(None, (self._facts.remarks.get(name, ""), alarm)):
            lines += prose(" " * (len(mark) + STEP), remark, page, len(mark) + 2 * STEP)
        self._laid_out[name, page] = lines
        return lines

    def in_full(self, page: Page) -> list[str]:
        """Lay out everything."""
        return [*chain.from_iterable(self._parts(page, with_bars=True))]

    def in_short(self, page: Page, head: int, tail: int, more: str) -> list[str]:
        """Lay out everything, with only `head` and `tail` lines of each long part; `more` says how to see the others."""
        return [line for part in self._parts(page, with_bars=True) for line in fold(part, head, tail, page, more)]

    def on_screen(self, page: Page, rows: int) -> tuple[list[str], bool]:
        """Lay out the question for a screen of `rows` lines; the flag says whether everything that matters is shown.

        Where there is not enough room, the parts of the confidence go first. Then long parts are folded.
        """
        for with_bars in (True, False):
            lines = [*chain.from_iterable(parts := self._parts(page, with_bars=with_bars))]
            if len(lines) <= rows:
                return lines, True
        for head, tail in FOLDS:
            folded = [line for part in parts for line in fold(part, head, tail, page)]
            if len(folded) <= rows:
                return folded, False
        return fold(lines, max(rows - 8, 4), 4, page), False

    def _parts(self, page: Page, *, with_bars: bool) -> list[list[str]]:
        facts = self._facts
        rule = ("─" if page.shows("─") else "-") * page.width
        parts = [
            [rule],
            prose(f" {_join([*units(facts.level.upper(), page)])}  may ", f"{facts.action} run?", page, 3),
            [rule],
        ]
        parts += [label_lines("for", facts.objective, page), label_lines("problem", facts.problem, page)]
        parts.append([" arguments:" + ("" if facts.arguments else "  none")])
        parts.extend(self.argument(name, page) for name in self._views)
        parts.append(label_lines("hidden", facts.hidden, page))
        parts.append(self._confidence(page, with_bars=with_bars))
        parts.append(label_lines("because", facts.reason, page))
        parts += [label_lines("missing", gap, page) for gap in facts.gaps]
        parts.append(label_lines("alarm", facts.alarms.get("", ""), page))
        parts += [label_lines("earlier", before, page) for before in facts.earlier]
        return [*parts, label_lines("time", facts.time, page), [rule]]

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


def label_lines(label: str, text: str, page: Page) -> list[str]:
    """A string after its label, indented less where the page is narrow; nothing for an empty string."""
    if not text:
        return []
    if page.width >= 4 * LABEL:
        return prose(f" {label + ':':<{LABEL - 1}}", text, page, LABEL)
    return prose(f" {label}: ", text, page, 3)


def place_lines(place: ValuePlace, page: Page) -> list[str]:
    """Lay out a place of a value: where it is, and the text, set apart by bars."""
    text = wrap(units(place.text, page), page.width - 2 * STEP)
    lines = prose(" ", f"{place.parameter}: {place.caption}:", page, STEP)
    return [*lines, *(f"{' ' * STEP}{BAR}{line}" for line in text)]


def _bar(value: float, page: Page, used: int) -> str:
    if used + 21 > page.width:
        return ""
    filled = round(min(max(value, 0.0), 1.0) * 20)
    full, empty = "█░" if page.shows("█░") else "#."
    return " " + full * filled + empty * (20 - filled)
