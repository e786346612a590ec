"""A callable as a reviewer with a name of its own, for the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.gating._reviewer import is_async, name_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.gating._request import InterventionRequest


class CallbackReviewer:
    """Asks a callable, sync or async; the record shows `name`."""

    def __init__(self, callback: Callable[[InterventionRequest], Any], name: str | None = None) -> None:
        if not callable(callback):
            raise TypeError(f"a callback can be called, {type(callback).__name__} cannot")
        self._callback = callback
        self.name = name or name_of(callback)
        # What a gate wants to know of the reviewer behind it.
        self.keeps_time: bool = getattr(callback, "keeps_time", False) is True
        self.pauses: bool = getattr(callback, "pauses", False) is True
        self.stores: Callable[[str], bool] | None = getattr(callback, "stores", None)

    @property
    def review(self) -> Callable[[InterventionRequest], Any]:
        """Ask the callable: a coroutine function where that is async."""
        return self._review_async if is_async(self._callback) else self._callback

    async def _review_async(self, request: InterventionRequest) -> Any:
        return await self._callback(request)
