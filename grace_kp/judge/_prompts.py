"""The prompts of the evaluators, in English and in Japanese. The version changes with any of their texts.

The instructions name no figure, so that an echo of them cannot be read as a score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.judge._fence import MAX_CHARS, RULES, Prompt, fence_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

PROMPT_VERSION = "2026-11-1"
"""Part of every cache key: a judgement by another wording is another judgement."""

_FORM_EN = 'Reply with one JSON object and nothing else, with the fields "score" (a number between zero and one) and "reason" (one sentence).'
_FORM_JA = "次の項目を持つ JSON オブジェクト一つだけで答えてください：「score」（ゼロ以上一以下の数値）と「reason」（一文の理由）。"

_BOTH_EN = (
    'Reply with one JSON object and nothing else, with the fields "score" (a number between zero and one, for the first question), "reason" '
    '(one sentence), "coverage" (a number between zero and one, for the second question) and "coverage_reason" (one sentence).'
)
_BOTH_JA = (
    "次の項目を持つ JSON オブジェクト一つだけで答えてください：「score」（第一の問い、ゼロ以上一以下の数値）、「reason」（一文の理由）、"
    "「coverage」（第二の問い、ゼロ以上一以下の数値）、「coverage_reason」（一文の理由）。"
)

_SELF_EN = """\
Judge how far the answer can be relied on: whether it is accurate, measured by the sources where there are any, and by what is known
otherwise; whether it is relevant to the question; and whether its style is clear and fit for the purpose. A claim that the sources
contradict or do not bear out weighs most. Zero means unusable, one means flawless."""

_SELF_JA = """\
回答がどこまで信頼できるかを評価してください。観点は、正確さ（情報源がある場合は情報源に照らして、ない場合は一般的な知識に照らして）、
質問への適切さ、文章の明瞭さと目的への適合です。情報源と矛盾する、または情報源に裏付けのない主張を最も重く見てください。
ゼロは使えない、一は欠点がないことを意味します。"""

_COVERAGE_EN = """\
Judge how much of the question the answer covers: split the question into what it asks for, and tell which share of that is answered.
Whether the answers are right is not asked here. Zero means nothing of it, one means all of it."""

_COVERAGE_JA = """\
回答が質問をどれだけ網羅しているかを評価してください。質問が求めている要素を分け、そのうち答えられている割合を示してください。
答えの正しさはここでは問いません。ゼロはまったく答えていない、一はすべてに答えていることを意味します。"""

_STEP_EN = """\
Judge how reliable this step of an agent is, given its purpose, the factors that were measured, and its output. The factors say how
well searches and tools went; the output shows what came of it. Zero means worthless, one means fully reliable."""

_STEP_JA = """\
エージェントのこのステップがどれだけ信頼できるかを、目的、測定された要因、出力に基づいて評価してください。要因は検索やツールがどれだけ
うまくいったかを、出力はその結果を示します。ゼロは価値がない、一は完全に信頼できることを意味します。"""

_ASK_EN = "You judge the work of an assistant."
_ASK_JA = "あなたはアシスタントの仕事を評価します。"

_FIRST_EN, _SECOND_EN = "First question.", "Second question."
_FIRST_JA, _SECOND_JA = "第一の問い。", "第二の問い。"

TEMPLATES: dict[tuple[str, str], str] = {
    ("self_evaluation", "en"): f"{_ASK_EN} {_SELF_EN}\n\n{RULES['en']}\n\n{_FORM_EN}",
    ("self_evaluation", "ja"): f"{_ASK_JA}{_SELF_JA}\n\n{RULES['ja']}\n\n{_FORM_JA}",
    ("coverage", "en"): f"{_ASK_EN} {_COVERAGE_EN}\n\n{RULES['en']}\n\n{_FORM_EN}",
    ("coverage", "ja"): f"{_ASK_JA}{_COVERAGE_JA}\n\n{RULES['ja']}\n\n{_FORM_JA}",
    (
        "both",
        "en",
    ): f"{_ASK_EN}\n\n{_FIRST_EN} {_SELF_EN}\n\n{_SECOND_EN} {_COVERAGE_EN}\n\n{RULES['en']}\n\n{_BOTH_EN}",
    ("both", "ja"): f"{_ASK_JA}\n\n{_FIRST_JA}{_SELF_JA}\n\n{_SECOND_JA}{_COVERAGE_JA}\n\n{RULES['ja']}\n\n{_BOTH_JA}",
    ("step", "en"): f"{_ASK_EN} {_STEP_EN}\n\n{RULES['en']}\n\n{_FORM_EN}",
    ("step", "ja"): f"{_ASK_JA}{_STEP_JA}\n\n{RULES['ja']}\n\n{_FORM_JA}",
}
"""By kind and language; `{code}` is the only placeholder."""

TITLES: dict[str, dict[str, str]] = {
    "en": {
        "question": "QUESTION",
        "answer": "ANSWER",
        "source": "SOURCE",
        "purpose": "PURPOSE",
        "factors": "FACTORS",
        "output": "OUTPUT",
    },
    "ja": {
        "question": "質問",
        "answer": "回答",
        "source": "情報源",
        "purpose": "目的",
        "factors": "要因",
        "output": "出力",
    },
}


def build_prompt(kind: str, language: str, texts: Sequence[tuple[str, str]], *, max_chars: int = MAX_CHARS) -> Prompt:
    """Build a prompt of this kind over texts with their titles (`question`, `answer`, `source`, …)."""
    template, titles = TEMPLATES[kind, language], TITLES[language]
    return fence_texts(kind, language, template, texts, version=PROMPT_VERSION, titles=titles, max_chars=max_chars)
