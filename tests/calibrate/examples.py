"""Traces, labels and decisions of gates for the tests of learned confidences and replays: runs drawn at random, some of whose features depend on the label."""

from __future__ import annotations

import contextlib
import itertools
import random

import grace_kp as gk
from grace_kp import ReasoningTrace
from grace_kp import calibrate as cal
from grace_kp.testing import make_grace


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


def live(plan, **settings):
    """Record a run for each list of outcomes of a tool, True for success; after each call two actions are gated."""
    settings.setdefault("reviewer", lambda request: gk.InterventionResponse("proceed", reviewer="ana"))
    with make_grace(**settings) as grace:

        @grace.tool
        def look(ok):
            if not ok:
                raise ValueError("no such page")
            return "page"

        @grace.gate
        @grace.tool
        def send(to):
            return "sent"

        @grace.gate(floor="confirm")
        @grace.tool
        def pay(euros):
            return "paid"

        @grace.agent
        def agent(outcomes):
            for number, ok in enumerate(outcomes):
                try:
                    look(ok)
                except ValueError:
                    grace.thought("again")
                for action in (send, pay):
                    with contextlib.suppress(gk.ActionNotApproved):
                        action(number)

        with grace.collect() as traces:
            for outcomes in plan:
                agent(outcomes)
        return list(traces)


def decision(score=0.5, level="confirm", action="pay", **fields):
    """An entry of a gate."""
    return {"action": action, "outcome": "executed", "level": level, "score": score, **fields}


def document(number, *decisions, correct=None, **grace):
    """A trace in its dict form, with two calls of which the second failed."""
    if correct is not None:
        grace["feedback"] = [{"correct": correct, "source": "user", "at": "2026-01-02T03:04:05.000Z"}]
    if decisions:
        grace["decisions"] = list(decisions)
    calls = [
        {"call_id": "c0", "name": "look", "tool_call": 0, "status": "ok", "observation": 1},
        {"call_id": "c1", "name": "look", "tool_call": 2, "status": "error", "observation": 3},
    ]
    kinds = ("tool_call", "observation", "tool_call", "observation")
    steps = [
        {"step_id": place, "type": kind, **({"tool": {"name": "look"}, "input": {}} if kind == "tool_call" else {"content": "page"})}
        for place, kind in enumerate(kinds)
    ]  # fmt: skip
    return {
        "@context": "https://openknowledgepulse.org/schema/v1",
        "@type": "ReasoningTrace",
        "id": f"kp:trace:{number:08d}",
        "metadata": {
            "created_at": "2026-01-02T03:04:05.000Z", "agent_id": "kp:agent:a", "task_domain": "code", "success": True,
            "quality_score": 0.5, "visibility": "private", "privacy_level": "private",
        },
        "task": {"objective": f"run {number}"},
        "steps": steps,
        "outcome": {"result_summary": "done", "confidence": 0.8},
        "grace": {"status": "completed", "calls": calls, **grace},
    }  # fmt: skip


def answered(answer, reviewer, *, ms=5_000.0, arguments=None, **fields):
    """An entry of a gate that a person answered."""
    response = {"action": answer, "reviewer": reviewer, "response_time_ms": ms, "timeout_reached": False}
    return decision(response=response, arguments=arguments or {"n": 1}, **fields)


def numbered(*groups):
    """Documents of lists of decisions, numbered."""
    return [document(number, *decisions) for number, decisions in zip(itertools.count(), groups, strict=False)]


def acted(tasks, *, tools=("pay", "send"), seed=0, is_audited=lambda number: True, per_task=2, **fields):
    """Labelled actions, some in each task. Wrong ones mostly have many arguments, and those of `send` are wrong more often."""
    draw = random.Random(seed)
    actions = []
    for task in range(tasks):
        names = [tools[(task + place) % len(tools)] for place in range(per_task)]
        right = [bool(draw.random() < (0.95 if name == tools[0] else 0.75)) for name in names]
        entries = []
        for place, (name, correct) in enumerate(zip(names, right, strict=True)):
            many = draw.random() < (0.1 if correct else 0.8)
            arguments = {"order": 1000 + task, **({f"note{n}": f"text {n}" for n in range(6)} if many else {})}
            entries.append(decision(0.5, "confirm", name, step=3, arguments=arguments, id=f"d{place}") | fields)
        trace = ReasoningTrace.model_validate(document(task, *entries))
        for place, (name, correct) in enumerate(zip(names, right, strict=True)):
            audited = is_audited(len(actions))
            source = "user" if audited else "check"
            actions.append(
                cal.LabelledAction(
                    trace=trace,
                    position=place,
                    id=f"d{place}",
                    tool=name,
                    correct=correct,
                    source=source,
                    weight=1.0,
                    group=f"task {task}",
                    is_audited=audited,
                )
            )
    return cal.ActionLabels(actions=actions, left_out={"no label": 3})
