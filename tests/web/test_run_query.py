"""Conditions on runs in an address."""

from __future__ import annotations

from dataclasses import fields

from starlette.datastructures import QueryParams

from grace_kp.store import CatalogQuery
from grace_kp.web._run_query import CONDITIONS, query_from


def test_every_condition_can_be_stated():
    """Each field of a query has its parameter."""
    assert [field.name for field in fields(CatalogQuery)] == [parameter.name for parameter in CONDITIONS]


def test_conditions_are_read():
    """An address states conditions; empty fields of a form mean any, and other names are left to the caller."""
    query, problems = query_from(
        QueryParams("agent=refunds&min_score=0.5&tags=a&tags=b&roots=true&user=&before=7&since=2026-01-02&text=返金")
    )
    expected = CatalogQuery(
        agent="refunds", min_score=0.5, tags=("a", "b"), roots=True, since="2026-01-02T00:00:00.000Z", text="返金"
    )
    assert expected == query
    assert {} == problems


def test_problems_stand_by_field():
    """A field with a problem is left out, and the others still hold."""
    query, problems = query_from(QueryParams("agent=refunds&level=loud&max_score=2"))
    assert CatalogQuery(agent="refunds") == query
    assert {
        "level": "must be one of silent, notify, confirm, escalate, none, not 'loud'",
        "max_score": "must be from 0 to 1, not '2'",
    } == problems
