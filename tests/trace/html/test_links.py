"""Addresses of other pages."""

from __future__ import annotations

import pytest

from grace_kp.trace import Links, run_head, run_timeline
from tests.pages.reading import Elements
from tests.trace.html.traces import full


def test_a_run_alone_links_to_nothing_else():
    """Ids of other runs are texts."""
    links = Elements(run_head(full()) + run_timeline(full())).links
    assert {"https://example.com/refunds"} == {link for link in links if not link.startswith("#step-")}


def test_ids_become_links_where_the_page_has_addresses():
    """Nested runs, steps and requests for approval."""
    run = full()
    run["grace"]["decisions"][0]["approval"] = {"id": "kp:approval:1", "state": "executed"}
    links = Links(run=lambda name: f"/runs/{name}", approval=lambda name: f"/approvals/{name}")
    found = Elements(run_head(run, links=links) + run_timeline(run, links=links)).links
    assert 2 == found.count("/runs/kp:trace:2")
    assert 1 == found.count("/approvals/kp:approval:1")


@pytest.mark.parametrize("address", ["javascript:alert(1)", "data:text/html,x", "evil", "//evil.example/x"])
def test_only_local_and_http_addresses_are_links(address):
    """Whatever the page's functions return."""
    found = Elements(run_head(full(), links=Links(run=lambda _: address))).links
    assert address not in found
