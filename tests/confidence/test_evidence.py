"""From a run to its confidence factors."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import pickle
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.confidence import (
    ConfidenceCalculator,
    ConfidenceFactors,
    RunEvidence,
    SearchResults,
    evidence_of_calls,
    factors_from_trace,
    read_results,
)
from grace_kp.trace import ReasoningTrace
from tests.value.traces import trace as trace_of


def hits(scores=(), sources=(), count=None):
    return SearchResults(count=len(scores) if count is None else count, scores=tuple(scores), sources=tuple(sources))


def gathered(*finished, searches=()):
    evidence = RunEvidence()
    for ok in finished:
        evidence.call_finished("ok" if ok else "error", None)
    for found in searches:
        evidence.search_finished(found)
    return evidence.factors()


def trace(kinds, grace=None):
    document = trace_of(kinds)
    return document if grace is None else document | {"grace": grace}


def test_tools():
    factors = gathered(True, False, True, True)
    assert (4, 3, 0.75) == (factors.tool_execution_count, factors.tool_success_count, factors.tool_success_rate)
    assert not factors.is_search_step


def test_a_retriever_is_a_tool_and_a_search():
    factors = gathered(True, searches=[hits([0.2, 0.8], ["a", "b"])])
    assert (1, 1) == (factors.tool_execution_count, factors.tool_success_count)
    assert (2, 0.5, 0.8) == (factors.search_result_count, factors.search_avg_score, factors.search_max_score)
    assert 0.09 == pytest.approx(factors.search_score_variance)
    assert factors.search_made


def test_results_without_scores_are_not_judged():
    factors = gathered(True, searches=[hits(count=3, sources=["a"])])
    assert (3, False, 1) == (factors.search_result_count, factors.search_made, factors.source_count)
    assert factors.search_not_scored
    score = ConfidenceCalculator("strict").calculate(factors)
    assert (1.0, ("search_quality",)) == (score.score, score.not_scored)


def test_results_without_scores_do_not_replace_an_empty_search():
    """A search that found nothing stays a 0 in `strict`, and a scored one its score."""
    empty, unscored = hits(), hits(count=3)
    for searches, made in (([empty, unscored], True), ([hits([0.1]), unscored], True), ([unscored], False)):
        factors = gathered(True, searches=searches)
        assert (made, not made) == (factors.search_made, factors.search_not_scored)
    alone, both = (gathered(True, searches=found) for found in ([empty], [empty, unscored]))
    strict = ConfidenceCalculator("strict").calculate
    assert strict(alone).breakdown["search_quality"] == strict(both).breakdown["search_quality"] == 0.0


@pytest.mark.parametrize(
    ("result", "scores", "expected"),
    [
        (["a"], None, 1),
        ([{"text": "a"}], "similarity", 1),
        ([{"text": "a"}], "none", 0),
        ([{"score": 0.5}, {"text": "a"}], None, 0),
        ([{"score": None}], None, 0),
        (42, None, 0),
        ([], None, 0),
    ],
)
def test_searches_without_scores_are_counted(result, scores, expected):
    first, second = RunEvidence(), RunEvidence()
    for evidence in (first, second):
        evidence.search_finished(read_results(result, scores))
    first.merge(second)
    assert (2 * expected, expected) == (first.unscored_searches, second.unscored_searches)


def test_sources_are_distinct_over_all_searches():
    one = gathered(True, searches=[hits(sources=["a"], count=1), hits(sources=["a"], count=1)])
    assert (1, 0.0, False) == (one.source_count, one.source_agreement, one.agreement_evaluated)
    two = gathered(True, searches=[hits(sources=["a"], count=1), hits(sources=["b"], count=1)])
    assert (2, 0.5, False) == (two.source_count, two.source_agreement, two.agreement_evaluated)


searches = st.lists(
    st.builds(hits, st.lists(st.floats(0, 1), max_size=8), st.lists(st.sampled_from("abcd"), max_size=3)), max_size=6
)


@given(searches)
def test_statistics_over_all_scores(found):
    scores = [score for search in found for score in search.scores]
    factors = gathered(searches=found)
    assert sum(search.count for search in found) == factors.search_result_count
    if scores:
        assert max(scores) == factors.search_max_score
        assert statistics.fmean(scores) == pytest.approx(factors.search_avg_score, abs=1e-12)
        assert statistics.pvariance(scores) == pytest.approx(factors.search_score_variance, abs=1e-12)
    assert len({source for search in found for source in search.sources}) == factors.source_count


@given(searches, searches, st.lists(st.booleans()), st.lists(st.booleans()))
def test_merging_is_having_seen_both(first, second, tools, more):
    merged, other = RunEvidence(), RunEvidence()
    for evidence, oks, found in ((merged, tools, first), (other, more, second)):
        for ok in oks:
            evidence.call_finished("ok" if ok else "error", None)
        for search in found:
            evidence.search_finished(search)
    merged.merge(other)
    seen, together = gathered(*tools, *more, searches=[*first, *second]), merged.factors()
    for name in ("search_avg_score", "search_score_variance"):
        assert getattr(seen, name) == pytest.approx(getattr(together, name), abs=1e-9)
    for name in ("search_result_count", "search_max_score", "tool_execution_count", "tool_success_count"):
        assert getattr(seen, name) == getattr(together, name)
    assert (seen.source_count, seen.search_made) == (together.source_count, together.search_made)


@pytest.mark.parametrize(
    ("kinds", "executed", "succeeded"),
    [
        ("co", 1, 1),
        ("cor", 1, 0),
        ("cr", 1, 0),
        ("cotr", 1, 1),
        ("coro", 1, 0),
        ("corcor", 2, 0),
        ("ccoor", 2, 1),
        ("ccoro", 2, 1),
        ("or", 0, 0),
    ],
)
def test_foreign_traces(kinds, executed, succeeded):
    """Without notes on its calls, a tool_call failed exactly if it or its observation is followed by a recovery."""
    names = {"t": "thought", "c": "tool_call", "o": "observation", "r": "error_recovery"}
    document = trace([names[kind] for kind in kinds])
    factors = factors_from_trace(document)
    assert (executed, succeeded) == (factors.tool_execution_count, factors.tool_success_count)
    assert factors == factors_from_trace(ReasoningTrace.model_validate(document))


def test_recorded_traces():
    """The notes on calls are read: how each ended, and what the searches found."""
    calls = [
        {"call_id": "c0", "name": "a", "status": "ok"},
        {"call_id": "c1", "name": "b", "status": "error"},
        {
            "call_id": "c2",
            "name": "s",
            "status": "ok",
            "search": {"count": 2, "scores": [0.5, 0.7], "sources": ["x", "y"]},
        },
        {"call_id": "c3", "name": "s", "status": "ok", "search": {"count": 0}},
        {"call_id": "c4", "name": "d", "status": "unfinished"},
        {"call_id": "c5", "name": "d", "status": "closed"},
        {"call_id": "c6", "name": "d", "status": "cancelled"},
    ]
    document = trace(["tool_call"] * 7, {"status": "completed", "calls": calls})
    factors = factors_from_trace(document)
    assert (5, 3) == (factors.tool_execution_count, factors.tool_success_count)
    assert (2, 0.7, 2) == (factors.search_result_count, factors.search_max_score, factors.source_count)
    assert factors == factors_from_trace(ReasoningTrace.model_validate(document))


@pytest.mark.parametrize(
    "calls",
    [
        [None, 3, "x", [], {}],
        [{"status": ["ok"]}],
        [{"status": "ok", "search": 3}],
        [{"status": "ok", "search": {"count": -1, "scores": [2.0, "a", None], "sources": [1, None, ""]}}],
        [{"status": "ok", "search": {"count": True, "scores": "abc", "sources": {"a": 1}}}],
    ],
)
def test_garbled_notes_make_no_evidence(calls):
    """Whatever stands in the notes of somebody else's trace, the factors are valid and no score is invented."""
    factors = factors_from_trace(trace(["tool_call"], {"calls": calls}))
    assert (0.0, 0) == (factors.search_max_score, factors.source_count)


