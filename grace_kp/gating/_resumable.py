"""Programs that may run again from an earlier point: how a gate inside one asks by pausing it, and knows its calls again.

Frameworks register with `grace_kp.record.HOST`. An adapter whose framework has such programs offers `resumable()`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from grace_kp.gating._request import InterventionResponse
from grace_kp.record import HOST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.approvals import Inbox
    from grace_kp.gating._ledger import Ledger
    from grace_kp.gating._reviewer import Reviews


@dataclass(frozen=True, slots=True)
class ProgramAnswer(InterventionResponse):
    """An answer to a program about a request that also waits in an inbox."""

    looks: bool = False
    """It is no decision, but asks to look into the inbox."""
    problem: str = ""
    """Why it cannot be used."""


class Resumable(Protocol):
    """One gated call in a program that may be run again."""

    @property
    def reviewer(self) -> Reviews:
        """The reviewer that pauses the program to ask."""
        ...

    origin: str
    """The framework, as approvals state it."""

    def asking(self, approval: str) -> Reviews:
        """Return the reviewer that pauses the program to ask about a request in the inbox. It returns a `ProgramAnswer`."""
        ...

    def whereabouts(self) -> Mapping[str, Any]:
        """Return where the program waits, for people who look at the request."""
        ...

    def remember(self, inbox: Inbox) -> None:
        """Keep how the program is found again when its requests are decided."""
        ...

    def begin(self) -> None:
        """Number the call. Called in the order in which the program makes its calls."""
        ...

    def wait(self) -> None:
        """Wait until the calls before this one have been decided on.

        Raises:
            ActionCancelled: that took too long.
        """
        ...

    async def wait_async(self) -> None:
        """`wait` without blocking the event loop."""
        ...

    def end(self) -> None:
        """Let the next call be decided on."""
        ...

    def may_have_forgotten(self, ledger: Ledger) -> bool:
        """Return whether this call may have been asked about by a process whose ledger is gone."""
        ...

    def ledger_key(self, action: str) -> str:
        """Return the key of the call in the ledger: the same one each time the program is run."""
        ...


def resumable() -> Resumable | None:
    """Return the resumable program that runs here; None elsewhere."""
    return cast("Resumable | None", HOST.resumable())
