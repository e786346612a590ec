"""The settings as one frozen dataclass, with the source of each value.

Order of precedence: keyword argument, environment (`GRACE_KP_*`), configuration files, default. Of several policies for a name, the strictest
holds. Unknown names and unreadable files are errors.

`GRACE_KP_CONFIG` names the file. Without it, `grace_kp.toml` and `[tool.grace_kp]` in pyproject.toml are searched in the working directory
and its parents. An agent can write into its working directory, so such files only tighten: see `FOUND_FILES`.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from grace_kp.config_files import FILE, content_of, printable_name, reason, search
from grace_kp.errors import SettingsError, brief
from grace_kp.levels import InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Stated = tuple[str, Any, str]
    """A setting's name, its value and its source."""

PREFIX = "GRACE_KP_"
_NEAR_VARIABLE = re.compile(r"[\W_]*grace[\W_]*kp[\W_]*(\w[\w\W]*)", re.IGNORECASE)
_FLOORS = (*(level.value for level in InterventionLevel), "deny")
_UNMEASURED = ("silent", "notify", "confirm")
_MODE = re.compile(r"0?[67][0-7]{2}")
_PRICE = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?) ([A-Z]{3})\s*", re.ASCII)
_MEMORY_OPTION = re.compile(r"max_traces=0*[1-9]\d{0,17}|max_mb=(?=[\d.]*[1-9])\d{1,12}(\.\d{0,12})?", re.ASCII)
GLOB_SET = re.compile(r"\[!?(\][^\]]*|[^\]]+)\]")
"""A set of letters in a glob."""
_NO_NAMES = (
    (r"^\s*$", "it is empty"),
    (r"^\s|\s$", "it has a blank at its start or end"),
    (r"\{[^{}]*,[^{}]*\}|\{.*\}.*[*?]|[*?].*\{.*\}", "a glob has no braces; state each name by itself"),
    (r"[,;，；、](?![^\[]*\])", "it lists several names; state each name by itself"),
    (
        r"(^|[^\w*?]|_)\.\*|\.\+|\]\+|\\|\||\(\?|^\^|\$$|^/.*/$|^/[^/]*/[gimsux]{1,2}$",
        "it is a regular expression; a glob has `*`, `?` and `[abc]`",
    ),
    (r"[%＊？％]", "a glob is written with `*`, `?` and `[abc]`"),
    (r"^[!~]|^not\s", "a glob cannot be negated; state the names that the policy is for"),
    (r"""^['"`“”‘’]|['"`“”‘’]$""", "it has quotes around it"),
    (r"<(?!(lambda|locals)>)|(?<!<lambda)(?<!<locals)>|=|&&|\(\)$", "it is an expression; state the name alone"),
)
_TRUE, _FALSE = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off"})


