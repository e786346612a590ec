"""A run as a tree and as a waterfall of durations."""

from __future__ import annotations

import re

from grace_kp.trace import Links, run_tree, run_waterfall
from tests.pages.reading import Elements
from tests.trace.html.traces import check, document, full


def calls(*entries):
    """A run of calls; each entry is its name and the name of the call around it, in the order of calls and returns."""
    steps, records = [], {}
    for entry in entries:
        if isinstance(entry, str):
            records[entry]["observation"] = len(steps)
            steps.append({"type": "observation", "content": f"result of {entry}"})
        else:
            name, parent = entry
            records[name] = {"call_id": name, "name": name, "tool_call": len(steps), "status": "ok"} | (
                {"parent": parent} if parent else {}
            )
            steps.append({"type": "tool_call", "tool": {"name": name}})
    return document(steps, calls=list(records.values()), status="completed")


def depth_of(page, words):
    """Number of lists around a text."""
    before = page[: page.index(words)]
    return before.count("<ul") - before.count("</ul>")


def test_calls_stand_below_the_call_that_made_them():
    """With their results, and not twice."""
    page = run_tree(calls(("outer", ""), ("inner", "outer"), "inner", "outer", ("next", ""), "next"))
    assert 1 == depth_of(page, "outer")
    assert 2 == depth_of(page, "inner")
    assert 1 == depth_of(page, "next")
    assert 1 == page.count("result of inner")


def test_parallel_calls_do_not_nest():
    """Only a recorded parent says where a call belongs."""
    page = run_tree(calls(("one", ""), ("two", ""), "one", "two"))
    assert 1 == depth_of(page, "two")


def test_a_tree_holds_gates_models_recoveries_and_the_end():
    """With tokens, levels, reviewers, and a link to each step."""
    found = Elements(run_tree(full()))
    for words in (
        "1,204 input tokens",
        "confirm",
        "modify by ben",
        "waited 1 min 4 s",
        "Recovered from lookup",
        "completed",
    ):
        assert words in found.text
    assert "#step-8" in found.links


def test_nested_runs_are_opened():
    """With their own steps; a run that contains itself is opened once."""
    child = calls(("look", ""), "look")
    child["id"] = "kp:trace:2"
    child["grace"]["calls"][0]["child"] = "kp:trace:1"
    links = Links(run=lambda name: f"/runs/{name}", step=lambda name, place: f"/runs/{name}#step-{place}")
    page = run_tree(full(), links=links, nested={"kp:trace:2": child, "kp:trace:1": full()}.get)
    assert "result of look" in page
    assert {"/runs/kp:trace:2", "/runs/kp:trace:2#step-0", "/runs/kp:trace:1"} <= set(Elements(page).links)
    assert 1 == page.count("Recovered from lookup")
    assert "not in this store" in run_tree(full(), nested={}.get)


def test_a_tree_is_bounded():
    """Chains of calls, nested runs and steps without end."""
    chain = calls(*((f"call{place}", f"call{place - 1}" if place else "") for place in range(3_000)))
    page = run_tree(chain)
    check(page)
    assert "1,000 more steps are not shown" in page
    assert depth_of(page, "call1999") < 20

    def nested(name):
        read.append(name)
        run = calls(("go", ""), "go")
        run["grace"]["calls"][0]["child"] = f"{name}0"
        return {**run, "id": name}

    read = []
    check(run_tree(full(), nested=nested))
    assert 0 < len(read) < 50


def bars(page):
    """Left edge and width of each bar, in percent."""
    return [tuple(map(float, pair)) for pair in re.findall(r' x="([\d.e+-]+)" width="([\d.e+-]+)"', page)]


def test_bars_stand_where_the_calls_began():
    """In the share of the whole duration; every bar stays within it and is wide enough to be seen."""
    calls = [
        {"call_id": "c0", "name": "a", "started_ms": 0, "latency_ms": 50, "status": "ok"},
        {"call_id": "c1", "name": "b", "started_ms": 50, "latency_ms": 25, "status": "error", "parent": "c0"},
        {"call_id": "c2", "name": "c", "started_ms": 100, "latency_ms": 0, "status": "ok"},
    ]
    page = run_waterfall(document([], calls=calls, duration_ms=100.0))
    assert [(0, 50), (50, 25), (99.4, 0.6)] == bars(page)
    assert 'class="d1"' in page


def test_numbers_stand_beside_the_bars():
    """Each call with its beginning and duration, linked to its step."""
    found = Elements(run_waterfall(full(), links=Links(step=lambda name, place: f"/runs/{name}#{place}")))
    for words in ("lookup", "error", "860 ms", "1.2 s", "1 min 10 s"):
        assert words in found.text
    assert "/runs/kp:trace:1#3" in found.links


def test_what_has_no_recorded_beginning_is_said():
    """Model calls and waits for people have durations only."""
    page = run_waterfall(full())
    placed, rest = page.split("Without a recorded beginning")
    assert "gemini-3-pro" not in placed
    assert "1,204 input tokens, 88 output tokens" in rest
    assert "waited for ben" in rest


def test_a_continued_run_shows_durations_only():
    """Each part counts from its own beginning."""
    run = full()
    run["grace"]["resumed"] = 1
    page = run_waterfall(run)
    assert "suspended and continued" in page
    assert "began after" not in page


def test_many_calls_are_cut():
    """A note gives their number; a run without any says so."""
    calls = [{"name": "a", "started_ms": place, "latency_ms": 1.0} for place in range(1_200)]
    page = run_waterfall(document([], calls=calls))
    assert 1_000 == len(bars(page))
    assert "200 more rows are not shown" in page
    assert "no call and no duration" in run_waterfall(document([]))
