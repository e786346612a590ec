"""What a judge replied, as a number: strictly, and for any text whatsoever.

A reply is taken for a score only where it can mean one thing. Everything else is unparsable, which the evaluators turn into their
fallback; nothing here raises. The rules are those of the specification, section 6.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_REPLY = 50_000
"""Characters; a longer reply is no judgement."""
NEAR = 0.001
"""How far a value may be out of range and is still a rounding slip."""
_SAME = 0.0005
_LONGEST_REASON = 1_000

SCORE_NAMES = ("score", "confidence", "rating")
COVERAGE_NAMES = ("coverage", "query_coverage")
_REASON_NAMES = ("reason", "rationale", "explanation", "reasoning", "理由")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A reply that was read: a score with its reason, or what kept it from being one."""

    score: float | None
    """0 to 1; None when the reply is unparsable."""
    reason: str = ""
    """The judge's words, when it gave a reason of its own."""
    error: str | None = None
    """Why it is unparsable."""
    places: tuple[tuple[int, int], ...] = ()
    """Where in the normalised reply the score stands, as slices; every one says the same."""
    text: str = ""
    """The normalised reply that the slices refer to."""


class _Refused(ValueError):
    """The reply means no score, or more than one."""


def parse_reply(reply: object, names: tuple[str, ...] = SCORE_NAMES) -> Parsed:
    """The score in a judge's reply, and its reason.

    Understood are a JSON object with one of `names` (alone, in a code fence, or within text), a lone number, and in text: fractions
    (`8/10`, `8 out of 10`, `10点中8点`), percentages (`85%`, `8割`), labelled values (`confidence: 0.8`, `信頼度：０．８`) and decimals
    from 0 to 1. Full-width signs count as their plain forms. A lone number outside 0 to 1 is clamped; any other value only when it
    is within 0.001. Values that disagree, infinities and NaN make the reply unparsable.

    Args:
        reply: anything a judge may return.
        names: what the value is called in a structured or labelled reply: `SCORE_NAMES` or `COVERAGE_NAMES`.
    """
    try:
        return _parse(reply, names)
    except _Refused as refused:
        return Parsed(None, error=str(refused))
    except Exception as error:  # noqa: BLE001 — a foreign type may raise anything when it is looked at
        return Parsed(None, error=f"the reply could not be read ({type(error).__name__})")


def _parse(reply: object, names: tuple[str, ...]) -> Parsed:
    if isinstance(reply, bool) or reply is None:
        raise _Refused("the reply is empty" if reply is None else "the reply is a truth value, not a score")
    if isinstance(reply, int | float):
        return Parsed(_bare(_number(reply)))
    if isinstance(reply, Mapping):
        found = _from_object([(str(name), value) for name, value in reply.items()], names)
        if found is None:
            raise _Refused(f"the reply has no {names[0]}")
        shown = normalised(json.dumps(dict(reply), default=str, ensure_ascii=False))
        return Parsed(found[0], found[1], None, ((0, len(shown)),), shown)
    if isinstance(reply, bytes | bytearray):
        reply = bytes(reply).decode("utf-8", "replace")
    if not isinstance(reply, str):
        raise _Refused(f"the reply is a {type(reply).__name__}, not a text")
    if len(reply) > MAX_REPLY:
        raise _Refused(f"the reply is longer than {MAX_REPLY:,} characters")
    text = normalised(reply)
    if not text:
        raise _Refused("the reply is empty")
    if _MIXED.search(text):
        raise _Refused("the reply holds a mixed number")
    return _from_json(text, names) or _from_text(text, names)


_FOOTNOTES = re.compile("[\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089\u2460-\u24ff\u2776-\u2793]")
_VULGAR = re.compile("(?<=[0-9０-９])\\s?[\u00bc-\u00be\u2150-\u215f\u2189]")
_MIXED = re.compile("\0")
_CHUNK = 2_000
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]")
_SIGNS = str.maketrans(
    {"−": "-", "‐": "-", "‑": "-", "–": "-", "—": "-", "⁄": "/", "∕": "/", "÷": "/", "٪": "%", "：": ":"}
)


