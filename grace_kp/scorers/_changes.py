"""The scorer of what nobody asked for: content that is new, blocks that are gone, changes besides those that were specified."""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grace_kp.scorers._edits import DELETE, INSERT, MOVES, Block, EditExpectation, EditResult, Operation
from grace_kp.scorers._matching import pairs
from grace_kp.scorers._traces import as_result
from grace_kp.trace import printable

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from grace_kp.scorers._scorers import Actual

ORDERS = frozenset({"reorder", "swap", "sort"})
"""Types that may change the order of any blocks."""


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
    """1 if there is no new content, no block is gone that was not to be deleted, and only what was specified has changed; else 0.

    An expected `insert` allows one new block, with its content or, where it gives none, with any; a `delete` allows its target to go; a
    `move` allows its target another place and a `reorder`, `swap` or `sort` any order, the first two another content only if they give one; any
    other operation allows its target to change, into its content where it gives one. Targets may be named by `target_index`, counted in `blocks_before`. Where both documents are empty the
    operations themselves are judged, by the same rules.

    The design guide asks for no new content at all. Taken literally, no expected `insert` could ever pass, so the content of an
    expected `insert` is allowed here.
    """

    type: str = "anti-hallucination"
    needs_expectation = True
    threshold: float = 1.0

    def score(self, actual: Actual, expected: EditExpectation) -> float:
        """1.0 or 0.0.

        Raises:
            ValueError: the blocks are not known, as with a trace.
        """
        return self.score_with_details(actual, expected)[0]

    def details(self, actual: Actual, expected: EditExpectation) -> HallucinationDetails:
        """Which block or change broke it.

        Raises:
            ValueError: the blocks are not known, as with a trace.
        """
        return self.score_with_details(actual, expected)[1]

    def score_with_details(self, actual: Actual, expected: EditExpectation) -> tuple[float, HallucinationDetails]:
        """Both of one comparison.

        Raises:
            ValueError: the blocks are not known, as with a trace.
        """
        done = as_result(actual)
        before, after = done.blocks_before, done.blocks_after
        if before is None or after is None:
            raise ValueError("it is not known which blocks there were: blocks_before or blocks_after is None")
        details = _by_blocks(before, after, expected) if before or after else _by_operations(done, expected)
        return 0.0 if details.problems else 1.0, details


@dataclass(slots=True)
class _Allowed:
    """What the expected operations allow, by block."""

    deleted: set[str] = field(default_factory=set)
    moved: set[str] = field(default_factory=set)
    any_order: bool = False
    inserted: Counter[str] = field(default_factory=Counter)
    inserted_freely: int = 0
    contents: dict[str, set[str | None]] = field(default_factory=dict)
    """What a block may come to say; None is anything."""


def _allowed(operations: Iterable[Operation], before: Sequence[Block]) -> _Allowed:
    made = _Allowed()
    names = {one.id for one in before}
    for one in operations:
        target = one.target_block_id
        if target is None and one.target_index is not None and 0 <= one.target_index < len(before):
            target = before[one.target_index].id
        if one.type == INSERT:
            if one.content is None:
                made.inserted_freely += 1
            else:
                made.inserted[one.content] += 1
        elif one.type == DELETE:
            if target is not None:
                made.deleted.add(target)
        else:
            if one.type == "move" and target in names:
                made.moved.add(str(target))
            elif one.type == "move" or one.type in ORDERS:
                made.any_order = True
            if target is not None and (one.content is not None or one.type not in MOVES):
                made.contents.setdefault(target, set()).add(one.content)
    return made


