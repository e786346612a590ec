"""Every setting in one frozen record, and where its value comes from.

Order of precedence: keyword argument, environment (`GRACE_KP_*`), `grace_kp.toml`, `[tool.grace_kp]` in pyproject.toml,
default. The files are looked for in the working directory and its parents, the nearest wins. An unknown name is refused.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from grace_kp.errors import SettingsError

PREFIX = "GRACE_KP_"
_TRUE, _FALSE = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What can be set by text; objects such as a reviewer or a judge are arguments of `Grace`."""

    enabled: bool = True
    """False turns everything but the gates off: decorated functions run as if they were not decorated."""
    capture_input: bool = True
    """False keeps structure and timings of runs without what was passed in."""
    capture_output: bool = True
    """False keeps structure and timings of runs without what came out."""
    sample_rate: float = 1.0
    """Share of whole runs that is kept, 0 to 1. Failed and gated runs are always kept."""
    store: str | None = None
    """`memory:` or `sqlite:///path.db`; None is a SQLite file in the user's data folder."""
    domain: str = "default"
    """Task domain of runs that name none; selects the weights of the value score."""
    profile: str = "grace"
    """Confidence profile: `grace` or `strict`."""
    privacy_level: str = "private"
    """`private` removes secrets; `aggregated` and `federated` remove identifiers too."""
    visibility: str = "private"
    """Who may see a trace: `private`, `org` or `network`."""
    max_text: int = 8_192
    """Characters kept of one text; the cut is made visible."""
    max_steps: int = 10_000
    """Steps kept of one run; what comes later is counted."""
    max_pending_mb: int = 256
    """Megabytes of finished traces that wait for a store that cannot write; beyond it the newest are dropped and counted."""
    journal_ms: int = 50
    """How often, in milliseconds, the open runs are journaled; a killed process loses at most two such intervals."""
    gate_timeout: float = 300.0
    """Seconds a gate waits for a person."""
    policies: dict[str, str] = field(default_factory=dict)
    """Floors by action name or glob, for example {"delete_*": "confirm"}."""
    source: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Where each value that is no default came from, for `grace-kp doctor`."""

    @classmethod
    def load(cls, *, environ: dict[str, str] | None = None, folder: Path | None = None, **given: Any) -> Self:
        """Settings from keywords, the environment and the configuration files.

        Args:
            environ: stands in for `os.environ`.
            folder: where the search for configuration files begins; the working directory when None.
            given: settings by name; None means not given.

        Raises:
            SettingsError: a name is unknown or a value cannot be used; the message says which and from where.
        """
        values: dict[str, Any] = {}
        source: dict[str, str] = {}
        for name, (raw, place) in {**_from_files(folder), **_from_environment(environ)}.items():
            values[name], source[name] = _convert(name, raw, place), place
        for name, value in given.items():
            if value is not None:
                _known(name, "keyword")
                values[name], source[name] = _convert(name, value, f"keyword {name}"), "keyword"
        return cls(**values, source=source)


_FIELDS = {item.name: item.type for item in fields(Settings) if item.name != "source"}
_CHOICES = {
    "profile": ("grace", "strict"),
    "privacy_level": ("aggregated", "federated", "private"),
    "visibility": ("private", "org", "network"),
}
_RANGES: dict[str, tuple[float, float]] = {
    "sample_rate": (0, 1),
    "max_text": (64, 1 << 24),
    "max_steps": (1, 1 << 30),
    "max_pending_mb": (1, 1 << 20),
    "journal_ms": (5, 60_000),
    "gate_timeout": (0, 10**9),
}
# Environment variables that belong to other parts of the library and not to this record.
_ELSEWHERE = frozenset({"GRACE_KP_STRICT_RECORDING", "GRACE_KP_CONFIG"})


def _from_environment(environ: dict[str, str] | None) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = {}
    for key, value in (os.environ if environ is None else environ).items():
        if key.startswith(PREFIX) and key not in _ELSEWHERE:
            name = key[len(PREFIX) :].lower()
            _known(name, f"environment variable {key}")
            found[name] = (value, f"environment variable {key}")
    return found


def _from_files(folder: Path | None) -> dict[str, tuple[Any, str]]:
    start = Path.cwd() if folder is None else folder
    for place in (start, *start.parents):
        own, project = place / "grace_kp.toml", place / "pyproject.toml"
        if own.is_file():
            return _table(own, ())
        if project.is_file() and b"[tool.grace_kp" in project.read_bytes():
            return _table(project, ("tool", "grace_kp"))
    return {}


def _table(path: Path, keys: tuple[str, ...]) -> dict[str, tuple[Any, str]]:
    import tomllib

    try:
        table: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise SettingsError(f"{path}: cannot be read: {error}") from None
    for key in keys:
        table = table.get(key, {})
    for name in table:
        _known(name, str(path))
    return {name: (value, str(path)) for name, value in table.items()}


def _known(name: str, place: str) -> None:
    if name not in _FIELDS:
        import difflib

        close = difflib.get_close_matches(name, _FIELDS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(sorted(_FIELDS))}"
        raise SettingsError(f"unknown setting {name!r} ({place}){hint}")


def _convert(name: str, raw: Any, place: str) -> Any:
    kind = _FIELDS[name]
    if kind == "bool":
        value: Any = _boolean(name, raw, place)
    elif kind in {"int", "float"}:
        value = _number(name, raw, place, integer=kind == "int")
    elif name == "policies":
        value = _policies(raw, place)
    else:
        if not isinstance(raw, str) or not raw:
            raise SettingsError(f"{name} ({place}) must be a non-empty text, not {raw!r}")
        value = raw
    if name in _CHOICES and value not in _CHOICES[name]:
        raise SettingsError(f"{name} ({place}) must be one of {', '.join(_CHOICES[name])}, not {raw!r}")
    return value


def _boolean(name: str, raw: Any, place: str) -> bool:
    if isinstance(raw, bool):
        return raw
    word = str(raw).strip().lower()
    if word in _TRUE | _FALSE:
        return word in _TRUE
    raise SettingsError(f"{name} ({place}) must be 1 or 0, not {raw!r}")


def _number(name: str, raw: Any, place: str, *, integer: bool) -> int | float:
    low, high = _RANGES[name]
    try:
        if isinstance(raw, bool):
            raise ValueError
        value = int(raw) if integer else float(raw)
    except (TypeError, ValueError):
        raise SettingsError(f"{name} ({place}) must be a number, not {raw!r}") from None
    if not low <= value <= high:
        raise SettingsError(f"{name} ({place}) must be between {low:g} and {high:g}, not {raw!r}")
    return value


def _policies(raw: Any, place: str) -> dict[str, str]:
    if isinstance(raw, str):
        # In the environment: delete_*=confirm,send_mail=deny
        pairs = [part.partition("=") for part in raw.split(",") if part.strip()]
        if not all(sign for _, sign, _ in pairs):
            raise SettingsError(f"policies ({place}) must read name=floor,name=floor, not {raw!r}")
        raw = {name.strip(): floor.strip() for name, _, floor in pairs}
    if not isinstance(raw, dict):
        raise SettingsError(f"policies ({place}) must be a table of action name to floor, not {raw!r}")
    return dict(raw)
