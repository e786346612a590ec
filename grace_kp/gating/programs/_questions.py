"""The questions that a program was paused for about one call: its approval, and the arguments that each question showed, by their digest.

A program that runs again gets the answers again, in their order, and matches them to its questions by that order alone. So the call must ask
the same number of questions each time, also where its approval has been decided elsewhere meanwhile; else the next call gets its answers.
And an answer that is there before its question was put to anybody was meant for another question: it is void.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from grace_kp.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.gating._ledger import Ledger

ATTEMPTS = 5


class Questions:
    """The questions about one call, or about the calls of one turn, as a ledger keeps them.

    Args:
        ledger: returns the ledger.
        ledger_key: the key of their entry.
    """

    def __init__(self, ledger: Callable[[], Ledger], ledger_key: str) -> None:
        self._ledger, self._key = ledger, ledger_key

    def _read(self) -> tuple[bytes | None, dict[str, Any]]:
        data = self._ledger().action(self._key)
        return data, ({"approval": None, "shown": []} if data is None else json.loads(data))

    def approval(self) -> str | None:
        """Return the id of the approval; None before it is filed."""
        found: str | None = self._read()[1]["approval"]
        return found

    def file(self, approval: str) -> str:
        """Keep the id of the approval, and return the one that was kept first."""
        for _ in range(ATTEMPTS):
            data, kept = self._read()
            if kept["approval"] is not None:
                return str(kept["approval"])
            if self._put({**kept, "approval": approval}, data):
                return approval
        raise StoreError("several runs file the same question at once")

    def shown(self, number: int) -> list[str] | None:
        """Return the digests of what a question showed, by its number from 0; none where its answer is void, None where it was not asked."""
        asked: list[list[str] | None] = self._read()[1]["shown"]
        return asked[number] if number < len(asked) else None

    def ask(self, number: int, digests: list[str]) -> list[str]:
        """Keep that a question is being asked, and return the digests that were kept first.

        Args:
            number: the number of the question, from 0.
            digests: digests of what it shows; none where its answer is void.
        """
        for _ in range(ATTEMPTS):
            data, kept = self._read()
            if number < len(kept["shown"]):
                return list(kept["shown"][number])
            if self._put({**kept, "shown": [*kept["shown"], digests]}, data):
                return digests
        raise StoreError("several runs ask the same question at once")

    def put(self, number: int, digests: list[str]) -> None:
        """Keep what a question shows in place of what was kept about it and about those after it."""
        for _ in range(ATTEMPTS):
            data, kept = self._read()
            before = [*kept["shown"], *[None] * number][:number]
            if self._put({**kept, "shown": [*before, digests]}, data):
                return
        raise StoreError("several runs ask the same question at once")

    def _put(self, kept: dict[str, Any], before: bytes | None) -> bool:
        return self._ledger().put_action(self._key, json.dumps(kept).encode(), only_if=before)
