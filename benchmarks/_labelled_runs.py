"""Labelled runs of agents for the benchmarks of confidence, by source. Runs that an oracle stopped stand apart: their length gives the label away.

`agent_runs.jsonl.gz` holds runs of several public benchmarks, `tau_bench_airline_gpt4o.jsonl.gz` those of tau-bench. Neither is part of this project.
"""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_kp.trace import from_openai_messages

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = Path(os.environ.get("GRACE_KP_DATA", Path(__file__).resolve().parents[1].parent / "shared" / "data"))
TAU = "tau_bench_airline_gpt4o"
CUT, FREE = "mint, first proposal", "intercode, no oracle"
STOPPED = ("mint, whole runs", "intercode, stopped by an oracle")
"""Sources whose runs end as soon as the agent is right."""
NAMES = {
    "tau2-bench": "tau2-bench", "whissle-medagentbench": "medagentbench", "whissle-agentclinic": "agentclinic",
    "aider-swe-bench-lite": "aider, SWE-bench Lite",
}  # fmt: skip


@dataclass
class Source:
    """The runs of a source, their labels and their tasks."""

    runs: list[dict[str, Any]] = field(default_factory=list)
    labels: list[bool] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)

    def take(self, places: Any) -> Source:
        """The runs at these places."""
        return Source(*([values[place] for place in places] for values in (self.runs, self.labels, self.tasks)))


def lines(path: Path) -> Iterator[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def sources(data: Path = DATA) -> dict[str, Source]:
    """The runs of each source; those without an oracle first. Labels go into the list of labels only, not into the traces."""
    found: dict[str, Source] = {}

    def add(name: str, messages: list[Any], correct: bool, task: object) -> None:
        source = found.setdefault(name, Source())
        source.runs.append(from_openai_messages(messages).to_dict())
        source.labels.append(bool(correct))
        source.tasks.append(str(task))

    for run in lines(data / f"{TAU}.jsonl.gz"):
        add(TAU, run["traj"], run["reward"] >= 1, run["task_id"])
    for run in lines(data / "agent_runs.jsonl.gz"):
        label, messages, task = run["label"], run["messages"], run["task_id"]
        if run["source"] == "mint-bench":
            add(STOPPED[0], messages, label["success"], task)
            proposal = label["first_proposal"] or {}
            until = messages[: proposal.get("message_index", -1) + 1]
            # Some proposals were not recognised as such; the verdict on an earlier one shows in the messages.
            if proposal.get("correct") is not None and "answer is wrong" not in json.dumps(until):
                add(CUT, until, proposal["correct"], task)
        elif run["source"] == "intercode":
            add(STOPPED[1] if label["oracle_stop"] else FREE, messages, label["success"], task)
        else:
            add(NAMES[run["source"]], messages, label["success"], task)
    return dict(sorted(found.items(), key=lambda item: item[0] in STOPPED))
