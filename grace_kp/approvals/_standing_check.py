"""Whether the standing approvals of a store are those that the chain records: granted, as wide, and used as often."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._chain import contents_of
from grace_kp.approvals._checks import at_one_head
from grace_kp.approvals._standing import DOCUMENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.approvals._checks import Problems
    from grace_kp.approvals._tables import Link, Reads


class StandingCheck:
    """Compares the documents of standing approvals with their entries. It keeps one record per standing approval."""

    def __init__(self, found: Problems, reads: Reads) -> None:
        self._found = found
        found_at = at_one_head(reads, lambda: {name: data for name, data in reads.documents(DOCUMENT).items() if data})
        self._head = found_at[0] if found_at else 0
        self._documents = found_at[1] if found_at else None
        self._granted: dict[str, tuple[int, Mapping[str, Any], Any]] = {}
        self._used: dict[str, int] = {}
        self._ended: set[str] = set()
        self.unchecked = (
            ()
            if self._documents is not None
            else ("Standing approvals were not compared, because the store was written all the time.",)
        )

    def add(self, link: Link, entry: Mapping[str, Any]) -> None:
        """Note what an entry says of a standing approval."""
        name, kind = entry["facts"].get("standing"), entry["kind"]
        if not isinstance(name, str) or link.seq > self._head:
            return
        if kind == "standing_granted":
            self._granted[name] = link.seq, entry["facts"], _parameters(link)
        elif kind == "standing_used":
            self._used[name] = self._used.get(name, 0) + 1
        elif kind == "released":  # the claim has done nothing, and its use was given back
            self._used[name] = self._used.get(name, 0) - 1
        elif kind == "standing_ended":
            self._ended.add(name)

    def end(self) -> None:
        """Compare the documents."""
        for name, data in (self._documents or {}).items():
            seq, wrong = self._compare(name, data)
            if wrong:
                self._found.add(seq, "standing", f"the standing approval {name} {wrong}")

    def _compare(self, name: str, data: bytes) -> tuple[int, str]:
        if name not in self._granted:
            return 0, "was not granted by any entry"
        seq, facts, parameters = self._granted[name]
        try:
            stands = json.loads(data)
            limits = {limit: stands[limit] for limit in ("action", "until", "uses")}
            used, ended, allowed = stands["used"], bool(stands["ended"]), stands["parameters"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return seq, "cannot be read"
        if limits != {limit: facts.get(limit) for limit in limits} or parameters not in (None, allowed):
            return seq, f"is not as entry {seq} has granted it"
        if used != self._used.get(name, 0):
            return seq, f"counts {used} uses, and the chain {self._used.get(name, 0)}"
        if ended != (name in self._ended):
            return seq, "was ended without an entry" if ended else "holds, and an entry has ended it"
        return seq, ""


def _parameters(link: Link) -> Any:
    """Return the granted parameters; None once retention has deleted them."""
    try:
        return (contents_of(link) or {}).get("parameters")
    except (ValueError, AttributeError, RecursionError):
        return None  # changed contents are reported elsewhere
