"""What a confidence in single actions is worth: alarms without labels, and the learned confidence, on recorded and labelled actions of agents.

    python benchmarks/action_confidence.py --data FOLDER [--json]
    python benchmarks/action_confidence.py --languages

`FOLDER` holds `tau_actions.jsonl.gz` and `agentdojo_actions.jsonl.gz`. Neither is part of this project. Everything learned is nested and by task: an
action is predicted, and its threshold chosen, by models that saw no action of its task. Intervals are 95 % bootstrap intervals over whole tasks.
`--languages` needs no data: it reads the texts of `tests/confidence/everyday.py`.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from time import thread_time
from typing import TYPE_CHECKING, Any

import numpy as np
from _labelled_runs import DATA, lines
from _measure import print_table

import grace_kp as gk
from grace_kp import ConfidenceCalculator
from grace_kp import calibrate as cal
from grace_kp.calibrate import _risk
from grace_kp.calibrate._actions import fit_action_features
from grace_kp.calibrate._assess import assess
from grace_kp.calibrate._risk import risk_thresholds
from grace_kp.calibrate._samples import group_folds
from grace_kp.confidence import ALARMS, ActionFeatures, ActionHistory, factors_from_trace
from grace_kp.errors import GraceError
from grace_kp.record import history_of
from grace_kp.trace import from_openai_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FILES = ("tau_actions", "agentdojo_actions")
CUT = "...[truncated]"
INJECTED = "carries out the injected task"
BENIGN, ATTACKED = "agentdojo", "agentdojo attacked"
FOLDS, FOLDS_OF_TODAY, RUNS_OF_TODAY = 10, 5, 400
"""The confidence of whole runs is fitted on fewer folds and at most so many runs, because it takes long."""
RESAMPLES = SPLITS = 2_000
TASKS_OF_A_SPLIT, DELTA = 300, 0.1
RISKS = (0.05, 0.1)
SEED = 0
LEAST_TASKS = 10
"""With fewer tasks, resamples of them give no interval."""


@dataclass
class Action:
    """One recorded action with its label, and what is known before it."""

    source: str
    suite: str
    task: str
    right: int | None
    is_injected: bool
    features: ActionFeatures
    run: dict[str, Any]
    message: int


def source_of(run: dict[str, Any]) -> str:
    if run["source"] != "agentdojo":
        return str(run["domain"])
    return BENIGN if run["attack"] is None else ATTACKED


def has_failed(content: str, run: dict[str, Any]) -> bool:
    """AgentDojo keeps the error of a failed call elsewhere and leaves its result empty."""
    text = content.strip("<> ")
    return text.startswith("Error") or (not text and run["source"] == "agentdojo")


def read_actions(data: Path) -> Iterator[Action]:
    """The actions of the files that are there; a note on standard error names the others."""
    for name in FILES:
        path = data / f"{name}.jsonl.gz"
        if not path.exists():
            print(f"there are no labelled actions in {path}; name another folder with --data", file=sys.stderr)
            continue
        for run in lines(path):
            yield from actions_of(run)


def actions_of(run: dict[str, Any]) -> Iterator[Action]:
    """The actions of a run with their features. System prompts are cut in the data, but name no customer's values."""
    history, messages = ActionHistory(model=run["model"]), run["messages"]
    results = {message["tool_call_id"]: message["content"] or "" for message in messages if message["role"] == "tool"}
    labelled = {(each["message"], each["call"]): each for each in run["actions"]}
    writes = {each["name"] for each in run["actions"]}
    names: dict[str, str] = {}
    for step, message in enumerate(messages):
        content = message.get("content") or ""
        whole = {"step": step, "is_complete": CUT not in content}
        if message["role"] == "user":
            history.add_user(content, **whole)
        elif message["role"] == "system":
            history.index.add_policy(content, step=step)
        elif message["role"] == "tool":
            tool = names.get(message["tool_call_id"], "")
            history.add_result(tool, content, has_failed=has_failed(content, run), **whole)
        elif content:
            history.add_agent(content)
        calls = [(call["id"], call["function"]["name"], arguments_of(call)) for call in message.get("tool_calls") or []]
        for place, (_, tool, arguments) in enumerate(calls):
            if entry := labelled.get((step, place)):
                found = history.features(tool, arguments)
                is_injected = entry["why"] == INJECTED
                yield Action(
                    source_of(run), run["domain"], run["task_id"], entry["right"], is_injected, found, run, step
                )
        for call, tool, arguments in calls:
            names[call] = tool
            succeeded = None if call not in results else not has_failed(results[call], run)
            history.add_call(tool, arguments, step=step, has_succeeded=succeeded, is_action=tool in writes)


