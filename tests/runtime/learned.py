"""A learned profile for tests, which does as it is told and keeps what it was asked."""

from __future__ import annotations

from grace_kp.confidence import ConfidenceFactors, ConfidenceScore


class Learned:
    """A profile whose confidence is a number, the error to raise, or a function of the document."""

    name = "learned"

    def __init__(self, confidence=0.65, *, thresholds=None, mismatches=(), fitted_on=None):
        self.answer = confidence
        self.thresholds = thresholds
        self.differences = mismatches
        self.fitted_on = fitted_on
        self.asked = []

    def calculate(self, factors):
        return ConfidenceScore(0.99, factors)

    def confidence(self, document, *, moment):
        self.asked.append((moment, document))
        answer = self.answer(document) if callable(self.answer) else self.answer
        if isinstance(answer, BaseException):
            raise answer
        if not isinstance(answer, float):
            return answer
        return ConfidenceScore(
            answer, ConfidenceFactors(), reason="Learned from 9 runs.", contributions={"errors": -0.5}
        )

    def mismatches(self, document):
        if isinstance(self.differences, BaseException):
            raise self.differences
        return self.differences
