"""Secrets named by the place that holds them: the columns of tables, the groups below a name, and values that go over several lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grace_kp.trace.redaction._commands import sentence
from grace_kp.trace.redaction._named_rule import NAMES
from grace_kp.trace.redaction._names import (
    ANY_NAME,
    PASSWORDS,
    PASSWORDS_ELSEWHERE,
    SECRETS_ELSEWHERE,
    SHORT,
    SUFFIX,
    TOKENS,
)
from grace_kp.trace.redaction._rule import MARK, Rule, lower, places_of
from grace_kp.trace.redaction._tables import (
    AFTER_NAME,
    ASCII_NEEDLES,
    NAME_REST,
    NEEDLES,
    Span,
    is_secret_cell,
    line_end,
    names_column,
    table_secrets,
    unescaped,
)  # fmt: skip

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence

_BEFORE = re.compile(r"((?:(?<!\w)[A-Za-z]{2,16} )?([\w.$-]{0,40}))\Z")
_HEADING = re.compile(r"[ \t#*>-]*|[ \t]*#{1,6} [\w ]{0,40}")
_OPEN = re.compile(
    rf"(?P<rest>{NAME_REST})"
    r"[\"'`*_)\]]{0,4}+\??(?:[ \t]?:[ \t]?[A-Za-z_][\w.\[\]|, ]{0,30}?(?= ?=))?[ \t]*+(?P<operator>=>|:=|(?<!\n)[:=](?![:=]))?[ \t]*(?:"
    r"(?P<element>>\s*(?=<))|(?P<block>(?:!!?\w+[ \t]+)?[|>][+-]?\d?[+-]?[ \t\r]*(?:#[^\n]*)?\n)"
    r"|(?:\$\(\s*cat\s*)?<<[<~-]?[ \t]*[\"']?(?P<tag>[A-Za-z_]\w*)[\"']?[^\n]*\n"
    r"|(?P<fence>\s*```\w*[ \t\r]*\n)"
    r"|(?P<lines>(?:#[^\n]*)?\r?\n)"
    r"|(?P<bracket>(?:dict|set|list|tuple|frozenset|new \w+)?\s*[\[{(])"
    r"|(?=(?:[brufL@$]{0,2}|string\.raw)[\"'`])"
    r"|(?P<bare>(?:[^\s\"'`\[{(\\]|\\(?!\n)){1,400}+\\\n))"
)
_STRING = (
    r"(?:[brufL@$]{0,2}|String\.raw)(?:\"{3}(?:[^\"]|\"(?!\"\"))*+\"{3}|'{3}(?:[^']|'(?!''))*+'{3}|`[^`]{0,4000}+`|\"(?:[^\"\\\n]|\\[\s\S])*+\"|'(?:[^'\\\n]|\\[\s\S])*+'"
    r"|\"(?:[^\"\\\n]|\\[\s\S])++(?:\s*\n[ \t]*[^\s\"]++){1,20}\s*\"|'(?:[^'\\\n]|\\[\s\S])++(?:\s*\n[ \t]*[^\s']++){1,20}\s*')"
)
_CONTENT = re.compile(r">(?P<value>[^<>\n]{1,400})</")
_CHAIN = re.compile(rf"{_STRING}(?:\s{{0,80}}(?:[+.&]|\|\|)?\s{{0,80}}(?:\\\n\s{{0,80}})?{_STRING}(?![\"']?\s*[:=]))*+")
_CONTINUED = re.compile(r"(?:(?:[^\s\"'`\[{(\\]|\\(?!\n)){1,400}+\\\n[ \t]*){1,30}+[^\s\"']{1,400}+")
_ITEM = re.compile(
    r"(?P<quoted>[\"'])(?:\\.|(?!(?P=quoted))[^\\\n])*+(?P=quoted)(?P<key>\s*(?::|=>|=(?!=)))?|[^\s,;{}\[\]()\"':=][^\s,;{}\[\]()\"'=]*?(?P<bare_key>\s*[:=](?=[\s\"'\w]))|[^\s,;{}\[\]()\"']+|[\[{(]|[\]})]"
)
_LINE = re.compile(
    r"(?P<indent>[ \t]*)(?P<item>(?:[-*•]|\d{1,3}[.)]) )?[ \t]*(?:(?P<key>[\"']?[\w.@ /-]{1,60}?[\"']?)[ \t]*(?:(?P<assigned>:(?!//)|=(?![=\s]*(?:\n|\Z)))|[ \t][-–—][ \t]|->|=>|[ \t]{2})[ \t]*)?(?P<value>[^\n]*)"
)
_SECTION = re.compile(r"[ \t]*\[{1,2}([^\[\]\n]{1,80})\]{1,2}[ \t\r]*(?:#[^\n]*)?\n")
# Names in a group that describe it: they hold no secret.
DESCRIBES = re.compile(
    r"[\"'\s]*(?:(?:user_?name|user|login|e-?mail|host(?:name)?|port|type|kind|name|ur[il]|path|file|provider|backend|region|version|enabled|external|description|"
    r"method|mode|policy|id|label|title|role|service|format|scopes?|algorithm|required|engine|namespace|source|mount|ttl|count|limit)|(?:min|max|expires?|created|updated|rotat|value_?from).*)[\"'\s]*",
    re.IGNORECASE,
)


_LABEL = re.compile(
    rf"(?P<key>{ANY_NAME}\\{{0,2}}[\"'*`]{{0,3}}(?:(?: \[[^\[\]\n]{{1,40}}\]){{1,4}}:\s|[ \t]{{1,4}}\[(?=[^\[\]\n]{{4,100}}\])|(?: [-–—]|[ \t]?->|::)[ \t]|"
    r"\s?:?\s?</(?:label|b|strong|span|div|p|em|h\d|code|td|key|dt|name)>:?\s{0,8}(?:<[^<>/][^<>]{0,200}>\s{0,8}){0,4}|"
    r"(?:\?|(?=\s{1,4}A(?:nswer)?\s?:)|(?=\n[^\n]{1,40}: [^\n]{0,20}(?:it|that)(?:'s|’s| is) ))\s{1,4}(?:\[[^\[\]\n]{1,20}\]\s)?(?:[\w.@-]{1,30}:\s(?:\w{1,10},\s)?)?(?:(?:A|R|Answer|Antwort|Réponse|Respuesta|Risposta|Resposta)\s?:\s{0,4}|[-–>]\s)?(?:(?:it|that|this)(?:'s|’s| is| was)\s|(?:es|das|il|c'est|él|è|é|het)(?: ist| est| is)? |(?:the|my|our)(?: \w{1,20}){1,2} is )?|(?P<shown>[}\"']{0,3}\n)))"
    r"(?P<value>\"[^\"\n]{1,200}+\"|'[^'\n]{1,200}+'|`[^`\n]{1,200}+`|“[^”\n]{1,200}+”|[^\s,\"'`<>\[\]]{4,400}+|(?<=>)[^<>\n]{1,200}+(?=</))", re.IGNORECASE,
)  # fmt: skip


_SHOWS = re.compile(r"\b(?:echo|printenv|print|get|cat|show)\b[^\n]*\Z")


def label_secrets(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield the places of the secrets behind labels: fields of forms, questions, and definitions."""
    for place in places:
        match = _LABEL.match(text, place)
        if match is None or (match["shown"] and not _SHOWS.search(text, max(0, place - 100), place)):
            continue
        name, _, closed = match["key"].partition("</")  # a cell of a table names nothing here
        value, start = match["value"], match.start("value")
        if sentence(match) or (closed[:1] not in {"", "t"} and is_secret_cell(name, value, clear=True)):
            yield start, start + len(value.rstrip(".,;:!?)"))


