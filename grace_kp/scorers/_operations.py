"""Scorers that compare operations: whether the expected ones were done, and whether they were done to the expected blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grace_kp.scorers._edits import INSERT, EditExpectation, Operation
from grace_kp.scorers._matching import canonical, match_pairs
from grace_kp.scorers._scorer import DetailedScorer
from grace_kp.scorers._traces import as_result

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from grace_kp.scorers._traces import Actual


@dataclass(frozen=True, slots=True)
class Unmatched:
    """An expected operation that was not done."""

    expected: Operation
    reason: str
    """`type mismatch`, `target mismatch` or `position mismatch`."""
    closest: Operation | None = None
    """The most similar operation among those that were done and match no expected one."""


@dataclass(frozen=True, slots=True)
class AccuracyDetails:
    """Explanation of an operation-accuracy."""

    matched_operations: int
    total_expected_operations: int
    unmatched_operations: tuple[Unmatched, ...]
    unexpected_operations: tuple[Operation, ...]
    """Operations that were done and not expected; they do not lower the score."""


class OperationAccuracy(DetailedScorer[AccuracyDetails]):
    """The share of the expected operations that were done: same type, same target block, and for `insert` the same position.

    Where nothing is expected, the score is 1.0 if nothing was done, else 0.0.
    """

    type: str = "operation-accuracy"
    needs_expectation = True
    threshold: float = 0.8

    def score_with_details(self, actual: Actual, expected: EditExpectation) -> tuple[float, AccuracyDetails]:
        """Return score and details of one comparison."""
        done = as_result(actual).operations
        # Operations that match have equal keys, so first come, first served gives as many matches as possible.
        waiting: dict[Hashable, list[int]] = {}
        for number in range(len(done) - 1, -1, -1):
            waiting.setdefault(_operation_key(done[number]), []).append(number)
        matched: set[int] = set()
        missing = []
        for operation in expected.operations:
            same = waiting.get(_operation_key(operation))
            if same:
                matched.add(same.pop())
            else:
                missing.append(operation)
        unexpected = tuple(operation for number, operation in enumerate(done) if number not in matched)
        find = _ClosestOperation(unexpected).find if missing else None
        unmatched = tuple(map(find, missing)) if find is not None else ()
        details = AccuracyDetails(len(matched), len(expected.operations), unmatched, unexpected)
        return _share(len(matched), len(expected.operations), done), details


def _operation_key(operation: Operation) -> Hashable:
    position = canonical(operation.position) if operation.type == INSERT else None
    return (operation.type, operation.target_block_id, position)


def _share(count: int, total: int, done: Sequence[Operation]) -> float:
    return count / total if total else float(not done)


class _ClosestOperation:
    """Unmatched operations, indexed so that the closest to an expected operation is found at once."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._first = operations[0] if operations else None
        self._by_type: dict[str, Operation] = {}
        self._by_type_and_block: dict[tuple[str, str | None], Operation] = {}
        self._by_target: dict[Hashable, Operation] = {}
        for operation in operations:
            self._by_type.setdefault(operation.type, operation)
            self._by_type_and_block.setdefault((operation.type, operation.target_block_id), operation)
            for key in _target_keys(operation):
                self._by_target.setdefault(key, operation)

    def find(self, wanted: Operation) -> Unmatched:
        """Compare type before target before position; among other types, prefer an operation with the same target."""
        if wanted.type not in self._by_type:
            same_target = (self._by_target[key] for key in _target_keys(wanted) if key in self._by_target)
            return Unmatched(wanted, "type mismatch", next(same_target, self._first))
        same_block = self._by_type_and_block.get((wanted.type, wanted.target_block_id))
        if same_block is not None:
            return Unmatched(wanted, "position mismatch", same_block)
        return Unmatched(wanted, "target mismatch", self._by_type[wanted.type])


@dataclass(frozen=True, slots=True)
class Target:
    """The block that an operation is done to."""

    target_block_id: str | None
    target_index: int | None


@dataclass(frozen=True, slots=True)
class IncorrectTarget:
    """A target that was expected and not chosen, and a target that was chosen and not expected."""

    expected: Target
    actual: Target | None


@dataclass(frozen=True, slots=True)
class PrecisionDetails:
    """Explanation of a target-block-precision."""

    correct_targets: int
    total_targets: int
    incorrect_targets: tuple[IncorrectTarget, ...]
    unexpected_operations: tuple[Operation, ...] = ()
    """Operations that were done although nothing was expected."""


class TargetBlockPrecision(DetailedScorer[PrecisionDetails]):
    """The share of the expected targets that were chosen: by the block's id or by its index.

    Where nothing is expected, the score is 1.0 if nothing was done, else 0.0.
    """

    type: str = "target-block-precision"
    needs_expectation = True
    threshold: float = 0.75

    def score_with_details(self, actual: Actual, expected: EditExpectation) -> tuple[float, PrecisionDetails]:
        """Return score and details of one comparison."""
        done, wanted = as_result(actual).operations, expected.operations
        no_target: list[Hashable] = [None]
        matched = match_pairs(
            [_target_keys(operation) or no_target for operation in wanted],
            [_target_keys(operation) or no_target for operation in done],
        )
        found, used = {pair[0] for pair in matched}, {pair[1] for pair in matched}
        others = iter([_target(operation) for number, operation in enumerate(done) if number not in used])
        missing = [_target(operation) for number, operation in enumerate(wanted) if number not in found]
        incorrect = tuple(IncorrectTarget(target, next(others, None)) for target in missing)
        details = PrecisionDetails(len(matched), len(wanted), incorrect, () if wanted else tuple(done))
        return _share(len(matched), len(wanted), done), details


def _target(operation: Operation) -> Target:
    return Target(operation.target_block_id, operation.target_index)


def _target_keys(operation: Operation) -> list[Hashable]:
    keys: list[Hashable] = [] if operation.target_block_id is None else [("id", operation.target_block_id)]
    return keys if operation.target_index is None else [*keys, ("index", operation.target_index)]