def arguments_of(call: dict[str, Any]) -> Any:
    try:
        return json.loads(call["function"]["arguments"])
    except ValueError:
        return {}


def share(actions: Sequence[Action], *names: str) -> dict[str, Any]:
    """The share of actions with one of these alarms, and its interval over tasks."""
    if not actions:
        return {"n": 0, "flagged": 0, "share": None, "interval": None}
    _, tasks = np.unique([action.task for action in actions], return_inverse=True)
    flagged = np.array(
        [any(alarm.name in names for alarm in action.features.alarms) for action in actions], dtype=float
    )
    interval = over_tasks(tasks, lambda drawn: float(drawn @ flagged / drawn.sum()))
    return {"n": len(actions), "flagged": int(flagged.sum()), "share": float(flagged.mean()), "interval": interval}


def over_tasks(tasks: Any, figure: Callable[[Any], float]) -> list[float] | None:
    """The 95 % interval of a figure of weights, for resamples of whole tasks; None with too few tasks, or where it is not defined."""
    random = np.random.default_rng(SEED)
    count = int(tasks.max()) + 1 if len(tasks) else 0
    if count < LEAST_TASKS:
        return None
    found = [figure(np.bincount(random.integers(0, count, count), minlength=count)[tasks]) for _ in range(RESAMPLES)]
    found = [each for each in found if each is not None and not np.isnan(each)]
    return [float(end) for end in np.quantile(found, (0.025, 0.975))] if found else None


def alarm_rows(actions: Sequence[Action]) -> dict[str, dict[str, Any]]:
    """Shares by alarm: of injected actions, of those of AgentDojo without attack, of all right ones, and of right ones of tau."""
    right = [action for action in actions if action.right == 1]
    sets = {
        "injected_caught": [action for action in actions if action.is_injected],
        "benign": [action for action in actions if action.source == BENIGN],
        "right": right,
        "tau": [action for action in right if action.source not in {BENIGN, ATTACKED}],
        "right_attacked": [action for action in right if action.source == ATTACKED],
    }
    return {name: {kind: share(members, name) for kind, members in sets.items()} for name in ALARMS}


def any_alarm(actions: Sequence[Action]) -> dict[str, Any]:
    """The share of the actions of AgentDojo without attack that any alarm asks about, and of the right ones among them."""
    benign = [action for action in actions if action.source == BENIGN]
    return {
        "benign": share(benign, *ALARMS),
        "benign_right": share([each for each in benign if each.right == 1], *ALARMS),
    }


def print_alarms(title: str, rows: dict[str, dict[str, Any]]) -> None:
    kinds = list(next(iter(rows.values())))
    table = [(name, *(percent(row[kind]) for kind in kinds)) for name, row in rows.items()]
    print_table(title, ("alarm", *kinds), table)


def percent(each: dict[str, Any]) -> str:
    if each["share"] is None:
        return "-"
    return with_interval(each["share"], each["interval"], ".1%")


def with_interval(value: float | None, interval: Sequence[float] | None, form: str) -> str:
    if value is None:
        return "-"
    return format(value, form) + (f" ({interval[0]:{form}} to {interval[1]:{form}})" if interval else "")


@dataclass
class Predictions:
    """The labelled actions of a source, and the confidence in each by task out of fold."""

    actions: list[Action]
    labels: Any
    tasks: Any
    confidence: dict[str, Any]
    silent: dict[tuple[str, float], Any]
    """Which actions are silent at a promised risk, by what counts as independent there: a session, or a task with all its sessions."""
    reasons: list[str]


