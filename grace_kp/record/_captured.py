"""Texts of errors where inputs or outputs are not captured: an error may quote both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.errors import ActionNotApproved
from grace_kp.trace import describe_error

if TYPE_CHECKING:
    from grace_kp.record._recorder import Recorder

NOT_CAPTURED = "[not captured]"


def recorded_error(error: BaseException, owner: Recorder, max_text: int) -> tuple[str, str]:
    """Return the type name of an error and the message that is recorded for it.

    An error comes out of a call, so its message needs `capture_output`. The error of a gate may hold the words of a reviewer about the
    arguments, so its message needs `capture_input`, too.
    """
    kind, message = describe_error(error, max_text)
    if not owner.capture_output or (issubclass(type(error), ActionNotApproved) and not owner.capture_input):
        message = NOT_CAPTURED
    return kind, message
