"""For decisions outside of a gate: notify or ask according to the decision's level, with three callbacks and a timeout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.gating._digest import digest_of
from grace_kp.gating._drivers import ask, ask_async, notify, notify_async
from grace_kp.gating._policy import check_auto_proceed, check_timeout
from grace_kp.gating._request import InterventionRequest, InterventionResponse, frozen, new_request_id
from grace_kp.levels import InterventionAction, InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.confidence import ActionDecision


class InterventionHandler:
    """SILENT proceeds; NOTIFY calls `on_notify` and proceeds; CONFIRM asks `on_confirm`; ESCALATE asks `on_escalate`.

    Callbacks take an InterventionRequest and may be async. Without a callback, with one that fails, and without an answer in time the
    response is CANCEL, or PROCEED with `auto_proceed_on_timeout`, and `timeout_reached` is set.
    """

    def __init__(
        self,
        on_notify: Callable[[InterventionRequest], Any] | None = None,
        on_confirm: Callable[[InterventionRequest], Any] | None = None,
        on_escalate: Callable[[InterventionRequest], Any] | None = None,
        timeout: float | None = 300.0,
        auto_proceed_on_timeout: bool = False,
    ) -> None:
        """See the class.

        Args:
            on_notify: called with the request that goes ahead; its errors change nothing. When None, a line in the log and, at a
                terminal, on standard error.
            on_confirm: asked to confirm.
            on_escalate: asked for help.
            timeout: seconds to wait for an answer; None waits without limit.
            auto_proceed_on_timeout: proceed where there is no answer, for whatever reason. Gates are stricter; see `Policy`.

        Raises:
            ValueError: `timeout` is not a number of 0 or more, or `auto_proceed_on_timeout` is neither True nor False.
        """
        check_timeout(timeout)
        check_auto_proceed(auto_proceed_on_timeout)
        self._on_notify = on_notify
        self._callbacks = {InterventionLevel.CONFIRM: on_confirm, InterventionLevel.ESCALATE: on_escalate}
        self.timeout = timeout
        self.auto_proceed_on_timeout = auto_proceed_on_timeout

    def handle(self, decision: ActionDecision | InterventionRequest) -> InterventionResponse:
        """Notify or ask as the decision's level requires, and return the response. Errors of callbacks are not raised."""
        request = self._request(decision)
        callback = self._callbacks.get(request.level)
        if request.level is InterventionLevel.NOTIFY:
            notify(self._on_notify, request)
        return self._response(request, None if callback is None else ask(callback, request))

    async def ahandle(self, decision: ActionDecision | InterventionRequest) -> InterventionResponse:
        """`handle`, without blocking the event loop."""
        request = self._request(decision)
        callback = self._callbacks.get(request.level)
        if request.level is InterventionLevel.NOTIFY:
            await notify_async(self._on_notify, request)
        return self._response(request, None if callback is None else await ask_async(callback, request))

    def _response(self, request: InterventionRequest, answer: object) -> InterventionResponse:
        if not request.level.asks:
            return InterventionResponse(InterventionAction.PROCEED)
        if isinstance(answer, InterventionResponse):
            return answer
        action = InterventionAction.PROCEED if self.auto_proceed_on_timeout else InterventionAction.CANCEL
        return InterventionResponse(action, timeout_reached=True)

    def _request(self, decision: ActionDecision | InterventionRequest) -> InterventionRequest:
        if isinstance(decision, InterventionRequest):
            return decision
        return InterventionRequest(
            id=new_request_id(),
            action="",
            arguments=frozen({}),
            digest=digest_of({}),
            level=decision.level,
            decision=decision,
            reason=decision.reason,
            timeout=self.timeout,
        )
