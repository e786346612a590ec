"""The spending limit of a judge: calls and tokens, per minute and per run."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grace_kp.errors import check_whole

if TYPE_CHECKING:
    from collections.abc import Callable

_CHARS_PER_TOKEN = 4
_MAX_RUNS = 10_000


@dataclass(frozen=True, slots=True)
class JudgeSpending:
    """The cost of judging so far."""

    calls: int
    tokens: int
    refused: int
    """Judgements that the limit refused."""


class SpendingLimit:
    """Bounds the calls and tokens of a judge, per minute and per run. A judgement beyond the limit is a fallback that names it.

    Tokens are reported by the judge; before a call, a quarter of its characters. Safe to share between threads.

    Args:
        calls_per_minute: calls within any 60 seconds; None for no bound, as for the others.
        tokens_per_minute: tokens within any 60 seconds.
        calls_per_run: calls for one run.
        tokens_per_run: tokens for one run.
        clock: monotonic seconds; for tests.
    """

    def __init__(
        self,
        *,
        calls_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        calls_per_run: int | None = None,
        tokens_per_run: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        bounds = {
            "calls_per_minute": calls_per_minute,
            "tokens_per_minute": tokens_per_minute,
            "calls_per_run": calls_per_run,
            "tokens_per_run": tokens_per_run,
        }
        for name, value in bounds.items():
            if value is not None:
                check_whole(name, value, 0, "or None for no bound")
        self._bounds = bounds
        self._clock = clock
        self._lock = threading.Lock()
        self._recent: deque[tuple[float, int, int]] = deque()
        self._runs: OrderedDict[str, list[int]] = OrderedDict()
        self._calls = self._tokens = self._refused = 0

    @property
    def spent(self) -> JudgeSpending:
        """The calls, tokens and refusals so far."""
        with self._lock:
            return JudgeSpending(self._calls, self._tokens, self._refused)

    def reserve(self, run: str | None, characters: int) -> str | None:
        """Reserve one call with a prompt of this length; return the reason where the limit refuses it, else None."""
        tokens = characters // _CHARS_PER_TOKEN
        with self._lock:
            now = self._clock()
            while self._recent and self._recent[0][0] <= now - 60:
                self._recent.popleft()
            minute = [sum(entry[place] for entry in self._recent) for place in (1, 2)]
            by_run = self._runs.get(run, [0, 0]) if run is not None else [0, 0]
            for name, used, more in (
                ("calls_per_minute", minute[0], 1),
                ("tokens_per_minute", minute[1], tokens),
                ("calls_per_run", by_run[0], 1),
                ("tokens_per_run", by_run[1], tokens),
            ):
                bound = self._bounds[name]
                if bound is not None and used + more > bound:
                    self._refused += 1
                    return f"the spending limit of {bound:,} {name.replace('_', ' ')} is reached"
            self._add(run, 1, tokens, now)
        return None

    def settle(self, run: str | None, characters: int, calls: int, tokens: int | None) -> None:
        """Correct a reservation by what the call has cost."""
        with self._lock:
            estimated = characters // _CHARS_PER_TOKEN
            self._add(run, calls - 1, 0 if tokens is None else tokens - estimated, self._clock())

    def _add(self, run: str | None, calls: int, tokens: int, now: float) -> None:
        if not calls and not tokens:
            return
        self._recent.append((now, calls, tokens))
        self._calls += calls
        self._tokens += tokens
        if run is not None:
            spent = self._runs.setdefault(run, [0, 0])
            spent[0] += calls
            spent[1] += tokens
            while len(self._runs) > _MAX_RUNS:
                self._runs.popitem(last=False)
