"""Reviewers that come with the library: the console and the inbox; and how a question is laid out for a person."""

from grace_kp.gating.reviewers._console import UNSEEN, ConsoleReviewer
from grace_kp.gating.reviewers._inbox import InboxReviewer
from grace_kp.gating.reviewers._question import Facts, Page, Question, place_lines

__all__ = [
    "UNSEEN",
    "ConsoleReviewer",
    "Facts",
    "InboxReviewer",
    "Page",
    "Question",
    "place_lines",
]
