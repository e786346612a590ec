"""The scorer of unrequested changes: new content, missing blocks, and changes other than the expected ones."""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grace_kp.pages import printable
from grace_kp.scorers._edits import (
    DELETE,
    INSERT,
    MOVES,
    Block,
    DetailedScorer,
    EditExpectation,
    EditResult,
    Operation,
    as_result,
)
from grace_kp.scorers._operations import match_pairs, target_keys

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from grace_kp.scorers._edits import Actual

REORDERINGS = frozenset({"reorder", "swap", "sort"})
"""Types that may change the order of any blocks."""


@dataclass(frozen=True, slots=True)
class HallucinationDetails:
    """Explanation of an anti-hallucination."""

    no_new_content: bool
    no_deleted_blocks: bool
    only_specified_changes: bool
    problems: tuple[str, ...]
    """A sentence for each unrequested change."""
    diff: str
    """The blocks with unrequested changes, before and after, as a unified diff."""


class AntiHallucination(DetailedScorer[HallucinationDetails]):
    """1 if nothing is new, missing or changed that no expected operation asks for; else 0.

    | expected operation | allows |
    |--|--|
    | `insert` | one new block, with the content of the operation, or with any if it has none |
    | `delete` | its target to be missing |
    | `move` | its target at another place, and with its content if it has one |
    | `reorder` | any order, and its target with its content if it has one |
    | `swap`, `sort` | any order, and its target with its content, or with any if it has none |
    | any other | its target with its content, or with any if it has none |

    Targets may be named by `target_index`, counted in `blocks_before`. Where both documents are empty, the operations themselves are
    judged by the same rules. The design guide allows no new content at all; taken literally, no expected `insert` could ever pass.
    """

    type: str = "anti-hallucination"
    needs_expectation = True
    threshold: float = 1.0

    def score_with_details(self, actual: Actual, expected: EditExpectation) -> tuple[float, HallucinationDetails]:
        """Return score and details of one comparison.

        Raises:
            ValueError: the blocks are unknown, as for a trace.
        """
        result = as_result(actual)
        before, after = result.blocks_before, result.blocks_after
        if before is None or after is None:
            raise ValueError("the blocks of the document are unknown: blocks_before or blocks_after is None")
        details = _compare_blocks(before, after, expected) if before or after else _compare_operations(result, expected)
        return 0.0 if details.problems else 1.0, details


@dataclass(slots=True)
class _Allowed:
    deleted: set[str] = field(default_factory=set)
    moved: set[str] = field(default_factory=set)
    any_order: bool = False
    inserted: Counter[str] = field(default_factory=Counter)
    inserted_freely: int = 0
    contents: dict[str, set[str | None]] = field(default_factory=dict)
    """The contents that a block may get; None is any content."""


def _list_allowed(operations: Iterable[Operation], before: Sequence[Block]) -> _Allowed:
    allowed = _Allowed()
    ids = {block.id for block in before}
    for operation in operations:
        target, index = operation.target_block_id, operation.target_index
        if target is None and index is not None and 0 <= index < len(before):
            target = before[index].id
        if operation.type == INSERT:
            if operation.content is None:
                allowed.inserted_freely += 1
            else:
                allowed.inserted[operation.content] += 1
        elif operation.type == DELETE:
            if target is not None:
                allowed.deleted.add(target)
        else:
            if operation.type == "move" and target in ids:
                allowed.moved.add(str(target))
            elif operation.type == "move" or operation.type in REORDERINGS:
                allowed.any_order = True
            if target is not None and (operation.content is not None or operation.type not in MOVES):
                allowed.contents.setdefault(target, set()).add(operation.content)
    return allowed