hit_scores = st.lists(st.floats(0, 1), min_size=1, max_size=8)
BAD = [math.nan, -1, 5, "0.1", None, math.inf]


def confidence_of(found, profile, *oks):
    evidence = RunEvidence()
    for ok in oks:
        evidence.call_finished("ok" if ok else "error", None)
    evidence.search_finished(read_results(found))
    return ConfidenceCalculator(profile).calculate(evidence.factors()).score


@given(hit_scores, st.data(), st.lists(st.booleans(), max_size=3))
def test_in_strict_an_unusable_score_never_helps(scores, data, oks):
    results = [{"score": score, "source": str(number)} for number, score in enumerate(scores)]
    before = confidence_of(results, "strict", *oks)
    for number in data.draw(st.sets(st.integers(0, len(scores) - 1))):
        results[number] = results[number] | {"score": data.draw(st.sampled_from(BAD))}
        after = confidence_of(results, "strict", *oks)
        assert after <= before + 0.001  # scores are rounded to three decimals
        before = min(before, after)


@given(hit_scores, st.integers(1, 5))
def test_in_strict_an_unusable_score_counts_as_0(scores, more):
    """Results with unusable scores are worth as much as results with a score of 0."""
    usable = [{"score": score} for score in scores]
    zeros = confidence_of(usable + [{"score": 0.0}] * more, "strict", True)
    assert zeros == pytest.approx(confidence_of(usable + [{"score": None}] * more, "strict", True), abs=0.001)


