"""The inbox as a reviewer: requests wait in the store for people who may decide, even after the asking process has ended.

The reviewer only holds the configuration. The gate's engine files the request, waits, claims and records the outcome; see `gating/_inquiry`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from grace_kp.approvals import Webhook, seconds_of
from grace_kp.errors import GateError
from grace_kp.gating._policy import checked_quorum, common_groups, groups_of
from grace_kp.gating._request import review_function

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from grace_kp.gating._request import InterventionRequest, InterventionResponse, Reviewer

    Wait = Literal[True, "raise", "hand_over"]

ESCALATE = "escalate:"


class InboxReviewer:
    """Files each request with the store, where `grace.approvals` and `grace-kp approvals` decide it, from any process.

    A gate's own `timeout` replaces `deadline`; `group` and `quorum` of its policy replace the reviewer's. A gate with an inbox never goes on
    without a decision: `auto_proceed_on_timeout` and the setting `gate_timeout` have no effect on it.

    Attributes:
        deadline: seconds until which a request can be decided; None without limit.
        use_within: seconds within which an approved action must begin.
    """

    name = "inbox"

    def __init__(
        self,
        deadline: float | str | None = None,
        on_deadline: str = "cancel",
        wait: Wait = True,
        *,
        group: str | Iterable[str] | None = None,
        quorum: int = 1,
        identity: Literal["authenticated", "stated"] = "authenticated",
        use_within: float | str = "24h",
        ask: Reviewer | None = None,
        notify: Webhook | Sequence[Webhook] = (),
    ) -> None:
        """Configure the inbox.

        Args:
            deadline: seconds, or a string such as `30m`, `4h` or `2d`, after which `on_deadline` applies. None waits without limit.
            on_deadline: `cancel` expires the request; `skip` skips the action, so that the gate returns None; `escalate:GROUP` lets the
                members of this group decide from then on, for another such time, after which the request expires.
            wait: True blocks until there is a decision. `raise` raises `ActionPending` at once, so that the job can end and run again
                later; the gate needs a key. `hand_over` returns a `PendingAnswer`, and the action is carried out later by
                `grace.approvals.execute(id)`.
            group: groups whose members may decide; any person when None.
            quorum: number of people who must approve, 1 to 100.
            identity: whose votes a quorum above 1 counts: of `authenticated` people alone, or also names that were only `stated`.
            use_within: the time after a decision within which the action must begin.
            ask: a second reviewer, such as a ConsoleReviewer or a callable, that is asked at the same time. The first decision counts.
            notify: receivers of notifications about requests and decisions, besides the setting `webhook_url`.

        Raises:
            ValueError: an argument has a value that cannot be used.
            TypeError: `ask` is not a reviewer, or is an inbox itself.
        """
        self.deadline = None if deadline is None else seconds_of("deadline", deadline)
        self.use_within = seconds_of("use_within", use_within)
        if not isinstance(on_deadline, str) or not (
            on_deadline in {"cancel", "skip"} or on_deadline.removeprefix(ESCALATE).strip() not in {"", on_deadline}
        ):
            raise ValueError(f"on_deadline must be 'cancel', 'skip' or 'escalate:GROUP', not {on_deadline!r:.60}")
        if deadline is None and on_deadline != "cancel":
            raise ValueError(f"on_deadline={on_deadline!r:.60} needs a deadline")
        self.on_deadline = on_deadline
        if wait is not True and wait not in {"raise", "hand_over"}:
            raise ValueError(f"wait must be True, 'raise' or 'hand_over', not {wait!r:.60}")
        self.wait: Wait = wait
        self.groups = groups_of(group)
        self.quorum = checked_quorum(quorum)
        if identity not in {"authenticated", "stated"}:
            raise ValueError(f"identity must be 'authenticated' or 'stated', not {identity!r:.60}")
        self.identity = identity
        if isinstance(ask, InboxReviewer):
            raise TypeError("ask must be a reviewer that answers itself, such as a ConsoleReviewer, not another inbox")
        if ask is not None:
            review_function(ask)
        self.ask = ask
        self.notify = tuple(notify) if isinstance(notify, list | tuple) else (notify,)
        for receiver in self.notify:
            if not isinstance(receiver, Webhook):
                raise TypeError(f"notify takes a Webhook or several, not {type(receiver).__name__}")

    def combined(self, other: InboxReviewer) -> InboxReviewer:
        """Return both inboxes at once, with the stricter of their settings, and with `wait` and `ask` of `self`.

        `cancel` is stricter than `skip`, and both are stricter than an escalation; escalations to different groups become `cancel`.

        Raises:
            ValueError: both name groups, and none in common, so that no person could decide.
        """
        deadlines = [each for each in (self.deadline, other.deadline) if each is not None]
        stated = {self.on_deadline, other.on_deadline}
        strictest = "skip" if "skip" in stated and "cancel" not in stated else "cancel"
        on_deadline = strictest if len(stated) > 1 else self.on_deadline
        # An escalation lets more people decide, so the later one is stricter.
        latest = on_deadline.startswith(ESCALATE)
        return InboxReviewer(
            (max if latest else min)(deadlines, default=None),
            on_deadline,
            self.wait,
            group=common_groups(self.groups, other.groups) or None,
            quorum=max(self.quorum, other.quorum),
            identity="authenticated" if "authenticated" in (self.identity, other.identity) else "stated",
            use_within=min(self.use_within, other.use_within),
            ask=self.ask,
            notify=tuple(dict.fromkeys((*self.notify, *other.notify))),
        )

    def review(self, request: InterventionRequest) -> InterventionResponse:
        """Raise `GateError`: only the gates of a runtime can use an inbox."""
        raise GateError(
            f"an InboxReviewer cannot be asked about {request.action or 'this'} here; use it with @grace.gate, or with an agent or graph that has a checkpointer"
        )
