"""Confidence, value score, results of scorers and tokens are shown with their parts, whatever form they have."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

import grace_kp as gk
from grace_kp.cli._figures import MAX_SCORES, items, mapping, number, put_figures, put_tokens
from tests.cli.documents import document


def figures(*, full=False, **grace):
    file = io.StringIO()
    trace = gk.ReasoningTrace.model_validate(document("1", **grace))
    put_figures(Console(file=file, width=100), trace, full=full)
    return [line.split() for line in file.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (mapping, {"a": 1}, {"a": 1}), (mapping, [1], {}), (items, [1], [1]), (items, "ab", []),
        (number, 1.5, 1.5), (number, 3, 3), (number, True, None), (number, "3", None),
    ],
)  # fmt: skip
def test_values_of_another_type_count_as_absent(read, value, expected):
    """Foreign traces may hold anything."""
    assert expected == read(value)


def test_the_confidence_with_its_parts():
    """A part without evidence has no figure; the run's own confidence stands above the computed one."""
    confidence = {
        "score": 0.7,
        "level": "medium",
        "breakdown": {"tool_success": 1.0, "coverage": 0.5, "search": 0.0, "agreement": None},
        "not_evaluated": ["coverage", "search", "agreement"],
        "not_scored": ["search"],
        "fallbacks": {"agreement": 0.5},
        "own": 0.5,
    }
    lines = figures(confidence=confidence, full=True)
    assert ["confidence", "0.500"] == lines[0][:2]
    assert "medium" == lines[0][-1]
    assert ["tool_success", "1.000"] == lines[1][:2]
    assert ["coverage", "not", "evaluated"] == lines[2]
    assert ["search", "not", "scored"] == lines[3]
    assert ["agreement", "fallback", "0.5"] == lines[4]
    assert ["computed", "0.700;", "the", "run", "stated", "its", "own"] == lines[5]
    brief = figures(confidence=confidence)
    assert [*lines[:2], lines[4], ["2", "factors", "not", "evaluated;", "--full", "shows", "all"], lines[5]] == brief[
        :5
    ]


def test_the_largest_contributions_of_a_learned_confidence():
    """Six features with their signs, the rest as one sum, and each difference from the runs that it was learned from."""
    contributions = {f"feature_{number}": (-1) ** number * number / 10 for number in range(9)}
    confidence = {
        "score": 0.8,
        "contributions": {
            "intercept": 9.5,
            **contributions,
            "tool_error_rate_of_the_last_ten_calls": -2.5,
            "absent": None,
        },
        "mismatches": ["the model is now b; the profile was fitted on a"],
    }
    file = io.StringIO()
    put_figures(
        Console(file=file, width=80), gk.ReasoningTrace.model_validate(document("1", confidence=confidence)), full=False
    )
    shown = file.getvalue().splitlines()
    assert max(map(len, shown)) <= 80
    lines = [line.split() for line in shown]
    assert "largest contributions, in log-odds: + raises the confidence, - lowers it" == shown[1].strip()
    assert ["tool_error_rate_of_the_last_t…", "-2.50"] == lines[2]
    assert [["feature_8", "+0.80"], ["feature_7", "-0.70"], ["feature_6", "+0.60"]] == lines[3:6]
    assert ["3", "others", "together", "-0.20"] == lines[8]
    assert "  does not fit        the model is now b; the profile was fitted on a" == shown[9]


def test_a_fallback_is_named_as_such():
    """A formula that stands in for a learned profile does not look like what was learned."""
    lines = figures(confidence={"score": 0.7, "fallback": True, "reason": "The profile failed. No evidence."})
    assert ["The", "profile", "failed.", "No", "evidence."] == lines[1]


def test_the_value_score_with_its_overrides():
    """With `full`; a novelty that was not measured says so, and a rule states its effect."""
    rules = ["low_tool_diversity", "single_thought", "error_recovery_bonus", "new"]
    value = {"complexity": 0.25, "novelty": 0.5, "novelty_fallback": "no embedder", "overrides": rules}
    lines = figures(value=value, full=True)
    assert ["complexity", "0.250"] == lines[2][:2]
    assert ["not", "measured"] == lines[3][-2:]
    words = "rules only one tool: -0.1, a single thought: 0.1, more than two recoveries: +0.1, new"
    assert words == " ".join(" ".join(line) for line in lines[4:])
    assert lines[:2] == figures(value=value)


def test_results_of_scorers():
    """Pass or fail is a word, so that it reads without colour; a scorer without a score gives its reason."""
    lines = figures(
        scores=[
            {"name": "a", "score": 0.5, "passed": False, "diagnosis": ["too long"]},
            {"name": "b", "skipped": "no reference"},
        ]
    )
    assert ["a", "0.500", "fails"] == [lines[2][0], lines[2][1], lines[2][-1]]
    assert [["too", "long"], ["b", "not", "scored:", "no", "reference"]] == lines[3:]


def test_very_many_scores_are_counted():
    """`full` shows all."""
    scores = [{"name": "a", "score": 0.5}] * (MAX_SCORES + 5)
    assert "and 5 more scores; --full shows all" == " ".join(figures(scores=scores)[-1])
    assert MAX_SCORES + 7 == len(figures(scores=scores, full=True))


def test_no_tokens_no_table():
    """A run without model calls has none."""
    file = io.StringIO()
    put_tokens(Console(file=file, width=80), {})
    assert "" == file.getvalue()