class Policies(dict[str, "str | dict[str, str]"]):
    """Policies by action name or glob, each a floor or a table. Of several for a name, the strictest holds."""

    def __init__(self, *places: Mapping[str, str | dict[str, str]]) -> None:
        super().__init__()
        self.places = places
        """The policies of each place. A name in one place never replaces a glob of another."""
        for name, policy in ((name, policy) for place in places for name, policy in place.items()):
            tables = [known if isinstance(known, dict) else {"floor": known} for known in (self.get(name, {}), policy)]
            table = {
                key: max(stated, key=order.index)
                for key, order in (("floor", _FLOORS), ("unmeasured", _UNMEASURED))
                if (stated := [table[key] for table in tables if key in table])
            }
            self[name] = table["floor"] if [*table] == ["floor"] else table

    def __reduce__(self) -> Any:
        return Policies, self.places


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings with a textual form. Objects such as a reviewer or a judge are arguments of `Grace`."""

    enabled: bool = True
    """False turns off everything except the gates: decorated functions run as if they were not decorated."""
    capture_input: bool = True
    """False records structure and timings without inputs."""
    capture_output: bool = True
    """False records structure and timings without outputs."""
    sample_rate: float = 1.0
    """Share of runs that are kept, 0 to 1. Failed and gated runs are always kept."""
    store: str | None = None
    """`memory:` or `sqlite:///path.db`; None uses a SQLite file in the user's data folder."""
    domain: str = "default"
    """Task domain of runs without one; selects the weights of the value score."""
    profile: str = "grace"
    """Confidence profile: `grace`, `strict`, or the path of a learned profile, which ends in `.json`. A path in a configuration file is
    relative to the folder of that file."""
    threshold_silent: float = 0.9
    """Lowest confidence at which a gated action runs silently, 0 to 1; `never` (infinity) for none."""
    threshold_notify: float = 0.7
    """Lowest confidence at which it runs with a notice, 0 to 1; `never` for none."""
    threshold_confirm: float = 0.4
    """Lowest confidence at which a confirmation is enough, 0 to 1; `never` for none. Below it, the gate escalates."""
    novelty_cache_size: int = 1_000
    """Number of recent traces that a new trace is compared with for its novelty."""
    novelty_cache_ttl: float = 0.0
    """Seconds after which a trace no longer counts for novelty; 0 for no limit."""
    privacy_level: str = "private"
    """`private` removes secrets; `aggregated` and `federated` remove identifiers too."""
    visibility: str = "private"
    """Who may see a trace: `private`, `org` or `network`."""
    max_text: int = 8_192
    """Maximum length of a recorded string, in characters; a cut is made visible."""
    max_steps: int = 10_000
    """Steps kept of one run; later steps are only counted."""
    max_pending_mb: int = 256
    """Megabytes of finished traces that wait while the store cannot write; beyond it `overflow` decides."""
    overflow: str = "drop"
    """Handling of a run when those megabytes are full: `drop` counts and reports it, `wait` blocks the thread that ends it. In an event loop,
    which never waits, `wait` drops the run, too."""
    durability: str = "fast"
    """When a run that has ended is safe from a kill of the process: `fast` in the background, usually within 15 ms; `bounded` within
    100 ms unless the machine is overloaded, because threads that end runs wait where storing lags behind; `every_run` before the call returns."""
    max_document_mb: float = 32.0
    """Megabytes, unpacked, of one line or document of an input file; longer ones are reported and not read."""
    file_mode: str = "600"
    """Permissions of new files and the maximum for existing databases, octal; `600` is for the owner alone."""
    retention_days: float = 0.0
    """Days after which runs are deleted. Deletion happens at most once a day, when new runs are written; 0 keeps all runs."""
    journal_ms: int = 50
    """Milliseconds between two journal entries of open runs; a killed process loses at most two intervals."""
    gate_timeout: float = 300.0
    """Seconds that a gate waits for a reviewer."""
    unmeasured: str | None = None
    """Level of a gated call about which nothing was measured: `confirm`, `notify` or `silent`; None is `confirm`."""
    profile_digest: str | None = None
    """Digest that the content of the learned profile must have, `sha256:` and 64 hexadecimal digits; None accepts any content."""
    on_mismatch: str = "tighten"
    """Reaction to an agent, model or tool that the learned profile was not fitted on, or that is unknown: `tighten` makes gates ask at least
    for CONFIRM until the profile is fitted again; `report` only records it."""
    on_alarm: str = "report"
    """Reaction when feedback refutes a monitored promise (`Grace(monitor=…)`): `report` only reports it; `confirm` makes the affected gates ask
    at least for CONFIRM until the profile is fitted again."""
    audit_rate: float = 0.0
    """Share of the actions that run without asking, 0 to 1, that is selected at random for a check by a person."""
    policies: Policies = field(default_factory=Policies)
    """Floors by action name or glob, for example {"delete_*": "confirm"}. In a file, `[policies.refund]` may state `floor` and `unmeasured`."""
    reviewers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Groups of each person who decides requests for approval, for example {"ana": ("finance",)}."""
    prices: dict[str, tuple[float, str]] = field(default_factory=dict)
    """Price of a million tokens by model name or glob, with its currency, for example {"gemini-*": (0.3, "USD")}."""
    judge: str = "always"
    """When a model judges finished runs: `always`, `when_needed` (only if its answer could change the intervention level) or `never`."""
    judge_samples: int = 1
    """Number of judgements per run; the score is their mean."""
    judge_combined: bool = True
    """True requests both judgements of a run, self-evaluation and coverage, in one call."""
    judge_language: str = "auto"
    """Language of the prompts: `en`, `ja`, or `auto` for the language of the objective."""
    judge_timeout: float = 20.0
    """Seconds for one judgement with all its attempts."""
    judge_attempts: int = 5
    """Attempts per judgement."""
    judge_workers: int = 4
    """Number of runs that are judged in parallel."""
    scorer_timeout: float = 10.0
    """Seconds that a custom scorer may take for a finished run."""
    judge_cache: str | None = None
    """File that keeps judgements between processes; None keeps them in memory."""
    judge_calls_per_minute: int = 60
    """Spending limit in calls within 60 seconds; beyond it judgements are fallbacks. 0 for no limit, as below."""
    judge_tokens_per_minute: int = 0
    """Spending limit in tokens within 60 seconds."""
    judge_calls_per_run: int = 20
    """Spending limit in calls for one run."""
    judge_tokens_per_run: int = 0
    """Spending limit in tokens for one run."""
    gemini_model: str = "gemini-3.8-flash"
    """Model of the judge when the evaluator is `auto`."""
    gemini_base_url: str | None = None
    """Address of the Gemini service, for example of a gateway; None uses Google's."""
    openai_base_url: str | None = None
    """Address of the endpoint for models named `openai:MODEL`, for example `http://localhost:11434/v1`; None uses OPENAI_BASE_URL or OpenAI's."""
    embedding_model: str | None = None
    """Folder or hub name of the model for the embedder `auto`; None uses all-MiniLM-L6-v2."""
    embedding_device: str | None = None
    """Device of sentence-transformers: `cpu`, `cuda`, …"""
    fetch_models: bool = False
    """True allows fetching a model from the hub if it is not on disk."""
    registry_url: str | None = None
    """Knowledge registry that traces are contributed to."""
    webhook_url: str | None = field(default=None, repr=False)
    """Address that receives notifications about requests for approval; see `Webhook`. None sends none."""
    approval_link: str | None = None
    """Address of the page of a request for approval, with `{id}` in place of its id, for notifications."""
    source: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Source of each value that is not the default, for `grace-kp doctor`."""

    @classmethod
    def load(cls, *, environ: dict[str, str] | None = None, folder: Path | None = None, **keywords: object) -> Self:
        """Load the settings from keywords, the environment and the configuration files."""
        variables = os.environ if environ is None else environ
        values: dict[str, Any] = {}
        source: dict[str, str] = {}
        stated = {name: value for name, value in keywords.items() if value is not None}
        for name, value, place in (
            *_from_files(folder, variables),
            *_from_environment(variables),
            *((name, _convert(name, value, f"keyword {name}"), "keyword") for name, value in stated.items()),
        ):
            if name == "policies":
                earlier = values.get(name, Policies())
                value, place = Policies(*earlier.places, value), ", ".join((*filter(None, [source.get(name)]), place))
            elif name == "unmeasured" and _UNMEASURED.index(value) < _UNMEASURED.index(values.get(name, value)):
                continue  # of several places, the strictest holds
            values[name], source[name] = value, place
        settings = cls(**values, source=source)
        _check_order(settings)
        return settings

    @property
    def permissions(self) -> int:
        """`file_mode` as a number."""
        return int(self.file_mode, 8)


_FIELDS = {item.name: str(item.type) for item in fields(Settings) if item.name != "source"}
_CHOICES = {
    "unmeasured": ("confirm", "notify", "silent"), "on_alarm": ("report", "confirm"), "on_mismatch": ("report", "tighten"), "judge": ("always", "when_needed", "never"),
    "privacy_level": ("aggregated", "federated", "private"), "visibility": ("private", "org", "network"),
    "durability": ("fast", "bounded", "every_run"), "overflow": ("drop", "wait"), "judge_language": ("auto", "en", "ja"),
}  # fmt: skip
_RANGES: dict[str, tuple[float, float]] = {
    "audit_rate": (0, 1), "sample_rate": (0, 1), "max_text": (64, 1 << 24), "max_steps": (1, 1 << 30),
    "max_pending_mb": (1, 1 << 20), "max_document_mb": (0.001, 1 << 20), "retention_days": (0, 36_500),
    "journal_ms": (5, 60_000), "gate_timeout": (0, 10**9), "threshold_silent": (0, 1), "threshold_notify": (0, 1),
    "threshold_confirm": (0, 1), "novelty_cache_size": (1, 10**6), "novelty_cache_ttl": (0, 10**9),
    "judge_samples": (1, 100), "judge_timeout": (0.01, 3_600), "judge_attempts": (1, 100),
    "scorer_timeout": (0.01, 3_600), "judge_workers": (1, 64), "judge_calls_per_minute": (0, 10**9),
    "judge_tokens_per_minute": (0, 10**12), "judge_calls_per_run": (0, 10**9), "judge_tokens_per_run": (0, 10**12),
}  # fmt: skip
_THRESHOLDS = ("threshold_silent", "threshold_notify", "threshold_confirm")
PROFILES = ("grace", "strict")
NEVER = "never"
CONFIG = "GRACE_KP_CONFIG"
# Environment variables of this library that are not settings.
_ELSEWHERE = frozenset(
    {CONFIG, "GRACE_KP_STRICT_RECORDING", "GRACE_KP_REGISTRY_KEY", "GRACE_KP_WEBHOOK_SECRET", "GRACE_KP_KEY"}
)
DEFAULTS = {name: getattr(Settings(), name) for name in _FIELDS}


FOUND_FILES: dict[str, bool | Callable[[Any], float]] = {
    # These cannot make a gate milder or send data anywhere.
    **dict.fromkeys((
        "sample_rate", "domain", "novelty_cache_size", "novelty_cache_ttl", "max_text", "max_steps", "max_pending_mb", "overflow", "durability",
        "max_document_mb", "retention_days", "journal_ms", "prices", "judge_language", "judge_workers", "scorer_timeout", "embedding_device",
        "policies", "store",
    ), True),
    # These can. `audit_rate` decides which labels count for a monitored promise.
    **dict.fromkeys((
        "unmeasured", "threshold_silent", "threshold_notify", "threshold_confirm", "profile", "profile_digest", "on_mismatch", "audit_rate",
        "reviewers", "judge_cache", "gemini_model", "gemini_base_url", "openai_base_url", "embedding_model", "registry_url", "webhook_url",
        "approval_link",
    ), False),
    # Only values that are at least as strict as the default. A judge that runs out of time or calls falls back to 0.5. Without recording,
    # gates ask; a judge that is not asked receives no data.
    "enabled": lambda enabled: not enabled, "judge": ("always", "when_needed", "never").index,
    "capture_input": lambda captures: not captures, "capture_output": lambda captures: not captures,
    "privacy_level": ("private", "aggregated", "federated").index, "visibility": ("network", "org", "private").index,
    "file_mode": lambda mode: -(int(mode, 8) & 0o77), "fetch_models": lambda fetches: not fetches, "on_alarm": ("report", "confirm").index,
    "gate_timeout": float, "judge_timeout": float, "judge_attempts": float, "judge_combined": float, "judge_samples": lambda calls: -calls,
    **dict.fromkeys((
        "judge_calls_per_minute", "judge_tokens_per_minute", "judge_calls_per_run", "judge_tokens_per_run",
    ), lambda limit: limit or math.inf),
}  # fmt: skip
"""Values that a found file may state: True allows any value, False none; a function returns the strictness of a value.

