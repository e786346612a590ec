"""The diagrams of a calibration, also where there is little to draw."""

from __future__ import annotations

import pytest

from grace_kp import calibrate as cal
from grace_kp.calibrate._diagrams import reliability, risk_and_coverage
from tests.calibrate.examples import labelled_runs

pytest.importorskip("matplotlib", reason="needs the extra calibration")


def test_chosen_thresholds_are_marked_with_their_levels():
    """Next to their bars, and the promised risks at the edge."""
    found = cal.calibrate_runs(
        labelled_runs(1_000, share=0.9), cal.Promise(risks={"notify": 0.1, "confirm": 0.4}, moment="end")
    )
    picture = risk_and_coverage(found)
    for each in found.levels:
        assert f"{each.level} {each.risk:g}" in picture
        assert (each.threshold is None) == (f">{each.level} from " not in picture)
    assert "share wrong, of these" in picture


def test_a_confidence_that_never_varies_can_be_drawn():
    """One point instead of a curve, and one bin."""
    labelled = labelled_runs(200)
    alike = cal.Labels(
        traces=[labelled.traces[0]] * 200, labels=labelled.labels, weights=labelled.weights, sources=labelled.sources,
        groups=[str(number) for number in range(200)],
    )  # fmt: skip
    found = cal.calibrate_runs(alike, cal.Promise(risks={"silent": 0.05}, kind="overall"))
    assert "share wrong, of all" in risk_and_coverage(found)
    assert "silent is never used" in risk_and_coverage(found)
    assert "1.00 correct" not in reliability(found)
