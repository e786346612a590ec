"""The scorers of SPEC §8: each measures one aspect of what an agent did, from 0 to 1, and says why."""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from grace_kp.scorers._edits import DELETE, INSERT, EditExpectation, EditResult, Operation
from grace_kp.scorers._matching import pairs
from grace_kp.scorers._patterns import TIMEOUT, compiled, found
from grace_kp.scorers._traces import as_result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.trace import ReasoningTrace

    Actual = EditResult | ReasoningTrace | Mapping[str, Any]
    """What an agent did: told, or read from the trace of its run."""

SHOWN = 100


class Scorer(Protocol):
    """One aspect. Independent of every other, and without state, so that any number can run side by side."""

    type: str
    threshold: float
    """From which score on the aspect is good enough."""

    def score(self, actual: Any, expected: Any) -> float:
        """0 to 1."""
        ...

    def details(self, actual: Any, expected: Any) -> Any:
        """A record that shows why."""
        ...


@dataclass(frozen=True, slots=True)
class Unmatched:
    """An expected operation that was not done."""

    expected: Operation
    reason: str
    """`type mismatch`, `target mismatch` or `position mismatch`."""
    closest: Operation | None = None
    """What was done that comes closest, and was not expected otherwise."""


@dataclass(frozen=True, slots=True)
class AccuracyDetails:
    """Why an operation-accuracy is what it is."""

    matched_operations: int
    total_expected_operations: int
    unmatched_operations: tuple[Unmatched, ...]
    unexpected_operations: tuple[Operation, ...]
    """What was done and not expected; it does not lower the score."""


class OperationAccuracy:
    """The share of the expected operations that were done: same type, same target block, and for `insert` the same position."""

    type: str = "operation-accuracy"
    needs_expectation = True
    threshold: float = 0.8

    def score(self, actual: Actual, expected: EditExpectation) -> float:
        """Matched by expected operations; nothing expected is 1.0 if nothing was done, else 0.0."""
        done = as_result(actual)
        if not expected.operations:
            return 0.0 if done.operations else 1.0
        wanted, made = Counter(map(_same, expected.operations)), Counter(map(_same, done.operations))
        return sum((wanted & made).values()) / len(expected.operations)

    def details(self, actual: Actual, expected: EditExpectation) -> AccuracyDetails:
        """Which were matched, and why the others were not."""
        done = as_result(actual)
        matched = pairs([[_same(one)] for one in expected.operations], [[_same(one)] for one in done.operations])
        left, right = {one for one, _ in matched}, {one for _, one in matched}
        spare = [one for number, one in enumerate(done.operations) if number not in right]
        unmatched = [_explained(one, spare) for number, one in enumerate(expected.operations) if number not in left]
        return AccuracyDetails(len(matched), len(expected.operations), tuple(unmatched), tuple(spare))


def _same(one: Operation) -> tuple[Any, ...]:
    return (one.type, one.target_block_id, repr(one.position) if one.type == INSERT else None)


def _explained(wanted: Operation, spare: Sequence[Operation]) -> Unmatched:
    """Compared with the closest that was done and not matched: type before target before position."""
    closest, reason = None, "type mismatch"
    for one in spare:
        if one.type != wanted.type:
            continue
        if one.target_block_id == wanted.target_block_id:
            return Unmatched(wanted, "position mismatch", one)
        if reason == "type mismatch":
            closest, reason = one, "target mismatch"
    return Unmatched(wanted, reason, closest if closest is not None else next(iter(spare), None))


@dataclass(frozen=True, slots=True)
class Target:
    """What an operation is about."""

    target_block_id: str | None
    target_index: int | None


@dataclass(frozen=True, slots=True)
class IncorrectTarget:
    """A target that was expected, and one that was chosen and not expected otherwise."""

    expected: Target
    actual: Target | None


@dataclass(frozen=True, slots=True)
class PrecisionDetails:
    """Why a target-block-precision is what it is."""

    correct_targets: int
    total_targets: int
    incorrect_targets: tuple[IncorrectTarget, ...]


