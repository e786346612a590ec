"""Plans of queries: the smallest set of runs is walked."""

from __future__ import annotations

import pytest

from grace_kp.store import CatalogQuery, open_store
from grace_kp.store._catalog import Follower
from grace_kp.store._catalog_files import place_of
from grace_kp.store._catalog_search import plan_of
from tests.store.listed import run
from tests.store.samples import put


@pytest.fixture
def place():
    store = open_store("memory:")
    put(
        store,
        *(
            run(
                number,
                agent="rare" if number == 0 else "frequent",
                user=f"user-{number % 4}",
                tags=["x"] if number < 10 else [],
            )
            for number in range(40)
        ),
    )
    opened = place_of(store)
    follower = Follower(opened)
    while not follower.advance():
        pass
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("conditions", "walked"),
    [
        ({}, 40), ({"agent": "frequent"}, 39), ({"agent": "frequent", "min_score": 0.1}, 40), ({"agent": "rare"}, 1), ({"user": "user-1"}, 10), ({"user": "user-1", "agent": "rare"}, 1),
        ({"tags": ["x"], "agent": "frequent"}, 10), ({"min_score": 0.1}, 40),
    ],
)  # fmt: skip
def test_the_rarest_name_is_walked(place, conditions, walked):
    """Frequent values of a column are compared in passing."""
    with place.reading() as connection:
        assert walked == plan_of(CatalogQuery(**conditions), connection).driver_runs


@pytest.mark.parametrize(
    "conditions", [{"agent": "nobody"}, {"tags": ["x", "y"]}, {"level": "confirm"}, {"feedback": True}]
)
def test_a_name_that_no_run_has_ends_the_search(place, conditions):
    """Without a look at any run."""
    with place.reading() as connection:
        assert plan_of(CatalogQuery(**conditions), connection) is None


def test_a_time_that_is_none_is_refused(place):
    """As `Query` does."""
    with place.reading() as connection, pytest.raises(ValueError, match=r"^since must be a time like"):
        plan_of(CatalogQuery(since="soon"), connection)