def group_secrets(text: str, low: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield the places of the secrets below names, and of those that go over several lines."""
    end = 0
    for place in places:
        if place < end or (match := _OPEN.match(low, place)) is None:
            continue
        start = text.rfind("\n", max(0, place - 200), place) + 1 or max(0, place - 200)
        section = _SECTION.match(text, start)
        if section:
            parts = section[1].split(".")
            name = next(filter(names_column, (section[1], parts[-1], parts[0])), "")
            spans = _entries(text, name, section.end(), -1, clear=True)
        else:
            rest = text[place : match.end("rest")]
            heads = reversed(_BEFORE.findall(text, max(end, start, place - 60), place)[0])
            head = next((head for head in heads if names_column(head + rest)), "")
            name = head + rest if names_column(head + rest) else ""
            spans = _opened(text, name, match, text[start : place - len(head)])
        if name:
            for span in spans:  # the last one is empty: the end of the group
                yield span
                end = span[1]


def _opened(text: str, name: str, match: re.Match[str], head: str) -> Iterator[Span]:
    """Yield the secrets in whatever follows a name."""
    if ")" in text[match.end("rest") : match.end()] and (match["lines"] or match["bracket"]):
        return  # the body of a function
    behind, indent = match.end(), len(head) - len(head.lstrip(" \t-*"))
    if match["element"]:
        if re.search(r"<[\w:.-]*\Z", head):
            closed = max(behind, text.find(f"</{name}", behind, behind + 20_000))
            for content in _CONTENT.finditer(text, behind, closed):
                if is_secret_cell(name, content["value"], clear=True):
                    yield content.span("value")
            yield closed, closed
    elif match["block"] or match["fence"] or match["tag"]:
        end = behind
        while end < len(text) and not _closes(text, end, match, indent):
            end = line_end(text, end) + 1
        if is_secret_cell(name, _joined(text[behind:end]), clear=True):
            yield behind, end
        if end >= len(text):
            yield end, end
    elif match["lines"]:
        if match["operator"] or _HEADING.fullmatch(head):
            yield from _entries(text, name, behind, indent, clear=bool(match["operator"]))
    elif match["bracket"]:
        if match["operator"] or match["bracket"][-1] == "{":
            yield from _bracket(text, name, behind - 1)
    else:
        found = _CONTINUED.match(text, match.start("bare")) if match["bare"] else _CHAIN.match(text, behind)
        if not found or not match["operator"] or ("\n" not in found[0] and found[0].count(found[0][-1]) < 3):
            return
        if is_secret_cell(name, _joined(found[0]), clear=True):
            yield found.span()


def _joined(value: str) -> str:
    """Return the text of which each line holds one part; prose is left as it is."""
    parts = [part.strip(" \t\r\"'`+&\\(){}") for part in re.split(r"\n|[\"'`]\s{0,80}[+.&]?\s{0,80}[\"'`]", value)]
    return value if any(" " in part for part in parts) else "".join(parts)


def _closes(text: str, place: int, match: re.Match[str], indent: int) -> bool:
    line = text[place : line_end(text, place)]
    if match["block"]:
        return bool(line.strip()) and not line[: indent + 1].isspace()
    return line.strip().lower().startswith(match["tag"] or "```")


def _entries(text: str, name: str, place: int, indent: int, *, clear: bool) -> Iterator[Span]:
    """Yield the values of the lines below a name, and the end: a list, names and values, or plain lines."""
    seen = False
    while place < len(text) and (match := _LINE.match(text, place)) is not None:
        end = line_end(text, place)
        start, deeper, listed = match.end("indent"), match.end("indent") - place > indent, match["item"]
        if text[place:end].strip():
            ends = not deeper and not listed and (match["assigned"] or (seen and not clear))
            if ends or (text[start] == "[" and indent < 0) or match["value"].strip() in {"|", ">", "|-", ">-"}:
                break
            seen, key = True, match["key"] or ""
            certain = clear and deeper and key != ""
            if not DESCRIBES.fullmatch(key) and is_secret_cell(name, match["value"], clear=certain):
                yield match.span("value")
        elif seen and indent >= 0:
            break
        place = end + 1
    yield place, place


def _bracket(text: str, name: str, place: int) -> Iterator[Span]:
    """Yield the values between brackets, and the end."""
    depth, key = 0, ""
    for match in _ITEM.finditer(text, place, place + 20_000):
        item = match[0]
        if item in "[{(":
            depth += 1
        elif item in "]})":
            depth -= 1
        elif match["key"] or match["bare_key"]:
            key = item.rstrip(" :=>")
        elif not DESCRIBES.fullmatch(key) and is_secret_cell(name, item, clear=bool(match["quoted"])):
            yield match.span()
        place = match.end()
        if depth < 1:
            break
    yield place, place


@dataclass(frozen=True, slots=True, eq=False)
class PlaceRule(Rule):
    """Values whose name is that of their column, their group, or the lines above, and then those right behind their names."""

    def sub(self, text: str, counts: Counter[str] | None) -> str:
        """Return the text without these values; the same object where there are none."""
        low = lower(text)
        places = places_of(ASCII_NEEDLES if low.isascii() else NEEDLES, low)
        before = [place for place in places if _NEXT.match(low, place)]
        clean = self._without(text, before, counts) if before else text
        if clean is not text:
            places = places_of(NEEDLES, lower(clean))
        return NAMES.sub_at(places, clean, counts)

    def _without(self, text: str, places: list[int], counts: Counter[str] | None) -> str:
        plain = unescaped(text)
        low = lower(plain)
        parts: list[str] = []
        end = 0
        for first, last in sorted(
            [*table_secrets(plain, low, places), *group_secrets(plain, low, places), *label_secrets(plain, places)]
        ):
            part = plain[first:last]
            core = part.strip("* \t\r\n").rstrip(",;")
            start = first + part.find(core)
            stop = start + len(core)
            if not core or start < end or "[REDACTED:" in core:
                continue
            while start > end and text[start - 1] == "\\" != plain[start - 1]:  # the escape of the first quote
                start -= 1
            if counts is not None:
                counts[self.kind] += 1
            parts += (text[end:start], MARK.format(self.kind))
            end = stop
        return "".join((*parts, text[end:])) if parts else text


# Behind a name: the next cell, the end of a line, the beginning of a group, of a block or of a text.
_NEXT = re.compile(
    rf"(?:{PASSWORDS}|{PASSWORDS_ELSEWHERE}|{SECRETS_ELSEWHERE}|{TOKENS}|(?:{SHORT}|authorization|cookie|bearer|signature|ssn){SUFFIX}(?![a-z]))"
    + NAME_REST
    + AFTER_NAME
    + r"(?:[,;|│┃║┆&\t\n\[{(=<!$?–—-]|\\|a(?:nswer)? ?:|(?<= ) |(?<=:)|\)\s{0,9}(?:values?|select|from|over)|[^\n=]{0,40}=)"
)
PLACES_AND_NAMES = PlaceRule(
    "password", "names of secrets", NAMES.pattern, needs=NEEDLES, flags=NAMES.flags,
    also=(*NAMES.also, "\n", "\\n", "</", "into", "{", "[", "->", " -", "–", "—", "?"),
)  # fmt: skip
