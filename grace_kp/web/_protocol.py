"""HTTP as the server of `grace-kp serve` speaks it: uvicorn's protocol with deadlines for slow clients and a bound on connections.

uvicorn has a deadline for idle connections between requests only. A client that sends its headers byte by byte, or never reads the response,
would hold a connection for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

    from uvicorn.config import Config
    from uvicorn.server import ServerState

HEADER_SECONDS = 10.0
"""The headers of a request must have arrived after this time."""
UNREAD_SECONDS = 30.0
"""A client that reads nothing of a response for this time is disconnected."""
CONNECTIONS = 512
"""Open connections. At a further one, the one that has kept the server waiting for the longest time is closed, or else the new one."""


class GuardedProtocol(H11Protocol):
    """One connection."""

    def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: Any = None) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._header_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None
        self._idle_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the headers of a request."""
        if len(self.connections) >= CONNECTIONS:
            waiting = [
                other for other in self.connections if isinstance(other, GuardedProtocol) and other.awaits_client
            ]
            victim = min(waiting, key=lambda other: other.idle_since, default=None)
            if victim is None:
                transport.abort()  # type: ignore[attr-defined]
            else:
                victim.transport.abort()
                self.connections.discard(victim)
        super().connection_made(transport)  # type: ignore[arg-type]
        self._idle_since = self.loop.time()
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        self._disarm()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in bytes of a request; the deadline of its headers runs until they are complete."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._disarm()
        elif self._header_timer is None and not self.transport.is_closing():
            self._arm()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._idle_since = self.loop.time()
        super().on_response_complete()
        if self.timeout_keep_alive_task is not None:
            self._disarm()

    def pause_writing(self) -> None:
        """Wait until the client reads."""
        super().pause_writing()
        if self._unread_timer is None:
            self._unread_timer = self.loop.call_later(UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on, because the client has read."""
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
        super().resume_writing()

    @property
    def awaits_client(self) -> bool:
        """Whether the next step is the client's: to send a request, or the rest of one, or to read what waits for it."""
        return self.conn.their_state in {h11.IDLE, h11.SEND_BODY} or self._unread_timer is not None

    @property
    def idle_since(self) -> float:
        """When the connection or its last response ended what the server had to do, by the clock of the loop."""
        return self._idle_since

    def _arm(self) -> None:
        self._header_timer = self.loop.call_later(HEADER_SECONDS, self._too_slow)

    def _disarm(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _too_slow(self) -> None:
        self._header_timer = None
        self.transport.abort()
