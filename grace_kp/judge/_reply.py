"""Read the score in a judge's reply: strictly, and whatever the reply is.

A reply is a score only where it has one meaning. Every other reply is unparsable, which the evaluators turn into their fallback;
nothing here raises. The rules are in the specification, section 6.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MAX_REPLY = 50_000
"""Characters; longer replies are refused."""
NEAR = 0.001
"""How far out of range a value may be and still count as a rounding error."""
_SAME = 0.0005
_LONGEST_REASON = 1_000

SCORE_NAMES = ("score", "confidence", "rating")
COVERAGE_NAMES = ("coverage", "query_coverage")
_REASON_NAMES = ("reason", "rationale", "explanation", "reasoning", "理由")


@dataclass(frozen=True, slots=True)
class Parsed:
    """The result of reading a reply: a score with its reason, or an error."""

    score: float | None
    """0 to 1; None when the reply is unparsable."""
    reason: str = ""
    """The reason in the judge's words; empty when it states none."""
    error: str | None = None
    """Why the reply is unparsable."""
    places: tuple[tuple[int, int], ...] = ()
    """Slices of the normalised reply that state the score; all state the same."""
    text: str = ""
    """The normalised reply that the slices refer to."""


class _Refused(ValueError):
    """The reply states no score, or several."""


def parse_reply(reply: object, names: tuple[str, ...] = SCORE_NAMES) -> Parsed:
    """Return the score in a judge's reply, and its reason.

    A score is a JSON object with one of `names` (alone, in a code fence, or within text), a lone number, or in text: a fraction
    (`8/10`, `8 out of 10`, `10点中8点`), a percentage (`85%`, `8割`), a labelled value (`confidence: 0.8`, `信頼度：０．８`), or a
    decimal from 0 to 1. Full-width characters count as their plain forms. A lone number outside 0 to 1 is clamped; any other value
    only within 0.001 of that range. Values that disagree, infinities and NaN make the reply unparsable.

    Args:
        reply: anything a judge may return.
        names: the field or label of the value: `SCORE_NAMES` or `COVERAGE_NAMES`.
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
        return Parsed(_clamp(_number(reply)))
    if isinstance(reply, Mapping):
        found = _from_object([(str(name), value) for name, value in reply.items()], names)
        if found is None:
            raise _Refused(f"the reply has no {names[0]}")
        shown = normalise(json.dumps(dict(reply), default=str, ensure_ascii=False))
        return Parsed(found[0], found[1], None, ((0, len(shown)),), shown)
    if isinstance(reply, bytes | bytearray):
        reply = bytes(reply).decode("utf-8", "replace")
    if not isinstance(reply, str):
        raise _Refused(f"the reply is a {type(reply).__name__}, not a string")
    if len(reply) > MAX_REPLY:
        raise _Refused(f"the reply is longer than {MAX_REPLY:,} characters")
    whole = normalise(reply)
    text = _without_thoughts(whole)
    if not text:
        raise _Refused("the reply is a thought without a judgement" if whole else "the reply is empty")
    if _MIXED.search(text):
        raise _Refused("the reply holds a mixed number")
    return _from_json(text, names) or _from_text(text, names)


_FOOTNOTES = re.compile("[\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089\u2460-\u24ff\u2776-\u2793]")
_VULGAR = re.compile("(?<=[0-9０-９])\\s?[\u00bc-\u00be\u2150-\u215f\u2189]")
_MIXED = re.compile("\0")
_CHUNK = 2_000
_MAX_OBJECTS = 200
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]")
_PLAIN = str.maketrans(
    {"−": "-", "‐": "-", "‑": "-", "–": "-", "—": "-", "⁄": "/", "∕": "/", "÷": "/", "٪": "%", "：": ":"}
)


def normalise(text: str) -> str:
    """Return a string with plain characters for full-width ones, one minus and slash, and no invisible characters or outer blanks."""
    # A footnote is not a digit, and 1½ is neither 11/2 nor a half.
    plain = _VULGAR.sub("\0", _FOOTNOTES.sub(" ", str.__str__(text).replace("\0", " ")))
    # In pieces, because the time grows with the square of a run of combining characters.
    chunks = [unicodedata.normalize("NFKC", plain[at : at + _CHUNK]) for at in range(0, len(plain), _CHUNK)]
    return _INVISIBLE.sub("", "".join(chunks)).translate(_PLAIN).strip()


# The tags of Qwen, DeepSeek and others, of Magistral, Cohere, Kimi and Seed, and the channels of gpt-oss.
_THOUGHT_OR_OBJECT = re.compile(
    r"\{|(?:<|&lt;|◁)\s{0,2}(?:\|\s?)?(?P<end>/\s?|end_(?:of_)?)?(?:start_|begin_(?:of_)?|seed:)?"
    r"(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad|analysis|思考)\b[^<>\n{}]{0,80}?(?:(?<!/)>|&gt;|▷)"
    r"|\[(?P<end2>/)?THINK(?:ING)?\]|<\|channel\|>\s?(?:analysis|commentary|(?P<end3>final))[^<>\n{}]{0,80}<\|message\|>",
    re.IGNORECASE,
)


def _without_thoughts(text: str) -> str:
    """Return a reply without the model's thoughts, also where a tag is missing. A tag inside a JSON object of the reply is data."""
    kept, start, at, objects, is_thought = "", 0, 0, 0, False
    while (found := _THOUGHT_OR_OBJECT.search(text, at)) is not None:
        at = found.end()
        if found[0] == "{":
            objects += not is_thought
            if not is_thought and objects <= _MAX_OBJECTS:
                with suppress(ValueError, RecursionError):
                    at = json.JSONDecoder().raw_decode(text, found.start())[1]
        elif any(found.groups()):
            kept, start, is_thought = kept if is_thought else "", at, False
        elif not is_thought:
            kept, is_thought = kept + text[start : found.start()] + " ", True
    return (kept + ("" if is_thought else text[start:])).strip()


