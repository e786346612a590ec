"""A run with everything in it, documents that hold anything in any field, and what their HTML must never hold."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.pages.reading import Elements


def document(steps, *, result="done", stated=0.5, objective="Refund the order", **grace):
    return {
        "@context": "https://openknowledgepulse.org/schema/v1",
        "@type": "ReasoningTrace",
        "id": "kp:trace:1",
        "metadata": {
            "created_at": "2026-01-02T03:04:05.000Z", "agent_id": "kp:agent:a", "framework": "x", "task_domain": "support", "success": True,
            "quality_score": 0.5, "visibility": "private", "privacy_level": "private",
        },
        "task": {"objective": objective},
        "steps": [{"step_id": place, **step} for place, step in enumerate(steps)],
        "outcome": {"result_summary": result, "confidence": stated},
        "grace": grace,
    }  # fmt: skip


def full():
    """A support run: a search, a failed lookup, a model, a gate with an edit, and a nested run."""
    steps = [
        {"type": "thought", "content": "The customer asks for a refund of order 4711.", "latency_ms": 812.5},
        {"type": "tool_call", "tool": {"name": "search"}, "input": {"query": "refund policy"}, "latency_ms": 42.0},
        {
            "type": "observation",
            "content": '["Refunds within 30 days", "See https://example.com/refunds."]',
            "latency_ms": 42.0,
        },
        {
            "type": "tool_call",
            "tool": {"name": "lookup"},
            "input": {"order": 4711, "fields": ["total", "paid_at"]},
            "latency_ms": 1203.0,
        },
        {"type": "observation", "content": "TimeoutError: the shop did not answer", "latency_ms": 1203.0},
        {"type": "error_recovery", "content": "Recovered from lookup: TimeoutError: the shop did not answer"},
        {"type": "tool_call", "tool": {"name": "checker"}, "input": {"order": 4711}, "latency_ms": 2400.0},
        {"type": "observation", "content": "返金できます。" * 120, "latency_ms": 2400.0},
        {"type": "tool_call", "tool": {"name": "refund"}, "input": {"order": 4711, "amount": 45.0}, "latency_ms": 95.0},
        {"type": "observation", "content": "refunded", "latency_ms": 95.0},
    ]
    calls = [
        {"call_id": "c0", "name": "search", "tool_call": 1, "observation": 2, "status": "ok", "started_ms": 815.0, "latency_ms": 42.0,
         "search": {"count": 2, "scores": [0.91, 0.7], "sources": ["https://example.com/refunds", "policy.md"]}},
        {"call_id": "c1", "name": "lookup", "tool_call": 3, "observation": 4, "status": "error", "started_ms": 860.0, "latency_ms": 1203.0,
         "error": {"type": "TimeoutError", "message": "the shop did not answer"}},
        {"call_id": "c2", "name": "checker", "tool_call": 6, "observation": 7, "status": "ok", "started_ms": 2070.0, "latency_ms": 2400.0,
         "child": "kp:trace:2", "usage": {"input_tokens": 300}},
        {"call_id": "c3", "name": "refund", "tool_call": 8, "observation": 9, "status": "ok", "started_ms": 70000.0, "latency_ms": 95.0},
    ]  # fmt: skip
    return document(
        steps,
        result="Refunded 45.00 for order 4711.",
        stated=0.62,
        status="completed",
        name="support",
        duration_ms=70100.0,
        calls=calls,
        children=["kp:trace:2"],
        tags=["web", "vip"],
        user="ana",
        session="chat-7",
        model_calls=[
            {"model": "gemini-3-pro", "status": "ok", "latency_ms": 812.5, "input_tokens": 1204, "output_tokens": 88, "step": 0},
            {"model": "gemini-3-pro", "status": "ok", "latency_ms": 401.0, "input_tokens": 1500, "output_tokens": 12},
        ],
        usage={"input_tokens": 3004, "output_tokens": 100},
        decisions=[
            {
                "action": "refund", "outcome": "executed_modified", "level": "confirm", "score": 0.62, "step": 8, "attempt": 1,
                "reason": "Confidence 0.62 is below the notify threshold 0.7.", "arguments": {"order": 4711, "amount": 54.0},
                "executed_arguments": {"order": 4711, "amount": 45.0}, "waited_ms": 64210.0, "digest": "e6a0", "policy_version": "1aab7c72f51e",
                "response": {"action": "modify", "reviewer": "ben", "modified": {"amount": 45.0}, "response_time_ms": 64000.0},
                "evidence_gaps": ["the search returned no scores for 1 result"],
            }
        ],
        confidence={
            "score": 0.62, "level": "low", "profile": "grace", "reason": "Weighted mean of tool success 0.75.",
            "breakdown": {"search_quality": 0.8, "source_agreement": None, "llm_self_eval": 0.5, "tool_success": 0.75, "query_coverage": None},
            "penalties": ["tool_failures(rate=0.75)"], "not_evaluated": ["source_agreement", "query_coverage"],
        },
        value={"score": 0.5, "complexity": 0.4, "novelty": 0.5, "tool_diversity": 0.9, "outcome_confidence": 0.62, "novelty_fallback": "no embedder"},
        evaluation={
            "mode": "always", "calls": 2, "tokens": 900,
            "self_evaluation": {"score": 0.5, "fallback": True, "error": "ReadTimeout: 20 s", "model": "gemini-3-flash"},
            "coverage": {"score": 0.9, "reason": "All parts of the question are answered.", "model": "gemini-3-flash"},
        },
        scores=[{"name": "accuracy", "score": 0.8, "passed": True, "threshold": 0.5}, {"name": "tone", "score": None, "skipped": "no text"}],
    )  # fmt: skip


ALLOWED = {
    "a", "aside", "b", "body", "button", "caption", "dd", "del", "details", "div", "dl", "dt", "form", "h1", "h2", "head", "header", "html", "input", "ins", "label",
    "li", "link", "main", "mark", "meta", "nav", "ol", "option", "p", "pre", "rect", "script", "section", "select", "span", "style", "summary", "svg",
    "table", "tbody", "td", "textarea", "th", "thead", "time", "title", "tr", "ul",
}  # fmt: skip
ATTACK = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&<!-- javascript:alert(1) \u202e\x00 "
TEXTS = st.one_of(
    st.text(max_size=12), st.sampled_from([ATTACK, "javascript:alert(1)", "//evil.example", "data:text/html,x", "</script>", "\ud800"])
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def everything():
    """The full run, with an end by an error, labels, and what is still awaited."""
    run = full()
    run["grace"] |= {
        "error": {"type": "ValueError", "message": "no"}, "awaits": ["judgement"], "dropped_steps": 2, "metadata": {"shop": "a"},
        "parent": {"trace_id": "kp:trace:0"}, "own_usage": {"input_tokens": 2704},
        "feedback": [{"correct": 0.5, "by": "ana", "at": "2026-01-02T03:04:05Z", "source": "user", "note": "late", "probability": 0.5}],
    }  # fmt: skip
    run["grace"]["confidence"] |= {
        "own": 0.5,
        "fallback": True,
        "contributions": {"steps": -0.4},
        "mismatches": ["longer"],
    }
    run["grace"]["value"] |= {"overrides": ["few_steps"]}
    run["grace"]["decisions"][0]["approval"] = {"id": "kp:approval:1", "state": "executed", "by": "ben"}
    return run


def places(value, path=()):
    """Yield the path of every field of a document."""
    if path:
        yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in pairs:
        yield from places(inner, (*path, name))


PLACES = list(places(everything()))


def attacked():
    """A run with an attack in every text and every name below the second level."""

    def inner(value, depth=0):
        if isinstance(value, dict):
            return {name if depth < 4 else ATTACK + name: inner(item, depth + 1) for name, item in value.items()}
        if isinstance(value, list):
            return [inner(item, depth + 1) for item in value]
        return ATTACK + value if isinstance(value, str) else value

    document = inner(everything())
    for step, before in zip(document["steps"], everything()["steps"], strict=True):
        step["type"] = before["type"]
    return document


@st.composite
def documents(draw):
    """A run with anything in some of its fields."""
    document = everything()
    for path in draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=6)):
        holder = document
        for name in path[:-1]:
            reachable = isinstance(holder, dict) and name in holder
            reachable = reachable or (isinstance(holder, list) and isinstance(name, int) and name < len(holder))
            holder = holder[name] if reachable else None
        if isinstance(holder, dict) or (
            isinstance(holder, list) and isinstance(path[-1], int) and path[-1] < len(holder)
        ):
            holder[path[-1]] = draw(VALUES)
    return document


def check(page):
    """Fail unless a page holds only our own markup, and links only to this site and to addresses of http and https."""
    found = Elements(page)
    assert [] == found.unbalanced
    assert set() == found.tags - ALLOWED
    for tag, attributes in found.elements:
        assert not [name for name in attributes if name.startswith("on") or name in {"style", "srcdoc"}], attributes
        if tag == "script":
            assert attributes["src"].startswith("/static/")
    for link in found.links:
        if link == "data:,":  # the empty icon
            continue
        assert link.startswith(("#", "?", "https://", "http://")) or (link[0] == "/" and link[:2] != "//"), link
    assert len(found.ids) == len(set(found.ids))
    return found