It may state floors in `policies`, and as `store` a file below its own folder or that of the default. Of several files, the nearest decides
settings that are True; of the others, the strictest value holds.
"""


def _from_environment(environ: Mapping[str, str]) -> Iterator[Stated]:
    for variable, value in environ.items():
        name = variable.removeprefix(PREFIX).lower()
        if variable in _ELSEWHERE or "kp" not in variable.lower():
            continue
        place = f"environment variable {printable_name(variable)}"
        if variable.startswith(PREFIX):
            if name in _FIELDS and not value.strip(" \t\r\n,"):
                continue  # an empty variable adds nothing
            if not value.isprintable() and any("\ud800" <= character <= "\udfff" for character in value):
                raise SettingsError(f"{name} ({place}) must be UTF-8, not {value[:60]!a}")
            yield name, _convert(name, value, place), place
        elif near := _NEAR_VARIABLE.fullmatch(variable):
            name = re.sub(r"[\W_]+", "_", near[1]).lower()
            if name in {*_FIELDS, "config"}:
                raise SettingsError(f"{place} is not read; did you mean {PREFIX}{name.upper()}?")


def _from_files(folder: Path | None, environ: Mapping[str, str]) -> Iterator[Stated]:
    named = environ.get(CONFIG, "").strip()
    try:
        place = Path(named).expanduser().absolute() if named or folder is None else folder.absolute()
    except (OSError, RuntimeError) as error:  # the working directory was deleted, or the home folder is unknown
        place_name = f"{CONFIG} {brief(named)}" if named else f"{FILE} in the working directory"
        raise SettingsError(
            f"{place_name} cannot be found: {reason(error)}; set {CONFIG} to the absolute path of a file, which may be empty"
        ) from None
    if not named:
        yield from _from_found(place)
    elif (table := content_of(place)) is not None:
        yield from _in_file(place, table)
    else:
        lacks = "has no table [tool.grace_kp]" if os.path.lexists(place) else "does not exist"
        raise SettingsError(f"{CONFIG} names {printable_name(place)}, which {lacks}")


def _from_found(start: Path) -> Iterator[Stated]:
    kept: dict[str, Stated] = {}
    for number, (path, table) in enumerate(search(start)):
        for name, value, place in _in_file(path, table):
            if problem := _problem_in_found(name, value, path.parent):
                vouched = path.name if path.parent == start else printable_name(path)
                raise SettingsError(
                    f"{name} ({place}) {problem} in a file that is found by searching folders, because an agent may have written it; "
                    f"set it in code or as {PREFIX}{name.upper()}, or vouch for the file with {CONFIG}={vouched}"
                )
            rule = FOUND_FILES[name]
            is_stricter = callable(rule) and (name not in kept or rule(value) > rule(kept[name][1]))
            if name == "policies":
                yield name, value, place
            elif is_stricter or (rule is True and number == 0):
                kept[name] = name, value, place
    yield from kept.values()


def _problem_in_found(name: str, value: Any, folder: Path) -> str:
    """Return why a file found in this folder may not state a setting; empty if it may."""
    rule = FOUND_FILES.get(name, False)
    if not rule:
        return "cannot be set"
    if callable(rule) and rule(value) < rule(DEFAULTS[name]):
        return f"cannot be less strict than {brief(DEFAULTS[name])}"
    if name == "policies" and any(isinstance(policy, dict) and "unmeasured" in policy for policy in value.values()):
        return "cannot state `unmeasured`"
    if name == "store":
        if (file := store_file(value)) is None:
            return "cannot be in memory, which keeps no runs and no requests for approval,"
        from platformdirs import user_data_path

        allowed = (folder, user_data_path("grace_kp", appauthor=False))
        if not any(file.absolute().resolve().is_relative_to(own.resolve()) for own in allowed):
            return "cannot name a file outside its own folder and that of the default store"
    return ""


def _in_file(path: Path, table: dict[str, Any]) -> Iterator[Stated]:
    place = printable_name(path)
    for name, raw in table.items():
        is_path = name == "profile" and isinstance(raw, str) and is_profile_path(raw)
        yield name, _convert(name, str(path.parent / raw) if is_path else raw, place), place


STORES = "memory: or sqlite:///path.db"
"""Supported addresses of stores."""


def store_file(url: str) -> Path | None:
    """Return the file of a store's address; None for a store in memory."""
    scheme, colon, rest = url.partition(":")
    name = repr(re.sub(r"//[^@/]*@", "//…@", url))  # an address may hold a password, which no message shows
    if url == "memory:" or url.startswith("memory:?"):
        options = rest[1:].split("&") if rest else ()
        if not all(map(_MEMORY_OPTION.fullmatch, options)):
            limits = "max_traces is a whole number from 1, and max_mb a number above 0"
            raise ValueError(f"store {name}: unknown option or value; {limits}")
        return None
    if scheme in {"postgresql", "postgres"}:
        raise ValueError(f"this version has no PostgreSQL store; known are {STORES}")
    if not url.startswith("sqlite:///") or url != url.strip() or "\0" in url:
        hints = {
            "memory": "; for a store in memory, write memory:",
            "sqlite": "; for a file, write sqlite:/// and its path, without blanks at the ends",
        }
        hint = "" if colon else f"; for a file, write sqlite:///{url}"
        raise ValueError(f"unknown store {name}; known are {STORES}{hints.get(scheme.strip().lower(), hint)}")
    path = rest[3:]
    if path in {"", ":memory:"}:
        raise ValueError(f"store {name} names no file; use memory: for a store in memory, or sqlite:///path.db")
    if "?" in path or path.startswith("file:"):
        raise ValueError(f"store {name}: options of SQLite are not supported; known are {STORES}")
    try:
        file = Path(path).expanduser()
        if path.endswith("/") or (file.exists() and not file.is_file()):
            raise ValueError(f"store {name} must name a file, not a directory or a device; known are {STORES}")
    except (OSError, RuntimeError) as error:  # a part of the path is too long, or the user of `~name` is unknown
        raise ValueError(f"store {name} cannot be used: {reason(error)}; known are {STORES}") from None
    return file


