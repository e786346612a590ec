"""Scorers that compare operations: whether the expected ones were done, and whether they were done to the expected blocks.

Values with the same meaning have equal keys, and a maximum matching by keys pairs what was done with what was expected.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Number
from typing import TYPE_CHECKING

from grace_kp.errors import brief
from grace_kp.scorers._edits import INSERT, DetailedScorer, EditExpectation, Operation, as_result

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from grace_kp.scorers._edits import Actual


@dataclass(frozen=True, slots=True)
class Unmatched:
    """An expected operation that was not done."""

    expected: Operation
    reason: str
    """`type mismatch`, `target mismatch` or `position mismatch`."""
    closest: Operation | None = None
    """The most similar operation that was done and matches no expected one."""


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
        unmatched = tuple(_unmatched(missing, unexpected)) if missing else ()
        details = AccuracyDetails(len(matched), len(expected.operations), unmatched, unexpected)
        return _share(len(matched), len(expected.operations), done), details


def _operation_key(operation: Operation) -> Hashable:
    position = canonical(operation.position) if operation.type == INSERT else None
    return (operation.type, operation.target_block_id, position)


def _share(count: int, total: int, done: Sequence[Operation]) -> float:
    return count / total if total else float(not done)


def _unmatched(missing: Sequence[Operation], others: Sequence[Operation]) -> Iterator[Unmatched]:
    """Find the closest of the other operations: by type before target before position; among other types, by target."""
    # The first operation of each type, of each type at a block, and of each target, so that the closest is found at once.
    first: dict[Hashable, Operation] = {}
    for operation in others:
        for key in (operation.type, ("at", operation.type, operation.target_block_id), *target_keys(operation)):
            first.setdefault(key, operation)
    for wanted in missing:
        if wanted.type not in first:
            same_target = (first[key] for key in target_keys(wanted) if key in first)
            yield Unmatched(wanted, "type mismatch", next(same_target, others[0] if others else None))
        elif (same_block := first.get(("at", wanted.type, wanted.target_block_id))) is not None:
            yield Unmatched(wanted, "position mismatch", same_block)
        else:
            yield Unmatched(wanted, "target mismatch", first[wanted.type])


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
            [target_keys(operation) or no_target for operation in wanted],
            [target_keys(operation) or no_target for operation in done],
        )
        found, used = {pair[0] for pair in matched}, {pair[1] for pair in matched}
        others = iter([_target(operation) for number, operation in enumerate(done) if number not in used])
        missing = [_target(operation) for number, operation in enumerate(wanted) if number not in found]
        incorrect = tuple(IncorrectTarget(target, next(others, None)) for target in missing)
        details = PrecisionDetails(len(matched), len(wanted), incorrect, () if wanted else tuple(done))
        return _share(len(matched), len(wanted), done), details


def _target(operation: Operation) -> Target:
    return Target(operation.target_block_id, operation.target_index)


def target_keys(operation: Operation) -> list[Hashable]:
    """Return the keys of the block that an operation names, by id and by index."""
    keys: list[Hashable] = [] if operation.target_block_id is None else [("id", operation.target_block_id)]
    return keys if operation.target_index is None else [*keys, ("index", operation.target_index)]


MAX_BRIEF = 60
"""From this length on, `brief` may have cut a string."""


def match_pairs(left: Sequence[Sequence[Hashable]], right: Sequence[Sequence[Hashable]]) -> list[tuple[int, int]]:
    """Return as many pairs (left, right) as possible in which both sides have a key in common, each item at most once.

    Augmenting paths run through keys, so a search visits each key once, however many pairs share it. Earlier items on the left are matched
    first, and the result is the same for the same order.
    """
    having: dict[Hashable, list[int]] = {}
    for item, keys in enumerate(right):
        for key in dict.fromkeys(keys):
            having.setdefault(key, []).append(item)
    unused = {key: iter(items) for key, items in having.items()}
    owner: dict[int, int] = {}
    partner: dict[int, int] = {}
    exhausted: set[Hashable] = set()  # keys from which no free item can be reached any more
    for start in range(len(left)):
        reached_from: dict[Hashable, int] = {}
        reached_by: dict[int, Hashable] = {}
        queue, free = deque([start]), None
        while queue and free is None:
            item = queue.popleft()
            for key in left[item]:
                if key not in having or key in exhausted or key in reached_from:
                    continue
                reached_from[key] = item
                free = next((other for other in unused[key] if other not in owner), None)
                if free is not None:
                    reached_by[free] = key
                    break
                for other in having[key]:
                    if other not in reached_by:
                        reached_by[other] = key
                        queue.append(owner[other])
        if free is None:
            exhausted |= reached_from.keys()
        while free is not None:  # each item on the path gives its partner to the item before it
            item = reached_from[reached_by[free]]
            owner[free] = item
            partner[item], free = free, partner.get(item)
    return sorted(partner.items())


def canonical(value: object) -> Hashable:
    """Return a key that is equal for values that mean the same: 1 and 1.0, mappings in another order, lists and tuples.

    True and False differ from 1 and 0. A value of a type other than string, number, mapping, set or sequence is identified by its `repr`. It never raises.
    """
    try:
        return _canonical(value)
    except RecursionError:  # nested too deeply, or contains itself
        return ("repr", brief(value))


def _canonical(value: object) -> Hashable:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, Number):
        nan = value.is_nan() if isinstance(value, Decimal) else value != value
        return ("nan",) if nan else value
    if isinstance(value, Mapping):
        return ("mapping", frozenset((_canonical(key), _canonical(item)) for key, item in value.items()))
    if isinstance(value, set | frozenset):
        return ("set", frozenset(map(_canonical, value)))
    if isinstance(value, list | tuple):
        return ("sequence", tuple(map(_canonical, value)))
    short = brief(value)  # and where `repr` raises, the type
    return ("repr", type(value).__qualname__, short if len(short) < MAX_BRIEF else repr(value))
