"""What runs in `make test` represents what runs in `make test-all`."""

from __future__ import annotations

from hypothesis import settings

from tests.exhaustive import examples, product


def quick(parameters):
    return [parameter.values for parameter in parameters if not parameter.marks]


def test_a_product_keeps_each_value_of_both_dimensions():
    """As many cases as the longer one has values, and all of them in the other run."""
    parameters = product("abcde", "xyz")
    assert 15 == len({parameter.values for parameter in parameters})
    assert 5 == len(quick(parameters))
    assert set("abcde") == {first for first, _ in quick(parameters)}
    assert set("xyz") == {second for _, second in quick(parameters)}


def test_examples_are_in_proportion_to_the_profile():
    share = settings.default.max_examples / 200
    assert round(400 * share) == examples(400).max_examples
    assert 10 == examples(1).max_examples