def check_database(file: Path) -> None:
    """Refuse a file of the kernel, and a non-empty file that is not a SQLite database. The file is not changed."""
    path = Path(os.path.realpath(file))
    if path.parts[1:2] in {("proc",), ("sys",)}:
        raise OSError("it is a file of the kernel")
    if not path.exists():
        return
    if path.stat().st_size == 1:  # SQLite would treat it as empty
        raise OSError("file is not a database")
    import sqlite3

    try:
        # SQLite itself must read the header: closing a file that was opened otherwise releases the locks of this process on it.
        connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            connection.execute("PRAGMA schema_version")
        finally:
            connection.close()
    except sqlite3.Error as error:
        if error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR}:
            raise OSError(str(error)) from None


def _convert(name: str, raw: object, place: str) -> Any:
    if name not in _FIELDS:
        import difflib

        where = place.removesuffix(f" {name}") if place.startswith("keyword") else place
        close = difflib.get_close_matches(name, _FIELDS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(sorted(_FIELDS))}"
        raise SettingsError(f"unknown setting {brief(name)} ({where}){hint}")
    return (_PARSERS.get(name) or _PARSERS.get(_FIELDS[name], _string))(name, raw, place)


def _string(name: str, raw: object, place: str) -> str:
    allowed = ""
    if not isinstance(raw, str) or not raw:
        allowed = "a non-empty string"
    elif name in _CHOICES and raw not in _CHOICES[name]:
        allowed = f"one of {', '.join(_CHOICES[name])}"
    elif name == "profile" and raw not in PROFILES and not is_profile_path(raw):
        allowed = f"{', '.join(PROFILES)}, or the path of a learned profile, which ends in .json"
    elif name == "file_mode" and not _MODE.fullmatch(raw):
        allowed = "three octal digits that let the owner read and write, such as 600 or 660"
    if allowed:
        raise SettingsError(f"{name} ({place}) must be {allowed}, not {brief(raw)}")
    if name == "store":
        try:
            if (file := store_file(str(raw))) is not None:
                check_database(file)
        except OSError as error:
            raise SettingsError(f"store ({place}): {brief(raw)} cannot be used: {reason(error)}") from None
        except ValueError as error:
            raise SettingsError(f"store ({place}): {error}") from None
    return str(raw)