def normalised(text: str) -> str:
    """Full-width signs as plain ones, one kind of minus and slash, nothing invisible, no blanks around."""
    # Footnotes are no digits, and 1½ is neither 11/2 nor a half.
    plain = _VULGAR.sub("\0", _FOOTNOTES.sub(" ", str.__str__(text).replace("\0", " ")))
    # In pieces, because the time grows with the square of a run of combining signs.
    pieces = [unicodedata.normalize("NFKC", plain[at : at + _CHUNK]) for at in range(0, len(plain), _CHUNK)]
    return _INVISIBLE.sub("", "".join(pieces)).translate(_SIGNS).strip()


# Numbers. More than 30 digits are no score, and Python's own parser of integers would mind.
_N = r"[-+]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][-+]?\d{1,4})?"
_BARE = re.compile(rf"[`*_\"'\[(<\s]{{0,8}}({_N})[`*_\"'\])>\s.。]{{0,8}}")
_NUMBER = re.compile(_N)
_COMMA = re.compile(r"[-+]?\d,\d{1,4}")
_NOT_FINITE = re.compile(r"[`*_\"'\s]{0,8}[-+]?(?:nan|inf(?:inity)?|∞)[`*_\"'\s.]{0,8}", re.IGNORECASE)
_OF = r"\s{0,4}(?:/|out\s{1,4}of)\s{0,4}"
# Boundaries are those of ASCII: between Japanese words there are no blanks.
_EDGE = r"(?<![A-Za-z0-9_.,/%])"
_END = r"(?![A-Za-z0-9_/]|[.,]\d|\s{0,2}[%割])"
_FRACTION = re.compile(rf"{_EDGE}({_N}){_OF}({_N})(?![A-Za-z0-9_/]|[.,]\d|\s{{0,2}}%)", re.IGNORECASE)
_POINTS = re.compile(rf"({_N})\s{{0,2}}点(?:満点)?(?:中|のうち)\s{{0,2}}(?:の)?({_N})\s{{0,2}}点")
_PERCENT = re.compile(rf"(?<![A-Za-z0-9_.,/])({_N})\s{{0,2}}(?:%|per ?cent(?![A-Za-z])|パーセント)", re.IGNORECASE)
_TENTHS = re.compile(rf"(?<![A-Za-z0-9_.,/])({_N})\s{{0,2}}割(?:\s{{0,2}}(\d)\s{{0,2}}分)?")
_DECIMAL = re.compile(rf"{_EDGE}([-+]?(?:\d{{1,30}}\.\d{{1,30}}|\.\d{{1,30}})(?:[eE][-+]?\d{{1,4}})?){_END}")
_LONE_LINE = re.compile(
    rf"^[ \t`*_\"']{{0,8}}(?:[01]|[-+]?\d?\.\d{{1,30}}|{_N}\s{{0,2}}%|{_N}\s{{0,2}}/\s{{0,2}}{_N})[ \t`*_\"'.。]{{0,8}}$",
    re.MULTILINE,
)
_JAPANESE = {"score": r"スコア|評価|点数|評点|信頼度|確信度|自信", "coverage": r"網羅度|網羅率|カバー率|カバレッジ"}


def _labels(names: tuple[str, ...]) -> str:
    said = "|".join(name.replace("_", r"[ _-]?") for name in names)
    words = {
        "score": r"(?:overall |final |total |self[- ]?)?(?:score|confidence|rating|evaluation|grade|quality)",
        "coverage": r"(?:query[ _-]?|overall )?coverage",
    }
    key = "coverage" if "coverage" in names else "score"
    return rf"(?:{said}|{words[key]}|{_JAPANESE[key]})"


