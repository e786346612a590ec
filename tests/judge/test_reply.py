"""A reply is a score only where it can mean one thing; everything else is none, with a reason, and nothing raises."""

from __future__ import annotations

import json
import math
import types

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from grace_kp.judge import parse_reply

WIDE = {ord(plain): chr(ord(plain) + 0xFEE0) for plain in "0123456789./%:+-"}


def holds(reply):
    parsed = parse_reply(reply)
    if parsed.score is None:
        assert isinstance(parsed.error, str)
        assert parsed.error.strip()
    else:
        assert isinstance(parsed.score, float)
        assert 0 <= parsed.score <= 1
        assert parsed.error is None
    assert isinstance(parsed.reason, str)
    return parsed


CASES = [
    # One value among several, a part of one, or none at all.
    ("strict-0", "8-9/10", None),
    ("strict-2", "８０〜９０％", None),
    ("strict-4", "8 or 9 out of 10", None),
    ("strict-5", "7〜8割", None),
    ("strict-7", "score: 1 or 0", None),
    ("strict-10", "0.8 nan", None),
    ("strict-12", "1e999 or 0.8", None),
    ("strict-13", "評価は0.0 or 1 percentです", None),
    ("strict-14", "0.8²", 0.8),
    ("strict-16", "①", None),
    ("strict-17", "1½", None),
    ("strict-18", "½", 0.5),
    ("strict-19", '{"temperature": 0.7}', None),
    ("strict-21", '{"score": 0.', None),
    ("strict-22", '{"score": 1', None),
    ("cut-off-in-the-reason", '{"score": 0.8, "reason": "the first sou', None),
    ("cut-off-fence", '```json\n{"reason": "right", "score": 0.8,\n', None),
    ("strict-23", "Score: 0.8\nThe answer mentions 0.3", None),
    ("strict-27", '{"score": 0.8, "details": {"score": 0.3}}', None),
    ("strict-28", "score < 0.5", None),
    ("strict-30", "0.5未満", None),
    ("strict-31", "マイナス0.2", None),
    ("strict-32", "Score: 0.8\nReason: mentions 0.3 and 45%", 0.8),
    ("strict-33", "score: 0.8 (out of 1.0)", 0.8),
    # A structured reply.
    ("json", '{"score": 0.8, "reason": "ok"}', 0.8),
    ("json-zero", '{"score": 0, "reason": "wrong"}', 0.0),
    ("json-capital", '{"Score": 0.8}', 0.8),
    ("json-confidence", '{"confidence": 0.8}', 0.8),
    ("json-fence", '```json\n{"score": 0.8, "reason": "ok"}\n```', 0.8),
    ("json-in-words", 'My judgement is {"score": 0.8, "reason": "ok"} as asked.', 0.8),
    ("json-after-braces", 'I used {a set} first. {"score": 0.8}', 0.8),
    ("json-in-list", '[{"score": 0.8, "reason": "ok"}]', 0.8),
    ("json-nested", '{"result": {"score": 0.8, "reason": "ok"}}', 0.8),
    ("json-bom", '\ufeff{"score": 0.8}', 0.8),
    ("json-wide", "｛＂score＂：０．８｝", 0.8),
    ("json-numbers-in-reason", '{"score": 0.8, "reason": "3 of 10 claims, 30%, confidence: 0.3"}', 0.8),
    ("json-braces-in-reason", '{"score": 0.8, "reason": "it says {\\"score\\": 0.1}"}', 0.8),
    ("json-text-value", '{"score": "0.8"}', 0.8),
    ("json-tenths", '{"score": "８割"}', 0.8),
    ("json-slip-above", '{"score": 1.0005}', 1.0),
    ("json-just-above", '{"score": 1.002}', None),
    ("json-below", '{"score": -0.2}', None),
    ("json-percent-above", '{"score": "120%"}', None),
    ("json-true", '{"score": true}', None),
    ("json-word", '{"score": "high"}', None),
    ("json-list-value", '{"score": [0.8]}', None),
    ("json-object-value", '{"score": {"value": 0.8}}', None),
    ("json-nan", '{"score": NaN}', None),
    ("json-overflow", '{"score": 1e999}', None),
    ("json-nan-text", '{"score": "nan"}', None),
    ("json-huge-integer", '{"score": ' + "9" * 400 + "}", None),
    ("json-huge-digits", '{"score": ' + "9" * 10_000 + "}", None),
    ("json-duplicate-differs", '{"score": 0.8, "score": 0.3}', None),
    ("json-two-names-differ", '{"score": 0.8, "confidence": 0.3}', None),
    ("json-two-objects-differ", '{"score": 0.8}\n{"score": 0.3}', None),
    ("json-no-number", '{"verdict": "good"}', None),
    # Thoughts before, around and after the reply, with figures that do not count.
    ("thought-object", '<think>Say {"score": 0.2}? No.</think>\n{"score": 0.9}', 0.9),
    ("thought-words", "<think>score: 0.4 at first, 3/10, 1½</think>\nscore: 0.9", 0.9),
    ("thought-fence", '<think>{"a": </think>\n```json\n{"score": 0.9}\n```', 0.9),
    ("thought-capitals", '[THINK]{"score": 0.3}[/THINK]{"score": 0.9}', 0.9),
    (
        "thought-channels",
        "<|channel|>analysis<|message|>0.3<|end|><|start|>assistant<|channel|>final<|message|>0.9",
        0.9,
    ),
    ("thought-tokens", '<|START_THINKING|>0.3<|END_THINKING|>{"score": 0.9}', 0.9),
    ("thought-words-of-a-tag", "<|begin_of_thought|>0.3<|end_of_thought|>0.9", 0.9),
    (
        "thought-others",
        "◁think▷0.1◁/think▷<seed:think>0.2</seed:think>＜思考＞0.3＜/思考＞&lt;think&gt;0.4&lt;/think&gt;0.9",
        0.9,
    ),
    ("thought-several", "<think>0.2</think>Well.<think>score: 0.3</think>score: 0.9", 0.9),
    ("thought-in-a-thought", "<think>In <think> tags: 0.2 </think> not 0.4 </think>score: 0.9", 0.9),
    ("thought-not-opened", 'maybe {"score": 0.3}</think>{"score": 0.9}', 0.9),
    ("thought-not-closed", '<think>maybe {"score": 0.3}', None),
    ("thought-not-closed-anew", "<think>0.3</think><think>0.9", None),
    ("thought-alone", "<think>score: 0.9</think>", None),
    ("thought-after", '{"score": 0.9}\n<think>or {"score": 0.3}?</think>', 0.9),
    ("thought-in-the-reason", '{"score": 0.9, "reason": "it says </think> {\\"score\\": 1.0}"}', 0.9),
    ("thought-empty-tag", "<think/>0.9", 0.9),
    ("thought-and-answer", "<think>0.3</think><answer>0.9</answer>", 0.9),
    ("bound-beside-a-tag", "<answer>confidence >0.9</answer>", None),
    ("thought-in-a-field", '{"thinking": "0.3", "score": 0.9}', 0.9),
    # A lone number, which alone is clamped.
    ("lone", "0.8", 0.8),
    ("lone-above", "1.5", 1.0),
    ("lone-below", "-0.2", 0.0),
    ("lone-wide", "０．８", 0.8),
    ("lone-zero-width", "0.\u200b8", 0.8),
    ("lone-tiny", "1e-300", 1e-300),
    ("lone-overflow", "1e999", None),
    ("lone-nan", "NaN", None),
    ("lone-many-digits", "9" * 10_000, None),
    # A number with its unit.
    ("of-ten-words", "8 out of 10", 0.8),
    ("of-zero", "8/0", None),
    ("of-above", "11/10", None),
    ("percent-small", "0.8%", 0.008),
    ("percent-above", "120%", None),
    ("points-full", "10点満点中8点", 0.8),
    ("tenths-half", "8割5分", 0.85),
    # A number with a label.
    ("label-in-a-sentence", "Overall my score is 1 for this answer.", 1.0),
    ("label-bold", "**Score:** 0.8", 0.8),
    ("label-of-ten-words", "score: 8 out of 10", 0.8),
    ("label-zero", "score: 0", 0.0),
    ("label-above", "confidence: 1.5", None),
    ("label-word", "confidence: high", None),
    ("label-empty", "confidence:", None),
    ("label-wide", "confidence：０．８", 0.8),
    ("label-japanese-reason", "信頼度：０．８\n理由：情報源と一致する", 0.8),
    ("label-japanese-word", "信頼度：高い", None),
    # Several candidates.
    ("two-differ", "0.8 or 0.9", None),
    ("two-labels-differ", "Score: 0.8\nScore: 0.3", None),
    ("two-labels-same", "Score: 0.8\nConfidence: 80%", 0.8),
    ("two-units-same", "0.8 (80%)", 0.8),
    ("two-units-differ", "0.8 (90%)", None),
    ("two-points-tenths-same", "10点中8点、つまり8割", 0.8),
    ("two-not-but", "not 0.3 but 0.8", None),
    ("two-thousand", " ".join(f"0.{i}" for i in range(1_000)), None),
    # No score at all.
    ("empty", "", None),
    ("invisible", "\u200b\u200e\ufeff", None),
    ("words", "I cannot tell.", None),
    ("version", "version 1.2.3", None),
    ("count", "It makes 3 claims about 12 towns.", None),
    ("null", "null", None),
    ("surrogate", "\ud800", None),
    ("nul", "\x00", None),
    ("surrogate-beside", "confidence: 0.8\n\ud800", 0.8),
    ("deep-lists", "[" * 50_000, None),
    ("deep-closed", "[" * 50_000 + "]" * 50_000, None),
    ("too-long", "0.8" + " x" * 100_000, None),
]


