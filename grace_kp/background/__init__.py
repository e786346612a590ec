"""Background work: the only room that starts threads, and the one place for forks and exits. It knows nothing about traces."""

from grace_kp.background._calls import DeadlineExceeded, await_within, begin, call_within, finish, for_each, in_thread
from grace_kp.background._lock import Latch, PoliteLock, is_mine
from grace_kp.background._loss import report_loss
from grace_kp.background._process import Lock, Resident, is_subinterpreter, let_forks_go_first, watch
from grace_kp.background._retry import retry_after
from grace_kp.background._thread import may_wait, running_loop, to_thread
from grace_kp.background._worker import Worker

__all__ = [
    "DeadlineExceeded",
    "Latch",
    "Lock",
    "PoliteLock",
    "Resident",
    "Worker",
    "await_within",
    "begin",
    "call_within",
    "finish",
    "for_each",
    "in_thread",
    "is_mine",
    "is_subinterpreter",
    "let_forks_go_first",
    "may_wait",
    "report_loss",
    "retry_after",
    "running_loop",
    "to_thread",
    "watch",
]
