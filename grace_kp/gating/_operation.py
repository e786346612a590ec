"""The gated action that runs here, and the key that identifies it to the service that it calls."""

from __future__ import annotations

from grace_kp.errors import GraceError
from grace_kp.record import OPERATIONS


def running_operations() -> tuple[str, ...]:
    """Return what identifies the gated actions that run in this context, the innermost last."""
    return OPERATIONS.get()


def idempotency_key() -> str:
    """Return a key for the gated action that runs here, to pass to the receiving service as its idempotency key.

    It is a UUID. It stays the same for each attempt under one approval, in every process, and so for a repetition after a restored backup. A request
    that follows one with the same key and arguments that was reconciled as not done has the key of that one, in case this was wrong. Without an inbox it is the same for each attempt of one call in a program that runs again, such as a graph, and
    otherwise new for each call. A new thread inside of the action sees it where it was started through `grace_kp.propagate`.

    Raises:
        GraceError: no gated action runs here.
    """
    operations = OPERATIONS.get()
    if not operations:
        raise GraceError(
            "idempotency_key() is called outside of a gated action; call it inside of a function under @grace.gate"
        )
    from grace_kp.approvals import idempotency_key_of

    return idempotency_key_of(operations[-1])
