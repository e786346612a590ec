"""Records: what a store finds them by, and names of scorers that not every store can hold."""

from __future__ import annotations

import dataclasses

import pytest

from grace_kp.store import open_store
from grace_kp.store._record import scorer_name
from tests.store.samples import ids, record


@pytest.mark.parametrize(
    ("name", "stored"),
    [("accuracy", "accuracy"), ("Größe 精度", "Größe 精度"), ("a\0b", "a b"), ("\ud800", "?"), ("", "")],
)
def test_a_name_of_a_scorer_has_a_form_for_every_store(name, stored):
    """SQLite takes no NUL and no half of a surrogate pair; other names stay."""
    assert stored == scorer_name(name)


@pytest.mark.parametrize("url", ["memory:", "sqlite"])
@pytest.mark.parametrize("name", ["accuracy", "a\0b", "\ud800"])
def test_a_score_is_found_by_the_name_that_it_was_recorded_under(url, name, tmp_path):
    """Also where the store holds the name in another form."""
    store = open_store(f"sqlite:///{tmp_path}/t.db" if url == "sqlite" else url)
    store.put([record(1, scores=((name, 0.5, True),)), record(2)])
    assert [1] == ids(store.query(scorer=name))
    store.close()


def test_a_record_does_not_change():
    """The writer's queue and the store share it."""
    item = record(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        item.score = 1.0
    assert item == record(1)
