"""A run with everything in it, and runs of any length."""

from __future__ import annotations


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
