"""Conditions on traces, checked and in the form in which stores compare them, and the traces that meet them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from grace_kp.levels import WAITS
from grace_kp.store._database import ONE_OF
from grace_kp.store._record import ACTION_FIELD, ACTIONS, FIELD, scorer_name, with_feedback
from grace_kp.trace import METADATA, SESSION, TAG, USER, comparable, label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from grace_kp.store._database import Connection
    from grace_kp.trace import ReasoningTrace


def _is_number(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _are_strings(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


_BOUNDS = ("min_score", "max_score", "min_scorer", "max_scorer")
_STRINGS = ("domain", "status", "text", "scorer", "user", "session", "feedback_source")
_TYPES: tuple[tuple[tuple[str, ...], str, Callable[[Any], bool]], ...] = (
    (_BOUNDS, "a number", lambda value: _is_number(value, int | float) and value == value),
    (("limit", "offset"), "a whole number from 0", lambda value: _is_number(value, int) and value >= 0),
    (_STRINGS, "a string", lambda value: isinstance(value, str)),
    (("success", "scorer_passed", "feedback"), "true or false", lambda value: isinstance(value, bool)),
    (("tags",), "a list of strings", lambda value: isinstance(value, list | tuple) and _are_strings(value)),
    (("metadata",), "a dict with strings as keys", lambda value: isinstance(value, dict) and _are_strings(value)),
)
"""The conditions of a query, their type, and how to check it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Conditions on traces; None means any.

    Raises:
        ValueError: a condition cannot be used; the message names it.
    """

    domain: str | None = None
    min_score: float | None = None
    max_score: float | None = None
    success: bool | None = None
    """Whether the run succeeded. A run that waits for a person has neither succeeded nor failed."""
    status: str | None = None
    since: datetime | str | None = None
    until: datetime | str | None = None
    text: str | None = None
    scorer: str | None = None
    """Only runs scored by this scorer or suite. The next three are about its scores, or any scorer's."""
    scorer_passed: bool | None = None
    min_scorer: float | None = None
    max_scorer: float | None = None
    tags: Sequence[str] | str | None = None
    """All of these tags."""
    user: str | None = None
    session: str | None = None
    metadata: Mapping[str, Any] | None = None
    """All of these values under these keys; compared as strings, so that 3 and "3" are equal."""
    feedback: bool | None = None
    """Only runs with feedback, or only runs without."""
    feedback_source: str | None = None
    """The previous condition counts only feedback from this source, such as "user"; alone it asks for runs with such feedback."""
    limit: int | None = 100
    offset: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.tags, str):
            object.__setattr__(self, "tags", (self.tags,))
        for names, expected, is_valid in _TYPES:
            for name in names:
                value = getattr(self, name)
                if value is not None and not is_valid(value):
                    raise ValueError(f"{name} must be {expected}, not {value!r}")
        for name in _BOUNDS:
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, float(max(-1e300, min(1e300, value))))
        if self.scorer is not None:
            object.__setattr__(self, "scorer", scorer_name(self.scorer))
        for name in ("since", "until"):
            object.__setattr__(self, name, moment(getattr(self, name), name))

    @property
    def attributes(self) -> list[tuple[str, str, str]]:
        """The attributes that a trace must have, as (kind, name, value)."""
        wanted = [(TAG, "", label(tag)) for tag in self.tags or ()]
        named = ((USER, self.user), (SESSION, self.session))
        wanted += [(kind, "", label(value)) for kind, value in named if value is not None]
        wanted += [(METADATA, label(key), comparable(value)) for key, value in (self.metadata or {}).items()]
        return wanted


_AGO = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|m|h|d|w)\s*")
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def moment(value: datetime | str | None, name: str) -> str | None:
    """Return a point in time in the form of traces (UTC, milliseconds, Z), from a datetime, ISO text, or "2h" for two hours ago."""
    if value is None:
        return None
    if isinstance(value, str):
        ago = _AGO.fullmatch(value)
        try:
            if ago:
                value = datetime.now(UTC) - timedelta(seconds=float(ago[1]) * _UNITS[ago[2]])
            else:
                value = _in_utc(datetime.fromisoformat(value))
        except (ValueError, OverflowError):
            raise ValueError(f"{name} must be a time like 2026-01-02T03:04:05Z or 2h, not {value!r}") from None
    if not isinstance(value, datetime):
        raise ValueError(f"{name} must be a datetime or a string, not {value!r}")
    value = _in_utc(value)
    return value.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"  # %Y would not pad the year 926


def _in_utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def feedback_on(connection: Connection, ids: Sequence[str]) -> dict[str, dict[str, list[bytes]]]:
    """Return the labels of these traces by id and by the field of `grace` that holds them."""
    found: dict[str, dict[str, list[bytes]]] = {}
    owners = {kind + name: (name, field) for name in ids for kind, field in (("", FIELD), (ACTIONS, ACTION_FIELD))}
    sql = f"SELECT trace, data FROM feedback WHERE trace {ONE_OF} ORDER BY at, number"  # noqa: S608
    for owner, data in connection.execute(sql, (json.dumps(list(owners)),)):
        name, field = owners[owner]
        found.setdefault(name, {}).setdefault(field, []).append(bytes(data))
    return found


def load_traces(
    rows: Iterable[tuple[str, bytes]], feedback: dict[str, dict[str, list[bytes]]]
) -> Iterator[ReasoningTrace]:
    from grace_kp.trace import ReasoningTrace  # needs pydantic

    for name, data in rows:
        yield with_feedback(ReasoningTrace.model_validate_json(data), feedback.get(name, {}))


def where_of(query: Query) -> tuple[str, list[Any]]:
    """Return the conditions of a query as SQL, with its values."""
    parts, values = _compare(
        ("domain", "=", query.domain),
        ("score", ">=", query.min_score),
        ("score", "<=", query.max_score),
        ("success", "=", query.success),
        ("status", "=", query.status),
        ("created_at", ">=", query.since),
        ("created_at", "<=", query.until),
    )
    if query.success is not None:
        parts.append(f"status NOT IN {WAITS}")
    if query.text is not None:
        parts.append("instr(text, ?) > 0")
        values.append(searchable(query.text))
    conditions, more = _compare(
        ("name", "=", query.scorer),
        ("passed", "=", query.scorer_passed),
        ("score", ">=", query.min_scorer),
        ("score", "<=", query.max_scorer),
    )
    if conditions:
        parts.append(f"id IN (SELECT trace FROM scores WHERE {' AND '.join(conditions)})")  # noqa: S608
        values += more
    for condition in query.attributes:
        parts.append("id IN (SELECT trace FROM attributes WHERE kind = ? AND name = ? AND value = ?)")
        values += condition
    if query.feedback is not None or query.feedback_source is not None:
        found = "SELECT trace FROM feedback"
        if query.feedback_source is not None:
            found += " WHERE source = ?"
            values.append(query.feedback_source)
        parts.append(f"id {'NOT IN' if query.feedback is False else 'IN'} ({found})")
    return (f"WHERE {' AND '.join(parts)}" if parts else ""), values


def _compare(*conditions: tuple[str, str, Any]) -> tuple[list[str], list[Any]]:
    present = [(f"{column} {operator} ?", value) for column, operator, value in conditions if value is not None]
    return [sql for sql, _ in present], [value for _, value in present]


def searchable(text: str) -> str:
    """Return a string case-folded; half a surrogate pair, which SQLite cannot hold, becomes a question mark."""
    if text.isascii():
        return text.lower().replace("\0", " ")
    return text.casefold().encode("utf-8", errors="replace").decode("utf-8").replace("\0", " ")
