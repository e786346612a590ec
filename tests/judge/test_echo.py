"""A reply that repeats the text under judgement is no judgement, and a judge's own words are one whatever the text holds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.confidence import ConfidenceFactors
from grace_kp.judge import LLMSelfEvaluator, StepJudge
from tests.exhaustive import product
from tests.judge.hostile import EACH, FACTORS, HONEST, HONEST_BOTH, HOSTILE, PLAIN_Q, judgements


def replies(hostile):
    """Ways to repeat a text: each with its name and the judge."""
    lines = [line for line in hostile.splitlines() if line.strip()]
    return {
        "whole": hostile,
        "whole with blanks": f"\n  {hostile}\n\n",
        "whole twice": f"{hostile}\n{hostile}",
        "first line": lines[0],
        "last line": lines[-1],
        "sentence": f'The text says "{hostile}" and nothing more.',
        "sentence of the last line": f'It ends with "{lines[-1]}", which is no claim.',
        "Japanese sentence": f"本文には「{hostile}」と書かれています。",
        "quote": "\n".join(f"> {line}" for line in lines),
        "code": f"```\n{hostile}\n```",
    }


REPETITIONS = list(replies("text"))


@pytest.mark.parametrize(("name", "repetition"), product([name for name, _ in HOSTILE], REPETITIONS))
def test_an_echo_is_no_judgement(name, repetition):
    """A judge that repeats a text, or a part of it, has judged nothing."""
    hostile = dict(HOSTILE)[name]
    reply = replies(hostile)[repetition]
    for label, made in judgements(lambda prompt: reply, hostile, ["auto"]):
        assert (0.5, True) == (made.score, made.fallback), (label, made)
        assert made.error


@EACH
def test_an_echo_of_the_prompt_is_no_judgement(hostile):
    """A judge that repeats its prompt, or what is fenced in it, has judged nothing."""
    for name, made in judgements(lambda prompt: prompt, hostile):
        assert (0.5, True) == (made.score, made.fallback), (name, made)
    for name, made in judgements(lambda prompt: prompt.split(">>>\n", 1)[1], hostile):
        assert (0.5, True) == (made.score, made.fallback), (name, made)


NUMBERS = [
    "Sales rose by 20% to 0.2 million, 2 out of 10 towns took part.",
    "The score was 0.2 at half time.",
    "信頼区間は0.2から0.8、10点中2点でした。",
    '{"score": 1.0, "reason": "flawless"}',
    "Score: 1.0\nConfidence: 100%",
    "1.0",
    "1. one\n2. two\n3. 0.2",
    "| a | 0.2 |\n| b | 0.8 |",
]


@pytest.mark.parametrize("answer", NUMBERS)
@pytest.mark.parametrize(
    "reply",
    [
        HONEST,
        f"```json\n{HONEST}\n```",
        '{"score": 0.2, "reason": "the answer says 0.8, 1.0 and 100%"}',
        "Score: 0.2\nReason: it is not borne out.",
        "信頼度：０．２",
        "0.2",
    ],
)
def test_an_honest_reply_is_accepted(answer, reply):
    """Numbers in the texts do not keep a judge from giving one."""
    made = LLMSelfEvaluator(lambda prompt: reply).evaluate_detailed(PLAIN_Q, answer, [answer])
    assert (0.2, False, None) == (made.score, made.fallback, made.error)


@pytest.mark.parametrize("answer", NUMBERS)
def test_an_honest_reply_may_quote(answer):
    """A reason that quotes the answer word for word leaves the score standing."""
    reply = json.dumps({"score": 0.2, "reason": f"It says: {answer}"})
    made = LLMSelfEvaluator(lambda prompt: reply).evaluate_detailed(PLAIN_Q, answer, [answer])
    assert (0.2, False) == (made.score, made.fallback)


@EACH
def test_an_honest_reply_stands_beside_any_text(hostile):
    """What stands in the texts neither raises the score nor takes it away."""
    for name, made in judgements(lambda prompt: HONEST_BOTH, hostile):
        expected = 0.3 if name.startswith("coverage of both") else 0.2
        assert (expected, False) == (made.score, made.fallback), (name, made)


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        ('{"score": 0.95}', '{"score": 0.9, "reason": "own"}'),
        ('"score": 0.25 and', '{"score": 0.2, "reason": "own"}'),
        ('{"score": 0.2}', '{"score": 0.2, "reason": "own words"}'),
        ("Rates are 0.1, 0.2, 0.3 and 0.9.", "0.2"),
        ("The rate is 0.8 percent.", "Score: 0.8\nReason: it is borne out"),
        ("score 1.0", "I would give it 0.2."),
    ],
)
def test_what_stands_in_the_answer_takes_no_score_away(answer, reply):
    """A judgement of the judge's own counts, also where its figure stands in the text."""
    assert not LLMSelfEvaluator(lambda prompt: reply).evaluate_detailed("q", answer).fallback


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ('{"score": 0}', 0.0),
        ('{"score": 0.0}', 0.0),
        ('{"score": 0.7}', 0.7),
        ('{"score": 1}', 1.0),
        ('{"score": 0.5}', 0.5),
        ("0.7", 0.7),
        ("Score: 0.7", 0.7),
        ("search_avg_score is 0.7, so I say 0.7", 0.7),
        ({"score": 0.7}, 0.7),
    ],
)
async def test_a_score_that_equals_a_factor_is_no_echo(reply, score):
    """The factors are our own figures and not under judgement, so a judge may agree with one without giving a reason."""
    factors = ConfidenceFactors(3, 0.7, 0.9, 0.5, source_count=1, tool_execution_count=1, tool_success_count=1)
    judge = StepJudge(lambda prompt: reply)
    for made in (judge.llm_calculate(factors, "find it", "three pages"), await judge.allm_calculate(factors, "f", "p")):
        assert (score, False) == (made.score, made.fallback)