@pytest.mark.parametrize(("reply", "score"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_texts(reply, score):
    parsed = holds(reply)
    assert parsed.score == (None if score is None else pytest.approx(score, abs=1e-9)), parsed


class Loud:
    def __str__(self):
        raise RuntimeError("loud")

    __repr__ = __len__ = __iter__ = __float__ = __int__ = __index__ = __bool__ = __str__

    def __eq__(self, other):
        raise RuntimeError("loud")

    __hash__ = object.__hash__


class LoudText(str):
    def __len__(self):
        raise RuntimeError("loud")

    strip = lower = encode = __str__ = __len__


class LoudNumber(float):
    def __float__(self):
        raise RuntimeError("loud")


class LoudMapping(dict):
    def items(self):
        raise RuntimeError("loud")


def knot():
    made = {}
    made["score"] = made
    return made


def well(depth):
    made = {"score": 0.8}
    for _ in range(depth):
        made = {"a": made}
    return made


OBJECTS = [
    ("none", None, None),
    ("false", False, None),
    ("float", 0.8, 0.8),
    ("float-above", 1.5, 1.0),
    ("integer", 85, 1.0),
    ("integer-huge", 10**400, None),
    ("nan", math.nan, None),
    ("complex", 0.8 + 0j, None),
    ("bytes", b"0.8", 0.8),
    ("bytes-json", b'{"score": 0.8, "reason": "ok"}', 0.8),
    ("bytes-broken", b"\xff\xfe\xfd", None),
    ("bytes-utf16", "0.8".encode("utf-16-le"), None),
    ("bytes-huge", b"0" * 1_000_000, None),
    ("dict", {"score": 0.8, "reason": "ok"}, 0.8),
    ("dict-above", {"score": 1.5}, None),
    ("dict-true", {"score": True}, None),
    ("dict-huge", {"score": 10**400}, None),
    ("dict-empty", {}, None),
    ("dict-without", {"verdict": 0.8}, None),
    ("dict-odd-keys", {1: 2, None: 3, ("score",): 0.8}, None),
    ("dict-names-differ", {"score": 0.8, "confidence": 0.3}, None),
    ("dict-proxy", types.MappingProxyType({"score": 0.8}), 0.8),
    ("dict-in-itself", knot(), None),
    ("dict-deep", well(20_000), None),
    ("list", [0.8], None),
    ("object", object(), None),
    ("loud", Loud(), None),
    ("loud-value", {"score": Loud()}, None),
    ("loud-key", {Loud(): 0.8}, None),
    ("loud-text", LoudText("0.8"), None),
    ("loud-number", LoudNumber(0.8), None),
    ("loud-mapping", LoudMapping(score=0.8), None),
]


@pytest.mark.parametrize(("reply", "score"), [case[1:] for case in OBJECTS], ids=[case[0] for case in OBJECTS])
def test_objects(reply, score):
    parsed = holds(reply)
    assert parsed.score == (None if score is None else pytest.approx(score)), parsed


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ('{"score": 0.8, "reason": "borne out"}', "borne out"),
        ('{"score": 0.8, "reason": "  情報源と一致  "}', "情報源と一致"),
        ({"score": 0.8, "rationale": "borne out"}, "borne out"),
        ('{"score": 0.8, "理由": "一致"}', "一致"),
        ('{"score": 0.8, "reason": 3}', ""),
        ('{"score": 0.8}', ""),
        ("0.8", ""),
    ],
)
def test_reasons(reply, reason):
    parsed = holds(reply)
    assert (pytest.approx(0.8), reason) == (parsed.score, parsed.reason)


