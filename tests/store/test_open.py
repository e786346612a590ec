"""From a URL to a store."""

from __future__ import annotations

from pathlib import Path

import pytest

import grace_kp as gk
from grace_kp.store import file_of, open_store


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("mysql://x", "known are"), ("sqlite:///", "names no file"), ("sqlite:///:memory:", "memory:"), ("postgresql://h/db", "PostgreSQL"),
        ("memory:?max=3", "unknown option"), ("memory:?max_traces=no", "max_traces"), (object(), "no store"),
    ],
)  # fmt: skip
def test_unknown_stores_are_refused_with_advice(url, hint):
    """One line that says what is known."""
    with pytest.raises(gk.StoreError, match=hint):
        open_store(url)


def test_a_store_is_taken_as_it_is():
    """Anything with `put`, `get` and `query` is a store."""
    store = open_store("memory:")
    assert store is open_store(store)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///a/t.db", Path("a/t.db")),
        ("sqlite:////a/t.db", Path("/a/t.db")),
        ("memory:", None),
    ],
)
def test_the_file_of_a_url(url, path):
    """Relative, absolute and in the home folder; None where there is no file."""
    assert path == file_of(url)


def test_a_file_in_the_home_folder():
    """The tilde stands for it."""
    assert Path.home() / "t.db" == file_of("sqlite:///~/t.db")


def test_without_a_url_the_file_is_in_the_users_data_folder():
    """Its name is the same everywhere."""
    assert "traces.db" == file_of(None).name


def test_a_file_opened_for_reading_must_exist(tmp_path):
    """Reading creates nothing."""
    with pytest.raises(gk.StoreError, match="cannot be opened"):
        open_store(f"sqlite:///{tmp_path / 't.db'}", create=False)
    assert [] == list(tmp_path.iterdir())