class TargetBlockPrecision:
    """The share of the expected targets that were chosen: by the block's id or by its index."""

    type: str = "target-block-precision"
    needs_expectation = True
    threshold: float = 0.75

    def score(self, actual: Actual, expected: EditExpectation) -> float:
        """Correct by expected targets; nothing expected is 1.0 if nothing was done, else 0.0."""
        done = as_result(actual)
        if not expected.operations:
            return 0.0 if done.operations else 1.0
        return len(self._pairs(done, expected)) / len(expected.operations)

    def _pairs(self, actual: EditResult, expected: EditExpectation) -> list[tuple[int, int]]:
        return pairs(list(map(_target_keys, expected.operations)), list(map(_target_keys, actual.operations)))

    def details(self, actual: Actual, expected: EditExpectation) -> PrecisionDetails:
        """Which targets were missed, and what was chosen instead."""
        done = as_result(actual)
        matched = self._pairs(done, expected)
        left, right = {one for one, _ in matched}, {one for _, one in matched}
        spare = iter([one for number, one in enumerate(done.operations) if number not in right])
        missed = [one for number, one in enumerate(expected.operations) if number not in left]
        incorrect = []
        for one in missed:
            other = next(spare, None)
            chosen = None if other is None else Target(other.target_block_id, other.target_index)
            incorrect.append(IncorrectTarget(Target(one.target_block_id, one.target_index), chosen))
        return PrecisionDetails(len(matched), len(expected.operations), tuple(incorrect))


def _target_keys(one: Operation) -> list[tuple[str, Any]]:
    keys: list[tuple[str, Any]] = []
    if one.target_block_id is not None:
        keys.append(("id", one.target_block_id))
    if one.target_index is not None:
        keys.append(("index", one.target_index))
    return keys or [("no target", None)]


@dataclass(frozen=True, slots=True)
class ContentDetails:
    """Why a content-quality is what it is."""

    matched_patterns: int
    total_patterns: int
    content_issues: tuple[str, ...]


class ContentQuality:
    """The share of the expected patterns that are found on their pages."""

    type: str = "content-quality"
    threshold: float = 0.6

    def __init__(
        self, patterns: Mapping[str, Sequence[str]] | None = None, *, ignore_case: bool = True, timeout: float = TIMEOUT
    ) -> None:
        """Look for the patterns of what is expected, and for these besides.

        Args:
            patterns: regular expressions by page title, for every case.
            ignore_case: whether these are found in capitals and small letters alike.
            timeout: seconds for one pattern on one page; one that takes longer counts as not found.

        Raises:
            PatternError: a pattern is malformed.
        """
        self.timeout = timeout
        self.patterns = {title: list(texts) for title, texts in (patterns or {}).items()}
        self.ignore_case = ignore_case
        self._own = [
            (title, text, compiled(text, ignore_case=ignore_case, place=f"patterns, page {title!r}"))
            for title, texts in self.patterns.items()
            for text in texts
        ]

    @property
    def needs_expectation(self) -> bool:
        """Whether there is nothing to look for unless something is expected."""
        return not self.patterns

    def score(self, actual: Actual, expected: EditExpectation) -> float:
        """Found by expected patterns; 1.0 where none are expected."""
        told = self.details(actual, expected)
        return told.matched_patterns / told.total_patterns if told.total_patterns else 1.0

    def details(self, actual: Actual, expected: EditExpectation) -> ContentDetails:
        """Which patterns were not found, and where. The answer of a trace is its page `result`."""
        issues, pages = [], as_result(actual).pages or {}
        wanted = [*self._own, *expected.compiled]
        for title, text, pattern in wanted:
            content = pages.get(title, "")
            seen = found(pattern, content, self.timeout)
            if not seen:
                late = f" within {self.timeout:g} s" if seen is None else ""
                issues.append(f"Page '{title}': Pattern '{text}' not found{late} in content: '{content[:SHOWN]}...'")
        return ContentDetails(len(wanted) - len(issues), len(wanted), tuple(issues))


@dataclass(frozen=True, slots=True)
class ResultDetails:
    """Why an operation-result is what it is."""

    application_success_rate: float
    content_score: float
    failed_operations: tuple[Operation, ...]
    application_known: bool
    """False where the result does not say what could be applied; then every operation counts as applied."""


class OperationResult:
    """How much of what was done could be applied, and what came of it: 0.6 · success rate + 0.4 · content score."""

    type: str = "operation-result"
    needs_expectation = True
    threshold: float = 0.8

    def __init__(self, *, timeout: float = TIMEOUT) -> None:
        self._content = ContentQuality(timeout=timeout)

    def score(self, actual: Actual, expected: EditExpectation) -> float:
        """0 to 1; nothing done though something was expected has a success rate of 0."""
        told = self.details(actual, expected)
        return 0.6 * told.application_success_rate + 0.4 * told.content_score

    def details(self, actual: Actual, expected: EditExpectation) -> ResultDetails:
        """The two parts, and what could not be applied."""
        done = as_result(actual)
        flags = done.applied if done.applied is not None else [True] * len(done.operations)
        rate = sum(map(bool, flags)) / len(flags) if done.operations else 0.0 if expected.operations else 1.0
        failed = tuple(one for one, flag in zip(done.operations, flags, strict=True) if not flag)
        return ResultDetails(rate, self._content.score(done, expected), failed, done.applied is not None)


