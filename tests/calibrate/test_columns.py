"""How features become the columns of a regression."""

from __future__ import annotations

import numpy as np
import pytest

from grace_kp.calibrate import FEATURES, Features
from grace_kp.calibrate._head import Columns

STEPS, SEARCH, STATED = (FEATURES.index(name) for name in ("steps", "search_quality", "stated"))


def matrix(rows=40):
    values = np.full((rows, len(FEATURES)), np.nan)
    values[:, STEPS] = np.arange(rows)
    values[::2, SEARCH] = 0.5
    values[::4, SEARCH] = 0.7
    return values


TOOLS = [("find", "rare") if number == 0 else ("find",) if number % 3 else () for number in range(40)]


def test_a_column_for_each_feature_each_lack_and_each_frequent_tool():
    """Features that never vary or were never measured, and tools that few runs called, have none."""
    columns = Columns.fit(matrix(), TOOLS)
    assert ("steps", "search_quality", "missing:search_quality", "tool:find") == columns.names


def test_columns_have_mean_0_and_spread_1():
    """A missing value counts as the mean, so that it adds nothing."""
    rows = Columns.fit(matrix(), TOOLS).rows(matrix(), TOOLS)
    assert np.allclose(0, rows.mean(axis=0))
    assert np.allclose(1, rows.std(axis=0))
    assert np.allclose(0, rows[1::2, 1])


def test_values_beyond_the_usual_ones_count_as_the_outermost():
    """A run of a million steps is predicted like the longest twentieth of the fitted runs."""
    columns = Columns.fit(matrix(), TOOLS)
    longest, endless = (
        columns.row(Features("end", tuple(value if place == STEPS else None for place in range(len(FEATURES)))))
        for value in (38.5, 1e300)
    )
    assert np.array_equal(longest, endless)
    assert np.isfinite(endless).all()


def test_columns_are_rebuilt_from_their_json_form():
    """The same names and figures give the same rows."""
    columns = Columns.fit(matrix(), TOOLS)
    fields = columns.to_list()
    figures = np.array([[item[name] for item in fields] for name in ("fill", "centre", "scale", "low", "high")])
    again = Columns.build([item["name"] for item in fields], figures)
    assert np.array_equal(columns.rows(matrix(), TOOLS), again.rows(matrix(), TOOLS))


@pytest.mark.parametrize("name", ["unheard_of", "missing:unheard_of", "other:steps", ""])
def test_an_unknown_column_is_refused(name):
    """A profile of another version may use features that this one does not have."""
    with pytest.raises(ValueError, match="no feature of this version"):
        Columns.build([name], np.zeros((5, 1)))
