"""A callable as a reviewer, recorded under a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.gating._reviewer import ForwardingReviewer, is_async

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.gating._request import InterventionRequest


class CallbackReviewer(ForwardingReviewer):
    """Asks a callable, sync or async. The record shows `name`, or the callable's own.

    Raises:
        TypeError: `callback` cannot be called.
    """

    def __init__(self, callback: Callable[[InterventionRequest], object], name: str | None = None) -> None:
        if not callable(callback):
            raise TypeError(f"callback must be a callable, not {type(callback).__name__}")
        super().__init__(callback, name)
        self._callback = callback

    @property
    def review(self) -> Callable[[InterventionRequest], object]:
        """Ask the callable; a coroutine function where the callable is async."""
        return self._review_async if is_async(self._callback) else self._callback

    async def _review_async(self, request: InterventionRequest) -> object:
        return await self._callback(request)  # type: ignore[misc]
