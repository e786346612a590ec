"""Variants over small test sets, for the tests of the rubric."""

from __future__ import annotations

from grace_kp import rubric as rb

O, P, X = "○", "△", "×"  # noqa: E741


def documents_over(documents=("a", "b"), categories=("main", "main", "adjacent", "subtle")):
    return rb.TestSet(
        tuple(
            rb.Document(
                name,
                f"domain {name}",
                tuple(rb.Problem(f"p{n}", category, "medium") for n, category in enumerate(categories)),
            )
            for name in documents
        )
    )


def variant(name, *runs, test_set=None):
    """A variant from (document, judgements, bonuses, penalties)."""
    tests = test_set or documents_over()
    made = [
        rb.Run(document, {f"p{n}": one for n, one in enumerate(signs)}, *counts) for document, signs, *counts in runs
    ]
    return rb.Variant(name, tuple(made), tests)