def is_profile_path(profile: str) -> bool:
    """Return whether `profile` is a path instead of a name."""
    return profile.lower().endswith(".json")


def _boolean(name: str, raw: object, place: str) -> bool:
    word = str(raw).strip().lower() if isinstance(raw, str | int) else ""
    if word in _TRUE | _FALSE:
        return word in _TRUE
    raise SettingsError(f"{name} ({place}) must be 1 or 0, not {brief(raw)}")


def _number(name: str, raw: object, place: str) -> int | float:
    low, high = _RANGES[name]
    integer = _FIELDS[name] == "int"
    try:
        if isinstance(raw, bool) or not isinstance(raw, str | int | float):
            raise TypeError
        value = int(raw) if integer else float(raw)
        if isinstance(raw, float) and value != raw:  # 1.5 would be cut to 1, and NaN is never equal
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        allowed = "a whole number" if integer else "a number"
        raise SettingsError(f"{name} ({place}) must be {allowed}, not {brief(raw)}") from None
    if not low <= value <= high:
        raise SettingsError(f"{name} ({place}) must be between {low} and {high}, not {brief(raw)}")
    return value


def _threshold(name: str, raw: object, place: str) -> float:
    if raw == NEVER or (isinstance(raw, float) and raw == math.inf):
        return math.inf
    try:
        return _number(name, raw, place)
    except SettingsError:
        raise SettingsError(f'{name} ({place}) must be a number from 0 to 1, or "never"; not {brief(raw)}') from None


