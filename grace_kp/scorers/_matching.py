"""Maximum matching of two lists by common keys, and keys that are equal for values with the same meaning."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from decimal import Decimal
from numbers import Number
from typing import TYPE_CHECKING

from grace_kp.errors import brief

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

MAX_BRIEF = 60
"""From this length on, `brief` may have cut a text."""


def match_pairs(left: Sequence[Sequence[Hashable]], right: Sequence[Sequence[Hashable]]) -> list[tuple[int, int]]:
    """Return as many pairs (left, right) as possible in which both sides have a key in common, each item at most once.

    Augmenting paths run through keys, so a search visits each key once, however many pairs share it. Earlier items on the left are matched
    first, and the result is the same for the same order.

    Args:
        left: the keys of each item on the left; an item without keys matches nothing.
        right: the same for the right.
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
            previous = partner.get(item)
            partner[item], free = free, previous
    return sorted(partner.items())


def canonical(value: object) -> Hashable:
    """Return a key that is equal for values that mean the same: 1 and 1.0, mappings in another order, lists and tuples.

    True and False differ from 1 and 0. A value that is no text, number, mapping, set or sequence is identified by its `repr`. It never raises.
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