@pytest.mark.parametrize("bad", BAD)
def test_a_search_with_nothing_but_unusable_scores(bad):
    results = [{"score": bad, "source": "a"}]
    assert confidence_of([{"score": 0.0, "source": "a"}], "strict", True) == confidence_of(results, "strict", True)
    assert 1.0 == confidence_of(results, "grace", True)


@given(searches, st.lists(st.sampled_from([[{"score": None}], [{"score": 0.5}], ["a"], 42]), max_size=4))
def test_what_a_trace_records_gives_the_same_factors(found, more):
    every = [*found, *map(read_results, more), read_results(["b"], "none")]
    direct = gathered(*[True] * len(every), searches=every)
    calls = [
        {
            "status": "ok",
            "search": {
                "count": hits.count,
                "scores": list(hits.scores),
                "sources": list(hits.sources),
                "unusable_scores": hits.unusable_scores,
                "unreadable": hits.unreadable,
                "kind": hits.kind,
            },
        }
        for hits in every
    ]
    evidence = evidence_of_calls(calls)
    assert sum(hits.unusable_scores for hits in every) == evidence.unusable_scores
    assert sum(hits.unreadable for hits in every) == evidence.unread_searches
    assert sum(hits.lacks_scores for hits in every) == evidence.unscored_searches
    assert direct == evidence.factors()


def test_unusable_scores_of_somebody_elses_trace_count():
    evidence = evidence_of_calls([{"status": "ok", "search": {"count": 2, "scores": [0.5, 7, None]}}])
    assert (2, 3) == (evidence.unusable_scores, evidence.factors().search_result_count)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("search"), st.integers(0, 60), st.integers(0, 20)),
            st.tuples(st.just("words"), st.integers(0, 60), st.none()),
        ),
        max_size=60,
    )
)
def test_the_worst_search_is_never_forgotten_though_few_are_kept(steps):
    evidence, parts = RunEvidence(), [RunEvidence(), RunEvidence()]
    for number, (kind, at, score) in enumerate(steps):
        for target in (evidence, parts[number % 2]):
            if kind == "words":
                target.user_spoke(at)
            else:
                target.search_finished(SearchResults(count=1, scores=(score / 20,)), "search", at)
    merged = RunEvidence()
    for part in parts:
        merged.merge(part)
    searches = [(at, score / 20) for kind, at, score in steps if kind == "search"]
    words = max([at for kind, at, _ in steps if kind == "words"], default=-1)
    since = [score for at, score in searches if at >= words] or [score for _, score in searches]
    for seen in (evidence, merged):
        found = seen.pessimistic(seen.factors()).search_max_score
        assert len(seen._worst) <= 16
        assert found <= min(since, default=0)
        if len({score for _, score in searches}) <= 8:
            assert found == min(since, default=0)


