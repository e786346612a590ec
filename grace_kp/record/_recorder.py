"""Who owns runs: limits, the runs that are open, and who is told."""

from __future__ import annotations

import threading
from time import perf_counter_ns, time_ns
from typing import TYPE_CHECKING, Any

from grace_kp.record._ids import new_trace_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grace_kp.record._events import Pause
    from grace_kp.record._run import Run


class Recorder:
    """Who owns runs: the limits they are recorded with, the runs that are open, and who is told when one opens or ends."""

    __slots__ = (
        "asked",
        "capture_input",
        "capture_output",
        "clock",
        "domain",
        "drain",
        "enabled",
        "ended",
        "foreign",
        "generation",
        "lock",
        "max_events",
        "max_text",
        "new_id",
        "open_runs",
        "opened",
        "recall",
        "stray_since",
        "wall_clock",
    )

    def __init__(
        self,
        *,
        opened: Callable[[Run], None],
        ended: Callable[[Run], None],
        drain: Callable[[], None] = lambda: None,
        recall: Callable[[Run], None] = lambda _run: None,
        asked: Callable[[Sequence[tuple[Run, Pause]]], None] = lambda _waiting: None,
        domain: str = "default",
        max_text: int = 8_192,
        max_events: int = 10_000,
        enabled: bool = True,
        capture_input: bool = True,
        capture_output: bool = True,
        clock: Callable[[], int] = perf_counter_ns,
        wall_clock: Callable[[], int] = time_ns,
        new_id: Callable[[], str] = new_trace_id,
    ) -> None:
        self.clock = clock
        self.wall_clock = wall_clock
        self.new_id = new_id
        self.opened = opened
        self.ended = ended
        self.drain = drain
        self.recall = recall
        """Gives a run that was suspended what it had come to by then."""
        self.asked = asked
        """Stores open runs as suspended, because a person is about to be asked."""
        self.foreign: dict[str, Any] = {}
        """What integrations keep with this recorder, by their name."""
        self.domain = domain
        self.max_text = max_text
        self.max_events = max_events
        self.enabled = enabled
        self.capture_input = capture_input
        self.capture_output = capture_output
        self.open_runs: set[Run] = set()
        self.lock = threading.Lock()
        """Held while the attributes of a run change."""
        self.stray_since = 0
        """The latest first run of a thread in which a tool was called outside of any run; see `_gaps`."""
        self.generation = 0
        """Counts forks: a run that began before a fork belongs to the parent process and is not ended in the child."""

    def after_fork(self) -> None:
        """In a forked child: the runs that are open belong to the parent, and nobody is there to give the lock back."""
        self.lock = threading.Lock()
        self.generation += 1
        self.open_runs.clear()

    def announce(self, run: Run) -> None:
        """From now on the run is open: it is journaled, and found again if the process dies."""
        self.open_runs.add(run)
        try:
            self.opened(run)
        except BaseException:
            self.open_runs.discard(run)
            raise
