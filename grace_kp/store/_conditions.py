"""Conditions on traces as SQL, and texts in the form that SQLite can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grace_kp.store._store import Query


def where_of(query: Query) -> tuple[str, list[Any]]:
    parts, values = _compared(
        ("domain", "=", query.domain),
        ("score", ">=", query.min_score),
        ("score", "<=", query.max_score),
        ("success", "=", query.success),
        ("status", "=", query.status),
        ("created_at", ">=", query.since),
        ("created_at", "<=", query.until),
    )
    if query.text is not None:
        parts.append("instr(text, ?) > 0")
        values.append(searchable(query.text))
    if query.asks_for_scores:
        said, more = _compared(
            ("name", "=", query.scorer),
            ("passed", "=", query.scorer_passed),
            ("score", ">=", query.min_scorer),
            ("score", "<=", query.max_scorer),
        )
        parts.append(f"id IN (SELECT trace FROM scores WHERE {' AND '.join(said)})")  # noqa: S608
        values += more
    for condition in query.attributes:
        parts.append("id IN (SELECT trace FROM attributes WHERE kind = ? AND name = ? AND value = ?)")
        values += condition
    return (f"WHERE {' AND '.join(parts)}" if parts else ""), values


def _compared(*conditions: tuple[str, str, Any]) -> tuple[list[str], list[Any]]:
    """The conditions that are given, as SQL and its values."""
    given = [(f"{column} {sign} ?", value) for column, sign, value in conditions if value is not None]
    return [sql for sql, _ in given], [value for _, value in given]


def searchable(text: str) -> str:
    """Case-folded for searching; half a surrogate pair, which SQLite cannot hold, becomes a question mark."""
    return text.casefold().encode("utf-8", errors="replace").decode("utf-8").replace("\0", " ")