actions = st.lists(
    st.tuples(st.sampled_from(("succeed", "fail", "search", "words")), st.sampled_from("ab"), st.integers(0, 9)),
    max_size=12,
)


def add(evidence, steps):
    for at, (kind, name, score) in enumerate(steps):
        if kind == "words":
            evidence.user_spoke(at)
            continue
        evidence.call_finished("error" if kind == "fail" else "ok", None, name, at)
        if kind == "search":
            evidence.search_finished(SearchResults(count=1, scores=(score / 9,), sources=(f"s{score}",)), name, at)
    return evidence


@given(actions, actions)
def test_a_snapshot_stays_as_it_is_while_its_original_goes_on(before, after):
    evidence = add(RunEvidence(), before)
    snapshot = evidence.snapshot()
    add(evidence, after)
    assert add(RunEvidence(), before).readings() == snapshot.readings()


def test_what_is_added_to_a_snapshot_does_not_change_its_original():
    evidence = add(RunEvidence(), [("search", "a", 3), ("succeed", "b", 0)])
    snapshot = evidence.snapshot()
    for source in ("s3", "s4", "s4"):
        snapshot.search_finished(SearchResults(count=1, scores=(0.5,), sources=(source,)), "b")
    assert (1, 2) == (evidence.factors().source_count, snapshot.factors().source_count)
    counts = [each.without_idle_calls(each.factors()).tool_execution_count for each in (evidence, snapshot)]
    assert [1, 2] == counts
    snapshot.call_finished("error", None, "b", 9)
    assert (False, True) == (evidence.has_failed, snapshot.has_failed)
    assert (2, 3) == (evidence.call_count, snapshot.call_count)
    evidence.call_finished("ok", None, "b", 10)
    with pytest.raises(ValueError, match="a snapshot cannot be merged"):
        evidence.merge(snapshot)


COUNTS = ("search_result_count", "source_count", "tool_execution_count", "tool_success_count")
UNITS = (
    "search_avg_score",
    "search_max_score",
    "source_agreement",
    "llm_self_confidence",
    "tool_success_rate",
    "query_coverage",
)
FLAGS = ("search_made", "self_evaluated", "agreement_evaluated", "coverage_evaluated")


def test_defaults():
    """Nothing given is the defaults of the design, and nothing made."""
    unmade = (False,) * 4
    expected = (0, 0.0, 0.0, 1.0, 0.0, 0, 0.5, 1.0, 0, 0, 0.0, False, *unmade, None, None)
    assert expected == dataclasses.astuple(ConfidenceFactors())


def test_the_signature_shows_the_defaults():
    shown = str(inspect.signature(ConfidenceFactors))
    assert "search_score_variance: 'float' = 1.0" in shown
    assert [field.name for field in dataclasses.fields(ConfidenceFactors)] == list(
        inspect.signature(ConfidenceFactors).parameters
    )


