"""A second look for reviewers: they see the arguments that they changed before the change counts."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from grace_kp.gating._digest import digest_of
from grace_kp.gating._request import InterventionResponse, frozen
from grace_kp.gating._reviewer import ForwardingReviewer, as_response, is_async, review_function
from grace_kp.levels import InterventionAction

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping

    from grace_kp.gating._request import InterventionRequest
    from grace_kp.gating._reviewer import Reviewer

    Rounds = Generator[InterventionRequest, object, InterventionResponse]


class ConfirmationFlow(ForwardingReviewer):
    """Show changed arguments to the reviewer again until it confirms them; after `max_rounds` changes the action is cancelled.

    Wrap a reviewer to use it: `reviewer=ConfirmationFlow(mine)`. The answer is PROCEED where nothing was changed, and MODIFY with all
    changes otherwise. The flow is sync or async like its reviewer.

    Raises:
        TypeError: `reviewer` can neither be called nor has it `review`.
        ValueError: `max_rounds` is less than 1.
    """

    def __init__(self, reviewer: Reviewer, *, max_rounds: int = 3) -> None:
        if max_rounds < 1:
            raise ValueError(f"max_rounds must be 1 or more, not {max_rounds!r}")
        self._ask = review_function(reviewer)
        self._max_rounds = max_rounds
        super().__init__(reviewer)

    @property
    def review(self) -> Callable[[InterventionRequest], InterventionResponse | Awaitable[InterventionResponse]]:
        """Ask until the reviewer confirms, or has changed the arguments `max_rounds` times; a coroutine function where it is async."""
        return self._review_async if is_async(self._ask) else self._review

    def _review(self, request: InterventionRequest) -> InterventionResponse | Awaitable[InterventionResponse]:
        rounds = self._rounds(request)
        shown = next(rounds)
        try:
            while True:
                answer = self._ask(shown)
                if hasattr(answer, "__await__"):  # a plain function that returns a coroutine
                    return self._continue(rounds, answer)
                shown = rounds.send(answer)
        except StopIteration as end:
            response: InterventionResponse = end.value
            return response

    async def _review_async(self, request: InterventionRequest) -> InterventionResponse:
        rounds = self._rounds(request)
        return await self._continue(rounds, self._ask(next(rounds)))

    async def _continue(self, rounds: Rounds, answer: object) -> InterventionResponse:
        try:
            while True:
                shown = rounds.send(await answer if hasattr(answer, "__await__") else answer)
                answer = self._ask(shown)
        except StopIteration as end:
            response: InterventionResponse = end.value
            return response

    def _rounds(self, request: InterventionRequest) -> Rounds:
        """Yield each request to show, receive the answer, and return the response."""
        ends = None if request.timeout is None else time.monotonic() + request.timeout
        changes: dict[str, object] = {}
        shown = request
        for _ in range(self._max_rounds + 1):
            response = as_response((yield shown))
            if response.timeout_reached:
                return response
            if response.action is InterventionAction.PROCEED and changes:
                return replace(response, action=InterventionAction.MODIFY, modified=changes)
            if response.action is not InterventionAction.MODIFY:
                return response
            if not response.modified:
                # No arguments to run with, and the reviewer has not approved the original ones.
                return replace(response, action=InterventionAction.CANCEL, user_input="modified without arguments")
            changes = {**changes, **response.modified}
            left = None if ends is None else ends - time.monotonic()
            if left is not None and left <= 0:
                return InterventionResponse(InterventionAction.CANCEL, timeout_reached=True, reviewer=self.name)
            shown = _changed(request, changes, attempt=shown.attempt + 1, timeout=left)
        return InterventionResponse(
            InterventionAction.CANCEL, user_input=f"changed more than {self._max_rounds} times", reviewer=self.name
        )


def _changed(
    request: InterventionRequest, changes: Mapping[str, object], *, attempt: int, timeout: float | None
) -> InterventionRequest:
    """Return the request with a reviewer's changes."""
    return replace(
        request,
        arguments=frozen({**request.arguments, **changes}),
        digest=digest_of({"request": request.digest, "changes": changes}),
        attempt=attempt,
        timeout=None if timeout is None else round(timeout, 1),
        hidden={name: count for name, count in request.hidden.items() if name not in changes},
    )