def test_a_long_reason_is_cut():
    assert len(holds(json.dumps({"score": 0.8, "reason": "x" * 100_000})).reason) <= 1_000


ANY_TEXT = st.text(st.characters())  # lone surrogates too
SCORE_SIGNS = st.text(
    st.sampled_from("0123456789.,/%:=-+eE {}[]\"'`*\n割点中分は信頼度０８．／％：scoreconfidencnaif∞½²\u200b\ud800")
)
HASHABLE = st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.binary() | st.complex_numbers()
PLAIN = HASHABLE | st.builds(object) | st.decimals() | st.fractions() | st.datetimes()


def nested(inner):
    keys = st.sampled_from(["score", "confidence", "reason"]) | HASHABLE
    return st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(keys, inner, max_size=4)


# Levels are spelled out: `st.recursive` warns where a draw has more leaves than it expects.
OBJECT = PLAIN | nested(PLAIN | nested(PLAIN))


@given(ANY_TEXT | SCORE_SIGNS)
def test_any_text(reply):
    assert holds(reply) == holds(reply)


@given(OBJECT)
def test_any_object(value):
    holds(value)
    holds({"score": value})


@given(st.floats())
def test_lone_numbers_are_clamped(number):
    """A lone number is clamped, as a number and as a text; what is not finite is no score."""
    expected = min(1.0, max(0.0, number)) if math.isfinite(number) else None
    assert expected == holds(number).score
    text = repr(number)
    if "e" in text or len(text) < 20:
        assert expected == holds(text).score