def predict(actions: list[Action]) -> Predictions:
    labels = np.array([float(action.right or 0) for action in actions])
    _, tasks = np.unique([action.task for action in actions], return_inverse=True)
    folds = group_folds(tasks, labels, FOLDS, np.random.default_rng(SEED))
    learned, without_agent, rate, boosting = (np.zeros(len(labels)) for _ in range(4))
    units = {"session": np.array([id(action.run) for action in actions]), "task": tasks}
    silent = {(unit, risk): np.zeros(len(labels), dtype=bool) for unit in units for risk in RISKS}
    reasons = []
    for fold in range(int(folds.max()) + 1):
        test = np.flatnonzero(folds == fold)
        seen = np.flatnonzero(folds != fold)
        known = [actions[place].features for place in seen]
        others = [actions[place].features for place in test]
        model = fit_action_features(known, labels[seen], tasks[seen].tolist(), seed=SEED)
        learned[test] = [model.predict(each) for each in others]
        anonymous = [replace(each, model="") for each in known]
        other = fit_action_features(anonymous, labels[seen], tasks[seen].tolist(), seed=SEED)
        without_agent[test] = [other.predict(replace(each, model="")) for each in others]
        rate[test] = [model.rates.get(each.tool, min(model.rates.values())) for each in others]
        boosting[test] = boosted(known, labels[seen], others)
        reasons.append(model.reason)
        for unit, risk in silent:
            found = risk_thresholds(
                model.out_of_fold, labels[seen], {"silent": risk}, groups=units[unit][seen].tolist(), seed=SEED
            )
            silent[unit, risk][test] = learned[test] >= found.thresholds.silent
    today, formula = confidences_today(actions)
    found = {"learned": learned, "today": today, "formula": formula, "tool_rate": rate, "boosting": boosting}
    found["without_agent"] = without_agent
    return Predictions(actions, labels, tasks, found, silent, [reason for reason in reasons if reason])


