"""Feedback on finished runs: the checks of one label, its redaction, its way into the store, and files of labels.

Unlike recording, it raises: a label that was stated and not stored would be missing from a calibration unnoticed. In a
file, each row that cannot be stored is reported with its line, and the others are stored.
"""

from __future__ import annotations

import csv
import inspect
import json
import re
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from grace_kp.approvals import idempotency_key_of
from grace_kp.errors import ApprovalError, InvalidRecord, StoreError, UnknownTrace, brief, check_unit
from grace_kp.gating import audit_probability
from grace_kp.record import attempt, finish_late, note
from grace_kp.runtime._promise import count_labels
from grace_kp.settings import Settings
from grace_kp.store import CHECK, PROGRAM, RESERVED, REVERSAL, FeedbackEntry, named_decisions, to_bytes
from grace_kp.trace import TooLong, cut, label, lines_of, redact_text, storable, verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence

    from grace_kp.approvals import Inbox
    from grace_kp.runtime._writer import Writer
    from grace_kp.store import Store
    from grace_kp.trace import ReasoningTrace

    LabelRow = tuple[FeedbackEntry, int]
    """A label of a file, and its line."""


MAX_NOTE = 2_000
"""Characters of a note."""
MAX_RAW = 50_000
"""Characters of a note that are read; what is behind them is neither scanned for secrets nor kept."""
MAX_SOURCE = 40
MAX_ACTION, MAX_LISTED, MAX_DIGITS = 500, 20, 10
"""Characters of an id of an action, actions that a message lists, and digits that are too many for the number of one."""
NUMBER = "#"
"""Before the number of an action, which else may be the id of another."""
AUDIT = "audit"
PREFIX = "kp:trace:"
_SOURCE = re.compile(rf"[A-Za-z_][A-Za-z0-9_.-]{{0,{MAX_SOURCE - 1}}}", re.ASCII)


