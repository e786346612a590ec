"""Secrets named by their place: the column or row of a table, the group below a name, a label, or a value that goes over several lines.

Tables first: CSV, Markdown, psql, HTML, SQL and others become rows of cells. A cell is redacted if the name of its column is the name
of a secret, or if the label of its row is one and the cell holds its value. `_value` applies the same law to rows of JSON values.
Groups and labels follow, and at the end the rule that joins all of these with the values right behind their names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grace_kp.trace.redaction._names import (
    ANY_NAME,
    NAMED_VALUE,
    OTHER_NEEDLES,
    PASSWORD_MARK,
    PASSWORDS,
    PASSWORDS_ELSEWHERE,
    SECRETS_ELSEWHERE,
    SHORT,
    SUFFIX,
    TOKENS,
    is_harmless,
    is_secret_name,
    named_secrets,
    names_number,
)
from grace_kp.trace.redaction._names import ASCII_NEEDLES as NAMED_NEEDLES
from grace_kp.trace.redaction._patterns import is_word, keeps_sentence
from grace_kp.trace.redaction._rule import RedactionRule, lower, places_of

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence

    from grace_kp.trace.redaction._rule import Found


Span = tuple[int, int]
ASCII_NEEDLES = (*NAMED_NEEDLES, "cookie", "bearer", "signature", "ssn")
NEEDLES = (*ASCII_NEEDLES, *OTHER_NEEDLES)
_CLEAR = re.compile(rf"{PASSWORDS}|{PASSWORDS_ELSEWHERE}|(?:api|access|private)[ _-]?key", re.IGNORECASE)
_NO_SECRET = re.compile(
    r"[\d\s.,:/~%()+≈-]{1,2}|\W{0,3}|\d{4}-\d\d-\d\d.*|\d+ [a-z]+|nan|(?:not |un|in)?(?:supported|available|active|known|used|set)|(?:not |never |always ).*",
    re.IGNORECASE,
)
_LABELS = frozenset(("name", "key", "field", "setting", "variable", "parameter", "option", "property", "label", "attribute", "column", "item"))  # fmt: skip
_VALUES = frozenset(("value", "val", "values", "wert", "valor", "valeur", "valore", "waarde", "wartość", "значение", "値", "值", "값", "content", "current"))  # fmt: skip
_OUTCOMES = frozenset(("fail", "failed", "failure", "failures", "skip", "skipped", "total", "errors", "grade"))
_DECORATION = re.compile(r"^[\s*_`\"'\[<>#]+|(?:\s*[(（][^()（）]*[)）])?[\s*_`\"'\]<>#:：\\]*$")


def names_column(text: str) -> bool:
    """Return whether a header or a label names secrets, by the rule for names: `Password`, `**API key**`, `pwd (hashed)`."""
    name = _DECORATION.sub("", text[:100])
    return is_secret_name(name) or (" " in name and is_secret_name(name.replace(" ", "_")))


def is_secret_cell(name: str, value: str, *, clear: bool) -> bool:
    """Return whether the value of the name of a secret is one; where name or place are not clear, it must look like one."""
    core = value.strip("\"'`* \t\r\\")
    if _NO_SECRET.fullmatch(core) or is_harmless(name, value, "key"):
        return False
    if _CLEAR.search(name) and (clear or (core.count(" ") > 1 and "phrase" in name.lower())):
        return True
    if core.isdecimal():
        return len(core) > 2 and names_number(name)
    return " " not in core and not is_word(name, core, quoted=False)


def secret_columns(names: Sequence[str]) -> list[int]:
    """Return the places of columns of secrets. A column `pass` next to `fail` counts results."""
    graded = any(name.strip().lower() in _OUTCOMES for name in names)
    secret = [place for place, name in enumerate(names) if names_column(name)]
    return [place for place in secret if not (graded and names[place].strip().lower() == "pass")]


def secret_cells(names: Sequence[str], row: Sequence[str], *, clear: bool = True) -> dict[int, str]:
    """Return the places of the secrets in a row with their names, which are those of the columns, or the label of the row."""
    columns = [column for column in secret_columns(names) if column < len(row)]
    found = {place: names[place] for place in columns if is_secret_cell(names[place], row[place], clear=clear)}
    low = [_DECORATION.sub("", name).lower() for name in names]
    label = next((place for place, name in enumerate(low) if name in _LABELS), 0)
    if label < len(row) and label not in columns and names_column(row[label]):
        for place in range(label + 1, len(row)):
            if is_secret_cell(row[label], row[place], clear=low[place : place + 1] != [] and low[place] in _VALUES):
                found[place] = row[label]
    return found


def has_values(names: Sequence[str]) -> bool:
    return any(name.strip().lower() in _VALUES for name in names)


_WIKI = re.compile(r"^[ \t]*\|\|.*\|\|[ \t\r]*$", re.MULTILINE)
_MARKUP = re.compile(
    r"<h\d(?: [^<>\n]*)?>|</h\d>(?=\s*<[ou]l)|</?[ou]l(?: [^<>\n]*)?>|(?:\n[ \t]{0,20})?(?P<item><li)(?: [^<>\n]*)?>|</li>",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"(\\*)(\"|(?<=\\)[nrt']|(?<![^\s{\[(,:=])'|'(?=[\s,}\]):]|$))")


def unescape(text: str) -> str:
    """Return a string of the same length, with the line breaks, tabs and quotes that JSON or `repr` escaped.

    A quote that is escaped less often than the line breaks encloses them, and becomes a line break too.
    """
    text = _WIKI.sub(lambda row: row[0].replace("||", " |"), text) if "||" in text else text
    if "</" in text:
        text = _MARKUP.sub(lambda tag: "\n" + "- ".rjust(len(tag[0]) - 1) if tag["item"] else " " * len(tag[0]), text)
    if "\\" not in text:
        return text
    return "\n".join(_unescape_line(line) if "\\n" in line or '\\"' in line else line for line in text.split("\n"))


def _unescape_line(line: str) -> str:
    found = _ESCAPE.findall(line)
    depth = max((len(slashes) for slashes, letter in found if letter == "n"), default=0)
    depth = depth or max((len(slashes) for slashes, letter in found if letter in "\"'"), default=0)
    around = next((quote for slashes, quote in found if quote in "\"'" and len(slashes) < depth), "")

    def plain(match: re.Match[str]) -> str:
        letter = "n" if match[2] == around and len(match[1]) < depth else match[2]
        return {"n": "\n", "r": " ", "t": "\t"}.get(letter, letter).rjust(len(match[0]))

    return _ESCAPE.sub(plain, line)


# Between cells, the most telling first: the sides of a box, tabs, semicolons, commas, gaps.
_PIPE, _GAP = r"(?<!\\)[|│┃║┆]", r" {2,}"
_KINDS = {
    kind: re.compile(rf"([ \t]*\"(?:[^\"]|\"\"){{0,2000}}+\"[ \t\r]*(?={kind}|\n|\Z)|(?:(?!{kind})[^\n])*+)({kind}|\n|\Z)")
    for kind in (_PIPE, r"\t", ";", ",", "&", _GAP)
}  # fmt: skip
_BORDER = re.compile(r"(?=[^\n]*[+=─-╿-]{2})[\s>|+=:*─-╿-]*+")
_NAME_LIKE = re.compile(
    r"(?!(?:select|from|import|return|and|or|the|with|where|def|for|if|dear|hi|hello)\b)(?:[^\W\d]|[^\x00-\x7f])(?:[\w.#/%'$-]|[^\x00-\x7f])*(?: (?:[\w.#/%'$-]|[^\x00-\x7f])+){0,3}(?<!\.)(?: ?[(（][^()（）]*[)）])?|",
    re.IGNORECASE,
)
NAME_REST = r"[\w.\u0080-\u24ff\u2580-\uffff-]{0,40}+(?: (?:key|id|phrase|answer|code|number|no|string|hash|value|passe|d'ordine|sandi|laluan|\([^()\n]{0,30}\)|[\u0080-\u24ff\u2580-\uffff]{1,20}+)){0,2}"
AFTER_NAME = r"[\"'`*_)\]:> \t\r\\]{0,30}"
_AT = re.compile(NAME_REST + AFTER_NAME + r"(?P<end>[,;|│┃║┆&\n\t]|(?<= ) )")
_CELL_BEFORE = re.compile(r"(?:\A|[,;|│┃║┆&\t\n]|  )[\s\"'`*_#>\[<-]{0,20}(?:[\w.#/%'$-]+ ){0,3}[\w.-]*\Z")
_IN_LIST = re.compile(rf"({NAME_REST})[\"'] ?[,\])]")


def line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def _record(text: str, place: int, kind: str) -> tuple[list[Span], int]:
    """Return the cells of the line at this place, and the place behind it; a quoted cell may go over several lines."""
    cells: list[Span] = []
    while kind is _GAP and text[place : place + 1] == " ":
        place += 1
    while (match := _KINDS[kind].match(text, place)) is not None:
        cells.append(match.span(1))
        place = match.end()
        if match[2] in {"\n", ""}:
            break
    return cells, place


def _kinds(line: str, end: str) -> list[str]:
    """Return what can separate the cells of a line: sides of a box, tabs, or what follows a name, unless it is the last cell."""
    if end in "|│┃║┆":
        return [_PIPE]
    last = end == "\n"
    marks = ((_PIPE, "|│┃║┆"), (r"\t", "\t"), *((kind, kind) for kind in (";", ",", "&") if last or end == kind))
    return [*(kind for kind, signs in marks if any(side in line for side in signs)), *([_GAP] * (last or end == " "))]


def _lines(text: str, low: str, places: Sequence[int]) -> Iterator[Span]:
    floor = known = 0  # ends of the last line and of the last table
    for place in places:
        at = _AT.match(low, place) if place >= floor else None
        if at is None or _CELL_BEFORE.search(low, max(0, place - 80), place) is None:
            continue
        start = text.rfind("\n", known, place) + 1 or known
        floor = line_end(text, place)
        for kind in _kinds(text[start:floor], at["end"]) if floor - start < 20_000 else ():
            cells, behind = _record(text, start, kind)
            alone = kind is not _GAP or not _BORDER.fullmatch(text, behind, line_end(text, behind))
            if len(cells) > alone and any(names_column(text[slice(*cell)]) for cell in cells):
                rows, ruled, floor = _block(text, start, len(cells), known, kind)
                known = floor
                yield from _secrets_in(text, rows, ruled, clear=f"{kind} " not in text[start:behind])
                break


def _block(text: str, start: int, size: int, floor: int, kind: str) -> tuple[list[list[Span]], int, int]:
    """Return the rows of the table around a line, the number of rows before its first inner border, and the end of the table."""
    while start > floor:
        before = text.rfind("\n", floor, start - 1) + 1 or floor
        if len(_record(text, before, kind)[0]) != size and not _BORDER.fullmatch(text, before, start - 1):
            break
        start = before
    rows: list[list[Span]] = []
    ruled, border, place = 0, 0, start
    while place < len(text):
        cells, behind = _record(text, place, kind)
        line, count = text[place:behind], len(cells)
        if _BORDER.fullmatch(line) or (len(rows) == 1 and kind is _PIPE and line.isspace()):
            border = border or len(rows)
        elif line.isspace() or not (
            count > 1 if kind is _PIPE else kind is _GAP or count == size or behind == len(text) or (size < count <= size + 2 and f"{kind} " not in line)
        ):  # fmt: skip
            break
        else:
            ruled = border
            start = start if rows else place
            rows.append(_fit_cells(text, cells, rows[0] if rows else cells, place - start, kind))
        place = behind
    return rows, ruled, place


def _fit_cells(text: str, cells: list[Span], head: list[Span], down: int, kind: str) -> list[Span]:
    """Return the cells of a row in the order of the columns: those below the header, without the sides of a box."""
    if kind is _GAP and len(cells) != len(head):
        if "[REDACTED:" in text[cells[0][0] : cells[-1][1]]:
            return []  # a mark has moved the cells behind it
        shifted = [(start + down, end + down) for start, end in head]
        return [next((cell for cell in cells if cell[0] < end and cell[1] > start), (0, 0)) for start, end in shifted]
    if kind is _PIPE:
        cells = cells[not text[slice(*cells[0])].strip(" \t>#/*-") :]
        cells = cells[: -1 if len(cells) > 1 and not text[slice(*cells[-1])].strip() else None]
    extra = max(0, len(cells) - len(head))  # separators inside of a value
    return [(start, cells[place + extra][1]) for place, (start, _) in enumerate(cells[: len(cells) - extra])]


def _secrets_in(text: str, rows: list[list[Span]], ruled: int, *, clear: bool = True) -> Iterator[Span]:
    lines = [[text[slice(*cell)].strip() for cell in row] for row in rows]
    header: list[str] = []
    first = 0
    for place in (ruled - 1,) if ruled else range(min(3, len(rows) - 1)):
        names = lines[place]
        columns = secret_columns(names)
        if not all(_NAME_LIKE.fullmatch(_DECORATION.sub("", name)) for name in names):
            continue
        if not ruled and (sum(map(bool, names)) < 2 or (place and columns[:1] in ([], [0]))):
            continue
        if not ruled and columns == [0] and len(names) == 2 and is_secret_cell(*names, clear=False):
            continue
        header, first = names, place + 1
        if columns:
            break
    for cells, row in zip(rows[first:], lines[first:], strict=True):
        if len(rows) > 1 or "|" in text[cells[0][1] : cells[-1][1]]:
            yield from (cells[place] for place in secret_cells(header, row, clear=clear))


_TAG = re.compile(
    r"<(?P<tag>/?t(?:able|r|h|d)|/?d[ltd])\b[^<>]*+>(?:\s*+<(?!/?t(?:able|r|h|d)\b|/?d[ltd]\b)[^<>]*+>)*+(?P<body>[^<]*+)",
    re.IGNORECASE,
)


def _html(text: str) -> Iterator[Span]:
    rows: list[list[Span]] = [[]]
    for match in _TAG.finditer(text + "</table>"):
        tag = match["tag"].lower()
        if tag in {"tr", "dt"}:
            rows.append([])
        if tag in {"td", "th", "dt", "dd"}:
            rows[-1].append(match.span("body"))
        if tag in {"/table", "table", "dl"}:
            rows = [row for row in rows if row]
            labelled = all(len(row) == 2 for row in rows) and rows and names_column(text[slice(*rows[0][0])])
            yield from _secrets_in(text, rows, int(len(rows) > 1 and not labelled))
            rows = [[]]


_LITERALS = r"(?:[eEnN]?'(?:[^'\\]|''|\\.)*+(?:'|\Z)|\"(?:[^\"\\]|\\.)*+(?:\"|\Z)|\((?:[^()'\"]|'(?:[^'\\]|''|\\.)*+'|\([^()]*+\))*+\)|[^,()\]'\";])*+"
_LITERAL = re.compile(r"['\"]|\A(?:0x)?[\da-fA-F]+\Z")
_INTO = re.compile(
    r"\b(?:into|copy)\s+(?:table\s+)?[\w.\"`\[\]$]{1,120}\s*\((?P<names>[^()]{1,4000})\)\s*(?:overriding \w+ value\s+)?(?P<how>values?|select|from stdin[^\n;]*;?\s*\n)\s*"
    r"|(?<!,)(?<!,\s)[\[(](?P<list>\s{0,20}[\"'][^\"'\n]{0,60}[\"'](?:\s{0,20},\s{0,20}[\"'][^\"'\n]{0,60}[\"']){0,60}),?\s{0,20}[\])](?:[\s,:}]|\"\w{1,20}\"|'\w{1,20}'){1,40}[\[(]{0,2}(?=[\[(])",
    re.IGNORECASE,
)
_CELL = re.compile(rf"\s*({_LITERALS})([,)\]]?)")
_PARAMETER = re.compile(
    r"(?:(?<!\w)(?P<column>\w{1,80})[\"'`\]]?\s*(?:=|<>|!=|\blike\b)\s*(?:\w{1,40}\()?\s*)?(?<![\w?])(?P<mark>\?\d{0,3}|%s|(?<!:)[:@$]\w{1,40}|%\(\w{1,40}\)s)(?![\w?])",
    re.IGNORECASE,
)
_STATEMENT = re.compile(r"\s*(?:insert|update|replace|merge|select|delete|alter|create|with)\b", re.IGNORECASE)


def _sql(text: str) -> Iterator[Span]:
    place = 0
    for match in _INTO.finditer(text):
        names = [name.strip(" \"'`\n") for name in (match["names"] or match["list"]).split(",")]
        how = (match["how"] or "").lower()[:6]  # values, select, from s, or nothing
        if not secret_columns(names) or match.start() < place:
            continue
        place = match.end()
        while (
            place < len(text)
            and (text[place] in "([" or how in {"select", "from s"})
            and not text.startswith("\\.", place)
        ):
            if how == "from s":
                cells, place = _record(text, place, r"\t")
            else:
                cells, place = _values(text, place + (how != "select"))
                place += len(text[place : place + 40]) - len(text[place : place + 40].lstrip(", \n\t\r"))
            row = [text[slice(*cell)].strip() for cell in cells]
            if len(cells) == len(names):
                yield from (
                    cells[cell] for cell in secret_cells(names, row) if how == "from s" or _LITERAL.search(row[cell])
                )
            if how == "select":
                break


def _values(text: str, place: int) -> tuple[list[Span], int]:
    cells: list[Span] = []
    while (match := _CELL.match(text, place)) is not None:
        cells.append(match.span(1))
        place = match.end()
        if match[2] != "," or place == len(text):
            break
    return cells, place


def secret_parameters(sql: str) -> dict[int | str, str]:
    """Return the parameters of a statement that are secrets, by place or name, with the names of their columns."""
    named: list[tuple[Span, str]] = []
    secrets: dict[int | str, str] = {}
    if len(sql) > 20_000 or not _STATEMENT.match(sql):
        return secrets
    for match in _INTO.finditer(sql):
        names = [name.strip(" \"'`\n") for name in (match["names"] or "").split(",")]
        named += zip(_values(sql, match.end() + (match["how"] != "select"))[0], names, strict=False)
    for number, match in enumerate(_PARAMETER.finditer(sql)):
        place, mark = match.start("mark"), match["mark"].strip("?:@$").removeprefix("%(").removesuffix(")s").strip("%")
        name = match["column"] or next((name for (start, end), name in named if start <= place < end), "")
        if names_column(name):
            secrets[int(mark) - 1 if mark.isdecimal() else number if mark in {"", "s"} else mark] = name
    return secrets


def _table_secrets(text: str, low: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield the places of secrets in tables. `low` is the text in lower case; `places` are those of names of secrets."""

    def heads_list(place: int) -> bool:
        start = max(text.rfind(quote, max(0, place - 40), place) for quote in "\"'") + 1
        return (match := _IN_LIST.match(text, place)) is not None and names_column(text[start : match.end(1)])

    yield from _lines(text, low, places)
    if "<" in text:
        yield from _html(text)
    if "into" in low or "copy" in low or any(map(heads_list, places)):
        yield from _sql(text)


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
        if not keeps_sentence(match) or (closed[:1] not in {"", "t"} and is_secret_cell(name, value, clear=True)):
            yield start, start + len(value.rstrip(".,;:!?)"))


