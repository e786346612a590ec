"""A reviewer that is shown what it made of a request before it counts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grace_kp.gating._digest import digest_of
from grace_kp.gating._request import InterventionResponse, frozen
from grace_kp.levels import InterventionAction

if TYPE_CHECKING:
    from grace_kp.gating._request import InterventionRequest


class ConfirmationFlow:
    """A reviewer may change the arguments and is shown the result again, up to `max_rounds` times; then it is cancelled.

    For reviewers that want to see what they made of a request before it counts: wrap them, `reviewer=ConfirmationFlow(mine)`.
    The answer is PROCEED where nothing was changed, MODIFY with all changes where something was.
    """

    def __init__(self, reviewer: Any, *, max_rounds: int = 3) -> None:
        if max_rounds < 1:
            raise ValueError(f"max_rounds must be 1 or more, not {max_rounds!r}")
        from grace_kp.gating._reviewer import asking

        self._ask = asking(reviewer)
        self._max_rounds = max_rounds
        self.name = getattr(reviewer, "name", None) or getattr(reviewer, "__name__", type(reviewer).__name__)

    def review(self, request: InterventionRequest) -> InterventionResponse:
        """Ask until the reviewer confirms, or `max_rounds` changes have been made."""
        from grace_kp.gating._reviewer import understood

        changes: dict[str, Any] = {}
        shown = request
        for _ in range(self._max_rounds + 1):
            response = understood(self._ask(shown))
            if response.timeout_reached:
                return response
            if response.action is InterventionAction.PROCEED and changes:
                return replace(response, action=InterventionAction.MODIFY, modified=changes)
            if response.action is not InterventionAction.MODIFY:
                return response
            if not response.modified:
                # Nothing says what to run instead, and the original is not what was agreed to.
                return replace(response, action=InterventionAction.CANCEL, user_input="modified without arguments")
            changes = {**changes, **response.modified}
            arguments = {**request.arguments, **changes}
            shown = replace(
                request,
                arguments=frozen(arguments),
                digest=digest_of({"request": request.digest, "changes": changes}),
                attempt=shown.attempt + 1,
                hidden={name: count for name, count in request.hidden.items() if name not in changes},
            )
        return InterventionResponse(
            InterventionAction.CANCEL, user_input=f"changed more than {self._max_rounds} times", reviewer=self.name
        )
