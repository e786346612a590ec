"""The value score: dimensions, weights, overrides, novelty and its fallbacks."""

from __future__ import annotations

import copy
import math
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.errors import InvalidTrace
from grace_kp.trace import ReasoningTrace
from grace_kp.value import ScoringWeights, ValueScorer, VectorCache, embedded_text, evaluate_value, register_profile
from tests.value.traces import trace

TYPES = ("thought", "tool_call", "observation", "error_recovery")


class Fake:
    """An embedder that looks its vectors up."""

    def __init__(self, dimensions, table=None, default=None):
        self.dimensions = dimensions
        self.table = table or {}
        self.default = default
        self.texts = []

    def embed(self, texts):
        self.texts += texts
        return np.array([self.table.get(text, self.default) for text in texts], dtype=np.float32)


def test_golden_scores(vectors):
    """Every recorded trace gets its recorded score, as dict and as model, to 1e-9."""
    for number, vector in enumerate(vectors("value_scores")):
        expected = pytest.approx(vector["expected"]["score"], abs=1e-9)
        assert expected == evaluate_value(vector["trace"]), number
        if number % 10 == 0:
            assert expected == evaluate_value(ReasoningTrace.model_validate(vector["trace"])), number


def test_golden_scores_with_an_embedder(vectors):
    for sequence in vectors("value_scores_embedded"):
        dimensions, current, texts = sequence["dimensions"], {}, []

        def embed(text, current=current, texts=texts, dimensions=dimensions):
            texts.append(text)
            vector = np.zeros(dimensions)
            for index, value in current["sparse"].items():
                vector[int(index)] = value
            return vector

        scorer = ValueScorer(embed)
        for item in sequence["items"]:
            current["sparse"], expected = item["embedding_sparse"], item["expected"]
            score = scorer.score(item["trace"])
            assert expected["score"] == pytest.approx(score.score, abs=1e-6), sequence["id"]
            assert expected["embedded_text"] == texts[-1] == embedded_text(item["trace"])
            assert expected["cache_size_after"] == scorer.cache.size


traces = st.builds(
    trace,
    st.lists(st.tuples(st.sampled_from(TYPES), st.none() | st.sampled_from("abc")), max_size=30),
    success=st.booleans(),
    confidence=st.floats(0, 1),
    domain=st.sampled_from(["default", "finance", "code", "medical", "customer_service", "other"]),
)


@given(traces)
def test_bounds(document):
    """The score and its four dimensions lie in 0 to 1 for every trace, and scoring leaves the trace as it was."""
    before = copy.deepcopy(document)
    score = ValueScorer().score(document)
    for part in (score.score, score.complexity, score.novelty, score.tool_diversity, score.outcome_confidence):
        assert 0.0 <= part <= 1.0
    assert before == document


@given(traces)
def test_forms_agree(document):
    """The dict, the model and the plain values give the same score to the last bit."""
    if not document["steps"]:
        document["steps"] = trace(["thought"])["steps"]
    scorer = ValueScorer()
    score = scorer.score(document)
    assert score == scorer.score(ReasoningTrace.model_validate(document))
    assert score == scorer.score(types.MappingProxyType(document))
    assert score == scorer.score_parts(
        step_types=[step["type"] for step in document["steps"]],
        tool_names=[step["tool"]["name"] for step in document["steps"] if "tool" in step],
        success=document["metadata"]["success"],
        confidence=document["outcome"]["confidence"],
        domain=document["metadata"]["task_domain"],
    )


@given(traces)
def test_failure_never_raises_the_score(document):
    succeeded = document | {"metadata": document["metadata"] | {"success": True}}
    failed = document | {"metadata": document["metadata"] | {"success": False}}
    assert evaluate_value(failed) <= evaluate_value(succeeded)


def test_the_parts_of_a_score():
    document = trace(["thought", ("tool_call", "a"), ("tool_call", "b"), "observation"], domain="code", success=False)
    score = ValueScorer().score(document)
    assert 3 / 4 * 0.5 + 4 / 20 * 0.2 == score.complexity
    assert 0.5 == score.novelty
    assert 1.0 == score.tool_diversity
    assert 0.8 * 0.3 == score.outcome_confidence
    assert "code" == score.profile
    assert () == score.overrides
    assert "no embedder" == score.novelty_fallback
    assert score.complexity * 0.2 + 0.5 * 0.3 + 1.0 * 0.3 + 0.8 * 0.3 * 0.2 == score.score


