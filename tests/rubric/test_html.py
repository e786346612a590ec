"""A comparison of two variants in a notebook."""

from __future__ import annotations

import pytest

from grace_kp.rubric import Evidence, Interval, Recommendation
from tests.pages.reading import Elements, problems

HOSTILE = '<img src=x onerror=alert(1)>"&\u202e'


def evidence(categories):
    interval = Interval(-0.5, 1.25)
    return Evidence(mean_difference=interval, p_value=0.0004, pairs=12, category_differences=dict.fromkeys(categories, interval), further_runs=20)  # fmt: skip


@pytest.mark.parametrize(("choice", "words"), [("best", "the current best"), ("variant", "the variant")])
def test_a_comparison_says_what_to_continue_with(choice, words):
    """And why, with its evidence, its regressions and what weakens it."""
    found = Recommendation(choice, "it is steadier", 0.75, 0.3, {"rate": 0.3}, None, ("few runs",))._repr_html_()
    text = Elements(found).text
    for part in (
        f"Continue with {words}: it is steadier.",
        "few runs.",
        "+0.75",
        "+0.30",
        "regression in rate",
        "−0.30",
    ):
        assert part in text
    assert [] == problems(found)


def test_every_text_is_text_and_the_size_is_bounded():
    """Names of categories may hold anything."""
    names = [f"{place} {HOSTILE}" for place in range(2_000)]
    found = Recommendation("best", HOSTILE, 0.1, 0.1, dict.fromkeys(names, 0.2), evidence(names), (HOSTILE,))._repr_html_()  # fmt: skip
    assert [] == problems(found)
    assert "categories that are not shown" in found
    assert "&lt; 0.001" in found
    assert len(found) < 150_000
