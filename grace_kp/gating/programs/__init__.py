"""Gates in programs that pause to ask and run again: their requests in the inbox. Loaded where an inbox is asked."""

from grace_kp.gating._inquiry import state_approval
from grace_kp.gating.programs._paused import Asking, PausedInquiry, Questions, inquiry_of, pause_and_ask

__all__ = ["Asking", "PausedInquiry", "Questions", "inquiry_of", "pause_and_ask", "state_approval"]