def test_a_registered_profile_is_used():
    register_profile("test-outcome-only", ScoringWeights(0, 0, 0, 1))
    score = ValueScorer().score(trace(["thought", "observation"], domain="test-outcome-only", confidence=0.37))
    assert (0.37, "test-outcome-only") == (score.score, score.profile)


def test_novelty_falls_as_traces_repeat():
    embedder = Fake(2, {"Do it step 0": [1, 0]}, default=[0, 1])
    scorer = ValueScorer(embedder)
    first, again, other = (
        scorer.score(trace(["observation"], objective=objective)) for objective in ("Do it", "Do it", "Else")
    )
    assert (0.5, "nothing to compare with yet") == (first.novelty, first.novelty_fallback)
    assert (0.0, None) == (again.novelty, again.novelty_fallback)
    assert (1.0, None) == (other.novelty, other.novelty_fallback)
    assert ["Do it step 0", "Do it step 0", "Else step 0"] == embedder.texts


def test_novelty_is_clamped():
    """A trace that points away from all others is at most entirely new."""
    cache = VectorCache(dimensions=2)
    cache.add([1, 0])
    assert 1.0 == ValueScorer(lambda text: [-1, 0], cache).score(trace(["observation"])).novelty


@pytest.mark.parametrize("result", [[1.0, 2.0], (1.0, 2.0), np.float32([1, 2]), [[1.0, 2.0]]])
def test_a_callable_embedder_may_give_any_vector(result):
    scorer = ValueScorer(lambda text: result)
    scorer.score(trace(["thought"]))
    assert 2 == scorer.cache.dimensions
    assert scorer.score(trace(["observation"])).novelty == pytest.approx(0.0, abs=1e-6)


class BadError(Exception):
    def __str__(self):
        raise RuntimeError("not even this")


def _raise(error):
    raise error


async def _asynchronous(text):
    return [1.0, 0.0]


@pytest.mark.parametrize(
    ("embedder", "told"),
    [
        (lambda text: _raise(OSError("no model")), "OSError: no model"),
        (lambda text: _raise(BadError()), "BadError"),
        (lambda text: None, "not usable"),
        (lambda text: [1.0], "2 numbers, got 1"),
        (lambda text: [1.0, math.nan], "finite"),
        (lambda text: ["a", "b"], "numbers"),
        (lambda text: [[1.0, 0.0], [0.0, 1.0]], "shape"),
        (_asynchronous, "asynchronous"),
        (Fake(3, default=[1, 0, 0]), "2 numbers, got 3"),
        (Fake(2), "embed"),
    ],
)
def test_a_failing_embedder_is_a_fallback_with_its_reason(embedder, told):
    """Whatever an embedder does, novelty is 0.5, the score says why, and nothing is remembered."""
    cache = VectorCache(dimensions=2)
    score = ValueScorer(embedder, cache).score(trace(["thought", "observation"]))
    assert 0.5 == score.novelty
    assert told in score.novelty_fallback
    assert 0 == len(cache)
    assert score.score == evaluate_value(trace(["thought", "observation"]))


def test_an_embedder_keeps_to_its_declared_length():
    scorer = ValueScorer(Fake(4, default=[1, 0, 0]))
    assert "4 numbers, got 3" in scorer.score(trace(["thought"])).novelty_fallback


def test_what_cannot_embed_is_refused_at_once():
    with pytest.raises(TypeError, match="embedder"):
        ValueScorer(42)  # type: ignore[arg-type]


def test_keyboard_interrupt_is_not_swallowed():
    with pytest.raises(KeyboardInterrupt):
        ValueScorer(lambda text: _raise(KeyboardInterrupt())).score(trace(["thought"]))


