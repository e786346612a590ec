"""The scorers of SPEC §8 that compare operations and time: each measures one aspect of what an agent did, from 0 to 1, and says why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from grace_kp.errors import brief
from grace_kp.scorers._edits import INSERT, EditExpectation, EditResult, Operation, is_number
from grace_kp.scorers._matching import canonical, pairs
from grace_kp.scorers._traces import as_result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.trace import ReasoningTrace

    Actual = EditResult | ReasoningTrace | Mapping[str, Any]
    """What an agent did: told, or read from the trace of its run."""


class Scorer(Protocol):
    """One aspect. Independent of every other, and without state, so that any number can run side by side.

    Two things besides are used where a scorer has them: `score_with_details(actual, expected)`, which gives both of one evaluation, and
    `options`, a mapping from which `Suite.to_yaml` writes what the scorer was built with.
    """

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
        return self.score_with_details(actual, expected)[0]

    def details(self, actual: Actual, expected: EditExpectation) -> AccuracyDetails:
        """Which were matched, and why the others were not."""
        return self.score_with_details(actual, expected)[1]

    def score_with_details(self, actual: Actual, expected: EditExpectation) -> tuple[float, AccuracyDetails]:
        """Both of one matching."""
        done = as_result(actual).operations
        # What matches has equal keys, so that first come first served gives as many matches as there can be.
        waiting: dict[Any, list[int]] = {}
        for number in range(len(done) - 1, -1, -1):
            waiting.setdefault(_same(done[number]), []).append(number)
        matched: set[int] = set()
        missed = []
        for one in expected.operations:
            same = waiting.get(_same(one))
            if same:
                matched.add(same.pop())
            else:
                missed.append(one)
        spare = tuple(one for number, one in enumerate(done) if number not in matched)
        closest = _Closest(spare) if missed else None
        unmatched = tuple(closest.to(one) for one in missed) if closest is not None else ()
        details = AccuracyDetails(len(matched), len(expected.operations), unmatched, spare)
        return _share(len(matched), len(expected.operations), done), details


def _same(one: Operation) -> tuple[Any, ...]:
    return (one.type, one.target_block_id, canonical(one.position) if one.type == INSERT else None)


def _share(reached: int, total: int, done: Sequence[Operation]) -> float:
    """Reached by total; where nothing is expected, 1.0 if nothing was done either."""
    return reached / total if total else float(not done)


class _Closest:
    """What was done and not matched, sorted so that the closest to an expected operation is found at once."""

    def __init__(self, spare: Sequence[Operation]) -> None:
        self.first = spare[0] if spare else None
        self.of_type: dict[str, Operation] = {}
        self.of_both: dict[tuple[str, str | None], Operation] = {}
        self.at: dict[tuple[str, str | int], Operation] = {}
        for one in spare:
            self.of_type.setdefault(one.type, one)
            self.of_both.setdefault((one.type, one.target_block_id), one)
            for key in _targets(one):
                self.at.setdefault(key, one)

    def to(self, wanted: Operation) -> Unmatched:
        """Type before target before position; of those of another type one with the same target."""
        if wanted.type not in self.of_type:
            near = (self.at[key] for key in _targets(wanted) if key in self.at)
            return Unmatched(wanted, "type mismatch", next(near, self.first))
        same = self.of_both.get((wanted.type, wanted.target_block_id))
        if same is not None:
            return Unmatched(wanted, "position mismatch", same)
        return Unmatched(wanted, "target mismatch", self.of_type[wanted.type])


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
    unexpected_operations: tuple[Operation, ...] = ()
    """What was done although nothing was expected."""


class TargetBlockPrecision:
    """The share of the expected targets that were chosen: by the block's id or by its index."""

    type: str = "target-block-precision"
    needs_expectation = True
    threshold: float = 0.75

    def score(self, actual: Actual, expected: EditExpectation) -> float:
        """Correct by expected targets; nothing expected is 1.0 if nothing was done, else 0.0."""
        return self.score_with_details(actual, expected)[0]

    def details(self, actual: Actual, expected: EditExpectation) -> PrecisionDetails:
        """Which targets were missed, and what was chosen instead."""
        return self.score_with_details(actual, expected)[1]

    def score_with_details(self, actual: Actual, expected: EditExpectation) -> tuple[float, PrecisionDetails]:
        """Both of one matching."""
        done, wanted = as_result(actual).operations, expected.operations
        matched = pairs(list(map(_target_keys, wanted)), list(map(_target_keys, done)))
        left, right = {one for one, _ in matched}, {one for _, one in matched}
        spare = iter([one for number, one in enumerate(done) if number not in right])
        missed = [one for number, one in enumerate(wanted) if number not in left]
        incorrect = []
        for one in missed:
            other = next(spare, None)
            chosen = None if other is None else Target(other.target_block_id, other.target_index)
            incorrect.append(IncorrectTarget(Target(one.target_block_id, one.target_index), chosen))
        unexpected = () if wanted else tuple(done)
        details = PrecisionDetails(len(matched), len(wanted), tuple(incorrect), unexpected)
        return _share(len(matched), len(wanted), done), details


def _targets(one: Operation) -> list[tuple[str, Any]]:
    keys: list[tuple[str, Any]] = []
    if one.target_block_id is not None:
        keys.append(("id", one.target_block_id))
    if one.target_index is not None:
        keys.append(("index", one.target_index))
    return keys


def _target_keys(one: Operation) -> list[tuple[str, Any]]:
    return _targets(one) or [("no target", None)]


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
        """Say how long is good enough.

        Args:
            max_acceptable_ms: milliseconds.

        Raises:
            ValueError: it is no number above 0.
        """
        if not is_number(max_acceptable_ms) or max_acceptable_ms <= 0:
            raise ValueError(f"max_acceptable_ms must be a number above 0, not {brief(max_acceptable_ms)}")
        self.max_acceptable_ms = max_acceptable_ms

    @property
    def options(self) -> dict[str, Any]:
        """What it was built with."""
        return {"max_acceptable_ms": self.max_acceptable_ms}

    def score(self, actual: Actual, expected: EditExpectation) -> float:
        """max(0, 1 − (t − max)/max), and 1 below.

        Raises:
            ValueError: the result does not say how long it took.
        """
        return self.score_with_details(actual, expected)[0]

    def details(self, actual: Actual, expected: EditExpectation) -> TimeDetails:
        """How long it took."""
        return self.score_with_details(actual, expected)[1]

    def score_with_details(self, actual: Actual, expected: EditExpectation) -> tuple[float, TimeDetails]:  # noqa: ARG002
        """Both at once."""
        taken, most = as_result(actual).duration_ms, self.max_acceptable_ms
        if taken is None:
            raise ValueError("the result does not say how long it took: duration_ms is None")
        score = min(1.0, max(0.0, 1 - (taken - most) / most))
        return score, TimeDetails(taken, most, taken <= most)