def _check_order(settings: Settings) -> None:
    for pair in pairwise(_THRESHOLDS):
        first, second = (getattr(settings, name) for name in pair)
        if first < second:
            places = [
                f"{name} {NEVER if value == math.inf else value} ({settings.source.get(name, 'default')})"
                for name, value in zip(pair, (first, second), strict=True)
            ]
            raise SettingsError(f"{places[0]} must not be below {places[1]}; set both, or change one")


def _policies(setting: str, raw: object, place: str) -> dict[str, str | dict[str, str]]:
    # As a string: delete_*=confirm,send_mail=deny
    pairs = _table(setting, "floor", "action name to floor", raw, place)
    found: dict[str, str | dict[str, str]] = {}
    for name, policy in pairs.items():
        if not isinstance(name, str) or not name:
            raise SettingsError(f"policies ({place}) must have non-empty action names, not {brief(name)}")
        try:
            check_name(name)
        except ValueError as error:
            raise SettingsError(f"policies ({place}): {brief(name)}: {error}") from None
        table = policy if isinstance(policy, dict) else {"floor": policy}
        for key, value in table.items():
            allowed = {"floor": _FLOORS, "unmeasured": _UNMEASURED}.get(key)
            if allowed is None:
                hint = f'an action whose name has a dot is written "{name}.{key}"'
                raise SettingsError(
                    f"policies ({place}): {brief(name)} may state floor and unmeasured, not {brief(key)}; {hint}"
                )
            if value not in allowed:
                what = "the floor" if key == "floor" else key
                raise SettingsError(
                    f"policies ({place}): {what} of {brief(name)} must be one of {', '.join(allowed)}, not {brief(value)}"
                )
        if not table:
            raise SettingsError(f"policies ({place}): {brief(name)} must state floor or unmeasured")
        found[name] = (
            str(table["floor"]) if [*table] == ["floor"] else {key: str(value) for key, value in table.items()}
        )
    return found


