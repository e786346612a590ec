"""Addresses of runs."""

from __future__ import annotations

from grace_kp.web.runs._addresses import links_from, run_address


def test_ids_are_quoted():
    """Whatever they hold, they are one part of a path."""
    assert "/app/runs/kp:trace:1" == run_address("/app", "kp:trace:1")
    assert "/runs/kp:trace:a%2F..%2Fb%3Fc%23d%20%25" == run_address("", "kp:trace:a/../b?c#d %")
    assert "/runs/kp:trace:%3F" == run_address("", "kp:trace:\ud800")


def test_only_ids_of_traces_are_links():
    """Another text, and one that is too long, stays a text."""
    links = links_from("")
    assert "/runs/kp:trace:1?from=7#step-7" == links.step("kp:trace:1", 7)
    assert "/approvals/kp:approval:1" == links.approval("kp:approval:1")
    assert (None, None, None) == (links.run(".."), links.run("kp:trace:" + "x" * 600), links.step("x", 1))