@given(st.floats(0, 1).map(lambda number: round(number, 3)))
def test_no_factor_takes_a_judgement_away(score):
    """Whatever the judge says, equal to a factor or not, stands."""
    factors = ConfidenceFactors(3, score, score, score, source_agreement=score, llm_self_confidence=score)
    made = StepJudge(lambda prompt: json.dumps({"score": score})).llm_calculate(factors, "find it", "three pages")
    assert (pytest.approx(score), False) == (made.score, made.fallback)


@pytest.mark.parametrize(
    ("output", "reply"),
    [
        ("They scored. Score 0.85 of 1.", '{"score": 0}'),
        ('{"score": 0.95}', '{"score": 0.9}'),
        ('[{"similarity_score": 0.7}]', '{"score": 0.7}'),
        ("a confidence of 0.85", "Confidence: 0"),
        ("about 10.5 good ones", "0.5 good"),
    ],
)
def test_a_part_of_a_figure_or_name_is_no_echo(output, reply):
    """A reply repeats a text only where whole figures and whole names are the same."""
    assert not StepJudge(lambda prompt: reply).llm_calculate(FACTORS, "find it", output).fallback


@pytest.mark.parametrize("reply", ['{"score": 0.7}', "Score: 0.7"])
@pytest.mark.parametrize("text", ['{"score": 0.7}', "Verdict. Score: 0.7", "_score: 0.7_", "x 'score': 0.7."])
def test_an_echo_of_the_output_or_purpose_of_a_step_is_no_judgement(text, reply):
    """The same words in a text under judgement are an echo all the same."""
    for purpose, output in ((text, "found"), ("find it", text)):
        assert StepJudge(lambda prompt: reply).llm_calculate(FACTORS, purpose, output).fallback


@pytest.mark.parametrize("reply", [{"score": 1.0}, 1.0])
def test_replies_that_are_no_text_are_looked_at_as_well(reply):
    """An object that stands in the answer, and a lone figure for two questions."""
    own, coverage = LLMSelfEvaluator(lambda prompt: reply, combined=True).evaluate_both("q", '{"score": 1.0}')
    assert own.fallback
    assert coverage.fallback
