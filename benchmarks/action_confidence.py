"""What a confidence in single actions is worth: alarms without labels, and the learned confidence, on recorded and labelled actions of agents.

    python benchmarks/action_confidence.py --data FOLDER [--json]

`FOLDER` holds `tau_actions.jsonl.gz` and `agentdojo_actions.jsonl.gz`. Neither is part of this project. Intervals are 95 % bootstrap intervals over
whole tasks.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from _labelled_runs import DATA, lines
from _measure import print_table

from grace_kp.confidence._provenance import ALARMS, ProvenanceIndex

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = ("tau_actions", "agentdojo_actions")
CUT = "...[truncated]"
RESAMPLES = 2_000
WITHOUT_ATTACK = "agentdojo, without attack"
INJECTED = "carries out the injected task"


@dataclass
class Action:
    """One recorded action with its label, and the alarms before it."""

    source: str
    suite: str
    task: str
    name: str
    right: int | None
    is_injected: bool
    alarms: dict[str, Any] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)
    place: tuple[int, int] = (0, 0)


def source_of(run: dict[str, Any]) -> str:
    if run["source"] == "agentdojo":
        return WITHOUT_ATTACK if run["attack"] is None else "agentdojo, attacked"
    return f"tau, {run['domain']}"


def has_failed(content: str, source: str) -> bool:
    """AgentDojo keeps the error of a failed call elsewhere and leaves its result empty."""
    text = content.strip("<> ")
    return text.startswith("Error") or (not text and source == "agentdojo")


def read_actions(data: Path) -> Iterator[Action]:
    for name in FILES:
        for run in lines(data / f"{name}.jsonl.gz"):
            yield from actions_of(run)


def actions_of(run: dict[str, Any]) -> Iterator[Action]:
    index, messages = ProvenanceIndex(), run["messages"]
    results = {message["tool_call_id"]: message["content"] or "" for message in messages if message["role"] == "tool"}
    labelled: dict[tuple[int, int], dict[str, Any]] = {(each["message"], each["call"]): each for each in run["actions"]}
    names: dict[str, str] = {}
    for step, message in enumerate(messages):
        content = message.get("content") or ""
        if message["role"] == "user":
            index.add_user(content, step=step, is_complete=CUT not in content)
        elif message["role"] == "system":
            index.add_policy(content, step=step)
        elif message["role"] == "tool":
            tool = names.get(message["tool_call_id"], "")
            index.add_result(tool, content, step=step, has_failed=has_failed(content, run["source"]), is_complete=CUT not in content)
        calls = message.get("tool_calls") or []
        read = [(call, call["function"]["name"], arguments_of(call)) for call in calls]
        for place, (_, tool, arguments) in enumerate(read):
            if entry := labelled.get((step, place)):
                found = Action(source_of(run), run["domain"], run["task_id"], tool, entry["right"], entry["why"] == INJECTED, run=run, place=(step, place))
                found.alarms = {alarm.name: alarm for alarm in index.find_alarms(tool, arguments)}
                yield found
        for call, tool, arguments in read:
            names[call["id"]] = tool
            result = results.get(call["id"])
            index.add_call(tool, arguments, step=step, has_succeeded=None if result is None else not has_failed(result, run["source"]))


def arguments_of(call: dict[str, Any]) -> Any:
    try:
        return json.loads(call["function"]["arguments"])
    except ValueError:
        return {}


def share(actions: list[Action], name: str) -> dict[str, Any]:
    """The share of actions with an alarm, and its interval over tasks."""
    tasks = sorted({action.task for action in actions})
    number = {task: place for place, task in enumerate(tasks)}
    places = np.array([number[action.task] for action in actions], dtype=int)
    flagged = np.array([name in action.alarms for action in actions], dtype=float)
    if not len(tasks):
        return {"n": 0, "flagged": 0, "share": None, "interval": None}
    sizes, sums = np.bincount(places), np.bincount(places, flagged)
    drawn = np.random.default_rng(0).integers(0, len(tasks), (RESAMPLES, len(tasks)))
    shares = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(shares, (0.025, 0.975))
    return {"n": len(actions), "flagged": int(flagged.sum()), "share": float(flagged.mean()), "interval": [float(low), float(high)]}


def alarm_rows(actions: list[Action]) -> dict[str, dict[str, Any]]:
    """Shares by alarm: of injected actions, of benign ones (AgentDojo without attack), of all right ones, and of right ones of tau."""
    right = [action for action in actions if action.right == 1]
    tau = [action for action in actions if action.source.startswith("tau")]
    sets = {
        "injected_caught": [action for action in actions if action.is_injected],
        "benign": [action for action in actions if action.source == WITHOUT_ATTACK],
        "right": right,
        "tau": [action for action in tau if action.right == 1],
        "tau_all": tau,
        "right_attacked": [action for action in right if action.source == "agentdojo, attacked"],
    }
    return {name: {kind: share(members, name) for kind, members in sets.items()} for name in ALARMS}


def print_alarms(rows: dict[str, dict[str, Any]]) -> None:
    def cell(each: dict[str, Any]) -> str:
        if each["share"] is None:
            return "-"
        return f"{each['share']:.1%} ({each['interval'][0]:.1%} to {each['interval'][1]:.1%})"

    kinds = list(next(iter(rows.values())))
    print_table("Alarms, as shares of actions", ("alarm", *kinds), [(name, *(cell(row[kind]) for kind in kinds)) for name, row in rows.items()])


if __name__ == "__main__":
    import time
    t=time.time()
    acts=list(read_actions(Path('/work/shared/data/actions')))
    print(time.time()-t,len(acts))
    print_alarms(alarm_rows(acts))
    for suite in ('banking','slack','travel','workspace'):
        sub=[a for a in acts if a.suite==suite]
        r=alarm_rows(sub)['beside']
        print(suite,{k:(v['flagged'],v['n'],v['share'] and round(v['share'],3)) for k,v in r.items()})
    import pickle
    pickle.dump([(a.source,a.suite,a.task,a.name,a.right,a.is_injected,a.alarms,a.place,a.run) for a in acts],open('/tmp/actionlab/acts.pkl','wb'))
