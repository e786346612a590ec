"""Expressions for the index of words: every text that contains what is looked for matches."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.store._catalog_index import END_OF_TEXT, create_tables, has_trigrams
from grace_kp.store._catalog_search import MOST_TERMS, MOST_TRIGRAMS, expression_of
from grace_kp.store._query import searchable


@pytest.fixture(scope="module")
def connection():
    opened = sqlite3.connect(":memory:", isolation_level=None)
    if not has_trigrams(opened):
        pytest.skip("this SQLite has no trigrams")
    create_tables(opened, identity="test", with_words=True)
    yield opened
    opened.close()


@given(before=st.text(max_size=6), text=st.text(min_size=1, max_size=40), after=st.text(max_size=6))
def test_every_text_that_contains_it_matches(connection, before, text, after):
    """Of any length and in any script, quotation marks and operators included, at the end too."""
    connection.execute("INSERT INTO words (words) VALUES ('delete-all')")
    connection.execute(
        "INSERT INTO words (rowid, text) VALUES (1, ?)", (searchable(before + text + after) + END_OF_TEXT,)
    )
    wanted = searchable(text)
    if wanted not in searchable(before + text + after):
        return
    expression = expression_of(connection, wanted)
    assert [(1,)] == connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (expression,)).fetchall()


def test_a_short_text_that_no_run_contains_has_no_terms(connection):
    """The search ends at once."""
    connection.execute("INSERT INTO words (words) VALUES ('delete-all')")
    assert "" == expression_of(connection, "京")


def test_a_short_text_with_many_continuations_has_no_expression(connection):
    """Reading texts finds it sooner."""
    connection.execute("INSERT INTO words (words) VALUES ('delete-all')")
    texts = [(number, f"a{chr(0x4E00 + number)}{END_OF_TEXT}") for number in range(MOST_TERMS + 1)]
    connection.executemany("INSERT INTO words (rowid, text) VALUES (?,?)", texts)
    assert expression_of(connection, "a") is None


def test_a_long_text_is_looked_up_by_some_of_its_trigrams(connection):
    """A pasted page is no reason for a thousand lookups."""
    assert expression_of(connection, "".join(chr(0x4E00 + n) for n in range(2_000))).count(" AND ") < MOST_TRIGRAMS
