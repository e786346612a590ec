"""The confidence profile of the settings, for `grace-kp doctor`: its thresholds, what a learned one promises, and whether it fits recent runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.cli._output import clean
from grace_kp.cli._page import put_field, put_text
from grace_kp.errors import GraceError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from grace_kp.settings import Settings

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
    report = profiles.describe()
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
