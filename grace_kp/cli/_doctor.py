"""`grace-kp doctor`: installed packages, settings, models, the profile, the store and its approvals, with the effect of each missing part."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import math
import os
import platform
import shutil
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._output import clean, console, plain, put_json
from grace_kp.cli._page import TableColumn, TextTable, put, put_field, put_text
from grace_kp.errors import GraceError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rich.console import Console

    from grace_kp.settings import Settings


CORE = ("pydantic", "numpy", "tenacity", "typer", "rich", "platformdirs")
EXTRAS = {
    "gemini": ("google-genai", "no judge unless you pass one: self-evaluation and coverage are not evaluated"),
    "onnx": ("onnxruntime", "no light embedder; without any, novelty stays 0.5"),
    "embeddings": ("sentence-transformers", "no embedder by torch; without any, novelty stays 0.5"),
    "langchain": ("langchain", "LangChain agents are not recorded by a handler, and their tools not gated"),
    "eval": ("regex", "no patterns in scorers, no suites and test sets in YAML, no p-values and pages of variants"),
    "inspect-ai": ("inspect-ai", "suites do not run inside of Inspect AI"),
    "pydantic-evals": ("pydantic-evals", "suites do not run inside of pydantic-evals"),
    "knowledgepulse": ("httpx", "traces are not contributed to a registry"),
    "approvals": ("cryptography", "no arguments sealed, no edits of requests checked, no notifications by webhook"),
    "web": ("starlette", "no `grace-kp serve`, and no pages to mount"),
    "fast": ("orjson", "JSON is written by pydantic: the same bytes, more slowly"),
}
WEEK = 7 * 86_400
NEWEST = 500
"""Traces whose actions are compared with the policies of the settings."""


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    fetch_model: Annotated[
        bool, typer.Option("--fetch-model", help="Fetch the default embedding model (91 MB) from the hub first.")
    ] = False,
) -> None:
    """Show installed packages, settings, models and the store, and the effect of each missing part. Exit with 1 if something is broken."""
    if fetch_model:
        _fetch()
    report = examine()
    if as_json:
        put_json(report)
    else:
        _show(report)
    if report["problems"]:
        raise typer.Exit(1)


def examine() -> dict[str, Any]:
    """Return the whole report."""
    import sqlite3

    from grace_kp import __version__

    problems: list[str] = []
    settings = _load_settings(problems)
    stated = None if settings is None else _stated(settings, problems)
    store = None if settings is None or stated is None else _store(settings.store, problems, settings.policies)
    profile = None if settings is None else profile_report(settings, problems)
    milder = [] if profile is None else profile.pop("milder")
    models = {"evaluator": None, "embedder": None} if settings is None else _models(settings, problems)
    return {
        "grace_kp": __version__,
        "python": platform.python_version(),
        "platform": platform.system(),
        "sqlite": sqlite3.sqlite_version,
        "core": {name: _installed(name) for name in CORE},
        "extras": {
            extra: {"package": name, "version": _installed(name), "without": lack}
            for extra, (name, lack) in EXTRAS.items()
        },
        "keys": {name: "set" if os.environ.get(name) else "not set" for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY")},
        "settings": stated,
        "store": store,
        "profile": profile,
        "milder": milder,
        **models,
        "reviewer": "the console"
        if _terminal()
        else "none: standard input is no terminal, so a gate that must ask cancels",
        "problems": problems,
    }


def _fetch() -> None:
    """Fetch the model; the client of the hub shows its own progress on a terminal."""
    from grace_kp.models import fetch_onnx

    err = console(stderr=True)
    folder = fetch_onnx(lambda what: err.print(f"fetching {what} …"))
    err.print(f"the embedding model is in {plain(str(folder))}")


def _models(settings: Settings, problems: list[str]) -> dict[str, Any]:
    """Return the judge and the embedder that `auto` selects, with the reasons; load the embedder to prove that it works."""
    from grace_kp.models import choose_embedder, choose_judge

    judge, embedder = choose_judge(settings), choose_embedder(settings)
    report: dict[str, dict[str, Any]] = {
        "evaluator": {"name": judge.name, "why": judge.why, "mode": settings.judge},
        "embedder": {"name": embedder.name, "why": embedder.why},
    }
    if embedder.model is not None:
        try:
            started = time.perf_counter()
            embedder.model.load()
            report["embedder"]["loads_in_s"] = round(time.perf_counter() - started, 2)
            started = time.perf_counter()
            embedder.model.embed(["How long does a short text take?"])
            report["embedder"]["short_text_ms"] = round((time.perf_counter() - started) * 1e3, 1)
        except GraceError as error:
            problems.append(f"embedder: {error}")
    return report


def _terminal() -> bool:
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except (ValueError, OSError):
        return False


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _load_settings(problems: list[str]) -> Settings | None:
    from grace_kp.settings import Settings

    try:
        return Settings.load()
    except ValueError as error:
        problems.append(str(error))
        return None


def _stated(settings: Settings, problems: list[str]) -> dict[str, Any] | None:
    """Return each setting with its source; None where the policies cannot be used."""
    from dataclasses import fields

    from grace_kp.gating import PolicySet

    try:
        PolicySet(settings.policies)
    except ValueError as error:
        problems.append(str(error))
        return None
    names = [item.name for item in fields(settings) if item.name != "source"]
    return {
        name: {"value": _in_json(name, getattr(settings, name), problems), "from": settings.source.get(name, "default")}
        for name in names
    }


def _in_json(name: str, value: object, problems: list[str]) -> Any:
    if name == "webhook_url" and isinstance(value, str):
        from grace_kp.approvals import receiver_of

        try:
            return receiver_of(value)  # its path may be a secret
        except GraceError as error:
            problems.append(f"webhook_url: {error}")
            return "not usable"
    return "never" if value == math.inf else value


def _store(url: str | None, problems: list[str], policies: Any) -> dict[str, Any] | None:
    from grace_kp.store import file_of, open_store

    try:
        file = file_of(url)
        if file is not None and not file.exists():
            return {**_missing_store(file, problems), **_rescued(file, problems)}
        store = open_store(url, create=False)
        described = {**_described(store), **_lost(store), **_promises(store, problems), **approvals_in(store, problems)}
        described.update(_unmatched(store, policies))
        store.close()
    except (GraceError, OSError) as error:
        problems.append(str(error))
        return None
    if file is not None:
        described["free_disk_mb"] = _free_disk(file, problems)
        described.update(_rescued(file, problems))
    return described


def _rescued(file: Path, problems: list[str]) -> dict[str, Any]:
    """Return what processes could not write before they ended, and left beside the database."""
    from grace_kp.store import RescueFiles

    waiting = RescueFiles(file).waiting()
    problems += [
        f"rescue file {reason}; its runs are not in the store: move or delete it" for reason in waiting.unusable
    ]
    return {"rescued": {"files": waiting.files, "runs": waiting.runs}} if waiting.files else {}


def _missing_store(file: Path, problems: list[str]) -> dict[str, Any]:
    """Describe a store that does not exist yet."""
    folder = next(folder for folder in file.absolute().parents if folder.exists())
    if not folder.is_dir():
        problems.append(f"store {file}: cannot be created, because {folder} is no folder")
    elif not os.access(folder, os.W_OK):
        problems.append(f"store {file}: cannot be created, because {folder} cannot be written")
    return {
        "kind": "sqlite",
        "path": str(file),
        "state": "not there yet; the first recorded run creates it",
        "free_disk_mb": _free_disk(file, problems),
    }


def _free_disk(file: Path, problems: list[str]) -> int:
    folder = next(folder for folder in file.absolute().parents if folder.exists())
    free = shutil.disk_usage(folder).free
    if free < 100 << 20:
        problems.append(f"less than 100 MB of disk are free for {file}")
    return free >> 20


def _lost(store: object) -> dict[str, Any]:
    """Return what the processes of the last week could not record, added up."""
    reports = getattr(store, "reports", None)
    found = map(json.loads, reports(time.time() - WEEK)) if callable(reports) else ()
    weekly = [report for report in found if "killed" not in report]  # an estimate that earlier versions made
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


def _promises(store: object, problems: list[str]) -> dict[str, Any]:
    """Return the promises that are watched in the store."""
    from grace_kp.runtime import promises_in

    try:
        promises = promises_in(store)
    except GraceError as error:
        problems.append(str(error))
        return {}
    return {"promises": promises} if promises else {}


def _unmatched(store: Any, policies: Any) -> dict[str, Any]:
    """Return the policies of the settings that match no action of the newest traces, each with the nearest one."""
    from grace_kp.gating import PolicySet

    decided = [trace.grace.get("decisions") or () for trace in store.query(limit=NEWEST)] if policies else []
    actions = {entry["action"] for entries in decided for entry in entries}
    unmatched = PolicySet(policies).unmatched(actions) if actions else {}
    return {"unmatched_policies": unmatched} if unmatched else {}


def _described(store: object) -> dict[str, Any]:
    described = store.describe() if hasattr(store, "describe") else {"kind": type(store).__name__}
    return (
        described
        if isinstance(described, dict)
        else {name: getattr(described, name) for name in type(described).__slots__}
    )


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
        lack = "" if entry["version"] else entry["without"]
        rows.add(f"{entry['package']} [{extra}]", entry["version"] or "-", lack)
    rows.print(out)
    put(out, "")
    if report["settings"] is not None:
        rows = TextTable(*SETTINGS)
        for name, entry in report["settings"].items():
            rows.add(name, entry["value"], entry["from"])
        rows.print(out)
        put(out, "")
    for name, state in report["keys"].items():
        put_field(out, name, state, label=NAMES)
    for name in ("evaluator", "embedder"):
        if report[name] is not None:
            put_field(out, name, clean(_model_words(report[name])), label=NAMES)
    put_field(out, "reviewer", report["reviewer"], label=NAMES)
    if report["profile"] is not None:
        put_profile(out, report["profile"], label=NAMES)
    for entry in report["milder"]:
        text = f"{entry['setting']} = {entry['value']} ({entry['from']})"
        put_field(out, "milder gates", clean(text), label=NAMES, style="yellow")
    if report["store"] is not None:
        _show_store(out, report["store"])
    put(out, "")
    for problem in report["problems"]:
        put_field(out, "broken", clean(problem), label=NAMES, style="red")
    if not report["problems"]:
        put(out, "nothing is broken")


def _model_words(model: dict[str, Any]) -> str:
    timings = (f", {name} {model[name]}" for name in ("loads_in_s", "short_text_ms") if name in model)
    return f"{model['name']}: {model['why']}{''.join(timings)}"


def _show_store(out: Console, store: dict[str, Any]) -> None:
    facts = {
        name: value
        for name, value in store.items()
        if name not in {"not_recorded", "promises", "rescued", "approvals", "unmatched_policies"}
    }
    put_field(out, "store", clean(", ".join(f"{name} {value}" for name, value in facts.items())), label=NAMES)
    rescued = store.get("rescued")
    if rescued is not None:
        what = f"{rescued['runs']:,} runs wait beside the database until a process opens it for writing"
        put_field(out, "rescued", what, label=NAMES)
    for stated, near in store.get("unmatched_policies", {}).items():
        hint = f"; did you mean {near}?" if near else ""
        put_field(out, "policy", clean(f"{stated} matches no action of the newest traces{hint}"), label=NAMES)
    put_approvals(out, store.get("approvals"), label=NAMES)
    for promise in store.get("promises", ()):
        fitted = f", fitted {promise['fitted_at']}" if promise["fitted_at"] else ""
        state = "refuted" if promise["alarms"] else "not refuted"
        put_field(
            out, "promise", clean(f"{promise['profile']}{fitted}: {state}, {promise['labels']:,} labels"), label=NAMES
        )
        for alarm in promise["alarms"]:
            put_text(out, clean(alarm), indent=NAMES)
    lost = store.get("not_recorded")
    if lost is None:
        return
    put_field(out, "not recorded", f"in the last week, by {lost['processes']:,} processes:", label=NAMES)
    if lost["dropped_traces"]:
        put_text(out, f"{lost['dropped_traces']:,} runs for which memory had no room while they waited", indent=NAMES)
    if lost["lost_traces"]:
        put_text(out, f"{lost['lost_traces']:,} runs that could not be finished, or went with their file", indent=NAMES)
    for what, count in lost["troubles"].items():
        put_text(out, f"{count:,} × {clean(what)}", indent=NAMES)


def approvals_in(store: object, problems: list[str]) -> dict[str, Any]:
    """Return how many requests for approval wait for what, where their chain stands, and what became of notifications."""
    from grace_kp.approvals import RowQuery

    try:
        tables = getattr(store, "approvals", None)
        seq, digest = tables.head() if tables is not None else (0, "")
        if tables is None or not seq:
            return {}
        counts = {
            name: tables.count(RowQuery(states=states))
            for name, states in (
                ("pending", ("pending",)),
                ("approved", ("approved", "edited")),
                ("unknown", ("unknown",)),
            )
        }
        cursors = [json.loads(data) for data in tables.documents("webhook").values()]
    except (GraceError, ValueError) as error:
        problems.append(f"approvals: {error}")
        return {}
    facts = ("receiver", "delivered", "lost", "problem")
    receivers = [
        {**{name: cursor.get(name) for name in facts}, "behind": seq - int(cursor.get("seq", 0))} for cursor in cursors
    ]
    return {"approvals": {**counts, "chain": {"seq": seq, "hash": digest}, "receivers": receivers}}


def put_approvals(out: Console, found: dict[str, Any] | None, *, label: int) -> None:
    """Write them; nothing for a store without any."""
    if found is None:
        return
    chain = found["chain"]
    put_field(
        out,
        "approvals",
        f"{found['pending']:,} pending, {found['approved']:,} approved and not started, {found['unknown']:,} with an unknown outcome",
        label=label,
    )
    put_text(out, f"newest entry of the chain: {chain['seq']:,}, {clean(chain['hash'])}", indent=label)
    for each in found["receivers"]:
        text = f"{each['receiver']}: {each['delivered']:,} delivered, {each['lost']:,} lost, {each['behind']:,} entries not looked at yet"
        put_field(out, "notified", clean(text), label=label)
        if each["problem"]:
            put_text(out, clean(f"last problem: {each['problem']}"), indent=label)


RECENT = 50
"""Number of the latest runs that a learned profile is compared with."""


def profile_report(settings: Settings, problems: list[str]) -> dict[str, Any] | None:
    """Return the profile in force; None, and a problem, where it cannot be used."""
    from grace_kp.runtime import ProfileSet

    try:
        profiles = ProfileSet.of_runtime(settings)
    except GraceError as error:
        problems.append(str(error))
        return None
    report = {**profiles.describe(), "milder": profiles.milder(settings)}
    if profiles.main.learned is not None:
        report["file"] = settings.profile
        report["compared_runs"], report["mismatches"] = _differences(settings, profiles)
    return report


def _differences(settings: Settings, profiles: Any) -> tuple[int, list[str]]:
    """Return the number of recent runs in the store, and how they differ from those that the profile was fitted on."""
    from grace_kp.store import open_store

    try:
        store = open_store(settings.store, create=False)
    except (GraceError, OSError):
        return 0, []  # there is no store yet, or the store's own part of the report says what is wrong
    try:
        recent = store.query(limit=RECENT)
    except GraceError:
        return 0, []
    finally:
        store.close()
    found = (sentence for trace in recent for sentence in profiles.main.mismatches(trace.to_dict()))
    return len(recent), list(dict.fromkeys(found))


def put_profile(out: Console, report: Mapping[str, Any], *, label: int) -> None:
    """Write the profile; of a learned one what it was fitted on, what it promises, and why that may not hold."""
    levels = ", ".join(f"{name} {value}" for name, value in report["thresholds"].items())
    put_field(out, "profile", clean(f"{report['name']}; thresholds {levels}"), label=label)
    if "fitted_on" not in report:
        return
    fitted, promise = report["fitted_on"] or {}, report["promise"]
    put_text(out, clean(f"fitted on {fitted.get('runs', '?')} runs, at {fitted.get('fitted_at', '?')}"), indent=label)
    if report["digest"]:
        put_text(out, clean(f"digest {report['digest']}"), indent=label)
    if promise:
        risks = ", ".join(f"{name} {risk}" for name, risk in (promise.get("risks") or {}).items())
        stated = f"promise: {promise.get('kind')}, risks {risks}, delta {promise.get('delta')}"
        put_text(out, clean(stated), indent=label)
    for sentence in report["mismatches"]:
        put_text(out, clean(f"the promise does not hold: {sentence}"), indent=label, style="yellow")
    if report["compared_runs"] and not report["mismatches"]:
        put_text(out, f"it fits the latest {report['compared_runs']:,} runs", indent=label)
