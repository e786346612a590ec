"""Refused attempts at a decision by somebody who is known, in the audit trail: who tried what, and why it was refused.

The number of entries is bounded, because their author may be an attacker: what is beyond the bound is counted in the next entry.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grace_kp.approvals import append, person
from grace_kp.errors import GraceError
from grace_kp.pages import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.approvals import Tables
    from grace_kp.web._person import Person

_log = logging.getLogger("grace_kp.web")
EACH_MINUTE = 20
"""Entries per person."""
EACH_DAY = 500
"""Entries of all people."""
EACH_DAY_PER_PERSON = 100
"""Entries of one person, so that nobody uses up those of all others."""
AT_MOST_PEOPLE = 1_000


@dataclass(slots=True)
class _Window:
    began: float
    written: int = 0
    left_out: int = 0


class Refusals:
    """Writes refused attempts. Several threads may use it.

    Args:
        tables: the tables of approvals.
        clock: the wall clock, in seconds since the epoch.
    """

    def __init__(self, tables: Tables, clock: Callable[[], float]) -> None:
        self._tables, self._clock, self._lock = tables, clock, threading.Lock()
        self._people: OrderedDict[str, _Window] = OrderedDict()
        self._day = _Window(clock())
        self._shares: Counter[str] = Counter()
        """Entries of the day by person."""
        self._counts: dict[str, int] = {}

    def counts(self) -> dict[str, int]:
        """Return the number of refused attempts since the process began, by id of the person."""
        with self._lock:
            return dict(self._counts)

    def record(self, who: Person, *, path: str, reason: str, approval: str | None = None) -> bool:
        """Record a refused attempt, and return whether it is in the audit trail; otherwise it is only counted.

        Args:
            who: the person.
            path: what was asked for.
            reason: why it was refused: `right`, `origin`, `csrf`, `body`, or the name of an error.
            approval: id of the approval that it concerned, as the person stated it.
        """
        left_out = self._may_write(person(who.name))
        if left_out is None:
            return False
        facts = {
            "path": printable(path[:200]),
            "reason": reason,
            "role": who.role.value,
            **({"not_recorded": left_out} if left_out else {}),
        }
        try:
            with self._tables.transaction() as writes:
                row = writes.row(approval) if approval is not None and len(approval) <= 200 else None
                append(
                    writes,
                    "refused",
                    at=self._clock(),
                    approval=None if row is None else row.id,
                    revision=None if row is None else row.revision,
                    actor=who.actor,
                    facts=facts,
                )
        except (GraceError, sqlite3.Error) as error:
            _log.error("a refused attempt of %s could not be recorded: %s", printable(who.name), printable(str(error)))
            return False
        return True

    def _may_write(self, name: str) -> int | None:
        """Return the number of attempts that were left out since the last entry of a person; None if this one is left out, too."""
        now = self._clock()
        with self._lock:
            if name in self._counts or len(self._counts) < AT_MOST_PEOPLE:
                self._counts[name] = self._counts.get(name, 0) + 1
            if not 0 <= now - self._day.began < 86_400:
                self._day = _Window(now)
                self._shares.clear()
            window = self._people.pop(name, None) or _Window(now)
            if not 0 <= now - window.began < 60:
                window = _Window(now, left_out=window.left_out)
            self._people[name] = window
            while len(self._people) > AT_MOST_PEOPLE:
                self._people.popitem(last=False)
            is_used_up = self._day.written >= EACH_DAY or self._shares[name] >= EACH_DAY_PER_PERSON
            if window.written >= EACH_MINUTE or is_used_up:
                window.left_out += 1
                return None
            window.written += 1
            self._day.written += 1
            self._shares[name] += 1
            left_out, window.left_out = window.left_out, 0
            return left_out
