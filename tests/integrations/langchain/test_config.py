"""Tags and metadata of a call become attributes of its trace."""

from __future__ import annotations

from langchain_core.runnables import RunnableLambda


def only(grace):
    (trace,) = grace.store.query()
    return trace


def test_tags_and_metadata_are_kept(grace, handler):
    RunnableLambda(lambda q: q).invoke(
        "q", {"callbacks": [handler], "metadata": {"session": "s1"}, "tags": ["beta"], "run_name": "named"}
    )
    trace = only(grace)
    assert ("named", ["beta"], {"session": "s1"}) == (
        trace.grace["name"], trace.grace["tags"], trace.grace["metadata"],
    )  # fmt: skip
