"""Background work: the only room that starts threads or registers hooks for forks and exits. It knows nothing about traces."""

from grace_kp.background._calls import (
    DeadlineExceeded,
    await_within,
    begin,
    call_within,
    finish,
    for_each,
    in_thread,
    may_wait,
    retry_after,
    running_loop,
    start_loop,
    to_thread,
)
from grace_kp.background._process import Lock, Resident, is_subinterpreter, let_forks_go_first, report_loss, watch
from grace_kp.background._worker import Latch, PoliteLock, Worker, is_mine

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
    "start_loop",
    "to_thread",
    "watch",
]