def group_secrets(text: str, low: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield the places of secrets below names, and of secrets over several lines."""
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
            spans = _secrets_behind(text, name, match, text[start : place - len(head)])
        if name:
            for span in spans:  # the last one is empty: the end of the group
                yield span
                end = span[1]


def _secrets_behind(text: str, name: str, match: re.Match[str], head: str) -> Iterator[Span]:
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
        while end < len(text):
            line = text[end : line_end(text, end)]
            if match["block"]:
                closes = bool(line.strip()) and not line[: indent + 1].isspace()
            else:
                closes = line.strip().lower().startswith(match["tag"] or "```")
            if closes:
                break
            end += len(line) + 1
        if is_secret_cell(name, _join_lines(text[behind:end]), clear=True):
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
        if is_secret_cell(name, _join_lines(found[0]), clear=True):
            yield found.span()


def _join_lines(value: str) -> str:
    """Join the parts of a value over several lines; prose is left as it is."""
    parts = [part.strip(" \t\r\"'`+&\\(){}") for part in re.split(r"\n|[\"'`]\s{0,80}[+.&]?\s{0,80}[\"'`]", value)]
    return value if any(" " in part for part in parts) else "".join(parts)


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
class PlaceRule(RedactionRule):
    """Values whose name is that of their column, their group, or the lines above, and then those right behind their names."""

    def sub(self, text: str, counts: Counter[str] | None) -> str:
        """Return the string without these values; the same object if there are none."""
        low = lower(text)
        places = places_of(ASCII_NEEDLES if low.isascii() else NEEDLES, low)
        before = [place for place in places if _NEXT.match(low, place)]
        clean = self.replace(text, _placed_secrets(text, before), counts) if before else text
        if clean is not text:
            places = places_of(NEEDLES, lower(clean))
        return self.replace(clean, named_secrets(clean, places), counts)


def _placed_secrets(text: str, places: list[int]) -> Iterator[Found]:
    """Yield the secrets of tables, groups and labels, without the quotes and separators around them."""
    plain = unescape(text)
    low = lower(plain)
    end = 0
    for first, last in sorted(
        [*_table_secrets(plain, low, places), *group_secrets(plain, low, places), *label_secrets(plain, places)]
    ):
        part = plain[first:last]
        core = part.strip("* \t\r\n").rstrip(",;")
        start = first + part.find(core)
        stop = start + len(core)
        if not core or start < end or "[REDACTED:" in core:
            continue
        while start > end and text[start - 1] == "\\" != plain[start - 1]:  # the escape of the first quote
            start -= 1
        yield start, stop, PASSWORD_MARK
        end = stop


# Behind a name: the next cell, the end of a line, the beginning of a group, of a block or of a text.
_NEXT = re.compile(
    rf"(?:{PASSWORDS}|{PASSWORDS_ELSEWHERE}|{SECRETS_ELSEWHERE}|{TOKENS}|(?:{SHORT}|authorization|cookie|bearer|signature|ssn){SUFFIX}(?![a-z]))"
    + NAME_REST
    + AFTER_NAME
    + r"(?:[,;|│┃║┆&\t\n\[{(=<!$?–—-]|\\|a(?:nswer)? ?:|(?<= ) |(?<=:)|\)\s{0,9}(?:values?|select|from|over)|[^\n=]{0,40}=)"
)
PLACES_AND_NAMES = PlaceRule(
    "password", "names of secrets", NAMED_VALUE, needs=NEEDLES, flags=re.IGNORECASE,
    also=("=", ":", "：", "＝", "%3", "||", "??", "\n", "\\n", "</", "into", "{", "[", "->", " -", "–", "—", "?"),
)  # fmt: skip
