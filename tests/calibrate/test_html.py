"""Figures of a confidence, and thresholds with their promise, in a notebook."""

from __future__ import annotations

import random

from grace_kp.calibrate import assess, risk_thresholds
from tests.pages.reading import Elements, problems

HOSTILE = '<img src=x onerror=alert(1)>"&\u202e'


def samples(count=400):
    draw = random.Random(3)
    confidence = [draw.random() for _ in range(count)]
    return confidence, [draw.random() < value for value in confidence]


def test_an_assessment_shows_figures_with_intervals_and_reliability():
    """In words and as bars, and the figures of each group."""
    confidence, correct = samples()
    found = assess(confidence, correct, groups=["a", HOSTILE] * 200)
    html = found._repr_html_()
    text = Elements(html).text
    pair = found.intervals["auroc"]
    for words in (
        f"{found.auroc:.2f} ({pair[0]:.2f} to {pair[1]:.2f})",
        "calibration error",
        "0.0 to 0.1",
        "% correct",
        "group",
        "<img src=x",
    ):
        assert words in text
    assert [] == problems(html)
    assert "img" not in Elements(html).tags


def test_an_assessment_of_samples_that_are_all_right_has_no_auroc():
    """A dash stands for it."""
    assert "–" in Elements(assess([0.5, 0.75], [True, True])._repr_html_()).text


def test_many_groups_are_cut_with_a_note():
    """So that the output stays small."""
    html = assess([0.5] * 2_400, [True, False] * 1_200, groups=[place // 2 for place in range(2_400)])._repr_html_()
    assert "1,100 more rows are not shown." in html
    assert len(html) < 100_000


def test_thresholds_show_the_promise_and_what_the_sample_shows():
    """Levels that are never used say so, with the reason."""
    confidence = [0.9] * 300 + [0.3] * 100
    correct = [True] * 299 + [False] + [True, False] * 50
    found = risk_thresholds(confidence, correct, {"silent": 0.001, "notify": 0.05})
    html = found._repr_html_()
    text = Elements(html).text
    for words in (
        "The selective promise",
        "silent",
        "never",
        "notify",
        f"{found.thresholds.notify:.3f}",
        "75.0%",
        "1 of 300",
        "tested on 400 independent labels",
        *found.notes,
    ):
        assert words in text
    assert [] == problems(html)


def test_an_overall_promise_is_stated_as_one():
    """It bounds another share."""
    html = risk_thresholds([0.9] * 100, [True] * 100, {"silent": 0.1}, promise="overall")._repr_html_()
    assert "The overall promise" in html
