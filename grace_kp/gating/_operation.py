"""The gated action that runs here, and the key that identifies it to the service that it calls."""

from __future__ import annotations

from grace_kp.errors import GraceError
from grace_kp.record import OPERATIONS


def running_operations() -> tuple[str, ...]:
    """Return what identifies the gated actions that run in this context, the innermost last."""
    return OPERATIONS.get()


def idempotency_key() -> str:
    """Return a key for the gated action that runs here, to pass to the receiving service as its idempotency key.

    It is a UUID. With an inbox it is the same for each attempt under one approval, in every process. Where the gate has a `key`, it is also the
    same for a new request with the same key and arguments: after an execution that was reconciled as not done, and after a restored backup
    that has lost the first request. After an attempt that raised, it is another. Without an inbox it is the same for each attempt of one call
    in a program that runs again, such as a graph, and otherwise new for each call. A new thread inside of the action sees it where it was
    started through `grace_kp.propagate`.

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
