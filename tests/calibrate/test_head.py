"""A regression at one moment: its parts add up to what it predicts."""

from __future__ import annotations

import math

import pytest

from grace_kp import calibrate as cal
from tests.calibrate.examples import drawn_runs


@pytest.fixture(scope="module")
def profile():
    return cal.fit(*drawn_runs(150))


@pytest.mark.parametrize("moment", ["end", "action"])
def test_the_parts_add_up_to_the_log_odds(profile, moment):
    """Intercept and contributions give the log-odds, and with the calibration those of the confidence."""
    for trace in drawn_runs(20, seed=7)[0]:
        found = profile.explain(trace, moment=moment)
        assert found.logit == math.fsum([found.intercept, *(part.contribution for part in found.parts)])
        assert found.confidence == profile.predict(trace, moment=moment)
        assert found.confidence == pytest.approx(1 / (1 + math.exp(-found.logit - found.calibration)), abs=1e-12)


def test_a_part_shows_the_value_of_its_feature(profile):
    """Values are those of `features`, and 1 or 0 for a tool."""
    trace = drawn_runs(1)[0][0]
    known = cal.features(trace)
    for part in profile.explain(trace).parts:
        if part.name.startswith("tool:"):
            assert part.value == float(part.name[5:] in known.tools)
        elif not part.name.startswith("missing:"):
            assert part.value == known.as_dict()[part.name]
