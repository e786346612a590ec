"""The timeline: steps, gates and links."""

from __future__ import annotations

import pytest

from grace_kp.trace import Links, run_head, run_timeline
from tests.pages.reading import Elements
from tests.trace.html.traces import document, full


def test_each_step_has_its_number():
    """As an id that a link can name, and never twice."""
    found = Elements(run_timeline(full()))
    assert [f"step-{place}" for place in range(10)] == found.ids
    assert [] == found.unbalanced


def test_a_long_run_is_cut_in_the_middle():
    """A note says how many steps are missing."""
    run = document([{"type": "thought", "content": f"thought {place}"} for place in range(2_500)])
    found = run_timeline(run)
    assert 2_000 == found.count('id="step-')
    assert "500 steps are not shown here" in found
    assert ("thought 1499<" in found, "thought 1500<" in found, "thought 2000<" in found) == (True, False, True)


def test_model_calls_without_text_are_listed():
    """They are no steps of their own."""
    text = Elements(run_timeline(full())).text
    assert "1 model call without text" in text
    assert "gemini-3-pro, ok, 1,500 input tokens, 12 output tokens, 401 ms" in text


def test_the_end_says_how_the_run_ended():
    """With its error, or its result."""
    failed = document(
        [{"type": "thought"}], status="failed", error={"type": "ValueError", "message": "no"}, dropped_steps=3
    )
    text = Elements(run_timeline(failed)).text
    assert "ValueError: no" in text
    assert "3 steps were not recorded" in text
    assert "Refunded 45.00" in Elements(run_timeline(full())).text


def test_a_step_shows_its_parts():
    """Tool, arguments, result, tokens, duration, sources, and what failed."""
    text = Elements(run_timeline(full())).text
    for words in ("1,204 input tokens · 88 output tokens · 812 ms", 'fields = ["total", "paid_at"]', "Refunds within 30 days", "2 results, scores 0.91, 0.70",
                  "policy.md", "error", "Recovered from lookup", "kp:trace:2", "840 characters"):  # fmt: skip
        assert words in text


def shown(**decision):
    return Elements(
        run_timeline(document([{"type": "thought", "content": "x"}], decisions=[{"action": "pay", **decision}]))
    ).text


def test_a_decision_stands_where_it_was_made():
    """Before the step of its action, with level, reviewer, edit and outcome."""
    found = run_timeline(full())
    assert found.index('id="step-7"') < found.index("step gate") < found.index('id="step-8"')
    assert "<del>54.0</del> <ins>45.0</ins>" in found
    text = Elements(found).text
    for words in (
        "modify by ben after 1 min 4 s",
        "waited 1 min 4 s",
        "executed modified",
        "missing evidence",
        "policy version: 1aab7c72f51e",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("response", "words"),
    [
        ({"action": "cancel"}, "no reviewer was available"),
        ({"action": "cancel", "timeout_reached": True}, "no answer in time; cancel"),
        ({"action": "input", "user_input": "ask sales", "reviewer": "ana"}, "ask sales"),
        ({"action": "proceed"}, "proceed by an unknown reviewer"),
    ],
)
def test_an_answer_or_why_there_is_none(response, words):
    """In words."""
    assert words in shown(response=response)


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
