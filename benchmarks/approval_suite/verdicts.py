"""The comparison of the journals with the store, in a process of its own."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter, defaultdict
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import grace_kp as gk
from approval_suite.journal import facts
from approval_suite.programs import IBAN, SECRET, operation_of, verb_for
from grace_kp.approvals import entry_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

COLUMNS = (
    "fault",
    "kills or cases",
    "requests",
    "decisions",
    "actions",
    "requests lost",
    "decisions lost",
    "claimed twice",
    "without consent",
    "other than approved",
    "outcome wrong",
    "not carried out once",
    "damaged",
    "secrets",
    "unknown, had happened",
    "unknown, had not",
)
CONSENTS = {"approve": "approved", "edit": "edited"}
CLOSED = {"reject": "rejected", "respond": "responded", "skip": "skipped", "retry": "retried"}
CLAIMABLE = {"approved", "edited", "claimed", "done", "failed", "unknown", "not_done", "expired", "cancelled"}
NEEDLES = tuple(text[:half].encode() for text in (SECRET, IBAN) for half in (len(text) // 2 + 4,))


@dataclass
class Verdict:
    """What became of the requests, decisions and actions of one store."""

    cases: int = 0
    requests: int = 0
    decisions: int = 0
    actions: int = 0
    requests_lost: int = 0
    decisions_lost: int = 0
    claimed_twice: int = 0
    without_consent: int = 0
    different: int = 0
    wrong_outcome: int = 0
    """Recorded as done without an effect, or as ended otherwise although there was one."""
    not_once: int = 0
    """Invoices that in the end were not refunded once, or were although they were refused."""
    damaged: int = 0
    """Files that SQLite finds damaged, and chains that do not verify."""
    secrets: int = 0
    """Files that hold a planted secret."""
    happened: int = 0
    """Outcomes that were unknown; the journal of effects has the action."""
    not_happened: int = 0
    """Outcomes that were unknown; the journal of effects lacks the action."""

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})

    @property
    def broken(self) -> int:
        """Sum of what must never happen."""
        return sum(getattr(self, each.name) for each in fields(self)[4:13])

    def row(self, fault: str) -> tuple[Any, ...]:
        """Return the row of the table."""
        return (fault, *(getattr(self, each.name) for each in fields(self)))


def total(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the sum of verdicts."""
    return sum(verdicts, Verdict())


def verdict(
    folder: Path, *, cases: int = 0, invoices: Sequence[str] = (), refusable: bool = False, misled: bool = False
) -> Verdict:
    """Compare the journals of a folder with its store.

    Args:
        folder: where they are.
        cases: number of faults that the store has seen.
        invoices: those that were brought to their end; they must have been refunded once, or not at all where they were refused.
        refusable: whether any of them may have been refused.
        misled: whether people stated wrongly that actions did not happen, so that effects may follow.
    """
    effects, calls, decisions = (facts(folder / name) for name in ("effects", "calls", "decisions"))
    grace = gk.Grace(store=f"sqlite:///{folder / 'store.db'}", embedder=None, evaluator=None, reviewer=None)
    approvals = grace.approvals
    known = {each.id: each for each in (*approvals.pending(limit=10**6), *approvals.history(limit=10**6))}
    entries = [entry_of(link) for link in grace.store.approvals.links(limit=10**7)]
    chain = approvals.verify()
    found = Verdict(cases=cases, requests=len(known), actions=len(effects))
    found.requests_lost = len({fact["approval"] for fact in calls if "approval" in fact} - known.keys())
    _compare_decisions(found, decisions, known, entries)
    _compare_effects(found, effects, decisions, known, entries)
    if misled:
        found.claimed_twice, found.wrong_outcome = claimed_again(entries), 0
    refunded = Counter(fact["invoice"] for fact in effects)
    found.not_once = sum(
        refunded[invoice] > 1 if refusable else refunded[invoice] != (verb_for(invoice) in CONSENTS)
        for invoice in invoices
    )
    found.damaged = (not chain.ok) + (not is_intact(folder / "store.db"))
    grace.close()
    found.secrets = exposed(folder)
    return found


def _compare_decisions(
    found: Verdict, decisions: list[dict[str, Any]], known: dict[str, Any], entries: list[dict[str, Any]]
) -> None:
    """A decision is lost if its entry is missing, or the approval is in a state that cannot come of it."""
    chained = {
        (entry["approval"], entry["facts"].get("verb", "edit" if entry["kind"] == "edited" else ""))
        for entry in entries
        if entry["kind"] in {"decided", "edited", "voted"}
    }
    for fact in decisions:
        if not fact["decided"]:
            continue
        found.decisions += 1
        approval, verb = known.get(fact["approval"]), fact["verb"]
        allowed = CLAIMABLE if verb in CONSENTS else {CLOSED.get(verb, "")}
        if approval is not None and approval.quorum > 1:
            allowed = {*allowed, "pending"}
        found.decisions_lost += (
            approval is None or (approval.id, verb) not in chained or str(approval.state) not in allowed
        )


