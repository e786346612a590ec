"""The report of a replay reads well in a terminal of 80 columns, and says what its figures cannot show."""

from __future__ import annotations

import math

import grace_kp as gk
from grace_kp import calibrate as cal
from tests.calibrate.gated import decision, document


def report():
    scores = [0.95, 0.8, 0.6, 0.3]
    traces = [
        document(number, decision(scores[number % 4], action="send \x1b[31m" + "x" * 60), correct=number % 3 > 0)
        for number in range(24)
    ]
    return cal.replay([*traces, document(99)], gk.Thresholds(math.inf, 0.9, 0.5), gk.Thresholds(), price_per_hour=60)


def test_the_text_fits_80_columns_and_hides_nothing_dangerous():
    """Names from traces carry no control characters; an infinite threshold reads never."""
    text = str(report())
    assert max(len(line) for line in text.splitlines() if "note:" not in line) <= 80
    assert text.replace("\n", "").isprintable()
    assert "A = never / 0.9 / 0.5" in text
    assert text == report().summary()


def test_the_text_has_each_figure():
    """Levels, questions, errors, time, price, differences, and the first runs that differ."""
    lines = str(report()).splitlines()
    assert "gated actions: 24 decisions of 24 runs, 16 right, 8 wrong" in lines
    for begins in (
        "  silent ",
        "  questions ",
        "  errors let through ",
        "  errors caught ",
        "  needless questions ",
        "  reviewer hours ",
    ):
        assert any(line.startswith(begins) for line in lines)
    assert any(line.startswith("    questions, of all decisions     +25.0%  (+8.3% to +4") for line in lines)
    assert any(
        line.startswith("    00000001  send") and line.endswith("confirm / notify  0.800 / 0.800  right")
        for line in lines
    )


def test_a_difference_without_spread_has_no_interval():
    """Too few runs, or runs that all differ alike, show no certainty."""
    few = [document(number, decision(0.8)) for number in range(9)]
    alike = [document(number, decision(0.8)) for number in range(30)]
    for traces in (few, alike):
        found = cal.replay(traces, gk.Thresholds(0.9, 0.9, 0.4), gk.Thresholds()).actions.differences["asked"]
        assert (1.0, None, None) == (found.value, found.low, found.high)


def test_notes_say_what_the_figures_rest_on():
    """Missing labels, several decisions of a run, and labels that exist for the asked ones only."""
    several = [document(1, decision(0.5), decision(0.5))]
    assert any(
        "no labels: errors cannot be counted" in note for note in cal.replay(several, gk.Thresholds()).actions.notes
    )
    assert any("2 decisions come from 1 run;" in note for note in cal.replay(several, gk.Thresholds()).actions.notes)
    asked = [document(1, decision(0.5), correct=True), document(2, decision(0.95, "silent"))]
    assert any(
        "recorded: 100% of the asked decisions have a label, and 0% of the others" in note
        for note in cal.replay(asked, gk.Thresholds()).actions.notes
    )
