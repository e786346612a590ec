"""Traces in dict form for the tests of the value score."""


def trace(steps, *, success=True, confidence=0.8, domain="default", objective="Do it"):
    """A trace in dict form; a step is a type, or a type and a tool's name."""
    written = []
    for number, step in enumerate(steps):
        kind, tool = step if isinstance(step, tuple) else (step, None)
        written.append({"step_id": number, "type": kind, "content": f"step {number}"})
        if tool is not None:
            written[-1]["tool"] = {"name": tool}
    return {
        "@context": "https://openknowledgepulse.org/schema/v1",
        "@type": "ReasoningTrace",
        "id": "kp:trace:1",
        "metadata": {"created_at": "2026-01-02T03:04:05Z", "task_domain": domain, "success": success},
        "task": {"objective": objective},
        "steps": written,
        "outcome": {"result_summary": "done", "confidence": confidence},
    }