def _label_patterns(names: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A line that states a value, and a labelled value anywhere."""
    label = _labels(names)
    sign = r"[`*_\"']{0,4}\s{0,4}(?:\([^()\n]{0,40}\)\s{0,4})?(?:[:=]|は|\bis\b|\bof\b)[`*_\"'\s]{0,6}"
    value = r"[-+]?(?:[\d.]{1,40}[eE][-+]\d{1,4}|[A-Za-z0-9_.,/%∞]{1,40})(?:\s{0,2}(?:%|percent|per cent|割|点|(?:out\s{1,4}of|/)\s{0,2}[\d.]{1,10}))?"
    line = re.compile(
        rf"^[\s#>*_`\"'{{-]{{0,12}}{label}{sign}({value})(?:です|である)?[`*_\"'\s.,。}}]{{0,8}}$",
        re.IGNORECASE | re.MULTILINE,
    )
    return line, re.compile(rf"(?<![A-Za-z0-9]){label}{sign}({value})", re.IGNORECASE)


_PATTERNS: Mapping[tuple[str, ...], tuple[re.Pattern[str], re.Pattern[str]]] = MappingProxyType(
    {names: _label_patterns(names) for names in (SCORE_NAMES, COVERAGE_NAMES)}
)


def _number(value: float | str) -> float:
    try:
        number = float(value)
    except OverflowError:
        raise _Refused("the score is not finite") from None
    if not math.isfinite(number):
        raise _Refused("the score is not finite")
    return number


def _bare(number: float) -> float:
    """A lone number: clamped, as the source design says."""
    return min(1.0, max(0.0, number))


def _ranged(number: float, shown: str) -> float:
    if not math.isfinite(number):
        raise _Refused("the score is not finite")
    if not -NEAR - 1e-12 <= number <= 1 + NEAR + 1e-12:
        raise _Refused(f"{shown[:40]!r} is out of range")
    return min(1.0, max(0.0, number))


def _share(part: str, whole: str, shown: str) -> float:
    of = _number(whole)
    if of <= 0:
        raise _Refused(f"{shown[:40]!r} is no fraction")
    return _ranged(_number(part) / of, shown)


def _from_json(text: str, names: tuple[str, ...]) -> Parsed | None:
    """The score of the JSON objects in a text; None where none of them has one."""
    found: list[tuple[float, str, tuple[int, int]]] = []
    objects: list[tuple[int, int]] = []
    decoder = json.JSONDecoder(object_pairs_hook=_Pairs, parse_constant=_constant)
    at, tries = text.find("{"), 0
    while at >= 0:
        tries += 1
        if tries > 200:
            raise _Refused("the reply holds too many braces to be a score")
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        objects.append((at, end))
        scored = _from_object(value, names) if isinstance(value, _Pairs) else None
        if scored is not None:
            found.append((*scored, (at, end)))
        at = text.find("{", end)
    rest = text
    for start, end in reversed(objects):
        rest = f"{rest[:start]} {rest[end:]}"
    if not found:
        if objects and not rest.strip("` \n\t").removeprefix("json").strip():
            raise _Refused(f"the reply has no {names[0]}")
        return None
    # What is said beside the object counts where it is labelled as a score.
    scores = [score for score, _, _ in found] + [_united(match[1]) for match in _PATTERNS[names][1].finditer(rest)]
    if any(abs(score - scores[0]) > _SAME for score in scores):
        raise _Refused("the reply has several scores that disagree")
    if any(abs(score - found[0][0]) > _SAME for score, _, _ in found):
        raise _Refused("the reply has several scores that disagree")
    return Parsed(found[0][0], found[0][1], None, tuple(place for _, _, place in found), text)


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as pairs, so that a key given twice is seen."""


def _constant(name: str) -> float:
    return float(name.replace("Infinity", "inf"))


def _from_object(pairs: list[tuple[str, Any]], names: tuple[str, ...]) -> tuple[float, str] | None:
    """Score and reason of a structured reply; None when it has no such field."""
    scores = list(_scores_in(pairs, names, 0))
    if not scores:
        return None
    if any(abs(score - scores[0]) > _SAME for score in scores):
        raise _Refused("the reply has several scores that disagree")
    wanted = [f"{names[0]}_reason", *_REASON_NAMES] if names[0] != "score" else list(_REASON_NAMES)
    said = {name.strip().lower(): value for name, value in pairs}
    reason = next((said[name] for name in wanted if isinstance(said.get(name), str)), "")
    return scores[0], reason.strip()[:_LONGEST_REASON]


def _scores_in(pairs: list[tuple[str, Any]], names: tuple[str, ...], depth: int) -> Iterator[float]:
    """Every score in an object, and in the objects inside of it."""
    for name, value in pairs:
        if name.strip().lower() in names:
            yield _value(value)
        elif isinstance(value, _Pairs | Mapping) and depth < 5:
            inner = list(value.items()) if isinstance(value, Mapping) else value
            yield from _scores_in([(str(key), item) for key, item in inner], names, depth + 1)


def _value(value: Any) -> float:
    if isinstance(value, bool) or value is None:
        raise _Refused("the score is no number")
    if isinstance(value, int | float):
        return _ranged(_number(value), str(value)[:40] if not isinstance(value, int) else "the score")
    if isinstance(value, str):
        return _united(normalised(value))
    raise _Refused("the score is no number")


def _united(said: str) -> float:
    """One value with its unit: `0.8`, `85%`, `8/10`, `8割`."""
    said = said.strip("`*_\"' \t,.。").strip()
    if _NOT_FINITE.fullmatch(said):
        raise _Refused("the score is not finite")
    readings: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], float]], ...] = (
        (_NUMBER, lambda m: _ranged(_number(m[0]), m[0])),
        (_COMMA, lambda m: _ranged(_number(m[0].replace(",", ".")), m[0])),
        (_FRACTION, lambda m: _share(m[1], m[2], m[0])),
        (_POINTS, lambda m: _share(m[2], m[1], m[0])),
        (_PERCENT, lambda m: _ranged(_number(m[1]) / 100, m[0])),
        (_TENTHS, lambda m: _ranged((_number(m[1]) * 10 + int(m[2] or 0)) / 100, m[0])),
    )
    for pattern, read in readings:
        match = pattern.fullmatch(said)
        if match is not None:
            return read(match)
    raise _Refused(f"{said[:40]!r} is no score")


