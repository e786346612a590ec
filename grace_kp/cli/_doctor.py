"""`grace-kp doctor`: packages, settings, models, profile, store and approvals, with the effect of each missing part."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
import shutil
import sys
import time
from collections import Counter
from contextlib import closing, contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._output import clean, console, put_json
from grace_kp.cli._page import TableColumn, TextTable, put, put_field, put_text
from grace_kp.errors import GraceError
from grace_kp.settings import is_profile_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from grace_kp.runtime import ProfileSet
    from grace_kp.settings import Settings
    from grace_kp.trace import ReasoningTrace


CORE = ("pydantic", "numpy", "tenacity", "typer", "rich", "platformdirs")
EXTRAS = {
    "gemini": ("google-genai", "no judge unless you pass one: self-evaluation and coverage are not evaluated"),
    "openai": ("httpx", "no judge or embedder at an OpenAI-compatible endpoint"),
    "onnx": ("onnxruntime", "no light embedder; without any, novelty stays 0.5"),
    "embeddings": ("sentence-transformers", "no embedder by torch; without any, novelty stays 0.5"),
    "langchain": ("langchain", "LangChain agents are not recorded by a handler, and their tools not gated"),
    "eval": ("regex", "no patterns in scorers, no suites and test sets in YAML, no p-values and pages of variants"),
    "inspect-ai": ("inspect-ai", "suites do not run inside of Inspect AI"),
    "pydantic-evals": ("pydantic-evals", "suites do not run inside of pydantic-evals"),
    "openai-agents": ("openai-agents", "agents of the OpenAI Agents SDK are not recorded, and their tools not gated"),
    "pydantic-ai": ("pydantic-ai-slim", "agents of Pydantic AI are not recorded, and their tools not gated"),
    "google-adk": ("google-adk", "agents of Google ADK are not recorded, and their tools not gated"),
    "strands": ("strands-agents", "agents of Strands are not recorded, and their tools not gated"),
    "knowledgepulse": ("httpx", "traces are not contributed to a registry"),
    "approvals": ("cryptography", "no arguments sealed, no edits of requests checked, no notifications by webhook"),
    "web": ("starlette", "no `grace-kp serve`, and no pages to mount"),
    "fast": ("orjson", "JSON is written by pydantic: the same bytes, more slowly"),
}
KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY")
WEEK = 7 * 86_400
NEWEST = 500
"""Number of newest traces whose actions are compared with the policies."""
RECENT = 50
"""Number of newest traces that are compared with a learned profile."""


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    fetch_model: Annotated[
        bool, typer.Option("--fetch-model", help="Fetch the default embedding model (91 MB) from the hub first.")
    ] = False,
) -> None:
    """Show packages, settings, models and the store, with the effect of each missing part. Exit with 1 if something is broken."""
    if fetch_model:
        from grace_kp.models import fetch_onnx

        err = console(stderr=True)
        # The client of the hub shows its own progress.
        folder = fetch_onnx(lambda what: put_text(err, clean(f"fetching {what} …")))
        put_text(err, clean(f"the embedding model is in {folder}"))
    report = examine()
    if as_json:
        put_json(report)
    else:
        _show(report)
    if report["problems"]:
        raise typer.Exit(1)


def examine() -> dict[str, Any]:
    import sqlite3

    from grace_kp import __version__
    from grace_kp.runtime import ProfileSet
    from grace_kp.settings import Settings

    problems: list[str] = []
    newest: list[ReasoningTrace] = []
    milder: list[dict[str, Any]] = []
    settings = stated = store = profile = None
    models: dict[str, Any] = {"evaluator": None, "embedder": None}
    with _collect_problems(problems):
        settings = Settings.load()
    if settings is not None:
        with _collect_problems(problems):
            stated = _describe_settings(settings, problems)
            store, newest = _examine_store(settings, problems)
        with _collect_problems(problems):
            profiles = ProfileSet.of_runtime(settings)
            profile, milder = _describe_profile(settings, profiles, newest[:RECENT]), profiles.milder(settings)
        models = _examine_models(settings, problems)
    reviewer = "none: standard input is not a terminal, so a gate that must ask cancels"
    if sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty():
        reviewer = "the console"
    return {
        "grace_kp": __version__,
        "python": platform.python_version(),
        "platform": platform.system(),
        "sqlite": sqlite3.sqlite_version,
        "core": {name: _find_version(name) for name in CORE},
        "extras": {
            extra: {"package": name, "version": _find_version(name), "without": lack}
            for extra, (name, lack) in EXTRAS.items()
        },
        "keys": {name: "set" if os.environ.get(name) else "not set" for name in KEYS},
        "settings": stated,
        "store": store,
        "profile": profile,
        "milder": milder,
        **models,
        "reviewer": reviewer,
        "problems": problems,
    }


@contextmanager
def _collect_problems(problems: list[str], part: str = "") -> Iterator[None]:
    """Report errors of the block as problems."""
    try:
        yield
    except (GraceError, OSError, ValueError) as error:
        problems.append(f"{part}{error}")


def _examine_models(settings: Settings, problems: list[str]) -> dict[str, Any]:
    """Describe the judge and the embedder that `auto` selects; load the embedder to prove that it works."""
    from grace_kp.models import choose_embedder, choose_judge

    judge, embedder = choose_judge(settings), choose_embedder(settings)
    report: dict[str, dict[str, Any]] = {
        "evaluator": {"name": judge.name, "why": judge.why, "mode": settings.judge},
        "embedder": {"name": embedder.name, "why": embedder.why},
    }
    if embedder.model is not None:
        with _collect_problems(problems, "embedder: "):
            started = time.perf_counter()
            embedder.model.load()
            report["embedder"]["loads_in_s"] = round(time.perf_counter() - started, 2)
            started = time.perf_counter()
            embedder.model.embed(["How long does a short text take?"])
            report["embedder"]["short_text_ms"] = round((time.perf_counter() - started) * 1e3, 1)
    return report


def _find_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _describe_settings(settings: Settings, problems: list[str]) -> dict[str, Any]:
    from grace_kp.approvals import receiver_of
    from grace_kp.gating import PolicySet

    PolicySet(settings.policies)  # refuses policies that cannot match an action
    names = [item.name for item in fields(settings) if item.name != "source"]
    values = {name: "never" if (value := getattr(settings, name)) == math.inf else value for name in names}
    if settings.webhook_url is not None:
        values["webhook_url"] = "not usable"
        with _collect_problems(problems, "webhook_url: "):
            values["webhook_url"] = receiver_of(settings.webhook_url)  # without its path, which may be a secret
    return {name: {"value": value, "from": settings.source.get(name, "default")} for name, value in values.items()}


def _examine_store(settings: Settings, problems: list[str]) -> tuple[dict[str, Any], list[ReasoningTrace]]:
    """Describe the store; return also its newest traces if policies or a profile are compared with them."""
    from grace_kp.gating import PolicySet
    from grace_kp.runtime import promises_in
    from grace_kp.store import RescueFiles, file_of, open_store

    file = file_of(settings.store)
    newest: list[ReasoningTrace] = []
    if file is not None and not file.exists():
        described = _missing_store(file, problems)
    else:
        with closing(open_store(settings.store, create=False)) as store:
            if settings.policies or is_profile_path(settings.profile):
                newest = store.query(limit=NEWEST)
            described = {**store.describe(), **_sum_losses(store)}
            with _collect_problems(problems):
                described["promises"] = promises_in(store)
            with _collect_problems(problems, "approvals: "):
                described["approvals"] = _describe_approvals(store)
            actions = {entry["action"] for trace in newest for entry in (trace.grace or {}).get("decisions") or ()}
            unmatched = PolicySet(settings.policies).unmatched(actions) if actions else {}  # with the nearest action
            described["unmatched_policies"] = unmatched
    if file is not None:
        described["free_disk_mb"] = shutil.disk_usage(_folder_above(file)).free >> 20
        if described["free_disk_mb"] < 100:
            problems.append(f"less than 100 MB of disk are free for {file}")
        waiting = RescueFiles(file).waiting()  # runs that processes could not write before they ended
        described["rescued"] = {"files": waiting.files, "runs": waiting.runs} if waiting.files else None
        todo = "its runs are not in the store: move or delete it"
        problems += [f"rescue file {reason}; {todo}" for reason in waiting.unusable]
    return {name: value for name, value in described.items() if name not in PARTS or value}, newest


def _folder_above(file: Path) -> Path:
    return next(folder for folder in file.absolute().parents if folder.exists())


def _missing_store(file: Path, problems: list[str]) -> dict[str, Any]:
    folder = _folder_above(file)
    if not folder.is_dir():
        problems.append(f"store {file}: cannot be created, because {folder} is not a folder")
    elif not os.access(folder, os.W_OK):
        problems.append(f"store {file}: cannot be created, because {folder} cannot be written")
    return {"kind": "sqlite", "path": str(file), "state": "not there yet; the first recorded run creates it"}


def _sum_losses(store: object) -> dict[str, Any]:
    reports = getattr(store, "reports", None)
    found = map(json.loads, reports(time.time() - WEEK)) if callable(reports) else ()
    weekly = [report for report in found if "killed" not in report]  # an estimate of earlier versions
    if not weekly:
        return {}
    troubles: Counter[str] = Counter()
    for report in weekly:
        troubles.update(report["troubles"])
    return {
        "not_recorded": {
            "processes": len(weekly),
            "dropped_traces": sum(report["dropped"] for report in weekly),
            "lost_traces": sum(report.get("lost", 0) for report in weekly),
            "troubles": dict(troubles.most_common(20)),
            "last": next((report["last_trouble"] for report in weekly if report["last_trouble"]), None),
        }
    }


def _describe_approvals(store: object) -> dict[str, Any] | None:
    """Describe the requests for approval, the end of their chain and the notifications."""
    from grace_kp.approvals import RowQuery

    tables = getattr(store, "approvals", None)
    seq, digest = tables.head() if tables is not None else (0, "")
    if tables is None or not seq:
        return None
    counted = {"pending": ("pending",), "approved": ("approved", "edited"), "unknown": ("unknown",)}
    cursors = [json.loads(data) for data in tables.documents("webhook").values()]
    facts = ("receiver", "delivered", "lost", "problem")
    return {
        **{name: tables.count(RowQuery(states=states)) for name, states in counted.items()},
        "chain": {"seq": seq, "hash": digest},
        "receivers": [
            {**{name: cursor.get(name) for name in facts}, "behind": seq - int(cursor.get("seq", 0))}
            for cursor in cursors
        ],
    }


def _describe_profile(settings: Settings, profiles: ProfileSet, recent: list[ReasoningTrace]) -> dict[str, Any]:
    """Describe the profile in force, and compare recent runs with those that a learned one was fitted on."""
    report = profiles.describe()
    if profiles.main.learned is not None:
        found = (sentence for trace in recent for sentence in profiles.main.mismatches(trace.to_dict()))
        report["file"] = settings.profile
        report["compared_runs"], report["mismatches"] = len(recent), list(dict.fromkeys(found))
    return report


PACKAGES = (
    TableColumn("package", "prose", least=24),
    TableColumn("version", "word", styles={"missing": "red"}),
    TableColumn("without it", "prose", priority=1, least=20),
)
SETTINGS = (
    TableColumn("setting", "word"),
    TableColumn("value", "prose", least=14),
    TableColumn("from", "prose", priority=1, least=10),
)
PARTS = frozenset({"not_recorded", "promises", "rescued", "approvals", "unmatched_policies"})
"""Optional parts of the report on the store, which have separate lines."""
NAMES = 16
"""Width of the names on the left."""


def _show(report: dict[str, Any]) -> None:
    out = console()
    versions = f"Python {report['python']} on {report['platform']}, SQLite {report['sqlite']}"
    put_text(out, f"grace_kp {report['grace_kp']}, {versions}")
    put(out, "")
    rows = TextTable(*PACKAGES)
    for name, version in report["core"].items():
        rows.add(name, version or "missing", "")
    for extra, entry in report["extras"].items():
        rows.add(f"{entry['package']} [{extra}]", entry["version"] or "-", "" if entry["version"] else entry["without"])
    rows.print(out)
    put(out, "")
    if report["settings"] is not None:
        rows = TextTable(*SETTINGS)
        for name, entry in report["settings"].items():
            rows.add(name, entry["value"], entry["from"])
        rows.print(out)
        put(out, "")
    for name, text, style in (*_facts(report), *_profile_facts(report), *_store_facts(report["store"] or {})):
        put_field(out, name, clean(text), label=NAMES, style=style)
    put(out, "")
    for problem in report["problems"]:
        put_field(out, "broken", clean(problem), label=NAMES, style="red")
    if not report["problems"]:
        put(out, "nothing is broken")


def _facts(report: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name, state in report["keys"].items():
        yield name, state, ""
    for name in ("evaluator", "embedder"):
        if model := report[name]:
            timings = (f", {timing} {model[timing]}" for timing in ("loads_in_s", "short_text_ms") if timing in model)
            yield name, f"{model['name']}: {model['why']}{''.join(timings)}", ""
    yield "reviewer", report["reviewer"], ""


def _profile_facts(report: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    profile = report["profile"]
    if profile is not None:
        levels = ", ".join(f"{name} {value}" for name, value in profile["thresholds"].items())
        yield "profile", f"{profile['name']}; thresholds {levels}", ""
    if profile is not None and "fitted_on" in profile:
        fitted, promise = profile["fitted_on"] or {}, profile["promise"]
        yield "", f"fitted on {fitted.get('runs', '?')} runs, at {fitted.get('fitted_at', '?')}", ""
        if profile["digest"]:
            yield "", f"digest {profile['digest']}", ""
        if promise:
            risks = ", ".join(f"{name} {risk}" for name, risk in (promise.get("risks") or {}).items())
            yield "", f"promise: {promise.get('kind')}, risks {risks}, delta {promise.get('delta')}", ""
        for sentence in profile["mismatches"]:
            yield "", f"the promise does not hold: {sentence}", "yellow"
        if profile["compared_runs"] and not profile["mismatches"]:
            yield "", f"it fits the latest {profile['compared_runs']:,} runs", ""
    for entry in report["milder"]:
        yield "milder gates", f"{entry['setting']} = {entry['value']} ({entry['from']})", "yellow"


def _store_facts(store: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    if store:
        yield "store", ", ".join(f"{name} {value}" for name, value in store.items() if name not in PARTS), ""
    if rescued := store.get("rescued"):
        waits = "runs wait in files next to the database until a process opens it for writing"
        yield "rescued", f"{rescued['runs']:,} {waits}", ""
    for policy, near in store.get("unmatched_policies", {}).items():
        hint = f"; did you mean {near}?" if near else ""
        yield "policy", f"{policy} matches no action of the newest traces{hint}", ""
    if found := store.get("approvals"):
        counts = f"{found['pending']:,} pending, {found['approved']:,} approved and not started"
        yield "approvals", f"{counts}, {found['unknown']:,} with an unknown outcome", ""
        yield "", f"newest entry of the chain: {found['chain']['seq']:,}, {found['chain']['hash']}", ""
        for each in found["receivers"]:
            counts = f"{each['delivered']:,} delivered, {each['lost']:,} lost"
            yield "notified", f"{each['receiver']}: {counts}, {each['behind']:,} entries not looked at yet", ""
            if each["problem"]:
                yield "", f"last problem: {each['problem']}", ""
    for promise in store.get("promises", ()):
        fitted = f", fitted {promise['fitted_at']}" if promise["fitted_at"] else ""
        state = "refuted" if promise["alarms"] else "not refuted"
        labels = f"{promise['labels']:,} labels of {promise['unit']}s"
        yield "promise", f"{promise['profile']}{fitted}: {state}, {labels}", ""
        for alarm in promise["alarms"]:
            yield "", alarm, ""
    if lost := store.get("not_recorded"):
        yield "not recorded", f"in the last week, by {lost['processes']:,} processes:", ""
        if lost["dropped_traces"]:
            yield "", f"{lost['dropped_traces']:,} runs dropped because the memory for waiting runs was full", ""
        if lost["lost_traces"]:
            yield "", f"{lost['lost_traces']:,} runs that could not be finished, or were lost with their file", ""
        for trouble, count in lost["troubles"].items():
            yield "", f"{count:,} × {trouble}", ""