def feedback_entry(
    trace_id: str,
    correct: bool | float,
    source: str = "user",
    *,
    by: str | None = None,
    note: str | None = None,
    probability: float | None = None,
    identifiers: bool = False,
    at_ns: int | None = None,
) -> FeedbackEntry:
    """Return the label of one trace, checked and without secrets."""
    if not isinstance(trace_id, str) or not trace_id:
        raise ValueError(f"trace_id must be the id of a trace (got {brief(trace_id)})")
    if not isinstance(source, str) or not _SOURCE.fullmatch(source):
        raise ValueError(
            f"source must be a name of at most {MAX_SOURCE} letters, digits, '_', '-' and '.', "
            f"such as 'user', 'test' or 'audit' (got {brief(source)})"
        )
    if redact_text(source, identifiers=False) != source:
        raise ValueError("source must not hold a secret")
    at = (time.time_ns() if at_ns is None else at_ns) // 1_000
    stated = datetime.fromtimestamp(at // 1_000_000, UTC).replace(microsecond=at % 1_000_000)
    entry: dict[str, Any] = {
        "correct": _correct(correct),
        "source": source,
        "at": stated.isoformat(timespec="microseconds").replace("+00:00", "Z"),
    }
    for name, text in (("by", by), ("note", note)):
        if text is None:
            continue
        if not isinstance(text, str):
            raise ValueError(f"{name} must be a string (got {brief(text)})")
        clean = redact_text(storable(text[:MAX_RAW]), identifiers=identifiers)
        entry[name] = label(clean) if name == "by" else cut(clean, MAX_NOTE)
    if probability is not None:
        check_unit("probability", probability)
        if not probability:
            raise ValueError("probability must be above 0: a run that could not be chosen cannot have a label")
        entry["probability"] = probability
    name = trace_id if trace_id.startswith(PREFIX) else PREFIX + trace_id
    return FeedbackEntry(name, at / 1e6, source, to_bytes(entry))


def mark_action(entry: FeedbackEntry, action: object) -> FeedbackEntry:
    """Return a label as that of an action, which `find_action` knows; as it is for None."""
    if action is None:
        return entry
    name = f"{NUMBER}{action}" if type(action) is int and 0 < action < 10**MAX_DIGITS else action
    if not isinstance(name, str) or not 0 < len(name.strip()) <= MAX_ACTION:
        raise ValueError(
            "action must be the id of a decision, of its approval or of its tool call, or the number of the action in the run, from 1 on "
            f"(got {brief(action)})"
        )
    return replace(entry, action=name.strip(), data=to_bytes({**json.loads(entry.data), "action": name.strip()}))


def find_action(trace: ReasoningTrace, action: str) -> str:
    """Return the id of the decision that is meant, as labels of actions name it; the number of a decision without an id.

    Args:
        trace: the trace with the decision.
        action: the id of the decision, of its approval, of its tool call or its idempotency key, or its number from 1 on; the number alone
            if `#` is before it.

    Raises:
        ValueError: no action of the run is meant, or several are. The message names the actions.
    """
    decisions, digits = named_decisions(trace), action.removeprefix(NUMBER)
    number = int(digits) if digits.isdecimal() and len(digits) < MAX_DIGITS else 0
    found = {name for place, name, each in decisions if place + 1 == number or action in _ids_of(each.data)}
    if len(found) == 1:
        return found.pop()
    listed = ", ".join(f"{place + 1} {each.action} ({name})" for place, name, each in decisions[:MAX_LISTED])
    more = f" and {len(decisions) - MAX_LISTED:,} more" if len(decisions) > MAX_LISTED else ""
    what = "several actions have" if found else "no action has"
    raise ValueError(f"{what} the id {brief(action)} in {trace.id}; its gated actions: {listed or 'none'}{more}")


def _ids_of(decision: Mapping[str, Any]) -> list[object]:
    approval, name = decision.get("approval"), decision.get("id")
    own = [name, idempotency_key_of(name)] if isinstance(name, str) else []
    return [*own, decision.get("tool_call_id"), approval.get("id") if isinstance(approval, dict) else None]


def resolve_label(store: Store, entry: FeedbackEntry) -> FeedbackEntry:
    """Return the label of an action with the id that `find_action` finds; any other, and one whose trace is not stored, as it is.

    Raises:
        ValueError: no action is meant, or several are; or the label has the source `audit`, and its weight is unknown.
    """
    has_no_weight = entry.source == AUDIT and b'"probability"' not in entry.data
    trace = store.get(entry.trace) if entry.action or has_no_weight else None
    if trace is None:
        return entry
    if entry.action:
        entry = mark_action(entry, find_action(trace, entry.action))
    decisions = [{**each.data} for _, name, each in named_decisions(trace) if entry.action in ("", name)]
    if has_no_weight and audit_probability(decisions) is None:
        raise ValueError(
            f"source 'audit' needs probability=…, the share of {'actions' if entry.action else 'runs'} that were chosen for the audit: no gate of "
            f"{entry.trace} recorded an audit rate; use another source if the run was not chosen at random"
        )
    return entry


def program_problem(source: object, probability: float | None) -> str:
    """Return why a program may not state a label; empty if it may."""
    if isinstance(source, str) and source.casefold() in RESERVED:
        return (
            f"source {source!r} is reserved for people: a program states none of {', '.join(sorted(RESERVED))}; "
            "use 'test', 'outcome' or a name of your own"
        )
    if probability not in (None, 1):
        return f"a program must not state a probability below 1, because its label must not count for other runs (got {brief(probability)})"
    return ""


def mark_program(entry: FeedbackEntry) -> FeedbackEntry:
    """Return a label as that of a program, which a person's label replaces."""
    stated = json.loads(entry.data)
    problem = program_problem(entry.source, stated.get("probability"))
    if problem:
        raise ValueError(problem)
    return replace(entry, data=to_bytes({**stated, PROGRAM: True}))


def _correct(value: Any) -> bool | float:
    """Return a label as True, False, or a number between 0 and 1."""
    if isinstance(value, bool):
        return value
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind in {"b", "f", "i", "u"} and getattr(value, "shape", None) == ():
        return _correct(value.item())  # a number of numpy
    check_unit("correct", value, "True or False")
    number = float(value)
    return bool(number) if number in {0.0, 1.0} else number


def add_feedback(store: Store, entries: Sequence[FeedbackEntry]) -> list[str]:
    """Store labels, count them for the promises that are watched in the store, and return the ids of traces that are not in it."""
    put_feedback = getattr(store, "put_feedback", None)
    if not callable(put_feedback):
        # Reading the trace, changing it and storing it again would lose labels to a judgement or another process that does the same.
        raise StoreError(
            f"{type(store).__name__} keeps no feedback: it needs a method put_feedback(entries) that adds each entry to its trace, "
            "whatever version of the trace is stored later, and returns the ids of traces that it does not hold"
        )
    missing: list[str] = put_feedback(entries)
    count_labels(store, [entry for entry in entries if entry.trace not in missing])
    return missing


def stated_correct(value: object) -> object:
    """Return the label that a string or another value states: "correct", "wrong", "0.7", true, …; the value itself if it states none."""
    stated = verdict(value)
    if stated is not None or not isinstance(value, str):
        return value if stated is None else stated
    try:
        return float(value)
    except ValueError:
        return value


def state_feedback(writer: Writer, entry: FeedbackEntry, open_runs: Container[str]) -> FeedbackEntry:
    """Store a label of any trace in a runtime's store, or of a run that has just ended; return it with the id of its decision."""
    store = writer.store()
    for may_wait in (True, False):
        entry = resolve_label(store, entry)
        if not add_feedback(store, [entry]):
            return entry
        if may_wait:
            finish_late()
            writer.write_now()
    if entry.trace in open_runs:
        raise UnknownTrace(f"the run {entry.trace} is still open; state feedback when it has ended", entry.trace)
    raise UnknownTrace(
        f"no trace {entry.trace} in the store: it was deleted, sampled out or never recorded, or its run is still open",
        entry.trace,
    )


def arguments_of_check(check: Callable[..., object]) -> int:
    """Return how many of the result and the arguments by name a check takes; 0 where it can be called with neither or needs more."""
    try:
        signature = inspect.signature(check)
    except (TypeError, ValueError):  # written in C, such as `bool`
        return 1
    for count in (2, 1):
        with suppress(TypeError):
            signature.bind(*range(count))
            return count
    return 0


@dataclass(frozen=True, slots=True)
class ResultLabels:
    """The labels that follow from a gated action that has returned: by its check, and of the action that it undid.

    They are stored when the run is, in the thread of the hooks, so that no agent waits for a check. They are those of a program, and count
    only where there is no other label.
    """

    store: Callable[[], Any]
    inbox: Callable[[], Inbox]
    check: Callable[..., object] | None
    undone: object
    """The id or key of the action that was undone; None if there is none."""
    entry: Mapping[str, Any]
    arguments: Mapping[str, object]
    result: object

    def write(self, trace_id: str) -> None:
        """Store them, now that the trace is stored."""
        check, undone = self.check, self.undone
        if check is not None:
            name, known = f"the check of {self.entry['action']}", (self.result, self.arguments)
            correct = attempt(name, partial(check, *known[: arguments_of_check(check)]))
            approval = self.entry.get("approval") or {}
            if correct is not None and not isinstance(correct, bool):
                note(name, f"returned a {type(correct).__name__}, and not True, False or None")
            elif correct is not None and not (approval and self._label(approval["id"], correct, CHECK)):
                self._label(self.entry["id"], correct, CHECK, trace_id)
        # The number of a refund, say, is not that of an action in the run.
        name = undone if isinstance(undone, str) and not undone.isdecimal() else ""
        if undone is not None and not any(self._label(name, False, REVERSAL, run) for run in (trace_id, None)):
            note("a reversal", f"{self.entry['action']} names no action of its run, and no approval of another run")

    def _label(self, action: str, correct: bool, source: str, trace_id: str | None = None) -> bool:
        """Label an action of a run, by default of that which asked for the approval with this id; return whether there is one."""
        try:
            found: Any = trace_id or self.inbox().requests.get(action).run_id
            entry, store = mark_program(feedback_entry(found, correct, source, probability=1.0)), self.store()
            return not add_feedback(store, [resolve_label(store, mark_action(entry, action))])
        except (ValueError, ApprovalError):  # no such action or approval
            return False


COLUMNS = ("trace_id", "correct", "source", "by", "note", "probability", "program", "action")
"""The columns that are read; the first two are needed in each row."""
BATCH = 500
_BOM = b"\xef\xbb\xbf"


def store_feedback(store: Store, file: object, name: str, **defaults: Any) -> Iterator[int | InvalidRecord]:
    """Store the labels of a file; yield how many were stored, batch by batch, and an `InvalidRecord` for each row that was not."""
    rows = read_feedback(file, name, **defaults)
    while batch := list(islice(rows, BATCH)):
        labels: list[LabelRow] = []
        for row in batch:
            if isinstance(row, InvalidRecord):
                yield row
                continue
            try:
                labels.append((resolve_label(store, row[0]), row[1]))
            except ValueError as error:
                yield InvalidRecord(str(error), file=name, line=row[1])
        missing = set(add_feedback(store, [entry for entry, _ in labels]) if labels else ())
        absent = [(entry, line) for entry, line in labels if entry.trace in missing]
        for entry, line in absent:
            yield InvalidRecord(f"no trace {entry.trace} in the store", file=name, line=line)
        if labels:
            yield len(labels) - len(absent)


def read_feedback(file: object, name: str, **defaults: Any) -> Iterator[LabelRow | InvalidRecord]:
    """Yield the labels of a file in order; an `InvalidRecord` with the line replaces each that cannot be read."""
    lines = _Lines(file, name)
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        yield from lines.take_problems()
        return
    rows = _json_rows(first, lines) if first.lstrip().startswith("{") else _csv_rows(first, lines, name)
    for row, line in rows:
        if isinstance(row, InvalidRecord):
            yield row
        elif isinstance(row, str):
            yield InvalidRecord(row, file=name, line=line)
        else:
            yield _row(row, line, name, defaults)
        yield from lines.take_problems()
    yield from lines.take_problems()


class _Lines:
    """The decoded lines of a file, and the problems of lines that cannot be read."""

    def __init__(self, file: object, name: str) -> None:
        self._limit = int(Settings.load().max_document_mb * (1 << 20))
        self._lines = lines_of(file, self._limit)
        self._name, self._problems = name, list[InvalidRecord]()
        self.line = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while True:
            try:
                line = next(self._lines)
            except (OSError, EOFError, ValueError, zlib.error) as error:
                self._problem(f"cannot be read any further: {error}", self.line + 1)
                raise StopIteration from None
            self.line += 1
            if isinstance(line, TooLong):
                self._problem(f"the line is longer than {self._limit / (1 << 20):.3g} MB", self.line)
                continue
            try:
                return (line.removeprefix(_BOM) if self.line == 1 else line).decode()
            except UnicodeDecodeError as error:
                self._problem(f"is not UTF-8: {error.reason} at byte {error.start + 1}", self.line)

    def _problem(self, problem: str, line: int) -> None:
        self._problems.append(InvalidRecord(problem, file=self._name, line=line))

    def take_problems(self) -> list[InvalidRecord]:
        """Return the problems since the last call."""
        found, self._problems = self._problems, []
        return found


def _json_rows(first: str, lines: _Lines) -> Iterator[tuple[Mapping[str, Any] | str, int]]:
    line: str | None = first
    while line is not None:
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                yield f"is not JSON: {error}", lines.line
            else:
                yield row if isinstance(row, dict) else f"must be an object (got {brief(row)})", lines.line
        line = next(lines, None)


def _csv_rows(first: str, lines: _Lines, name: str) -> Iterator[tuple[Mapping[str, Any] | str | InvalidRecord, int]]:
    delimiter = max(",;\t", key=first.count)
    header = [column.strip().strip('"').lower() for column in next(csv.reader([first], delimiter=delimiter), [])]
    absent = [column for column in COLUMNS[:2] if column not in header]
    if absent:
        problem = (
            f"the header must name the columns trace_id and correct (it has {brief(', '.join(header))}); other columns that are read: "
            f"{', '.join(COLUMNS[2:])}. A file of JSON lines begins with a brace"
        )
        yield InvalidRecord(problem, file=name, line=lines.line), lines.line
        return
    reader = csv.reader(lines, delimiter=delimiter)
    while True:
        begin = lines.line + 1
        try:
            values = next(reader, None)
        except csv.Error as error:
            yield f"is not CSV: {error}", begin
            continue
        if values is None:
            return
        if any(value.strip() for value in values):
            row = dict(zip(header, (value.strip() for value in values), strict=False))
            yield {column: value for column, value in row.items() if value}, begin


def _row(row: Mapping[str, Any], line: int, name: str, defaults: Mapping[str, Any]) -> LabelRow | InvalidRecord:
    known = {column: row[column] for column in COLUMNS if row.get(column) is not None}
    absent = next((column for column in COLUMNS[:2] if column not in known), None)
    if absent is not None:
        return InvalidRecord("is missing", file=name, line=line, path=absent)
    with suppress(ValueError):  # else the check names it
        if isinstance(known.get("probability"), str):
            known["probability"] = float(known["probability"])
    known["correct"] = stated_correct(known["correct"])
    is_program = stated_correct(known.pop("program", False))
    try:
        if not isinstance(is_program, bool):
            raise ValueError(f"program must be true or false (got {brief(is_program)})")
        action = known.pop("action", None)
        entry = mark_action(feedback_entry(**{**defaults, **known}), action)
        return (mark_program(entry) if is_program else entry), line
    except ValueError as error:
        return InvalidRecord(str(error), file=name, line=line)
