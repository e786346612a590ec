"""Reviewers that come with the library: the console, and any callable under a name."""

from grace_kp.gating.reviewers._callback import CallbackReviewer
from grace_kp.gating.reviewers._console import ConsoleReviewer

__all__ = ["CallbackReviewer", "ConsoleReviewer"]