def _by_blocks(before: Sequence[Block], after: Sequence[Block], expected: EditExpectation) -> HallucinationDetails:
    allowed = _allowed(expected.operations, before)
    old, now = {one.id: one.content for one in before}, {one.id: one.content for one in after}
    new, changed = [], []
    for name, content in now.items():
        if name in old:
            wanted = allowed.contents.get(name, set())
            if content != old[name] and None not in wanted and content not in wanted:
                changed.append(name)
        elif allowed.inserted[content]:
            allowed.inserted[content] -= 1
        else:
            new.append(name)
    # Those with an expected content have taken theirs; what is left may be filled with anything.
    new = new[allowed.inserted_freely :]
    gone = [name for name in old if name not in now and name not in allowed.deleted]
    problems = [f"block {name!r} is new and was not asked for" for name in new]
    problems += [f"block {name!r} is gone and was not to be deleted" for name in gone]
    problems += [f"block {name!r} has changed in another way than was asked for" for name in changed]
    diff = _diff(old, now, [*new, *gone, *changed])
    in_order = allowed.any_order or _order(old, now, allowed.moved) == _order(now, old, allowed.moved)
    if not in_order:
        problems.append("the blocks stand in another order, and nothing like that was asked for")
        diff += _unified(_order(old, now, allowed.moved), _order(now, old, allowed.moved), "the order")
    return HallucinationDetails(not new, not gone, not changed and in_order, tuple(problems), "\n".join(diff))


def _order(these: Iterable[str], others: Mapping[str, str], moved: set[str]) -> list[str]:
    """Those that are on both sides, without the ones that were to be moved."""
    return [name for name in these if name in others and name not in moved]


def _by_operations(done: EditResult, expected: EditExpectation) -> HallucinationDetails:
    """Without blocks there is nothing but the operations to tell what was done."""
    wanted = [one for one in expected.operations if one.type != INSERT]
    licences = {key for one in wanted for key in _licences(one)}
    inserts = [one for one in done.operations if one.type == INSERT]
    asked = [_licences(one) for one in expected.operations if one.type == INSERT]
    taken = {number for _, number in pairs(asked, [_claims(one) for one in inserts])}
    new = [one for number, one in enumerate(inserts) if number not in taken]
    other = [one for one in done.operations if one.type != INSERT and licences.isdisjoint(_claims(one))]
    gone, changed = [one for one in other if one.type == DELETE], [one for one in other if one.type != DELETE]
    problems = [f"new content that was not asked for: {one.to_dict()}" for one in new]
    problems += [f"a deletion that was not asked for: {one.to_dict()}" for one in gone]
    problems += [f"a change that was not asked for: {one.to_dict()}" for one in changed]
    unasked = [*new, *gone, *changed]
    rows = [str(one.to_dict()) for one in expected.operations] if unasked else []
    diff = _unified(rows, [*rows, *(str(one.to_dict()) for one in unasked)], "expected", "done")
    return HallucinationDetails(not new, not gone, not changed, tuple(problems), "\n".join(diff))


def _licences(one: Operation) -> list[Hashable]:
    """What an expected operation allows: one that gives a content just this, and one that gives none any, or where it moves none at all."""
    if one.content is not None and one.type != DELETE:
        return [(one.type, target, how) for target in _about(one) for how in (("is", one.content), "not told")]
    how = "none" if one.type in MOVES else "any"
    return [(one.type, target, how) for target in _about(one)]


def _claims(one: Operation) -> list[Hashable]:
    """The licences under which an operation may have been done."""
    if one.content is None:
        return [(one.type, target, how) for target in _about(one) for how in ("any", "none", "not told")]
    return [(one.type, target, how) for target in _about(one) for how in ("any", ("is", one.content))]


def _about(one: Operation) -> list[Hashable]:
    """The block by id and by index; where an insert goes makes its content neither old nor new."""
    if one.type == INSERT:
        return [None]
    named: list[Hashable] = [] if one.target_block_id is None else [("id", one.target_block_id)]
    if one.target_index is not None:
        named.append(("index", one.target_index))
    return named or [None]


def _diff(before: Mapping[str, str], after: Mapping[str, str], names: Iterable[str]) -> list[str]:
    lines: list[str] = []
    for name in names:
        # Split at line feeds alone, so that one at the end is a line of its own and can be seen.
        old = before[name].split("\n") if name in before else []
        new = after[name].split("\n") if name in after else []
        lines += _unified(list(map(_visible, old)), list(map(_visible, new)), f"before {name}", f"after {name}")
    return lines


def _unified(old: Sequence[str], new: Sequence[str], left: str, right: str = "") -> list[str]:
    right = right or f"{left} afterwards"
    return list(difflib.unified_diff(old, new, _visible(left), _visible(right), lineterm=""))


def _visible(line: str) -> str:
    """Control characters written out, as a change of them alone could not be seen."""
    return printable(line, keep="\t\u3000", replace=lambda character: ascii(character)[1:-1])
