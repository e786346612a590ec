"""A judge that replies from a list, and the replies that the tests of evaluators share."""

from __future__ import annotations

import threading

GOOD = '{"score": 0.8, "reason": "borne out by the first source"}'
BOTH = '{"score": 0.8, "reason": "right", "coverage": 0.6, "coverage_reason": "one of two"}'


class Judge:
    """Gives its replies in turn, the last one for ever, and keeps the prompts."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.prompts = []
        self.lock = threading.Lock()

    def __call__(self, prompt):
        with self.lock:
            self.prompts.append(prompt)
            reply = self.replies[min(len(self.prompts), len(self.replies)) - 1]
        if isinstance(reply, BaseException):
            raise reply
        return reply
