"""The values of arguments and results in a form that can be compared: notation of numbers and dates, identifiers, addresses.

JSON values and strings only. No code of a subclass runs and nothing raises, because results and arguments come from anywhere.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, cast

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    Found = tuple[str, int, int]
    """A value, start and end."""

Shape = Literal["identifier", "address", "number", "date", "words", "common"]

MAX_DEPTH, MAX_BITS = 32, 1_000
MAX_LEAVES = 20_000
"""Values of one result, and of the arguments of a call."""
MAX_PARTS = 8
"""Addresses, identifiers and phrases that represent a long value."""
PHRASE, STEP = 6, 3
"""Words of such a phrase, and the words from one to the next."""
LEAST_SQUEEZED = 7
"""Characters from which an identifier is also found with other punctuation or spaces inside."""

_ASCII_WORD = re.compile(r"[a-z0-9]+")
_WORD = re.compile(r"[^\W_\u3040-\u9fff\uac00-\ud7af]+|[\u3040-\u9fff\uac00-\ud7af]+")
"""Words; letters of scripts without spaces are apart from others, so that an identifier between them is found."""
_NOTATION = re.compile(r"(?<!\d)\d++(?:(?:[-/.,'’]| (?=\d{3}(?!\d)))\d++)+")
"""Numbers with separators, and dates in digits."""
_NUMBER = re.compile(r"[-+]?\s?(?:[$€£¥₹]|[a-z]{3}\s)?\s?[-+]?(\d[\d.,'’ ]*)\s?(?:[$€£¥₹%]|[a-z]{3})?")
_DATE = re.compile(r"(\d{1,4})[-/.](\d{1,2})[-/.](\d{1,4})")
_MONTH_NAMES = {
    name: number
    for number, names in enumerate(
        ("jan janv ene gen", "feb fév févr fev", "mar mär mars maart", "apr avr abr", "may mai mag mei maio mayo", "jun juin giu juni",
         "jul juil lug juli", "aug aoû août ago", "sep sept set", "oct okt ott out", "nov", "dec dez déc dic"), 1,
    )
    for name in names.split()
}  # fmt: skip
_MONTHS = "|".join(sorted(_MONTH_NAMES, key=len, reverse=True))
_NAMED_DATE = re.compile(
    rf"(?<!\d)(\d{{1,2}})(?:st|nd|rd|th|\.)?\s(?:of\s|de\s)?({_MONTHS})[^\W\d]*\.?,?(?:\s(?:de\s)?(\d{{4}}))?"
    rf"|\b({_MONTHS})[^\W\d]*\.?\s(\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:,?\s(\d{{4}}))?"
)
_ADDRESS = re.compile(
    r"[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}|(?:https?://|www\.)[^\s\"'<>()\[\]{}]+"
    r"|(?<![\w.-])(?:[a-z\d-]{1,63}\.){1,5}[a-z]{2,12}/[^\s\"'<>()\[\]{}]+"
    r"|\b[a-z]{2}\d{2}(?:\s?[a-z\d]{4}){2,7}(?:\s?[a-z\d]{1,4})?\b|\+\d[\d\s()/-]{6,20}\d"
)
"""E-mail addresses, URLs, IBANs and phone numbers, in lower case."""
_IDENTIFIER = re.compile(
    r"(?<![\w-])(?:#?(?=[\w-]{0,60}\d)(?=[\w-]{0,60}[a-z_])[a-z\d]+(?:[_-][a-z\d]+)*|\d{6,})(?![\w-])"
)
_ID_PARAMETER = re.compile(r"(?:^|_|\b)(?:id|ids|iban|account|code|number|reference|email|url|phone)$")
_NAMING_PARAMETER = re.compile(r"(?:^|_|\b)(?:title|subject|label|branch|slug|heading)$")
_EVERYDAY = re.compile(
    r"[a-z]{0,3}|0|default|primary|secondary|unknown|n/a|self|current|latest|main|master|root|home|inbox|sent|drafts?|trash|archive|auto|any|other"
    r"|standard|basic|null|undefined|anonymous|guest|admin|system|public|private|test|personal|work|checking|savings"
    r"|[a-z]{2,3}[-_][a-z]{2,4}|(?:utf|iso|latin|ascii|windows|cp|sha|md|base|mp|h)[-_]?\d[\d-]{0,6}|\d{1,5}x\d{1,5}|\d{1,4}\s?[a-z]{1,2}"
    r"|\d{1,2}:\d{2}\s?[ap]m|#(?:[\da-f]{3,4}|[\da-f]{6}|[\da-f]{8})|(?:gpt|claude|gemini|llama|mistral|qwen)-?\d[\w.-]{0,20}"
    r"|(?:python|java|node|php|ruby|es|http|ipv|web|oauth)\d[\d.]{0,4}"
)
"""Constants of formats and programs, and default choices, which models know without having read them."""
_FOLD = re.compile(r"\\\n\s*\\?")
_ESCAPE = re.compile(r"\\(?:([nrt])|([\"'\\/]))")
"""Escapes of JSON, YAML and Python, which results contain as they are."""
_INVISIBLE = dict.fromkeys(
    (0xAD, 0x34F, 0x61C, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF)
) | {ord("İ"): "i"}
_PUNCTUATION = dict.fromkeys((*range(33, 48), *range(58, 65), *range(91, 97), *range(123, 127), 10, 32))
_JOINTS = "._-+@%"
_CONSTANTS = frozenset({"true", "false", "none", "null"})
_PLAIN_DIGITS = frozenset("0123456789 -")


def normal_form(text: str) -> str:
    """Return a text in lower case, with single spaces, and without invisible characters."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_INVISIBLE)
    if "\\" in text:
        text = _ESCAPE.sub(lambda match: "\n" if match[1] else match[2], _FOLD.sub(" ", text))
    return "\n".join([line for line in [" ".join(line.split()) for line in text.casefold().splitlines()] if line])