def _from_text(text: str, names: tuple[str, ...]) -> Parsed:
    lone = _BARE.fullmatch(text)
    if lone is not None:
        return Parsed(_bare(_number(lone[1])), places=((0, len(text)),), text=text)
    if _COMMA.fullmatch(text):
        return Parsed(_bare(_number(text.replace(",", "."))), places=((0, len(text)),), text=text)
    if _NOT_FINITE.fullmatch(text):
        raise _Refused("the score is not finite")
    line, within = _PATTERNS[names]
    if text.count("{") > text.count("}") and not _COMPLETE.search(text):
        raise _Refused("the reply was cut off")
    # A line that is nothing but "Score: 0.8" is what the judge was asked for, and what follows "Reason:" is its explanation; any other
    # number counts as much as that.
    said = _EXPLANATION.sub("", text)
    for others, (other_line, _) in _PATTERNS.items():
        said = said if others == names else other_line.sub(_blank, said)
    said = _SCALE.sub(_blank, said)
    stated = [(_united(match[1]), match.span()) for match in line.finditer(said)]
    stated += [(_united(match[0]), match.span()) for match in _LONE_LINE.finditer(said)]
    stated += _numbers_in(said, within)
    if not stated:
        raise _Refused("the reply holds no score")
    if any(abs(score - stated[0][0]) > _SAME for score, _ in stated):
        raise _Refused("the reply has several scores that disagree")
    return Parsed(stated[0][0], places=tuple(span for _, span in stated), text=text)


def _blank(match: re.Match[str]) -> str:
    """As long as what it stands for, so that places stay where they are."""
    return re.sub(r"[^\n]", " ", match[0])


