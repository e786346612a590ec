"""The answer that an agent gets for an action whose request waits in an inbox, where the gate hands over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grace_kp.approvals import Approval


class PendingAnswer(str):
    """A text for the model in place of an action's result; the action did not run yet."""

    approval: Approval
    """The request as it was filed."""

    __slots__ = ("approval",)

    def __new__(cls, approval: Approval) -> PendingAnswer:
        """Return the answer for a request."""
        answer = super().__new__(
            cls,
            f"{approval.action} has not run yet: it waits for the approval {approval.id} by a person. If it is approved it will be carried out "
            "later, without another call. Do not call it again for the same purpose, and do not report it as done.",
        )
        answer.approval = approval
        return answer

    def __reduce__(self) -> Any:
        return PendingAnswer, (self.approval,)
