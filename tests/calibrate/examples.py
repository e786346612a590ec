"""Traces and labels for the tests of learned confidences: runs drawn at random, some of whose features depend on the label."""

from __future__ import annotations

import random

from grace_kp import ReasoningTrace
from grace_kp import calibrate as cal


def run(steps, *, answer="The order 1234 was sent.", objective="Send the order", calls=None, **grace):
    """A trace in its dict form, from pairs of a kind of step and its content."""
    document = []
    for number, (kind, content) in enumerate(steps):
        step = {"step_id": number, "type": kind}
        if kind == "tool_call":
            name, arguments = content
            step.update(tool={"name": name}, input=arguments)
        else:
            step["content"] = content
        document.append(step)
    return {
        "@context": "https://openknowledgepulse.org/schema/v1",
        "@type": "ReasoningTrace",
        "id": "kp:trace:example",
        "metadata": {
            "created_at": "2026-11-01T00:00:00Z",
            "agent_id": "kp:agent:clerk",
            "task_domain": "default",
            "success": True,
        },
        "task": {"objective": objective},
        "steps": document or [{"step_id": 0, "type": "thought", "content": ""}],
        "outcome": {"result_summary": answer, "confidence": 0.5},
        "grace": {**({"calls": calls} if calls is not None else {}), **grace},
    }


def drawn_run(seed, *, correct, tasks=20):
    """A run of a clerk: wrong runs fail and hedge more often. The same seed gives the same run."""
    draw = random.Random(seed)
    trouble = 0.15 if correct else 0.5
    steps = [("thought", "I look up the order.")]
    for _ in range(draw.randint(1, 6)):
        steps.append(("tool_call", (draw.choice(["find", "send", "pay"]), {"order": draw.randint(1, 3)})))
        failed = draw.random() < trouble
        steps.append(("observation", "Error: no such order" if failed else f"order {draw.randint(1, 9)} is ready"))
    answer = "It might perhaps be sent." if draw.random() < trouble else "The order was sent."
    return run(steps, answer=answer, objective=f"Send order {draw.randrange(tasks)}")


def drawn_runs(count, *, seed=0, share=0.5, tasks=20):
    """Runs and their labels."""
    draw = random.Random(seed)
    labels = [draw.random() < share for _ in range(count)]
    return [
        drawn_run(seed * 100_000 + number, correct=label, tasks=tasks) for number, label in enumerate(labels)
    ], labels


def labelled_runs(count, *, share=0.5, tasks=None, seed=0, labels=None):
    """Labelled runs as `cal.labels` returns them, of as many tasks as runs unless stated."""
    runs, drawn = drawn_runs(count, seed=seed, share=share, tasks=tasks or 20)
    return cal.Labels(
        traces=[ReasoningTrace.model_validate(each) for each in runs],
        labels=list(drawn) if labels is None else labels,
        weights=[1.0] * count,
        sources=["test"] * count,
        groups=[each["task"]["objective"] if tasks else str(number) for number, each in enumerate(runs)],
    )
