"""Background work: the only room that starts threads. Nothing in it knows about traces."""

from grace_kp.background._deadline import bounded

__all__ = ["bounded"]