def words_of(text: str) -> list[str]:
    """Return the words of a text in normal form."""
    return (_ASCII_WORD if text.isascii() else _WORD).findall(text)


def shape_of(value: str, keys: tuple[str, ...] = (), *, is_number: bool = False) -> Shape:
    """Return the shape of a value in normal form. Common words and small numbers are neither evidence nor a reason for an alarm."""
    name = next((key for key in reversed(keys) if not key.startswith("[")), "").casefold()
    is_single = " " not in value and bool(value)
    if _ADDRESS.fullmatch(value):
        return "address"
    if is_single and _ID_PARAMETER.search(name) and value not in _CONSTANTS:
        return "identifier"
    if not is_number and _is_date(value):
        return "date"
    digits = re.sub(r"\D", "", value) if _NUMBER.fullmatch(value) else ""
    if digits and (is_number or len(digits) < LEAST_SQUEEZED or not set(value) <= _PLAIN_DIGITS):
        return "number" if len(digits.lstrip("0")) > 2 else "common"
    if digits or (len(value) > 3 and _IDENTIFIER.fullmatch(value)):
        return "identifier"
    return "common" if len(value) < (4 if value.isascii() else 2) or value in _CONSTANTS else "words"


def is_everyday(value: str, keys: tuple[str, ...]) -> bool:
    """Return whether a model may state a value in normal form without a source, though it looks like an identifier: `eur`, `utf-8`, a new title."""
    name = next((key for key in reversed(keys) if not key.startswith("[")), "").casefold()
    is_short = len(value) < 4 and name.endswith(("code", "account", "number"))
    return is_short or bool(_EVERYDAY.fullmatch(value) or _NAMING_PARAMETER.search(name))


def _is_date(value: str) -> bool:
    found = notations_in(value) if len(value) <= 40 else []
    return any("-" in key and not start and (end == len(value) or value[end] in "t ") for key, start, end in found)


