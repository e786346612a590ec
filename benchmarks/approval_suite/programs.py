"""Whole programs around `grace.gate` and `grace.approvals`: those that act, those that decide, and those that carry out.

Each writes into a journal what it is about to do and which answer it gets. The effect of the action is a line in a journal, too, outside of the store.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grace_kp as gk
from approval_suite.journal import Journal, facts
from grace_kp.approvals import _watch
from grace_kp.errors import ApprovalError, StoreError
from grace_kp.store import _leases

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

# A token as GitHub issues them and an account number, in pieces so that scanners of source code let them pass. Neither may reach a file.
SECRET = "ghp_" + "qT7mW2xK9vB4nR6yL1sD8hJ3" + "cF5gZ0pUaEiO"
IBAN = "DE02" + "1203" + "0000" + "0000" + "2020" + "51"
WAYS = ("raise", "wait", "async", "hand_over")
PAUSE_SECONDS = 0.004
IN_PARALLEL = 4
LEASE_SECONDS = 1.0


@dataclass(frozen=True)
class Plan:
    """How the program asks."""

    wait: str = "raise"
    """One of `WAYS`; `async` waits on an event loop."""
    sealed: bool = False
    """Whether arguments hold a secret, which the key in GRACE_KP_KEY seals."""
    deadline: str = "4h"
    use_within: str = "24h"
    floor: str = "confirm"
    quorum: int = 1
    short_leases: bool = False
    """Whether the lease of a process that is gone, or out of sight, expires within a second."""


def verb_for(invoice: str) -> str:
    """Return what the people of the suite decide about an invoice: mostly `approve`, sometimes `edit` or `reject`."""
    return {3: "reject", 6: "edit"}.get(int(invoice) % 10, "approve")


def shorten_leases() -> None:
    """Have the leases of this process, and of others as it sees them, expire within a second."""
    _leases.LEASE_SECONDS, _leases.RENEW_SECONDS, _watch.HOLD_SECONDS = (
        LEASE_SECONDS,
        LEASE_SECONDS / 5,
        LEASE_SECONDS / 5,
    )


def acted_on(count: int) -> list[str]:
    """Return numbers of invoices that are not refused."""
    return [invoice for invoice in map(str, range(2 * count)) if verb_for(invoice) != "reject"][:count]


def euros_for(invoice: str) -> int:
    """Return the amount that the program asks for."""
    return 10 + int(invoice)


class Program:
    """A runtime on the store of a folder with one gated action.

    Args:
        folder: where the store and the journals are.
        plan: how it asks.
        inside: called within the action, with `before` and `after` the effect.
    """

    def __init__(self, folder: Path, plan: Plan, inside: Callable[[str], object] = lambda _moment: None) -> None:
        self.folder, self.plan = folder, plan
        if plan.short_leases:
            shorten_leases()
        self.effects, self.calls, self.decisions = (
            Journal(folder / name) for name in ("effects", "calls", "decisions")
        )
        self._inside = inside
        self.asked = {fact["invoice"]: fact["approval"] for fact in facts(folder / "calls") if fact["end"] == "asked"}
        """The approval of each invoice that was asked about last."""
        wait: Any = True if plan.wait in {"wait", "async"} else plan.wait
        self.reviewer = gk.InboxReviewer(
            deadline=plan.deadline,
            use_within=plan.use_within,
            wait=wait,
            quorum=plan.quorum,
            identity="stated",
        )
        self.grace = gk.Grace(
            store=f"sqlite:///{folder / 'store.db'}", embedder=None, evaluator=None, reviewer=self.reviewer
        )
        gate = self.grace.gate(
            key="refund:{invoice}",
            floor=plan.floor,
            sealed=("iban",) if plan.sealed else (),
            ignore=("session",),
            version="1",
            name="refund",
        )

        @self.grace.tool
        def look_up(note: str) -> str:
            return f"found {note}"

        if plan.wait == "async":

            async def refund_async(invoice: str, euros: int, note: str = "", iban: str = "", session: str = "") -> str:
                return self._effect(invoice, euros)

            gated: Any = gate(refund_async)

            @self.grace.agent(objective="refund {invoice}")
            async def job_async(invoice: str, note: str, arguments: dict[str, Any]) -> Any:
                look_up(note)
                return await gated(**arguments)

            self._job: Any = job_async
        else:

            def refund(invoice: str, euros: int, note: str = "", iban: str = "", session: str = "") -> str:
                return self._effect(invoice, euros)

            gated = gate(refund)

            @self.grace.agent(objective="refund {invoice}")
            def job(invoice: str, note: str, arguments: dict[str, Any]) -> Any:
                look_up(note)
                return gated(**arguments)

            self._job = job

    def _effect(self, invoice: str, euros: int) -> str:
        self._inside("before")
        self.effects.note(operation=gk.idempotency_key(), invoice=invoice, euros=euros)
        self._inside("after")
        return f"refunded {invoice}"

    def _arguments(self, invoice: str) -> dict[str, Any]:
        sealed = {"note": f"uses {SECRET}", "iban": IBAN} if self.plan.sealed else {}
        return {"invoice": invoice, "euros": euros_for(invoice), "session": os.urandom(4).hex(), **sealed}

    def call(self, invoice: str) -> str:
        """Call the action once; note and return what came of it: `asked`, `returned`, `refused`, `unknown` or `failed`."""
        try:
            return self._note_result(invoice, self._job(invoice, f"with {SECRET}", self._arguments(invoice)))
        except (gk.ActionNotApproved, StoreError, ApprovalError) as error:
            return self._note_error(invoice, error)

    async def call_async(self, invoice: str) -> str:
        """`call` on an event loop."""
        try:
            return self._note_result(invoice, await self._job(invoice, f"with {SECRET}", self._arguments(invoice)))
        except (gk.ActionNotApproved, StoreError, ApprovalError) as error:
            return self._note_error(invoice, error)

    def _note_result(self, invoice: str, result: Any) -> str:
        asked = getattr(result, "approval", None)
        if asked is not None:
            return self._note_asked(invoice, asked.id)
        self.calls.note(end="returned", invoice=invoice, result=str(result))
        return "returned"

    def _note_asked(self, invoice: str, approval_id: str) -> str:
        self.asked[invoice] = approval_id
        self.calls.note(end="asked", invoice=invoice, approval=approval_id)
        return "asked"

    def _note_error(self, invoice: str, error: Exception) -> str:
        if isinstance(error, gk.ActionPending):
            return self._note_asked(invoice, error.approval.id)
        if isinstance(error, gk.ActionOutcomeUnknown):
            self.calls.note(end="unknown", invoice=invoice, state=error.state, error=str(error))
            return "unknown"
        end = "refused" if getattr(error, "response", None) is not None else "failed"
        self.calls.note(end=end, invoice=invoice, error=f"{type(error).__name__}: {error}")
        return end

    # Roles

    def work(self, invoices: Sequence[str]) -> None:
        """Call the action for each invoice until each has ended."""
        order = random.sample(invoices, len(invoices))
        while left := [invoice for invoice in order if invoice not in ended(self.folder)]:
            if self.plan.wait == "async":
                asyncio.run(self._work_async(left[:IN_PARALLEL]))
            else:
                for invoice in left:
                    self.call(invoice)
            time.sleep(PAUSE_SECONDS)

    async def _work_async(self, invoices: Sequence[str]) -> None:
        await asyncio.gather(*(self.call_async(invoice) for invoice in invoices))

    def decide(self, *, by: str = "ana") -> int:
        """Decide what is pending; return the number of decisions."""
        decided = 0
        for approval in self.grace.approvals.pending(limit=1_000):
            verb = verb_for(str(approval.arguments["invoice"]))
            # With a quorum an edit would begin the count anew for ever.
            decided += self.decide_on(approval, by=by, verb="approve" if self.plan.quorum > 1 else verb)
        return decided

    def decide_on(self, approval: Any, *, by: str = "ana", verb: str = "") -> bool:
        """Decide one approval as `verb_for` says, with the digest that was shown; return whether the decision counted."""
        invoice = str(approval.arguments["invoice"])
        verb = verb or verb_for(invoice)
        changes = {"euros": int(invoice) + 1} if verb == "edit" else {}
        fact = {
            "approval": approval.id,
            "verb": verb,
            "by": by,
            "invoice": invoice,
            "euros": changes.get("euros", approval.arguments["euros"]),
        }
        self.decisions.note(decided=False, **fact)
        approvals = self.grace.approvals
        try:
            if verb == "edit":
                approvals.edit(approval.id, changes, by=by, digest=approval.digest)
            else:
                getattr(approvals, verb)(approval.id, by=by, digest=approval.digest)
        except (ApprovalError, StoreError):
            return False  # somebody else was first, or the store could not be written
        self.decisions.note(decided=True, **fact)
        return True

    def decide_on_and_on(self, *, by: str = "ana") -> None:
        """Decide whatever comes, for ever."""
        while True:
            if not self.decide(by=by):
                time.sleep(PAUSE_SECONDS)

    def carry(self) -> int:
        """Carry out what is approved; return the number of attempts."""
        entitled = [each for each in self.grace.approvals.history(limit=1_000) if each.state in {"approved", "edited"}]
        for approval in entitled:
            invoice = str(approval.arguments["invoice"])
            try:
                self._note_result(invoice, self.grace.approvals.execute(approval.id))
            except (gk.ActionNotApproved, StoreError, ApprovalError) as error:
                self._note_error(invoice, error)
        return len(entitled)

    def carry_on_and_on(self) -> None:
        """Carry out whatever is approved, for ever."""
        while True:
            if not self.carry():
                time.sleep(PAUSE_SECONDS)

    def finish(self, invoices: Sequence[str], *, seconds: float = 60.0) -> None:
        """Bring every invoice to its end after the faults: decide, call again, and reconcile what is unknown by the journal of effects.

        Raises:
            TimeoutError: an invoice does not come to its end.
        """
        ends = time.monotonic() + seconds
        while left := [invoice for invoice in invoices if invoice not in ended(self.folder)]:
            for invoice in left:
                self.call(invoice)
            for by in ("cleo", "dora")[: self.plan.quorum]:
                self.decide(by=by)
            self.reconcile()
            if time.monotonic() > ends:
                raise TimeoutError(f"the invoices {left} do not come to an end: {facts(self.folder / 'calls')[-3:]}")

    def reconcile(self) -> int:
        """Settle what is unknown, and what nobody runs any more, by the journal of effects; return the number."""
        approvals = self.grace.approvals
        unknown = [each for each in approvals.history(limit=100_000) if each.state in {"unknown", "claimed"}]
        happened = {fact["operation"] for fact in facts(self.folder / "effects")}
        settled = 0
        for each in unknown:
            try:
                approvals.reconcile(each.id, happened=operation_of(each) in happened, by="ops")
            except ApprovalError:
                continue  # its process may still run
            settled += 1
        return settled


def operation_of(approval: Any) -> str:
    """Return the idempotency key that the action sees under an approval."""
    from grace_kp.approvals import idempotency_key_of

    return idempotency_key_of(approval.operation)


def ended(folder: Path) -> set[str]:
    """Return the invoices whose call has returned or was refused, as far as a program came to note it."""
    return {fact["invoice"] for fact in facts(folder / "calls") if _has_ended(fact)}


def _has_ended(fact: dict[str, Any]) -> bool:
    return fact["end"] in {"returned", "refused"} or (
        fact["end"] == "unknown" and fact["state"] in {"done", "executed_before"}
    )
