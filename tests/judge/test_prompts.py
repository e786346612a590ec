"""The prompts hold nothing that could be read as a score, and depend on their texts and language alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.judge import LLMSelfEvaluator, QueryCoverageCalculator, StepJudge, parse_reply
from grace_kp.judge._prompts import TEMPLATES, TITLES
from grace_kp.judge._reply import COVERAGE_NAMES, SCORE_NAMES
from tests.judge.hostile import FACTORS, HONEST, HONEST_BOTH, PLAIN_A, PLAIN_Q, PLAIN_S, code_of


@pytest.mark.parametrize("key", sorted(TEMPLATES), ids="-".join)
def test_instructions_are_no_reply(key):
    """The instructions hold nothing that could be read as a score."""
    template = TEMPLATES[key]
    for code in ("{code}", "0123456789ab", "000000000000", "123456789012", "1e1111111111"):
        for names in (SCORE_NAMES, COVERAGE_NAMES):
            text = template.replace("{code}", code)
            assert parse_reply(text, names).score is None
            assert all(parse_reply(line, names).score is None for line in text.splitlines())
    made = LLMSelfEvaluator(lambda prompt: prompt.split("<<<")[0]).evaluate_detailed(PLAIN_Q, PLAIN_A)
    assert (0.5, True) == (made.score, made.fallback)


@given(st.text("0123456789abcdef", min_size=12, max_size=12), st.sampled_from(sorted(TEMPLATES)))
def test_no_code_is_a_score(code, key):
    """Whatever the code, the instructions and the markers are no reply."""
    template = TEMPLATES[key].format(code=code)
    marker = f"<<<{TITLES[key[1]]['answer']} {code}>>>"
    assert parse_reply(f"{template}\n\n{marker}\nx\n").score is None
    assert parse_reply(marker).score is None


def test_same_texts_same_prompt_for_the_judge():
    """Two evaluators ask the same in the same words."""
    prompts = []
    for _ in range(2):
        LLMSelfEvaluator(lambda prompt: prompts.append(prompt) or HONEST).evaluate(PLAIN_Q, PLAIN_A, [PLAIN_S])
    assert 2 == len(prompts)
    assert prompts[0] == prompts[1]


@pytest.mark.parametrize(
    ("question", "setting", "language"),
    [
        ("What does the town have?", "auto", "en"),
        ("", "auto", "en"),
        ("12345", "auto", "en"),
        ("Qu'est-ce que c'est ?", "auto", "en"),
        ("この町には何がありますか。", "auto", "ja"),
        ("カタカナ", "auto", "ja"),
        ("ｶﾀｶﾅ", "auto", "ja"),
        ("契約期間", "auto", "ja"),
        ("GRACE とは何ですか", "auto", "ja"),
        ("What does the town have?", "ja", "ja"),
        ("この町には何がありますか。", "en", "en"),
    ],
)
def test_languages(question, setting, language):
    """The script of the question chooses the language of the prompt, or the setting does."""
    prompts = []
    judge = lambda prompt: prompts.append(prompt) or HONEST_BOTH  # noqa: E731
    LLMSelfEvaluator(judge, language=setting).evaluate(question, "答え and answer", ["出典"])
    LLMSelfEvaluator(judge, language=setting, combined=True).evaluate_both(question, "答え and answer")
    QueryCoverageCalculator(judge, language=setting).calculate(question, "答え and answer")
    StepJudge(judge, language=setting).llm_calculate(FACTORS, question, "答え and answer")
    assert 4 == len(prompts)
    for prompt, kind in zip(prompts, ("self_evaluation", "both", "coverage", "step"), strict=True):
        assert prompt.startswith(TEMPLATES[kind, language].format(code=code_of(prompt)))
        assert f"\n<<<{TITLES[language]['output' if kind == 'step' else 'answer']} {code_of(prompt)}>>>\n" in prompt
