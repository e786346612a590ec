"""Searching an index: the conditions on runs, the plan that answers them, and pages of the runs that meet them.

The plan says which table is walked, and which conditions each of its rows must meet. The rows of a page are looked for in the order of time, in
growing windows, until the time is up. The index of words narrows a search for a string to the runs that have its trigrams.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grace_kp.store._catalog_facts import (
    AGENT,
    ANY_SCORER,
    DOMAIN,
    FAILED,
    LABELLED,
    LEVEL,
    OF_SESSION,
    OF_USER,
    PASSED,
    SCORER,
    SHOWN,
    STATUS,
    TAGGED,
    instant,
    milliseconds,
)
from grace_kp.store._catalog_index import SHIFT, has_words, words_from
from grace_kp.store._database import ONE_OF, stopping_at
from grace_kp.store._query import moment, searchable
from grace_kp.store._record import scorer_name
from grace_kp.trace import label

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from grace_kp.store._catalog_files import Source
    from grace_kp.store._database import Connection


Window = tuple[int | None, int | None]
"""Positions between which runs are looked for: beyond the first, up to the second."""
HAS_MARK = "EXISTS (SELECT 1 FROM marks WHERE value = ? AND marks.position = r.position)"
_COLUMNS = {AGENT: "agent", DOMAIN: "domain", STATUS: "status", LEVEL: "level"}
COLUMN_ADVANTAGE = 8
"""How many rows of `runs` are compared in the time in which a row of `marks` is looked up there. It counts where other conditions have to be
met as well."""
FIRST_WINDOW = 2_000
LARGEST_WINDOW = 250_000
GROWTH = 8
FEW = 2_000
"""Up to this number of runs, their texts are read instead of the index of words."""
FIRST_CHECKED, MOST_CHECKED = 64, 512
"""Texts that are looked into at a time."""
ENUMERATING_SECONDS = 0.03
TRIGRAM_LENGTH = 3
MOST_TRIGRAMS = 24
"""Trigrams of a string that are looked up. Runs that contain them are compared with the whole string anyway."""
MOST_TERMS = 400
"""Trigrams that begin with a string of one or two characters. With more of them the string is frequent, and reading runs finds it soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogQuery:
    """Conditions on runs; None or empty means any."""

    agent: str | None = None
    """Name of the agent or run (`trace.name`); without one, its `metadata.agent_id`; else empty."""
    domain: str | None = None
    status: str | None = None
    level: str | None = None
    """Strictest level of the gates of the run: `silent`, `notify`, `confirm`, `escalate`; `none` for runs without a gate."""
    min_score: float | None = None
    max_score: float | None = None
    min_confidence: float | None = None
    max_confidence: float | None = None
    scorer: str | None = None
    scorer_passed: bool | None = None
    tags: Sequence[str] = ()
    user: str | None = None
    session: str | None = None
    since: str | None = None
    until: str | None = None
    """Times as `Query` takes them."""
    text: str | None = None
    """A string that the run contains, ignoring case; from 1 character."""
    feedback: bool | None = None
    roots: bool = False
    """Only runs that are not nested in another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run in a list."""

    position: int
    """Its place in the order by time; a cursor for `Catalog.find`."""
    id: str
    created_at: str
    """When it began, ISO 8601 in UTC."""
    agent: str
    domain: str
    status: str
    success: bool
    score: float
    confidence: float | None
    """The effective confidence, 0 to 1; None where none was computed or stated."""
    level: str | None
    objective: str
    """The first 300 characters."""
    duration_ms: float | None
    steps: int
    gates: int
    tokens: int
    user: str | None
    session: str | None
    tags: tuple[str, ...]
    parent: str | None
    awaits: bool
    """Whether a judgement or a score is still to be added."""
    labelled: bool = False
    """Whether the run has feedback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """A page of a list."""

    rows: tuple[RunRow, ...]
    newer: int | None
    """`after=` for the page of newer runs; None if there are none."""
    older: int | None
    """`before=` for the page of older runs; None if there are none."""
    searched_to: str | None = None
    """How far back (ISO 8601) the search got before its time was up; None if it was complete. `older` then goes on from there, or `newer`
    where the page was asked for with `after`."""


@dataclass(slots=True)
class Plan:
    """A plan for answering a query."""

    driver: int | None
    """The name whose marks are walked; None to walk all runs."""
    driver_runs: int
    """Number of rows that are walked."""
    conditions: list[str] = field(default_factory=list)
    """On `runs`, under the name `r`."""
    values: list[Any] = field(default_factory=list)
    lowest: int | None = None
    """The first position that can match."""
    beyond: int | None = None
    """The first position after all that can match."""
    text: str | None = None
    """Case-folded."""
    words: str | None = None
    """The expression for the index of words; None to read every run, "" if no run has the words."""

    def add(self, condition: str, *values: Any) -> None:
        self.conditions.append(condition)
        self.values += values

    def range(self, column: str, start: int | None, edge: int | None, *, down: bool) -> tuple[list[str], list[Any]]:
        """Return the conditions on the position: within the times of the query, beyond `start`, and up to `edge`."""
        lowest = (self.lowest, edge if down else None if start is None else start + 1)
        beyond = (self.beyond, start if down else None if edge is None else edge + 1)
        bounds = [
            (f"{column} >= ?", max((value for value in lowest if value is not None), default=None)),
            (f"{column} < ?", min((value for value in beyond if value is not None), default=None)),
        ]
        return [sql for sql, value in bounds if value is not None], [value for _, value in bounds if value is not None]


def plan_of(query: CatalogQuery, connection: Connection) -> Plan | None:
    """Return how to answer a query from an index; None if no run can match."""
    facts = dict(connection.execute("SELECT name, value FROM facts WHERE name IN ('runs', 'latest')"))
    plan = Plan(driver=None, driver_runs=facts["runs"], text=searchable(query.text) if query.text else None)
    names: list[tuple[int, int, int]] = []
    for kind, name in _names(query):
        row = connection.execute("SELECT value, runs FROM names WHERE kind = ? AND name = ?", (kind, name)).fetchone()
        if row is None or row[1] <= 0:
            return None
        names.append((kind, *row))
    for condition, bound in (
        ("r.score >= ?", query.min_score), ("r.score <= ?", query.max_score),
        ("r.confidence >= ?", query.min_confidence), ("r.confidence <= ?", query.max_confidence),
    ):  # fmt: skip
        if bound is not None:
            plan.add(condition, float(bound))
    if query.feedback is False:
        plan.add("r.feedback = 0")
    if query.roots:
        plan.add("r.root = 1")
    is_only = len(names) == 1 and not plan.conditions and plan.text is None
    advantage = 1 if is_only else COLUMN_ADVANTAGE
    drivers = [
        (runs, value) for kind, value, runs in names if kind not in _COLUMNS or runs * advantage < plan.driver_runs
    ]
    if drivers:
        plan.driver_runs, plan.driver = min(drivers)
    for kind, value, _ in names:
        if kind in _COLUMNS:
            plan.add(f"r.{_COLUMNS[kind]} = ?", value)
        elif value != plan.driver:
            plan.add(HAS_MARK, value)
    since, until = moment(query.since, "since"), moment(query.until, "until")
    if since is not None:
        plan.lowest = milliseconds(since) << SHIFT
    if until is not None:
        plan.beyond = (milliseconds(until) + facts["latest"] + 1) << SHIFT
    for at, compare in ((since, ">="), (until, "<=")):
        if at is not None and facts["latest"]:  # some positions are later than their runs
            plan.add(f"(r.position >> {SHIFT}) - r.late {compare} ?", milliseconds(at))
    return plan


def _names(query: CatalogQuery) -> Iterator[tuple[int, str]]:
    for kind, name in (
        (AGENT, query.agent), (DOMAIN, query.domain), (STATUS, query.status), (LEVEL, query.level),
        (OF_USER, query.user), (OF_SESSION, query.session),
    ):  # fmt: skip
        if name is not None:
            yield kind, label(name) if kind in {AGENT, OF_USER, OF_SESSION} else scorer_name(name)
    for tag in dict.fromkeys(query.tags):
        yield TAGGED, label(tag)
    if query.scorer is not None:
        kind = SCORER if query.scorer_passed is None else PASSED if query.scorer_passed else FAILED
        yield kind, scorer_name(query.scorer)
    elif query.scorer_passed is not None:
        yield ANY_SCORER, str(query.scorer_passed)
    if query.feedback:
        yield LABELLED, ""


def row_of(position: int, name: str, facts: str, labelled: int) -> RunRow:
    fields = dict(zip(SHOWN, json.loads(facts), strict=False))
    fields["tags"] = tuple(fields["tags"])
    return RunRow(position=position, id=name, labelled=bool(labelled), **fields)


class Search:
    """One search in an index. The source holds the contents of the runs; `seconds` bounds the search."""

    _plan: Plan

    def __init__(self, connection: Connection, source: Source, seconds: float) -> None:
        self._connection, self._source = connection, source
        now = time.monotonic()
        self._halfway, self._deadline = now + seconds / 2, now + seconds
        self._reached: int | None = None
        """The last position in a window whose text was looked into, if the window was left there."""

    def page(self, query: CatalogQuery, before: int | None, after: int | None, limit: int) -> RunPage:
        plan = plan_of(query, self._connection)
        if plan is not None:
            self._plan = plan
            self._find_words()
        if plan is None or limit < 1 or plan.words == "":
            return RunPage(rows=(), newer=None, older=None)
        down = after is None or before is not None
        if down and after is not None:
            plan.lowest = max(after + 1, plan.lowest if plan.lowest is not None else after + 1)
        start = before if down else after
        positions, stopped_at = self._walk(start, limit + 1, down=down)
        has_more = len(positions) > limit
        del positions[limit:]
        if not down:
            positions.reverse()
        onward = positions[-1 if down else 0] if has_more else stopped_at
        back = None
        if start is not None:  # the page before this one, if it has any rows; where the time is up, that is assumed
            edge = (positions[0] if down else positions[-1]) if positions else (start - 1 if down else start + 1)
            found, back_stopped_at = self._walk(edge, 1, down=not down)
            back = edge if found or back_stopped_at is not None else None
        return RunPage(
            rows=self._rows(positions),
            newer=back if down else onward,
            older=onward if down else back,
            searched_to=None if has_more or stopped_at is None else instant(stopped_at >> SHIFT),
        )

    def _find_words(self) -> None:
        plan = self._plan
        if plan.text is None or plan.driver_runs <= FEW or not has_words(self._connection):
            return
        if words_from(self._connection) is not None:
            return  # the words of some runs are still missing
        # A frequent string takes too long to look up, and the block is left early.
        with stopping_at(self._connection, min(self._deadline, time.monotonic() + ENUMERATING_SECONDS)):
            plan.words = expression_of(self._connection, plan.text)

    def _walk(self, start: int | None, wanted: int, *, down: bool) -> tuple[list[int], int | None]:
        """Return the next positions that match, beyond `start`, and the last that was examined when the time was up; None if all were."""
        found: list[int] = []
        if self._plan.words is not None:
            # Words are mostly so rare or so frequent that all is found at once.
            if self._collect((start, None), found, wanted, self._halfway, down=down):
                return found, None
            start = start if self._reached is None else self._reached
            if self._is_late and self._reached is not None:
                return found, start
        window, total = FIRST_WINDOW, self._plan.driver_runs
        left = total
        while True:
            edge = None if window >= left else self._edge(start, window, down=down)
            # The first window is small and always finished, so that a search that is continued gets on.
            deadline = self._deadline if left < total else None
            is_done = self._collect((start, edge), found, wanted, deadline, down=down)
            if is_done and (edge is None or len(found) == wanted):
                return found, None
            start = edge if is_done else start if self._reached is None else self._reached
            if not is_done or self._is_late:
                return found, start
            window, left = min(window * GROWTH, LARGEST_WINDOW), left - window

    def _collect(self, window: Window, found: list[int], wanted: int, deadline: float | None, *, down: bool) -> bool:
        """Add the positions in a window that match; return whether it was finished or enough were found."""
        is_done = False
        with stopping_at(self._connection, deadline):
            for position in self._matches(window, wanted - len(found), down=down):
                found.append(position)
                if len(found) == wanted:
                    break
            is_done = self._reached is None or len(found) == wanted
        return is_done  # noqa: RET504 — the block may be left early, without an error

    @property
    def _is_late(self) -> bool:
        return time.monotonic() > self._deadline

    def _edge(self, start: int | None, window: int, *, down: bool) -> int | None:
        """Return the position at which a window of so many rows ends, itself included; None if it reaches the end."""
        conditions, values = self._plan.range("position", start, None, down=down)
        table = "runs"
        if self._plan.driver is not None:
            table, conditions, values = "marks", [*conditions, "value = ?"], [*values, self._plan.driver]
        row = self._connection.execute(
            f"SELECT position FROM {table} WHERE {' AND '.join(conditions) or '1'}"  # noqa: S608
            f" ORDER BY position {'DESC' if down else 'ASC'} LIMIT 1 OFFSET ?",
            (*values, window - 1),
        ).fetchone()
        return None if row is None else int(row[0])

    def _matches(self, window: Window, wanted: int, *, down: bool) -> Iterator[int]:
        self._reached = None
        plan = self._plan
        name, tables, conditions, values = "r.position", "runs r", [*plan.conditions], [*plan.values]
        if plan.words is not None:
            name, tables = "w.rowid", "words w CROSS JOIN runs r ON r.position = w.rowid"
            conditions.insert(0, "words MATCH ?")
            values.insert(0, plan.words)
            if plan.driver is not None:
                conditions.append(HAS_MARK)
                values.append(plan.driver)
        elif plan.driver is not None:
            name, tables = "m.position", "marks m CROSS JOIN runs r ON r.position = m.position"
            conditions.append("m.value = ?")
            values.append(plan.driver)
        bounds, positions = plan.range(name, *window, down=down)
        sql = (
            f"SELECT r.position, r.number FROM {tables} WHERE {' AND '.join([*conditions, *bounds]) or '1'}"  # noqa: S608
            f" ORDER BY {name} {'DESC' if down else 'ASC'}"
        )
        values += positions
        if plan.text is None:
            for position, _ in self._connection.execute(f"{sql} LIMIT ?", (*values, wanted)):
                yield position
            return
        size = FIRST_CHECKED
        cursor = self._connection.execute(sql, values)
        while batch := cursor.fetchmany(size):
            containing = self._source.containing([number for _, number in batch], plan.text)
            for position, number in batch:
                if number in containing:
                    yield position
            self._reached = batch[-1][0]
            if self._is_late:
                return
            size = min(size * 2, MOST_CHECKED)
        self._reached = None

    def _rows(self, positions: list[int]) -> tuple[Any, ...]:
        found = self._connection.execute(
            f"SELECT position, id, facts, feedback FROM shown JOIN runs USING (position) WHERE position {ONE_OF}"  # noqa: S608
            " ORDER BY position DESC",
            (json.dumps(positions),),
        )
        return tuple(row_of(*row) for row in found)


def expression_of(connection: Connection, text: str) -> str | None:
    """Return an expression that matches at least every run that contains a string; None if the string is too frequent."""
    if len(text) >= TRIGRAM_LENGTH:
        return " AND ".join(map(_quote, _trigrams(text)))
    beginning = connection.execute(
        "SELECT term FROM words_terms WHERE term >= ? AND term < ? LIMIT ?", (text, _after(text), MOST_TERMS + 1)
    )
    terms = [term for (term,) in beginning]
    return None if len(terms) > MOST_TERMS else " OR ".join(map(_quote, terms))


def _trigrams(text: str) -> list[str]:
    """Return the trigrams of a string; for a long one, a sample of all its parts."""
    found = list(dict.fromkeys(text[start : start + TRIGRAM_LENGTH] for start in range(len(text) - TRIGRAM_LENGTH + 1)))
    step = -(-len(found) // MOST_TRIGRAMS)
    return found[::step]


def _after(text: str) -> str:
    """Return the first string after all that begin with this one."""
    last = ord(text[-1]) + 1
    if 0xD800 <= last <= 0xDFFF:
        last = 0xE000
    return text[:-1] + chr(last) if last <= 0x10FFFF else text + chr(0x10FFFF)


def _quote(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'