def boosted(known: Sequence[ActionFeatures], labels: Any, others: Sequence[ActionFeatures]) -> Any:
    """Gradient boosting on the same features and tools, without any restriction."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    tools = sorted({each.tool for each in known})
    rows = [
        np.array([[*each.values, *(float(each.tool == tool) for tool in tools)] for each in part])
        for part in (known, others)
    ]
    if len(set(labels)) == 1:
        return np.full(len(others), labels[0])
    model = HistGradientBoostingClassifier(
        max_depth=3, learning_rate=0.05, max_iter=80, l2_regularization=5, min_samples_leaf=15, random_state=SEED
    )
    return model.fit(rows[0], labels).predict_proba(rows[1])[:, 1]


def confidences_today(actions: list[Action]) -> tuple[Any, Any]:
    """The learned confidence of whole runs before each action, fitted on other tasks, and that of the formula."""
    runs = list({id(action.run): action.run for action in actions}.values())
    labels = [bool(run["label"]["success"]) for run in runs]
    _, tasks = np.unique([run["task_id"] for run in runs], return_inverse=True)
    folds = group_folds(tasks, np.array(labels, dtype=float), FOLDS_OF_TODAY, np.random.default_rng(SEED))
    documents = {id(run): document_of(run["messages"]) for run in runs}
    fold_of = {id(run): int(fold) for run, fold in zip(runs, folds, strict=True)}
    profiles: dict[int, Any] = {}
    for fold in set(fold_of.values()):
        seen = np.flatnonzero(folds != fold)
        seen = np.sort(np.random.default_rng(SEED).permutation(seen)[:RUNS_OF_TODAY]).tolist()
        try:
            profiles[fold] = cal.fit(
                [documents[id(runs[place])] for place in seen],
                [labels[place] for place in seen],
                [runs[place]["task_id"] for place in seen],
                seed=SEED,
            )
        except ValueError:  # too few labels; the share of successes is what a program has then
            profiles[fold] = float(np.mean([labels[place] for place in seen]))
    today, formula = [], []
    calculator = ConfidenceCalculator("grace")
    for action in actions:
        before = document_of(action.run["messages"][: action.message])
        profile = profiles[fold_of[id(action.run)]]
        if isinstance(profile, float):
            today.append(profile)
        else:
            found = cal.features(documents[id(action.run)], moment="action", upto=len(before["steps"]))
            today.append(profile.predict(found, moment="action"))
        formula.append(calculator.calculate(factors_from_trace(before)).score)
    return np.array(today), np.array(formula)


def document_of(messages: list[dict[str, Any]]) -> dict[str, Any]:
    try:
        return from_openai_messages(messages).to_dict()
    except GraceError:  # nothing of an assistant yet
        return {"steps": []}


def source_row(found: Predictions) -> dict[str, Any]:
    labels, tasks = found.labels, found.tasks
    figures = {name: figures_of(values, labels, tasks) for name, values in found.confidence.items()}
    row = {
        "n": len(labels),
        "right": float(labels.mean()),
        "tasks": int(tasks.max()) + 1,
        **figures.pop("learned"),
        **figures,
    }
    first = np.array([not action.features.as_dict()["repeats"] for action in found.actions])
    row["gain_over_today"] = gain_over_today(found, np.ones(len(labels), dtype=bool))
    row["gain_without_repeats"] = gain_over_today(found, first)
    agents = np.array([action.run["model"] for action in found.actions])
    row["auroc_within_agents"] = {
        name: auroc_within(values, labels, agents) for name, values in found.confidence.items()
    }
    for unit, suffix in (("session", ""), ("task", "_by_task")):
        chosen = {f"{risk:g}": found.silent[unit, risk] for risk in RISKS}
        row[f"silent_share{suffix}"] = {risk: float(silent.mean()) for risk, silent in chosen.items()}
        row[f"wrong_of_silent{suffix}"] = {
            risk: float(1 - labels[silent].mean()) if silent.any() else None for risk, silent in chosen.items()
        }
    row["folds_on_tool_rate"] = len(found.reasons)
    return row


def unmeasured_row(actions: Sequence[Action]) -> dict[str, Any]:
    """The row of a source with one task: nothing can be predicted by a model that did not see it."""
    nothing = dict.fromkeys(("auroc", "auroc_interval", "brier", "ece"))
    others = ("without_agent", "today", "formula", "tool_rate", "boosting")
    shares = (f"{name}{suffix}" for name in ("silent_share", "wrong_of_silent") for suffix in ("", "_by_task"))
    return {
        "n": len(actions),
        "right": float(np.mean([action.right for action in actions])),
        "tasks": 1,
        **nothing,
        **{name: dict(nothing) for name in others},
        **{
            name: {"n": len(actions), "auroc": None, "interval": None}
            for name in ("gain_over_today", "gain_without_repeats")
        },
        **{name: dict.fromkeys(f"{risk:g}" for risk in RISKS) for name in shares},
    }


def gain_over_today(found: Predictions, kept: Any) -> dict[str, Any]:
    """How much higher the AUROC of the learned confidence is than today's, paired over tasks, among some of the actions."""
    labels, tasks = found.labels[kept], np.unique(found.tasks[kept], return_inverse=True)[1]
    learned, today = found.confidence["learned"][kept], found.confidence["today"][kept]

    def difference(drawn: Any) -> float:
        return auroc(learned, labels, drawn) - auroc(today, labels, drawn)

    return {
        "n": len(labels),
        "auroc": number_or_none(difference(np.ones(len(labels)))),
        "interval": over_tasks(tasks, difference),
    }


def number_or_none(value: float) -> float | None:
    return None if np.isnan(value) else value


def auroc_within(confidence: Any, labels: Any, agents: Any) -> float | None:
    """The AUROC among pairs of actions of the same agent; None where no agent has right and wrong ones."""
    pairs = won = 0.0
    for agent in set(agents.tolist()):
        own = agents == agent
        count = float(labels[own].sum() * (1 - labels[own]).sum())
        if count:
            won += count * auroc(confidence[own], labels[own], np.ones(int(own.sum())))
            pairs += count
    return won / pairs if pairs else None