def is_glob(name: str) -> bool:
    """Return whether the name of a policy is a glob."""
    return any(letter in name for letter in "*?[")


def check_name(name: object) -> None:
    """Refuse a value that is neither a possible name of an action nor a glob."""
    import fnmatch
    import unicodedata

    if not isinstance(name, str):
        raise ValueError(f"the name of an action, or a glob, must be a string, not {type(name).__name__}")
    problem = next((why for form, why in _NO_NAMES if re.search(form, name, re.DOTALL | re.IGNORECASE)), "")
    if any(unicodedata.category(letter) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for letter in name.strip()):
        problem = "it has a character that cannot be seen"
    rest = GLOB_SET.sub("", name)
    if "[" in rest or ("]" in rest and rest == name) or (is_glob(name) and "(?!)" in fnmatch.translate(name)):
        problem = "its brackets do not match; a set is written `[abc]`, and a bracket itself `[[]`"
    if problem:
        raise ValueError(f"it can match no action: {problem}. Rename an action that is really called so")


def _reviewers(setting: str, raw: object, place: str) -> dict[str, tuple[str, ...]]:
    # As a string: ana=finance+legal,bob=finance
    pairs = _table(setting, "group+group", "name to list of groups", raw, place)
    found = {}
    for name, groups in pairs.items():
        listed = groups.split("+") if isinstance(groups, str) else groups
        if not isinstance(listed, list | tuple) or not all(
            isinstance(group, str) and group.strip() for group in (name, *listed)
        ):
            raise SettingsError(f"reviewers ({place}): {brief(name)} must have a list of groups, not {brief(groups)}")
        found[str(name)] = tuple(group.strip() for group in listed)
    return found