# A number of more than 30 digits is not a score; Python would also refuse to parse very long integers.
_N = r"[-+]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][-+]?\d{1,4})?"
_BARE = re.compile(rf"[`*_\"'\[(<\s]{{0,8}}({_N})[`*_\"'\])>\s.。]{{0,8}}")
_NUMBER = re.compile(_N)
_COMMA = re.compile(r"[-+]?\d,\d{1,4}")
_NOT_FINITE = re.compile(r"[`*_\"'\s]{0,8}[-+]?(?:nan|inf(?:inity)?|∞)[`*_\"'\s.]{0,8}", re.IGNORECASE)
_OF = r"\s{0,4}(?:/|out\s{1,4}of)\s{0,4}"
# Boundaries between ASCII characters only: Japanese has no blanks between words.
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

_WORDS = {
    SCORE_NAMES: r"(?:overall |final |total |self[- ]?)?(?:score|confidence|rating|evaluation|grade|quality)|スコア|評価|点数|評点|信頼度|確信度|自信",
    COVERAGE_NAMES: r"(?:query[ _-]?|overall )?coverage|網羅度|網羅率|カバー率|カバレッジ",
}
"""By the fields of a value, its labels in text."""


def _label_patterns(names: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    label = rf"(?:{'|'.join(name.replace('_', r'[ _-]?') for name in names)}|{_WORDS[names]})"
    colon = r"[`*_\"']{0,4}\s{0,4}(?:\([^()\n]{0,40}\)\s{0,4})?(?:[:=]|は|\bis\b|\bof\b)[`*_\"'\s]{0,6}"
    value = r"[-+]?(?:[\d.]{1,40}[eE][-+]\d{1,4}|[A-Za-z0-9_.,/%∞]{1,40})(?:\s{0,2}(?:%|percent|per cent|割|点|(?:out\s{1,4}of|/)\s{0,2}[\d.]{1,10}))?"
    line = re.compile(
        rf"^[\s#>*_`\"'{{-]{{0,12}}{label}{colon}({value})(?:です|である)?[`*_\"'\s.,。}}]{{0,8}}$",
        re.IGNORECASE | re.MULTILINE,
    )
    return line, re.compile(rf"(?<![A-Za-z0-9]){label}{colon}({value})", re.IGNORECASE)


_PATTERNS: Mapping[tuple[str, ...], tuple[re.Pattern[str], re.Pattern[str]]] = MappingProxyType(
    {names: _label_patterns(names) for names in _WORDS}
)


def _number(value: float | str) -> float:
    try:
        number = float(value)
    except OverflowError:
        raise _Refused("the score is not finite") from None
    if not math.isfinite(number):
        raise _Refused("the score is not finite")
    return number


def _clamp(number: float) -> float:
    return min(1.0, max(0.0, number))


def _check_range(number: float, shown: str) -> float:
    if not -NEAR - 1e-12 <= number <= 1 + NEAR + 1e-12:
        raise _Refused("the score is not finite" if not math.isfinite(number) else f"{shown[:40]!r} is out of range")
    return _clamp(number)


def _share(part: str, whole: str, shown: str) -> float:
    denominator = _number(whole)
    if denominator <= 0:
        raise _Refused(f"{shown[:40]!r} is not a fraction")
    return _check_range(_number(part) / denominator, shown)


_UNITS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], float]], ...] = (
    (_POINTS, lambda match: _share(match[2], match[1], match[0])),
    (_FRACTION, lambda match: _share(match[1], match[2], match[0])),
    (_PERCENT, lambda match: _check_range(_number(match[1]) / 100, match[0])),
    (_TENTHS, lambda match: _check_range((_number(match[1]) * 10 + int(match[2] or 0)) / 100, match[0])),
)