@dataclass(frozen=True, slots=True)
class HallucinationDetails:
    """Why an anti-hallucination is what it is."""

    no_new_content: bool
    no_deleted_blocks: bool
    only_specified_changes: bool
    problems: tuple[str, ...]
    """What broke it, a sentence each."""
    diff: str
    """The blocks that broke it, before and after, as a unified diff."""


class AntiHallucination:
    """1 if there is no new content, no block is gone that was not to be deleted, and only what was specified has changed; else 0."""

    type: str = "anti-hallucination"
    needs_expectation = True
    threshold: float = 1.0

    def score(self, actual: Actual, expected: EditExpectation) -> float:
        """1.0 or 0.0.

        Raises:
            ValueError: the blocks are not known, as with a trace.
        """
        return 0.0 if self.details(actual, expected).problems else 1.0

    def details(self, actual: Actual, expected: EditExpectation) -> HallucinationDetails:
        """Which block or change broke it."""
        done = as_result(actual)
        if done.blocks_before is None or done.blocks_after is None:
            raise ValueError("it is not known which blocks there were: blocks_before or blocks_after is None")
        before = {one.id: one.content for one in done.blocks_before}
        after = {one.id: one.content for one in done.blocks_after}
        deleting = {one.target_block_id for one in expected.operations if one.type == DELETE}
        inserted = Counter(one.content for one in expected.operations if one.type == INSERT and one.content is not None)
        changing: dict[str | None, list[str | None]] = {}
        for one in expected.operations:
            if one.type not in {INSERT, DELETE}:
                changing.setdefault(one.target_block_id, []).append(one.content)
        new, gone, changed = [], [], []
        for name, content in after.items():
            if name not in before:
                if inserted[content]:
                    inserted[content] -= 1
                else:
                    new.append(name)
            elif content != before[name]:
                wanted = changing.get(name, [])
                if not wanted or (None not in wanted and content not in wanted):
                    changed.append(name)
        gone = [name for name in before if name not in after and name not in deleting]
        problems = [f"block {name!r} is new and was not asked for" for name in new]
        problems += [f"block {name!r} is gone and was not to be deleted" for name in gone]
        problems += [f"block {name!r} has changed in another way than was asked for" for name in changed]
        broken = [*new, *gone, *changed]
        return HallucinationDetails(not new, not gone, not changed, tuple(problems), _diff(before, after, broken))


def _diff(before: Mapping[str, str], after: Mapping[str, str], names: Sequence[str]) -> str:
    lines: list[str] = []
    for name in names:
        old = before[name].splitlines() if name in before else []
        new = after[name].splitlines() if name in after else []
        lines += difflib.unified_diff(old, new, f"before {name}", f"after {name}", lineterm="")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class TimeDetails:
    """Why a response-time is what it is."""

    response_time_ms: float
    max_acceptable_ms: float
    passed: bool


class ResponseTime:
    """1 up to `max_acceptable_ms`, then less in proportion, 0 from twice of it on."""

    type: str = "response-time"
    threshold: float = 1.0

    def __init__(self, max_acceptable_ms: float) -> None:
        if not isinstance(max_acceptable_ms, int | float) or not 0 < max_acceptable_ms < float("inf"):
            raise ValueError(f"max_acceptable_ms must be a number above 0, not {max_acceptable_ms!r}")
        self.max_acceptable_ms = max_acceptable_ms

    def score(self, actual: Actual, expected: EditExpectation) -> float:
        """max(0, 1 − (t − max)/max), and 1 below.

        Raises:
            ValueError: the result does not say how long it took.
        """
        taken = self.details(actual, expected).response_time_ms
        return min(1.0, max(0.0, 1 - (taken - self.max_acceptable_ms) / self.max_acceptable_ms))

    def details(self, actual: Actual, expected: EditExpectation) -> TimeDetails:  # noqa: ARG002
        """How long it took."""
        done = as_result(actual)
        if done.duration_ms is None:
            raise ValueError("the result does not say how long it took: duration_ms is None")
        return TimeDetails(done.duration_ms, self.max_acceptable_ms, done.duration_ms <= self.max_acceptable_ms)