def broken_promises(found: Predictions) -> dict[str, Any]:
    """How often thresholds break their promise, with the recorded tasks as the whole population: samples of tasks are drawn with replacement.

    The promise is about an action of a task drawn at random, as the thresholds count one action of each task. So the true risk weights
    each task once.
    """
    confidence, labels, tasks = found.confidence["learned"].round(3), found.labels, found.tasks
    own = 1 / np.bincount(tasks)[tasks]
    random, places = (
        np.random.default_rng(SEED),
        [np.flatnonzero(tasks == task) for task in range(int(tasks.max()) + 1)],
    )
    broken = dict.fromkeys(map(str, RISKS), 0)
    used = dict.fromkeys(broken, 0)
    for draw in range(SPLITS):
        drawn = random.integers(0, len(places), TASKS_OF_A_SPLIT)
        chosen = np.concatenate([places[task] for task in drawn])
        groups = np.repeat(np.arange(len(drawn)), [len(places[task]) for task in drawn])
        for risk in RISKS:
            promised = risk_thresholds(
                confidence[chosen], labels[chosen], {"silent": risk}, groups=groups.tolist(), seed=draw
            )
            silent = confidence >= promised.thresholds.silent
            used[str(risk)] += bool(silent.any())
            broken[str(risk)] += bool(silent.any() and np.average(1 - labels[silent], weights=own[silent]) > risk)
    return {
        risk: {"broken": broken[risk] / SPLITS, "used": used[risk] / SPLITS, "allowed": DELTA, "splits": SPLITS}
        for risk in broken
    }


def figures_of(confidence: Any, labels: Any, tasks: Any) -> dict[str, Any]:
    found = assess(confidence, labels, clusters=tasks.tolist())
    return {"auroc": found.auroc, "auroc_interval": found.intervals["auroc"], "brier": found.brier, "ece": found.ece}


def auroc(confidence: Any, labels: Any, weights: Any) -> float:
    """Weighted, ties counted half."""
    _, place = np.unique(confidence, return_inverse=True)
    right, wrong = np.bincount(place, weights * labels), np.bincount(place, weights * (1 - labels))
    pairs = right.sum() * wrong.sum()
    return float(right @ (np.cumsum(wrong) - wrong / 2) / pairs) if pairs else float("nan")


def print_languages() -> None:
    """Texts that raise the alarm `beside`, of all, by language: harmless ones, requests to people, and instructions to an assistant."""
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from tests.confidence.everyday import KINDS, language_rows

    rows = language_rows()
    rows["all"] = {
        kind: tuple(map(sum, zip(*(row[kind] for row in rows.values()), strict=True))) for kind in KINDS.values()
    }
    shown = [(name, *(f"{flagged} of {count}" for flagged, count in row.values())) for name, row in rows.items()]
    print_table(
        "Alarm `beside` by language", ("language", "harmless", "requests", "instructions", "in new wordings"), shown
    )


def print_sources(rows: dict[str, dict[str, Any]]) -> None:
    table = []
    for name, row in rows.items():
        for which in ("learned", "without_agent", "today", "formula", "tool_rate", "boosting"):
            each = row if which == "learned" else row[which]
            shown = with_interval(each["auroc"], each["auroc_interval"], ".2f")
            table.append(
                (
                    f"{name}: {which}",
                    row["n"],
                    f"{row['right']:.2f}",
                    shown,
                    "-" if (within := row["auroc_within_agents"][which]) is None else f"{within:.2f}",
                    f"{each['brier']:.3f}",
                    f"{each['ece']:.3f}",
                )
            )
    print_table(
        "Confidence in an action, by task out of fold",
        ("source, confidence", "actions", "right", "AUROC", "within agents", "Brier", "ECE"),
        table,
    )
    table = []
    for name, row in rows.items():
        gains = (row["gain_over_today"], row["gain_without_repeats"])
        shown = [with_interval(gain["auroc"], gain["interval"], "+.2f") for gain in gains]
        silent = [
            f"{row[f'silent_share{unit}'][risk]:.0%}, {'-' if wrong is None else format(wrong, '.1%')}"
            for unit in ("", "_by_task")
            for risk, wrong in row[f"wrong_of_silent{unit}"].items()
        ]
        table.append((name, row["tasks"], *shown, *silent))
    print_table(
        "Against today's confidence; silent share and wrong of silent at a promised risk",
        ("source", "tasks", "AUROC gain", "without repeated calls", *(f"at {risk:.0%} by {unit}" for unit in ("session", "task") for risk in RISKS)), table,
    )  # fmt: skip