PERCENTS = st.integers(0, 100)
FORMS = {
    "decimal": lambda n: f"{n / 100}",
    "two places": lambda n: f"{n / 100:.2f}",
    "six places": lambda n: f"{n / 100:.6f}",
    "exponent": lambda n: f"{n / 10:.1f}e-1",
    "of one": lambda n: f"{n / 100:.2f}/1.0",
    "of ten": lambda n: f"{n / 10}/10",
    "of hundred": lambda n: f"{n}/100",
    "out of ten": lambda n: f"{n / 10} out of 10",
    "percent": lambda n: f"{n}%",
    "percent word": lambda n: f"{n} percent",
    "points": lambda n: f"100点中{n}点",
    "tenths": lambda n: f"{n / 10}割",
    "parts": lambda n: f"{n // 10}割{n % 10}分",
}
FRAMES = [
    "{}",
    "  {}\n",
    "**{}**",
    "I would say {} overall.",
    "全体として{}です。",
    "```\n{}\n```",
    "It is fine.\n\n{}",
    "{}\n\nIt is fine.",
]
LABELS = ["confidence: {}", "Score: {}", "**Score:** {}", "score = {}", "信頼度：{}", "スコアは{}です", "評価: {}"]


@given(PERCENTS, st.sampled_from(sorted(FORMS)), st.sampled_from(FRAMES + LABELS), st.booleans())
def test_a_number_comes_back(percent, form, frame, wide):
    """However a number is written, it is read as itself."""
    assume(form != "percent word" or frame.isascii())
    said = FORMS[form](percent)
    reply = frame.format(said.translate(WIDE) if wide else said)
    parsed = holds(reply)
    assert parsed.score == pytest.approx(percent / 100, abs=1e-9), (reply, parsed)


@given(
    PERCENTS,
    PERCENTS,
    st.sampled_from(sorted(FORMS)),
    st.sampled_from(sorted(FORMS)),
    st.sampled_from([" or ", " or rather ", ", no, ", " and then ", "、いや", "または", " ... "]),
    st.sampled_from(["{}", "I say {}.", "評価は{}です"]),
)
def test_two_numbers_that_differ(first, second, one, other, words, frame):
    assume(first != second)
    assume("percent word" not in (one, other) or (frame + words).isascii())
    reply = frame.format(FORMS[one](first) + words + FORMS[other](second))
    assert holds(reply).score is None, reply


SIZE = 200_000
PIECES = {
    "braces": "{", "brackets": "[", "quotes": '"', "open objects": '{"a":', "open scores": '{"score":',
    "scores": '{"score": 0.8}', "two scores": '{"score": 0.8}{"score": 0.3}', "brace quote": '{"', "brace blank": "{ ",
    "digits": "1", "zeros": "0", "points": ".", "commas": ",", "minuses": "-", "decimals": "0.", "lone decimals": "0.8 ",
    "lines": "0.8\n", "line ends": "\n", "blanks": " ", "stars": "*", "backquotes": "`", "fractions": "1/", "percents": "%",
    "labels": "score: ", "label letters": "score", "bold labels": "**score:** ", "is": "score is ", "out of": "1 out of ",
    "japanese labels": "信頼度：", "points of": "10点中", "tenths": "8割", "wide": "０", "zero-width": "\u200b",
    "bidi": "\u202e", "surrogates": "\ud800", "nul": "\x00", "long forms": "\ufdfa", "exponents": "1e", "backslashes": "\\",
    "escapes": '{"score":"\\u0030', "parentheses": "score (", "colons": ":", "fences": "```json\n{", "slashes": "/",
}  # fmt: skip


@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES)
def test_large_texts(piece):
    """A piece repeated to the longest reply, and beyond, alone and around a score."""
    whole = piece * (SIZE // len(piece))
    holds(whole)
    holds(whole + "x" * 10)
    holds(whole[: SIZE - 30] + "confidence: 0.8")
    holds("confidence: 0.8" + whole[: SIZE - 30])
    holds('{"score": 0.8, "reason": ' + json.dumps(whole[: SIZE // 8]) + "}")
    holds({"score": whole})