def test_parts_with_an_embedding_or_a_novelty():
    scorer = ValueScorer()
    parts = {"step_types": ["thought", "observation"], "tool_names": [], "success": True, "confidence": 0.5}
    assert "nothing to compare with yet" == scorer.score_parts(**parts, embedding=[1, 0]).novelty_fallback
    assert 0.0 == scorer.score_parts(**parts, embedding=[1, 0]).novelty
    known = scorer.score_parts(**parts, embedding=[0, 1], novelty=0.25)
    assert (0.25, None) == (known.novelty, known.novelty_fallback)
    assert 2 == len(scorer.cache)
    with pytest.raises(InvalidTrace, match=r"must be a number from 0 to 1 \(got 1.5\)") as raised:
        scorer.score_parts(**parts, novelty=1.5)
    assert "novelty" == raised.value.path


def test_parts_are_checked_like_a_trace():
    parts = {"step_types": ["thought", "observation"], "tool_names": [], "success": True, "confidence": 0.5}
    assert "default" == ValueScorer().score_parts(**parts).profile
    for name, value, path in (("step_types", ["dance"], "steps[0].type"), ("confidence", 2, "outcome.confidence")):
        with pytest.raises(InvalidTrace) as raised:
            ValueScorer().score_parts(**{**parts, name: value})
        assert path == raised.value.path


def test_no_score_is_above_one():
    register_profile("test-heavy", ScoringWeights(0.25, 0.25, 0.25, 0.2500009))
    kinds = [*TYPES, *["error_recovery"] * 2, *["thought"] * 14]
    parts = {"tool_names": [f"t{number}" for number in range(20)], "success": True, "confidence": 1.0, "novelty": 1.0}
    assert 1.0 == ValueScorer().score_parts(step_types=kinds, **parts).score
    assert 1.0 == ValueScorer().score_parts(step_types=[*TYPES, *["thought"] * 16], domain="test-heavy", **parts).score


def test_a_scorer_remembers_a_thousand_traces():
    scorer, small = ValueScorer(lambda text: [1.0]), ValueScorer(lambda text: [1.0], max_elements=3, ttl_seconds=5.0)
    scorer.score(trace(["observation"]))
    small.score(trace(["observation"]))
    assert (1_000, None) == (scorer.cache.max_elements, scorer.cache.ttl_seconds)
    assert (3, 5.0) == (small.cache.max_elements, small.cache.ttl_seconds)


def test_parts_with_a_text():
    """A text is embedded where there is an embedder; without one, or without a text, novelty falls back."""
    parts = {"step_types": ["thought", "observation"], "tool_names": [], "success": True, "confidence": 0.5}
    scorer = ValueScorer(lambda text: [1.0, float(len(text))])
    scorer.score_parts(**parts, text="a")
    assert scorer.score_parts(**parts, text="a").novelty == pytest.approx(0.0, abs=1e-6)
    assert "no text" == scorer.score_parts(**parts).novelty_fallback
    assert "no embedder" == ValueScorer().score_parts(**parts, text="a").novelty_fallback


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda d: d.pop("steps"), "steps"),
        (lambda d: d.update(steps=None), "steps"),
        (lambda d: d["steps"].append(3), "steps[1]"),
        (lambda d: d["steps"][0].pop("type"), "steps[0].type"),
        (lambda d: d["steps"][0].update(type="dance"), "steps[0].type"),
        (lambda d: d["steps"][0].update(type=[]), "steps[0].type"),
        (lambda d: d["steps"][0].update(tool="grep"), "steps[0].tool"),
        (lambda d: d["steps"][0].update(tool={"name": []}), "steps[0].tool"),
        (
            lambda d: d["steps"].extend(
                [{"type": "tool_call", "tool": {"name": "grep"}}, {"type": "thought", "tool": 3}]
            ),
            "steps[2].tool",
        ),
        (lambda d: d.pop("metadata"), "metadata"),
        (lambda d: d.update(metadata=[]), "metadata"),
        (lambda d: d["metadata"].pop("success"), "metadata.success"),
        (lambda d: d["metadata"].update(success="yes"), "metadata.success"),
        (lambda d: d["metadata"].update(task_domain=None), "metadata.task_domain"),
        (lambda d: d.update(outcome=None), "outcome"),
        (lambda d: d["outcome"].pop("confidence"), "outcome.confidence"),
        (lambda d: d["outcome"].update(confidence=math.nan), "outcome.confidence"),
        (lambda d: d["outcome"].update(confidence=1.01), "outcome.confidence"),
        (lambda d: d["outcome"].update(confidence=True), "outcome.confidence"),
        (lambda d: d["outcome"].update(confidence="0.5"), "outcome.confidence"),
    ],
)
def test_bad_input_names_the_field(change, path):
    document = trace(["observation"])
    change(document)
    scorer = ValueScorer(lambda text: [1.0], VectorCache(dimensions=1))
    with pytest.raises(InvalidTrace) as raised:
        scorer.score(document)
    assert path == raised.value.path
    assert 0 == len(scorer.cache)