def _compare_effects(
    found: Verdict,
    effects: list[dict[str, Any]],
    decisions: list[dict[str, Any]],
    known: dict[str, Any],
    entries: list[dict[str, Any]],
) -> None:
    under = claimants(known)
    intents: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for fact in decisions:
        intents[fact["approval"]].append(fact)
    for fact in effects:
        approval = under(fact)
        consents = [] if approval is None else [each for each in intents[approval.id] if each["verb"] in CONSENTS]
        earlier = [each for each in consents if each["t"] < fact["t"]]
        decided = None if approval is None else consent_of(approval)
        found.without_consent += not earlier or decided is None
        found.different += approval is not None and is_different(fact, approval, earlier, decided)
    count = Counter(approval.id for fact in effects if (approval := under(fact)) is not None)
    found.claimed_twice = sum(times - 1 for times in count.values()) + claimed_again(entries)
    found.without_consent += sum(is_late(approval) for approval in known.values())
    for approval in known.values():
        state, happened = str(approval.state), bool(count[approval.id])
        found.wrong_outcome += state not in {"done", "claimed", "unknown"} if happened else state == "done"
        if state == "unknown":
            found.happened += happened
            found.not_happened += not happened
    for entry in entries:
        if entry["kind"] == "reconciled":
            found.happened += bool(entry["facts"]["happened"])
            found.not_happened += not entry["facts"]["happened"]


def claimants(known: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
    """Return a function from an effect to the approval under which it came about; None if there is none.

    A request after a wrong reconciliation has the idempotency key of the one before: the last of them that was claimed before the effect counts.
    """
    by_operation: dict[str, list[Any]] = defaultdict(list)
    for approval in sorted(known.values(), key=lambda each: each.claim.at if each.claim else math.inf):
        by_operation[operation_of(approval)].append(approval)

    def under(fact: dict[str, Any]) -> Any:
        found = by_operation.get(fact["operation"], [])
        claimed = [each for each in found if each.claim is not None and each.claim.at <= fact["at"]]
        return (claimed or found[::-1] or [None])[-1]

    return under


def is_late(approval: Any) -> bool:
    """Return whether it was claimed after its use-by time, or consented to after its deadline."""
    claim, use_by, deadline = approval.claim, approval.use_by, approval.deadline
    if claim is not None and use_by is not None and claim.at >= use_by:
        return True
    return consent_of(approval) is not None and deadline is not None and approval.decision.at >= deadline


def is_different(fact: dict[str, Any], approval: Any, earlier: list[dict[str, Any]], decided: str | None) -> bool:
    """Return whether an action ran with other arguments than people consented to."""
    ran = (fact["invoice"], fact["euros"])
    if approval.quorum > 1:
        votes = [vote for vote in approval.votes if vote.counts and vote.digest == approval.digest]
        agreed = len({vote.actor.name for vote in votes}) >= approval.quorum
        return not agreed or ran != (approval.arguments["invoice"], approval.arguments["euros"])
    shown = [(each["invoice"], each["euros"]) for each in earlier if CONSENTS[each["verb"]] == decided]
    return bool(earlier) and ran not in shown


def consent_of(approval: Any) -> str | None:
    """Return `approved` or `edited` where people have consented; None otherwise."""
    if approval.decision is not None and str(approval.decision.state) in CONSENTS.values():
        return str(approval.decision.state)
    return None


def claimed_again(entries: list[dict[str, Any]]) -> int:
    """Return how often the chain has a claim of an approval that was claimed and not released."""
    claimed: set[str] = set()
    again = 0
    for entry in entries:
        if entry["kind"] == "claimed":
            again += entry["approval"] in claimed
            claimed.add(entry["approval"])
        elif entry["kind"] == "released":
            claimed.discard(entry["approval"])
    return again


def is_intact(path: Path) -> bool:
    """Whether SQLite finds no damage in a file."""
    connection = sqlite3.connect(path)
    try:
        return bool(connection.execute("PRAGMA integrity_check").fetchone() == ("ok",))
    except sqlite3.DatabaseError:
        return False
    finally:
        connection.close()


def exposed(folder: Path) -> int:
    """Return how many files of a folder hold more than half of a planted secret."""
    return sum(
        any(needle in data for needle in NEEDLES)
        for path in folder.rglob("*")
        if path.is_file() and (data := path.read_bytes())
    )
