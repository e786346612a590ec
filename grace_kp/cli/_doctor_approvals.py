"""The part of `grace-kp doctor` about requests for approval: what waits for people, where the chain stands, and what became of notifications."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from grace_kp.cli._output import clean
from grace_kp.cli._page import put_field, put_text
from grace_kp.errors import GraceError

if TYPE_CHECKING:
    from rich.console import Console


def approvals_in(store: object, problems: list[str]) -> dict[str, Any]:
    """Return how many requests for approval wait for what, where their chain stands, and what became of notifications."""
    from grace_kp.approvals import RowQuery

    try:
        tables = getattr(store, "approvals", None)
        seq, digest = tables.head() if tables is not None else (0, "")
        if tables is None or not seq:
            return {}
        counts = {
            name: tables.count(RowQuery(states=states))
            for name, states in (
                ("pending", ("pending",)),
                ("approved", ("approved", "edited")),
                ("unknown", ("unknown",)),
            )
        }
        cursors = [json.loads(data) for data in tables.documents("webhook").values()]
    except (GraceError, ValueError) as error:
        problems.append(f"approvals: {error}")
        return {}
    facts = ("receiver", "delivered", "lost", "problem")
    receivers = [
        {**{name: cursor.get(name) for name in facts}, "behind": seq - int(cursor.get("seq", 0))} for cursor in cursors
    ]
    return {"approvals": {**counts, "chain": {"seq": seq, "hash": digest}, "receivers": receivers}}


def put_approvals(out: Console, found: dict[str, Any] | None, *, label: int) -> None:
    """Write them; nothing for a store without any."""
    if found is None:
        return
    chain = found["chain"]
    put_field(
        out,
        "approvals",
        f"{found['pending']:,} pending, {found['approved']:,} approved and not started, {found['unknown']:,} with an unknown outcome",
        label=label,
    )
    put_text(out, f"newest entry of the chain: {chain['seq']:,}, {clean(chain['hash'])}", indent=label)
    for each in found["receivers"]:
        text = f"{each['receiver']}: {each['delivered']:,} delivered, {each['lost']:,} lost, {each['behind']:,} entries not looked at yet"
        put_field(out, "notified", clean(text), label=label)
        if each["problem"]:
            put_text(out, clean(f"last problem: {each['problem']}"), indent=label)