def _agree_on(scores: Sequence[float]) -> float:
    if any(abs(score - scores[0]) > _SAME for score in scores):
        raise _Refused("the reply has several scores that disagree")
    return scores[0]


def _from_json(text: str, names: tuple[str, ...]) -> Parsed | None:
    """Return the score of the JSON objects in a reply; None where no object has a score."""
    found: list[tuple[float, str]] = []
    places: list[tuple[int, int]] = []
    rest = ""
    decoder = json.JSONDecoder(
        object_pairs_hook=_Pairs, parse_constant=lambda name: float(name.replace("Infinity", "inf"))
    )
    end, start, braces = 0, text.find("{"), 0
    while start >= 0:
        braces += 1
        if braces > _MAX_OBJECTS:
            raise _Refused("the reply holds too many braces to be a score")
        try:
            value, after = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)  # a brace in prose
            continue
        rest, end = rest + text[end:start] + " ", after
        scored = _from_object(value, names)
        if scored is not None:
            found.append(scored)
            places.append((start, after))
        start = text.find("{", after)
    rest += text[end:]
    if not found:
        if end and not rest.strip("` \n\t").removeprefix("json").strip():
            raise _Refused(f"the reply has no {names[0]}")
        return None
    # A figure outside the object counts where it is labelled as a score.
    labelled = [_read_with_unit(match[1]) for match in _PATTERNS[names][1].finditer(rest)]
    score = _agree_on([*(score for score, _ in found), *labelled])
    return Parsed(score, found[0][1], None, tuple(places), text)


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as pairs, so that a repeated field is seen."""


def _from_object(pairs: list[tuple[str, Any]], names: tuple[str, ...]) -> tuple[float, str] | None:
    """Return score and reason of a structured reply; None when it has no such field."""
    scores = list(_scores_in(pairs, names, 0))
    if not scores:
        return None
    reason_names = _REASON_NAMES if names[0] == "score" else (f"{names[0]}_reason", *_REASON_NAMES)
    fields = {name.strip().lower(): value for name, value in pairs}
    reason = next((fields[name] for name in reason_names if isinstance(fields.get(name), str)), "")
    return _agree_on(scores), reason.strip()[:_LONGEST_REASON]


def _scores_in(pairs: list[tuple[str, Any]], names: tuple[str, ...], depth: int) -> Iterator[float]:
    for name, value in pairs:
        if name.strip().lower() in names:
            yield _value(value)
        elif isinstance(value, _Pairs | Mapping) and depth < 5:
            inner = list(value.items()) if isinstance(value, Mapping) else value
            yield from _scores_in([(str(field), item) for field, item in inner], names, depth + 1)


def _value(value: object) -> float:
    if isinstance(value, str):
        return _read_with_unit(normalise(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _check_range(_number(value), str(value)[:40] if not isinstance(value, int) else "the score")
    raise _Refused("the score is not a number")


def _read_with_unit(text: str) -> float:
    """Return one value with its unit: `0.8`, `85%`, `8/10`, `8割`."""
    text = text.strip("`*_\"' \t,.。").strip()
    if _NOT_FINITE.fullmatch(text):
        raise _Refused("the score is not finite")
    if _NUMBER.fullmatch(text) or _COMMA.fullmatch(text):
        return _check_range(_number(text.replace(",", ".")), text)
    for pattern, read in _UNITS:
        match = pattern.fullmatch(text)
        if match is not None:
            return read(match)
    raise _Refused(f"{text[:40]!r} is not a score")


def _from_text(text: str, names: tuple[str, ...]) -> Parsed:
    lone = _BARE.fullmatch(text)
    if lone is not None or _COMMA.fullmatch(text):
        number = _number(lone[1] if lone is not None else text.replace(",", "."))
        return Parsed(_clamp(number), places=((0, len(text)),), text=text)
    if _NOT_FINITE.fullmatch(text):
        raise _Refused("the score is not finite")
    if text.count("{") > text.count("}"):
        raise _Refused("the reply was cut off")
    line, within = _PATTERNS[names]
    # The judge was asked for a line such as "Score: 0.8", and an explanation after "Reason:". Any other number counts as a score.
    verdict = _EXPLANATION.sub("", text)
    for others, (other_line, _) in _PATTERNS.items():
        verdict = verdict if others == names else other_line.sub(_blank, verdict)
    verdict = _TAG.sub(_blank, _SCALE.sub(_blank, verdict))
    stated = [(_read_with_unit(match[1]), match.span()) for match in line.finditer(verdict)]
    stated += [(_read_with_unit(match[0]), match.span()) for match in _LONE_LINE.finditer(verdict)]
    stated += _numbers_in(verdict, within)
    if not stated:
        raise _Refused("the reply holds no score")
    score = _agree_on([score for score, _ in stated])
    return Parsed(score, places=tuple(place for _, place in stated), text=text)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


_TAG = re.compile(r"</?[A-Za-z_|]{1,30}\s?/?>")
_SCALE = re.compile(
    r"\((?:out of\s{1,3}|/\s{0,3})?[01](?:\.0{1,3})?(?:\s{0,3}(?:-|~|〜|to)\s{0,3}1(?:\.0{1,3})?)?\)", re.IGNORECASE
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


def _check_alone(text: str, start: int, end: int) -> None:
    before, after = text[max(0, start - 24) : start], text[end : end + 24]
    if _JOINED_BEFORE.search(before) or _JOINED_AFTER.match(after):
        raise _Refused("the reply gives a range, or more than one value")
    if _BOUND_BEFORE.search(before) or _BOUND_AFTER.match(after):
        raise _Refused("the reply gives a bound, not a value")


def _numbers_in(text: str, within: re.Pattern[str]) -> list[tuple[float, tuple[int, int]]]:
    """Return every value in a reply that may be the score, with its place."""
    if _SOME_NOT_FINITE.search(text):
        raise _Refused("the score is not finite")
    found: list[tuple[float, tuple[int, int]]] = []

    def is_free(start: int, end: int) -> bool:
        return all(end <= begin or start >= stop for _, (begin, stop) in found)

    for pattern, read in (*_UNITS, (_DECIMAL, lambda match: _check_range(_number(match[1]), match[0]))):
        for match in pattern.finditer(text):
            if is_free(*match.span()):
                _check_alone(text, *match.span())
                found.append((read(match), match.span()))
                if len(found) > 50:
                    raise _Refused("the reply holds too many numbers to be a score")
    labelled: list[tuple[float, tuple[int, int]]] = []
    for match in within.finditer(text):
        figure = match[1].strip("`*_\"' .,。")
        if is_free(*match.span(1)) and (_NUMBER.fullmatch(figure) or _NOT_FINITE.fullmatch(figure)):
            _check_alone(text, match.start(), match.start(1) + len(figure))
            labelled.append((_read_with_unit(figure), match.span()))
    return found + labelled