def test_bad_content_names_the_step():
    document = trace(["observation"])
    document["steps"][0]["content"] = 5
    with pytest.raises(InvalidTrace, match=r"steps\[0\].content"):
        ValueScorer(lambda text: [1.0]).score(document)


@pytest.mark.parametrize("thing", [None, 42, "trace", [1]])
def test_what_is_no_trace_is_refused(thing):
    with pytest.raises(InvalidTrace, match="cannot be read as a trace"):
        evaluate_value(thing)


def test_scores_as_json():
    """A score turns into plain JSON values; the fallback is told where there is one."""
    score = ValueScorer().score(trace(["thought"]))
    assert {
        "score": 0.1,
        "complexity": score.complexity,
        "novelty": 0.5,
        "tool_diversity": 0.0,
        "outcome_confidence": 0.8,
        "profile": "default",
        "overrides": ["single_thought"],
        "novelty_fallback": "no embedder",
    } == score.to_dict()


class Batched:
    """An embedder that keeps the size of each batch, and fails for the sizes it is told to."""

    dimensions = 2

    def __init__(self, *failing):
        self.batches, self.failing = [], failing

    def embed(self, texts):
        self.batches.append(len(texts))
        if len(texts) in self.failing:
            raise OSError("too many texts")
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


def test_many_traces_are_embedded_in_batches():
    """At most 256 at a time, before they are scored one by one; the scores are those of `score`."""
    traces = [trace(["thought"], objective="x" * number) for number in range(300)]
    embedder = Batched()
    scores = list(ValueScorer(embedder).score_all(iter(traces)))
    assert [256, *[1] * 256, 44, *[1] * 44] == embedder.batches
    one_by_one = ValueScorer(Batched())
    assert [one_by_one.score(each) for each in traces] == scores


def test_a_batch_that_fails_is_embedded_trace_by_trace():
    traces = [trace(["thought"], objective="x" * number) for number in range(3)]
    assert [None] * 2 == [score.novelty_fallback for score in ValueScorer(Batched(3)).score_all(traces)][1:]
    broken = list(ValueScorer(Batched(1, 3)).score_all(traces))
    assert ["embedder failed: OSError: too many texts"] * 3 == [score.novelty_fallback for score in broken]


def test_a_trace_that_cannot_be_scored_is_an_error_in_its_turn():
    scores = ValueScorer(Batched()).score_all([trace(["thought"]), {"steps": 3}])
    assert "single_thought" in next(scores).overrides
    with pytest.raises(InvalidTrace, match="metadata"):
        next(scores)
    assert [0.1] == [score.score for score in ValueScorer().score_all([trace(["thought"])])]


@pytest.mark.parametrize(
    ("steps", "success", "overrides"),
    [
        (["thought"], True, ("single_thought",)),
        ([("thought", "a")], True, ("single_thought", "low_tool_diversity")),
        (["observation"], True, ()),
        (["error_recovery"] * 2, True, ()),
        (["error_recovery"] * 3, True, ("error_recovery_bonus",)),
        (["error_recovery"] * 3, False, ()),
        ([("error_recovery", "a")] * 3, True, ("error_recovery_bonus", "low_tool_diversity")),
        ([("tool_call", "a"), ("tool_call", "a")], True, ("low_tool_diversity",)),
        ([("tool_call", "a"), ("tool_call", "b")], True, ()),
        ([], True, ()),
    ],
)
def test_overrides(steps, success, overrides):
    """Each override applies exactly when its rule says so, and the score tells which did, in order."""
    assert overrides == ValueScorer().score(trace(steps, success=success)).overrides