def stands_alone(text: str, start: int, end: int, shape: Shape) -> bool:
    """Return whether a match is not a part of a longer word, number or identifier."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    if text[start].isascii() and before and (before[-1].isalnum() or before[-1] == "_") and before[-1].isascii():
        return False
    if text[end - 1].isascii() and after and (after[0].isalnum() or after[0] == "_") and after[0].isascii():
        return False
    if shape in {"words", "common"}:
        return True
    joints = "-./:," if shape == "number" else _JOINTS
    if len(before) == 2 and before[1] in joints and before[0].isalnum():
        return False
    return not (len(after) == 2 and after[0] in joints + "/" and after[1].isalnum())


def parts_of(value: str) -> list[str]:
    """Return the parts that represent a value which occurs nowhere as a whole: addresses, identifiers and some phrases."""
    found = [match[0].rstrip(".,;:!?") for pattern in (_ADDRESS, _IDENTIFIER) for match in pattern.finditer(value)]
    words = value.split()
    found += [" ".join(words[place : place + PHRASE]) for place in range(0, len(words) - PHRASE + 1, STEP)]
    return list(dict.fromkeys(found))[:MAX_PARTS]


def notations_in(text: str, words: Collection[str] = ()) -> list[Found]:
    """Return the values of numbers with separators and of dates, with their places: `1200`, `2024-05-14`, and `-05-14` without a year."""
    found: list[Found] = []
    for match in _NOTATION.finditer(text):
        date = _DATE.match(match[0])
        found += [(key, *match.span()) for key in (_date_keys(*date.groups()) if date else number_keys(match[0]))]
    if not _MONTH_NAMES.keys().isdisjoint([word[:3] for word in words or words_of(text) if not word.isdigit()]):
        for match in _NAMED_DATE.finditer(text):
            day, name, year = (match[1], match[2], match[3]) if match[1] else (match[5], match[4], match[6])
            found += [(key, *match.span()) for key in _date_keys(year or "", str(_MONTH_NAMES[name]), day)]
    return found


def _date_keys(first: str, second: str, third: str) -> set[str]:
    """Return the dates that three numbers may mean: year first, or both orders of day and month."""
    orders = [(first, second, third)] if len(first) in {0, 4} else [(third, second, first), (third, first, second)]
    return {
        f"{year}-{int(month):02}-{int(day):02}"
        for year, month, day in orders
        if len(year) in {0, 4} and 1 <= int(month) <= 12 and 1 <= int(day) <= 31
    }


def number_keys(text: str) -> set[str]:
    """Return the values that a number may have, as plain digits: both for `1.200`."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return set()
    digits = re.sub(r"['’ ]", "", match[1]).strip(".,")
    whole, mark, rest = digits.rpartition("." if digits.rfind(".") > digits.rfind(",") else ",")
    keys = {digits.replace(".", "").replace(",", "")} if not mark or (len(rest) == 3 and whole) else set()
    if mark and mark not in whole:
        decimals = rest.rstrip("0")
        keys.add(f"{whole.replace('.', '').replace(',', '')}{'.' if decimals else ''}{decimals}")
    return keys


def squeeze(text: str) -> str:
    return text.translate(_PUNCTUATION) if text.isascii() else re.sub(r"[\W_]+", "", text)


def text_of(value: object, unread: list[str]) -> str:
    """Return a string as it is, but JSON without escapes of letters, and other JSON values as lines of `key: value`."""
    if not issubclass(type(value), str):
        return "\n".join(": ".join((*path, leaf)) for path, leaf, _ in leaves_of(value, unread))
    text = str.__str__(cast("str", value))
    if "\\" not in text or text.lstrip()[:1] not in {"{", "["}:
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def leaves_of(value: object, unread: list[str]) -> Iterator[tuple[tuple[str, ...], str, bool | None]]:
    """Yield the keys that lead to each value, its text, and whether it is a number; None for true, false, null and what is empty.

    The methods of the built-in types are used, so that no code of a subclass runs. `unread` gets the path of what is of another type, or too deep.
    """
    stack: list[tuple[tuple[str, ...], Any]] = [((), value)]
    for _ in range(MAX_LEAVES):
        if not stack:
            return
        path, item = stack.pop()
        kind = type(item)  # `isinstance` would also read `__class__`
        if issubclass(kind, str):
            yield path, str.__str__(item), False
        elif item is None or kind is bool:
            yield path, str(item).casefold(), None
        elif issubclass(kind, int) and int.bit_length(item) < MAX_BITS:
            yield path, int.__repr__(item), True
        elif issubclass(kind, float):
            yield path, float.__repr__(item).removesuffix(".0"), True
        elif issubclass(kind, dict | list | tuple) and len(path) < MAX_DEPTH:
            inner = [((*path, key), each) for key, each in islice(_items_of(item, kind), MAX_LEAVES)]
            unread += [path_text(keys) for keys, _ in inner if keys[-1] == "?"]
            stack += reversed(inner)
            if path and not inner:
                yield path, "{}" if issubclass(kind, dict) else "[]", None
        else:
            unread.append(path_text(path))
    unread.append("…")


def _items_of(item: Any, kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of a dict or sequence; a key that is not a string or whole number as `?`."""
    if not issubclass(kind, dict):
        inside = list.__iter__(item) if issubclass(kind, list) else tuple.__iter__(item)
        yield from ((f"[{place}]", each) for place, each in enumerate(inside))
        return
    for key, each in dict.items(item):
        is_short = type(key) is int and key.bit_length() < MAX_BITS
        yield str.__str__(key) if issubclass(type(key), str) else str(key) if is_short else "?", each


def path_text(path: tuple[str, ...]) -> str:
    return ".".join(path).replace(".[", "[")


def call_digest(tool: str, arguments: object) -> bytes | None:
    """Return a digest that only calls with the same arguments share (1 and 1.0 are the same); None where arguments cannot be read."""
    unread: list[str] = []
    found = sorted(leaves_of(arguments, unread), key=repr)
    return None if unread else hashlib.sha256(repr((tool, found)).encode("utf-8", "surrogatepass")).digest()
