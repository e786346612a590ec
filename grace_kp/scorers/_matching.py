"""Pairs that go together, as many as there can be: a maximum flow through what two sides have in common."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from decimal import Decimal
from numbers import Number
from typing import TYPE_CHECKING, Any

from grace_kp.errors import brief

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

CUT = 60
"""From this length on `brief` may have cut a text."""


def pairs(left: Sequence[Sequence[Hashable]], right: Sequence[Sequence[Hashable]]) -> list[tuple[int, int]]:
    """As many pairs (left, right) as possible, each side at most once, of those that have a key in common.

    The keys themselves are nodes of the flow, so that the number of edges grows with the keys and not with the pairs: a thousand on each
    side that all go together are three thousand edges. The result is the same for the same order.

    Args:
        left: for each on the left its keys; without any it goes with none.
        right: the same for the right.
    """
    network = _Network(left, right)
    while network.levels():
        for number in range(len(left)):
            network.push(number)
    return network.pairs()


class _Network:
    """Dinic's algorithm: from the source to the left, to keys, to the right, to the sink."""

    def __init__(self, left: Sequence[Sequence[Hashable]], right: Sequence[Sequence[Hashable]]) -> None:
        keys: dict[Hashable, int] = {}
        for one in (*left, *right):
            for key in one:
                keys.setdefault(key, len(keys))
        self.left, self.keys = len(left), len(keys)
        self.right = len(right)
        self.sink = self.left + self.keys + self.right
        self.to: list[int] = []
        self.room: list[int] = []
        self.out: list[list[int]] = [[] for _ in range(self.sink + 1)]
        self.free = [True] * self.left
        for number, one in enumerate(left):
            for key in dict.fromkeys(one):
                self._edge(number, self.left + keys[key], 1)
        for number, one in enumerate(right):
            for key in dict.fromkeys(one):
                self._edge(self.left + keys[key], self.left + self.keys + number, 1)
            self._edge(self.left + self.keys + number, self.sink, 1)

    def _edge(self, start: int, end: int, room: int) -> None:
        self.out[start].append(len(self.to))
        self.to.append(end)
        self.room.append(room)
        self.out[end].append(len(self.to))
        self.to.append(start)
        self.room.append(0)

    def levels(self) -> bool:
        self.level = [-1] * (self.sink + 1)
        self.next = [0] * (self.sink + 1)
        waiting = deque(number for number in range(self.left) if self.free[number])
        for number in waiting:
            self.level[number] = 0
        while waiting:
            node = waiting.popleft()
            for edge in self.out[node]:
                if self.room[edge] and self.level[self.to[edge]] < 0:
                    self.level[self.to[edge]] = self.level[node] + 1
                    waiting.append(self.to[edge])
        return self.level[self.sink] >= 0

    def push(self, start: int) -> None:
        """One unit from a free one on the left to the sink, if there is a way; without recursion, as ways may be long."""
        if not self.free[start]:
            return
        path: list[int] = []
        node = start
        while node != self.sink:
            edges = self.out[node]
            while self.next[node] < len(edges):
                edge = edges[self.next[node]]
                if self.room[edge] and self.level[self.to[edge]] == self.level[node] + 1:
                    path.append(edge)
                    node = self.to[edge]
                    break
                self.next[node] += 1
            else:
                if not path:
                    return
                edge = path.pop()
                node = self.to[edge ^ 1]
                self.next[node] += 1
        for edge in path:
            self.room[edge] -= 1
            self.room[edge ^ 1] += 1
        self.free[start] = False

    def pairs(self) -> list[tuple[int, int]]:
        into: dict[int, list[int]] = {}
        for number in range(self.left):
            for edge in self.out[number]:
                if not edge & 1 and not self.room[edge]:
                    into.setdefault(self.to[edge], []).append(number)
        made = []
        for key in range(self.left, self.left + self.keys):
            waiting = deque(into.get(key, ()))
            used = [edge for edge in self.out[key] if not edge & 1 and not self.room[edge]]
            made += [(waiting.popleft(), self.to[edge] - self.left - self.keys) for edge in used]
        return sorted(made)


def canonical(value: Any) -> Hashable:
    """A key that is equal for values that mean the same: 1 and 1.0, mappings in another order, lists and tuples.

    True and False are not 1 and 0. What is neither text, number, mapping, set nor sequence is known by its `repr`. It never raises.
    """
    if value is None or isinstance(value, str):
        return value
    try:
        return _canonical(value)
    except RecursionError:  # nested too deeply, or contains itself
        return ("repr", brief(value))


def _canonical(value: Any) -> Hashable:
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
    return ("repr", type(value).__qualname__, _shown(value))


def _shown(value: Any) -> str:
    """The whole `repr`, and where that raises what messages show."""
    short = brief(value)
    return short if len(short) < CUT else repr(value)