def test_positions_follow_the_design():
    given = (3, 0.4, 0.5, 0.1, 0.7, 2, 0.8, 0.75, 4, 3, 0.6, True)
    assert given == dataclasses.astuple(ConfidenceFactors(*given))[:12]


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"search_result_count": 0}, "search_made"),
        ({"search_avg_score": 0.0}, "search_made"),
        ({"search_max_score": 0.0}, "search_made"),
        ({"search_score_variance": 1.0}, "search_made"),
        ({"is_search_step": True}, "search_made"),
        ({"llm_self_confidence": 0.5}, "self_evaluated"),
        ({"source_agreement": 0.0}, "agreement_evaluated"),
        ({"query_coverage": 0.0}, "coverage_evaluated"),
        ({"source_count": 3, "tool_execution_count": 1}, None),
        ({"is_search_step": False}, None),
    ],
)
def test_what_is_given_was_made(given, made):
    factors = ConfidenceFactors(**given)
    assert {flag: flag == made for flag in FLAGS} == {flag: getattr(factors, flag) for flag in FLAGS}


def test_a_flag_wins_over_what_is_given():
    factors = ConfidenceFactors(llm_self_confidence=0.5, self_evaluated=False, coverage_evaluated=True)
    assert (False, True) == (factors.self_evaluated, factors.coverage_evaluated)
    assert ConfidenceFactors(query_coverage=0.4, coverage_evaluated=None).coverage_evaluated is True


def test_replacing_a_factor_keeps_what_was_made():
    factors = ConfidenceFactors(llm_self_confidence=0.9)
    assert ConfidenceFactors(llm_self_confidence=0.9, source_count=2) == dataclasses.replace(factors, source_count=2)
    assert not dataclasses.replace(factors, source_count=2).search_made


def test_records_compare_hash_copy_and_pickle():
    factors = ConfidenceFactors(3, llm_self_confidence=0.9)
    assert factors == ConfidenceFactors(search_result_count=3, llm_self_confidence=0.9)
    assert hash(factors) == hash(copy.copy(factors))
    assert factors == pickle.loads(pickle.dumps(factors))
    assert factors != ConfidenceFactors(3, llm_self_confidence=0.9, self_evaluated=False)
    assert "search_result_count=3" in repr(factors)
    with pytest.raises(dataclasses.FrozenInstanceError):
        factors.source_count = 1  # type: ignore[misc]


UNUSABLE_FACTORS = (
    (COUNTS, [-1, 1.0, 1.5, math.nan, "1", None, True, [1], 10**3000 * -1], "an integer >= 0"),
    (UNITS, [-0.001, 1.001, math.nan, math.inf, -math.inf, "0.5", None, True, 10**400, 1j], "a number from 0 to 1"),
    (["search_score_variance"], [-0.001, math.nan, math.inf, "0.5", None, False, 10**400], "a finite number >= 0"),
    (["search_avg_with_unusable"], [-0.1, 1.1, math.nan, "0.5", True], "a number from 0 to 1"),
    (["search_variance_with_unusable"], [-0.1, math.inf, "0.5", True], "a finite number >= 0"),
    (["is_search_step", *FLAGS], [1, "yes", 0.0], "true or false"),
)


@pytest.mark.parametrize(
    ("name", "bad", "allowed"),
    [(name, bad, allowed) for names, values, allowed in UNUSABLE_FACTORS for name in names for bad in values],
)
def test_bad_factors_are_refused_by_name(name, bad, allowed):
    with pytest.raises(ValueError, match=f"^{name} must be {allowed}"):
        ConfidenceFactors(**{name: bad})


def test_no_more_successes_than_executions():
    with pytest.raises(ValueError, match="tool_success_count must not exceed tool_execution_count"):
        ConfidenceFactors(tool_execution_count=2, tool_success_count=3)


def test_numbers_of_numpy_are_numbers():
    factors = ConfidenceFactors(
        search_result_count=np.int64(3), search_avg_score=np.float32(0.5), search_max_score=np.float64(0.5)
    )
    assert [int, float, float] == [
        type(value) for value in (factors.search_result_count, factors.search_avg_score, factors.search_max_score)
    ]
    assert 5.0 == ConfidenceFactors(search_score_variance=5).search_score_variance