def _compare_blocks(before: Sequence[Block], after: Sequence[Block], expected: EditExpectation) -> HallucinationDetails:
    allowed = _list_allowed(expected.operations, before)
    old, now = {block.id: block.content for block in before}, {block.id: block.content for block in after}
    new, changed = [], []
    for name, content in now.items():
        if name in old:
            contents = allowed.contents.get(name, set())
            if content != old[name] and None not in contents and content not in contents:
                changed.append(name)
        elif allowed.inserted[content]:
            allowed.inserted[content] -= 1
        else:
            new.append(name)
    # Inserts with a content have taken their blocks; the others allow any of the remaining ones.
    new = new[allowed.inserted_freely :]
    missing = [name for name in old if name not in now and name not in allowed.deleted]
    problems = [f"block {name!r} is new and was not asked for" for name in new]
    problems += [f"block {name!r} is gone and was not to be deleted" for name in missing]
    problems += [f"block {name!r} has changed in another way than was asked for" for name in changed]
    diff = _diff(old, now, [*new, *missing, *changed])
    order_before, order_after = _order(old, now, allowed.moved), _order(now, old, allowed.moved)
    in_order = allowed.any_order or order_before == order_after
    if not in_order:
        problems.append("the blocks are in another order, which was not asked for")
        diff += _diff_lines(order_before, order_after, "the order", "the order afterwards")
    return HallucinationDetails(not new, not missing, not changed and in_order, tuple(problems), "\n".join(diff))


def _order(names: Iterable[str], others: Mapping[str, str], moved: set[str]) -> list[str]:
    return [name for name in names if name in others and name not in moved]


def _compare_operations(result: EditResult, expected: EditExpectation) -> HallucinationDetails:
    wanted = [operation for operation in expected.operations if operation.type != INSERT]
    allowed = {key for operation in wanted for key in _allowing_keys(operation)}
    inserts = [operation for operation in result.operations if operation.type == INSERT]
    wanted_inserts = [_allowing_keys(operation) for operation in expected.operations if operation.type == INSERT]
    matched = {number for _, number in match_pairs(wanted_inserts, list(map(_matching_keys, inserts)))}
    new = [operation for number, operation in enumerate(inserts) if number not in matched]
    others = [
        operation
        for operation in result.operations
        if operation.type != INSERT and allowed.isdisjoint(_matching_keys(operation))
    ]
    missing = [operation for operation in others if operation.type == DELETE]
    changed = [operation for operation in others if operation.type != DELETE]
    problems = [f"new content that was not asked for: {operation.to_dict()}" for operation in new]
    problems += [f"a deletion that was not asked for: {operation.to_dict()}" for operation in missing]
    problems += [f"a change that was not asked for: {operation.to_dict()}" for operation in changed]
    unasked = [str(operation.to_dict()) for operation in (*new, *missing, *changed)]
    rows = [str(operation.to_dict()) for operation in expected.operations] if unasked else []
    diff = _diff_lines(rows, [*rows, *unasked], "expected", "done")
    return HallucinationDetails(not new, not missing, not changed, tuple(problems), "\n".join(diff))


def _allowing_keys(operation: Operation) -> list[Hashable]:
    """Return keys of the operations that an expected operation allows: with its content, or with any if it has none.

    An expected move without content allows moves without content.
    """
    contents: tuple[Hashable, ...] = ("none",) if operation.type in MOVES else ("any",)
    if operation.content is not None and operation.type != DELETE:
        contents = (("is", operation.content), "unspecified")
    return [(operation.type, target, content) for target in _target_keys(operation) for content in contents]


def _matching_keys(operation: Operation) -> list[Hashable]:
    contents: tuple[Hashable, ...] = ("any", "none", "unspecified")
    if operation.content is not None:
        contents = ("any", ("is", operation.content))
    return [(operation.type, target, content) for target in _target_keys(operation) for content in contents]


def _target_keys(operation: Operation) -> list[Hashable]:
    # The place of an insert does not make its content old or new.
    return ([] if operation.type == INSERT else target_keys(operation)) or [None]


def _diff(before: Mapping[str, str], after: Mapping[str, str], names: Iterable[str]) -> list[str]:
    lines: list[str] = []
    for name in names:
        # Split at line feeds alone, so that a line feed at the end gives a visible line.
        old = before[name].split("\n") if name in before else []
        new = after[name].split("\n") if name in after else []
        lines += _diff_lines(list(map(_visible, old)), list(map(_visible, new)), f"before {name}", f"after {name}")
    return lines


def _diff_lines(old: Sequence[str], new: Sequence[str], left: str, right: str) -> list[str]:
    return list(difflib.unified_diff(old, new, _visible(left), _visible(right), lineterm=""))


def _visible(line: str) -> str:
    return printable(
        line, keep="\t\u3000", replace=lambda character: character.encode("unicode_escape").decode("ascii")
    )
