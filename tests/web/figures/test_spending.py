"""What judges cost: never 0 because nobody stated a price."""

from __future__ import annotations

import pytest

from grace_kp.web.figures._spending import money_text, price_of, spending, spending_table, sums_by_currency

MODELS = {"gemini-a": (10, 2_000_000, 1), "gemini-b": (1, 500_000, 0), "local": (5, 9_000_000, 0), "other": (3, 100, 0)}
PRICES = {"gemini-*": (0.3, "USD"), "gemini-b": (2.0, "USD"), "local": (0.0, "EUR")}


def test_money_is_tokens_times_price():
    """A million tokens cost the price; what has no price has no money, and is no 0."""
    found = {each.model: each.money for each in spending(MODELS, PRICES)}
    assert {"gemini-a": 0.6, "gemini-b": 1.0, "local": 0.0, "other": None} == pytest.approx(found)
    assert {"USD": 1.6, "EUR": 0.0} == pytest.approx(sums_by_currency(spending(MODELS, PRICES)))
    assert {} == sums_by_currency(spending(MODELS, {}))


def test_the_model_with_the_most_tokens_stands_first():
    """Then the one with more calls."""
    assert ["local", "gemini-a", "gemini-b", "other"] == [each.model for each in spending(MODELS, {})]


def test_an_exact_name_comes_before_a_glob():
    """And a glob before nothing."""
    assert (2.0, "USD") == price_of("gemini-b", PRICES)
    assert (0.3, "USD") == price_of("gemini-x", PRICES)
    assert price_of("Gemini-x", PRICES) is None


def test_the_table_says_where_a_price_is_missing():
    """In the place of the money."""
    table = spending_table(spending({"<b>": (1, 10, 1)}, {}))
    assert 2 == table.count(">no price set<")
    assert "&lt;b&gt;" in table
    assert ">1.60 USD<" in spending_table(spending({"a": (1, 1_000_000, 0)}, {"a": (1.6, "USD")}))


@pytest.mark.parametrize(
    ("amount", "text"), [(0.0, "0.00 USD"), (0.0004, "0.0004 USD"), (0.5, "0.50 USD"), (1_234.5, "1,234.50 USD")]
)
def test_small_amounts_do_not_read_as_nothing(amount, text):
    """Two decimals, and more where they are needed."""
    assert text == money_text(amount, "USD")
