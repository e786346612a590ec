"""A run with its nested runs as a tree."""

from __future__ import annotations

from grace_kp.trace import Links, run_tree
from tests.pages.reading import Elements
from tests.trace.html.hostile import check
from tests.trace.html.traces import document, full


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