def _prices(setting: str, raw: object, place: str) -> dict[str, tuple[float, str]]:
    # As a string: gemini-*=0.3 USD,other=2 EUR
    pairs = _table(setting, "price currency", "model name to price", raw, place)
    found = {}
    for name, price in pairs.items():
        parts = " ".join(map(str, price)) if isinstance(price, list | tuple) else price
        stated = _PRICE.fullmatch(parts) if isinstance(parts, str) else None
        if not isinstance(name, str) or not name or stated is None:
            raise SettingsError(
                f"prices ({place}): the price of {brief(name)} must read like '0.30 USD', for a million tokens, not {brief(price)}"
            )
        found[name] = (float(stated[1]), stated[2])
    return found


def _table(setting: str, value: str, content: str, raw: object, place: str) -> dict[Any, Any]:
    """Return a table, or parse a string of the form name=value,name=value."""
    if isinstance(raw, dict):
        return raw
    if not isinstance(raw, str):
        raise SettingsError(f"{setting} ({place}) must be a table of {content}, not {brief(raw)}")
    pairs: dict[str, str] = {}
    for part in raw.split(","):
        if not part.strip():
            continue
        name, separator, right = (piece.strip() for piece in part.partition("="))
        if not separator:
            raise SettingsError(f"{setting} ({place}) must read name={value},name={value}, not {brief(raw)}")
        if name in pairs:
            raise SettingsError(f"{setting} ({place}) name {brief(name)} twice")
        pairs[name] = right
    return pairs


_PARSERS: dict[str, Callable[[str, object, str], Any]] = {
    "bool": _boolean, "int": _number, "float": _number, **dict.fromkeys(_THRESHOLDS, _threshold),
    "policies": _policies, "reviewers": _reviewers, "prices": _prices,
}  # fmt: skip
"""The parser of a setting, by its name or else by its type; `_string` for the others."""