_SCALE = re.compile(
    r"\((?:out of\s{1,3}|/\s{0,3})?[01](?:\.0{1,3})?(?:\s{0,3}(?:-|~|〜|to)\s{0,3}1(?:\.0{1,3})?)?\)", re.IGNORECASE
)
_COMPLETE = re.compile(
    r"[\"'](?:score|confidence|rating|coverage|query_coverage)[\"']\s{0,4}:\s{0,4}[\"']?[-+\d.%/]{1,20}[\"']?\s{0,4},"
)
_EXPLANATION = re.compile(
    r"^[\s#>*_`\"'-]{0,12}(?:reason(?:ing)?|rationale|explanation|justification|because|理由|根拠)[`*_\"'\s]{0,4}[:=].*\Z",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_JOINED = r"(?:[-~〜,;]|to|or|and|から|または|あるいは|もしくは|か|と)"
_JOINED_BEFORE = re.compile(rf"\d[%\s]{{0,3}}{_JOINED}\s{{0,3}}\Z", re.IGNORECASE)
_JOINED_AFTER = re.compile(
    rf"[%\s,]{{0,4}}(?:(?:{_JOINED}|maybe|perhaps|rather|even|more like)\s{{0,3}}){{1,3}}[-+]?\.?\d", re.IGNORECASE
)
_BOUND_BEFORE = re.compile(
    r"(?:[<>≤≥]=?|less than|more than|at least|at most|under|over|above|below|minus|マイナス)\s{0,3}\Z", re.IGNORECASE
)
_BOUND_AFTER = re.compile(r"\s{0,2}(?:未満|以上|以下|超|\+|or (?:more|less|higher|lower))")
_SOME_NOT_FINITE = re.compile(r"(?<![A-Za-z0-9])(?:nan|inf|infinity)(?![A-Za-z0-9])|∞|\d[eE]\+?\d{3}", re.IGNORECASE)


def _alone(text: str, start: int, end: int) -> None:
    """Refuse a value that is one end of a range, one of two, or a mere bound."""
    before, after = text[max(0, start - 24) : start], text[end : end + 24]
    if _JOINED_BEFORE.search(before) or _JOINED_AFTER.match(after):
        raise _Refused("the reply gives a range, or more than one value")
    if _BOUND_BEFORE.search(before) or _BOUND_AFTER.match(after):
        raise _Refused("the reply gives a bound, not a value")


def _numbers_in(text: str, within: re.Pattern[str]) -> list[tuple[float, tuple[int, int]]]:
    """Every value in a text that may be meant as the score, with its place."""
    if _SOME_NOT_FINITE.search(text):
        raise _Refused("the score is not finite")
    found: list[tuple[float, tuple[int, int]]] = []
    taken: list[tuple[int, int]] = []

    def free(start: int, end: int) -> bool:
        return all(end <= begin or start >= stop for begin, stop in taken)

    readings: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], float]], ...] = (
        (_POINTS, lambda m: _share(m[2], m[1], m[0])),
        (_FRACTION, lambda m: _share(m[1], m[2], m[0])),
        (_PERCENT, lambda m: _ranged(_number(m[1]) / 100, m[0])),
        (_TENTHS, lambda m: _ranged((_number(m[1]) * 10 + int(m[2] or 0)) / 100, m[0])),
        (_DECIMAL, lambda m: _ranged(_number(m[1]), m[0])),
    )
    for pattern, read in readings:
        for match in pattern.finditer(text):
            if free(*match.span()):
                _alone(text, *match.span())
                taken.append(match.span())
                found.append((read(match), match.span()))
                if len(taken) > 50:
                    raise _Refused("the reply holds too many numbers to be a score")
    for match in within.finditer(text):
        start, end = match.span(1)
        if not free(start, end):
            continue
        said = match[1].strip("`*_\"' .,。")
        if re.fullmatch(_N, said) or _NOT_FINITE.fullmatch(said):
            _alone(text, match.start(), match.start(1) + len(said))
            found.append((_united(said), match.span()))
    return found
