"""Rows of a list, as the index keeps them."""

from __future__ import annotations

import dataclasses
import json

from grace_kp.store import RunRow
from grace_kp.store._catalog_facts import SHOWN
from grace_kp.store._catalog_search import row_of


def test_every_field_of_a_row_is_kept():
    """Position, id and whether there is a label stand beside them."""
    assert ["position", "id", *SHOWN, "labelled"] == [field.name for field in dataclasses.fields(RunRow)]


def test_what_only_figures_need_is_left_out():
    """It stands at the end."""
    values = {name: name for name in SHOWN} | {"tags": ["x"]}
    row = row_of(5, "kp:trace:a", json.dumps([*values.values(), 1, 2, {}, {}]), 1)
    assert RunRow(position=5, id="kp:trace:a", labelled=True, **{**values, "tags": ("x",)}) == row
