"""What a judge is asked for: an answer, its coverage, both at once, and a step as a whole."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.judge import agreement_of
from grace_kp.protocols import JudgeReply
from tests.judge.scripted import BOTH, GOOD, Judge


def test_one_call_gives_score_and_reason():
    judge = Judge(JudgeReply(GOOD, model="m-1", tokens_in=100, tokens_out=20, attempts=2))
    made = gk.LLMSelfEvaluator(judge).evaluate_detailed("What is it?", "It is 42.", ["The guide says 42."])
    assert (0.8, "borne out by the first source", False) == (made.score, made.reason, made.fallback)
    assert ("m-1", 100, 20, 2) == (made.model, made.tokens_in, made.tokens_out, made.attempts)
    assert made.latency_ms >= 0
    (prompt,) = judge.prompts
    for text in ("What is it?", "It is 42.", "The guide says 42."):
        assert text in prompt


def test_both_judgements_in_one_call_or_in_two():
    judge = Judge(BOTH)
    own, coverage = gk.LLMSelfEvaluator(judge, combined=True).evaluate_both("q", "a", ["s"])
    assert (0.8, 0.6, "right", "one of two") == (own.score, coverage.score, own.reason, coverage.reason)
    assert 1 == len(judge.prompts)
    judge = Judge(GOOD, '{"score": 0.6, "reason": "half"}')
    own, coverage = gk.LLMSelfEvaluator(judge).evaluate_both("q", "a")
    assert (0.8, 0.6) == (own.score, coverage.score)
    assert 2 == len(judge.prompts)


@pytest.mark.parametrize("reply", ["0.8", '{"score": 0.8}', "coverage: 0.8", "0.8 and 0.6", GOOD])
def test_a_combined_reply_that_lacks_one_judgement_is_not_taken_for_both(reply):
    own, coverage = gk.LLMSelfEvaluator(lambda prompt: reply, combined=True).evaluate_both("q", "a")
    assert own.fallback or coverage.fallback
    assert not (own.fallback and '"score"' in reply)


def test_a_search_step_keeps_its_best_result():
    """Above 0.9 it wins over a lower judgement; on other steps, and below, the judgement stands."""
    sure = gk.ConfidenceFactors(search_max_score=0.95, search_result_count=1, is_search_step=True)
    assert 0.95 == gk.StepJudge(Judge(GOOD)).llm_calculate(sure, "find it", "found").score
    assert 0.97 == gk.StepJudge(Judge("0.97")).llm_calculate(sure, "find it", "found").score
    other = gk.ConfidenceFactors(search_max_score=0.95, search_result_count=1)
    assert 0.8 == gk.StepJudge(Judge(GOOD)).llm_calculate(other, "find it", "found").score
    less = gk.ConfidenceFactors(search_max_score=0.9, search_result_count=1, is_search_step=True)
    assert 0.8 == gk.StepJudge(Judge(GOOD)).llm_calculate(less, "find it", "found").score
    failed = gk.StepJudge(None).llm_calculate(sure, "find it", "found")
    assert (0.95, True) == (failed.score, failed.fallback)


async def test_a_step_judge_sees_factors_purpose_and_output():
    judge = Judge(GOOD)
    made = await gk.StepJudge(judge).allm_calculate(
        gk.ConfidenceFactors(tool_execution_count=7), "book the flight", {"booking": "XK9"}
    )
    assert 0.8 == made.score
    for text in ('"tool_execution_count": 7', "book the flight", "XK9"):
        assert text in judge.prompts[0]


VECTORS = Path(__file__).resolve().parents[1] / "vectors" / "source_agreement.jsonl.gz"


class Given:
    """An embedder that has its vectors already, in the order of the texts."""

    def __init__(self, vectors):
        self.vectors = vectors
        self.dimensions = len(vectors[0]) if vectors else 0

    def embed(self, texts):
        return np.array([self.vectors[int(text)] for text in texts], dtype=np.float64)


def cases():
    with gzip.open(VECTORS, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_golden_vectors(case):
    """To 1e-6, by an embedder and by a callable."""
    vectors = case["embeddings"]
    texts = [str(number) for number in range(len(vectors))]
    assert case["expected"] == pytest.approx(gk.SourceAgreementCalculator(Given(vectors)).calculate(texts), abs=1e-6)
    plain = gk.SourceAgreementCalculator(lambda text: vectors[int(text)])
    assert case["expected"] == pytest.approx(plain.calculate(texts), abs=1e-6)


def by_pairs(rows):
    total = count = 0
    for one, other in itertools.combinations(rows, 2):
        norms = np.linalg.norm(one) * np.linalg.norm(other)
        total += float(np.dot(one, other)) / norms if norms else 0.0
        count += 1
    return min(1.0, max(0.0, total / count)) if count else 1.0


@given(
    st.integers(1, 6).flatmap(
        lambda size: st.lists(
            st.lists(st.floats(-10, 10).map(lambda x: round(x, 3)), min_size=size, max_size=size),
            min_size=2,
            max_size=12,
        )
    )
)
def test_it_is_the_mean_over_all_pairs(rows):
    assert by_pairs([np.array(row) for row in rows]) == pytest.approx(agreement_of(rows), abs=1e-9)


@given(st.floats(1e-150, 1e150), st.floats(1e-150, 1e150))
def test_length_does_not_matter(one, other):
    """Also where squares would overflow or vanish."""
    assert agreement_of([[3 * one, 4 * one], [3 * other, 4 * other]]) == pytest.approx(1.0)


@pytest.mark.parametrize("answers", [[], ["one"], (), "a text alone"])
def test_fewer_than_two_agree(answers):
    """There is nothing to disagree with, and no embedder is asked."""

    def never(text):
        raise AssertionError

    made = gk.SourceAgreementCalculator(never).calculate_detailed(answers)
    assert (1.0, False, 0) == (made.score, made.fallback, made.attempts)


def breaks(text):
    raise OSError("the model is gone")


@pytest.mark.parametrize(
    ("embedder", "said"),
    [
        (None, "no embedder"),
        (breaks, "the model is gone"),
        (lambda text: [float("nan"), 1.0], "not finite"),
        (lambda text: [float("inf"), 1.0], "not finite"),
        (lambda text: 1.0, "shape"),
        (lambda text: [], "shape"),
        (lambda text: [1.0] * len(text), "inhomogeneous"),
        (lambda text: "vector", "could not convert"),
    ],
)
def test_a_failure_is_a_half_and_says_so(embedder, said):
    made = gk.SourceAgreementCalculator(embedder).calculate_detailed(["a", "bb"])
    assert (0.5, True) == (made.score, made.fallback)
    assert said in made.error
    strict = gk.SourceAgreementCalculator(embedder, on_failure="raise")
    with pytest.raises(gk.EvaluationFailed) as caught:
        strict.calculate(["a", "bb"])
    assert caught.value.evaluation.error == made.error


def test_zero_vectors_agree_with_nothing():
    """Their similarity is 0 to everything, themselves included."""
    assert agreement_of([[0.0, 0.0], [0.0, 0.0]]) == 0.0
    assert agreement_of([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0]]) == pytest.approx(1 / 3)


@pytest.mark.parametrize("wrong", [3, "model", object()])
def test_what_is_no_embedder_is_refused(wrong):
    with pytest.raises(TypeError, match="an embedder has `embed`"):
        gk.SourceAgreementCalculator(wrong)
    with pytest.raises(ValueError, match="on_failure"):
        gk.SourceAgreementCalculator(None, on_failure="ignore")