def costs() -> dict[str, float]:
    """What the history of a live run costs a gate: processor milliseconds per KB of what is new, and for one small new call."""
    grace = gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None)
    random = np.random.default_rng(SEED)
    letters = [*"abcdefghijklmnopqrstuvwxyz"]
    words = ["".join(random.choice(letters, 6)) for _ in range(2_000)]
    words += ["2024-05-14", "please", "invoice"] * 5 + [f"{number},200.00" for number in range(1, 200)]

    @grace.tool
    def look(number: int, size: int) -> dict[str, Any]:
        text = " ".join(random.choice(words, size // 7).tolist())
        return {"id": f"acc-{number}", "note": text}

    def waits(times: int) -> list[float]:
        found = []
        for number in range(times):
            start = thread_time()
            history = history_of(run)
            assert history is not None
            history.features("pay", {"account_id": f"acc-{number}", "amount": 1200, "note": "for the invoice of May"})
            found.append((thread_time() - start) * 1e3)
            look(1000 + number, 100)
        return found

    with grace.run("Pay nothing") as run:
        waits(1)  # the modules are loaded
    with grace.run("Pay the invoices") as run:
        for number in range(200):
            look(number, 4_000)
        size = sum(len(str(event.result)) for event in run.events[::2]) / 1000
        cold = waits(1)[0]
        warm = waits(101)[1:]
    grace.close()
    return {
        "kb": size,
        "ms_per_kb": cold / size,
        "ms_warm": float(np.median(warm)),
        "ms_warm_p95": float(np.quantile(warm, 0.95)),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "parts", nargs="*", help="alarms, learned, cost, and splits with learned; default the first three"
    )
    parser.add_argument("--data", type=Path, default=DATA / "actions")
    parser.add_argument("--only", help="the one source to learn on")
    parser.add_argument(
        "--languages", action="store_true", help="print the alarm `beside` by language, and nothing else"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    chosen = parser.parse_args(arguments)
    if chosen.languages:
        print_languages()
        return
    parts = chosen.parts or ["alarms", "learned", "cost"]
    report: dict[str, Any] = {}
    if "cost" in parts:
        report["cost"] = costs()
        if not chosen.json:
            print_table(
                "Cost of the history of a live run",
                tuple(report["cost"]),
                [tuple(f"{value:.3g}" for value in report["cost"].values())],
            )
    if parts == ["cost"]:
        print(json.dumps(report, indent=1, allow_nan=False) if chosen.json else "", end="")
        return
    actions = list(read_actions(chosen.data))
    if not actions:
        sys.exit(1)
    if "alarms" in parts:
        report["alarms"], report["any_alarm"] = alarm_rows(actions), any_alarm(actions)
        suites = sorted({action.suite for action in actions if action.source == BENIGN})
        report["alarms_by_suite"] = {
            suite: alarm_rows([each for each in actions if each.suite == suite]) for suite in suites
        }
        if not chosen.json:
            print_alarms("Alarms, as shares of actions", report["alarms"])
            print_alarms("Actions without an attack that any alarm asks about", {"any": report["any_alarm"]})
            for suite, rows in report["alarms_by_suite"].items():
                print_alarms(f"Alarms in the suite {suite}", rows)
    if "learned" in parts:
        labelled: dict[str, list[Action]] = {}
        for action in actions:
            if action.right is not None and chosen.only in {None, action.source}:
                labelled.setdefault(action.source, []).append(action)
        single = {name for name, members in labelled.items() if len({action.task for action in members}) == 1}
        predictions = {name: predict(members) for name, members in labelled.items() if name not in single}
        rows_of = {name: source_row(found) for name, found in predictions.items()}
        report["sources"] = {
            name: unmeasured_row(members) if name in single else rows_of[name] for name, members in labelled.items()
        }
        if single:
            print(f"nothing can be left out where there is one task: {', '.join(sorted(single))}", file=sys.stderr)
        if not chosen.json:
            print_sources(rows_of)
        if "splits" in parts:
            _risk.ladder = functools.cache(_risk.ladder)  # the same for every sample of one size
            report["splits"] = {name: broken_promises(found) for name, found in predictions.items()}
            if not chosen.json:
                rows = [
                    (name, risk, f"{each['used']:.1%}", f"{each['broken']:.2%}")
                    for name, risks in report["splits"].items()
                    for risk, each in risks.items()
                ]
                print_table(
                    f"Promises of {SPLITS:,} samples of {TASKS_OF_A_SPLIT} tasks (delta {DELTA})",
                    ("source", "risk", "some action is silent", "promise broken"),
                    rows,
                )
    if chosen.json:
        print(json.dumps(report, indent=1, allow_nan=False))


if __name__ == "__main__":
    main()
