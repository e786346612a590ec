"""A callable as a reviewer with a name of its own, for the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.gating._request import InterventionRequest


class CallbackReviewer:
    """Asks a callable, sync or async; the record shows `name`."""

    def __init__(self, callback: Callable[[InterventionRequest], Any], name: str | None = None) -> None:
        if not callable(callback):
            raise TypeError(f"a callback can be called, {type(callback).__name__} cannot")
        self._callback = callback
        self.name = name or getattr(callback, "__name__", type(callback).__name__)

    def review(self, request: InterventionRequest) -> Any:
        """Whatever the callable answers."""
        return self._callback(request)
