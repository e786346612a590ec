"""Scorers of autoevals, or objects with the same interface, in a suite.

    from autoevals import Levenshtein
    from grace_kp import scorers as sc
    from grace_kp.integrations.autoevals import AutoevalsScorer

    suite = sc.Suite([sc.Entry(AutoevalsScorer(Levenshtein(), expected=lambda case: case.answer), weight=1.0, threshold=0.8)])

This module does not import autoevals; you pass the scorer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.scorers import EditResult, as_result

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = ["AutoevalsScorer"]


class AutoevalsScorer:
    """A scorer of autoevals for a suite, with its score from 0 to 1 and its metadata as details.

    Autoevals returns a score of None for a case that it skipped. The suite reports such a case as an error.
    """

    def __init__(
        self,
        scorer: object,
        *,
        output: Callable[[Any], Any] | None = None,
        expected: Callable[[Any], Any] | None = None,
        threshold: float = 0.5,
        name: str | None = None,
        **arguments: object,
    ) -> None:
        """Wrap a scorer.

        Args:
            scorer: an object with `eval(output=, expected=, …)`, or a class whose constructor needs no arguments.
            output: returns the output to score from the suite's actual value. None: all pages of a result or trace, else the value itself.
            expected: returns the expected output from the suite's expected value. None: that value itself.
            threshold: the lowest score that passes, from 0 to 1.
            name: the scorer's name in reports. None: `autoevals-` and the name of its class.
            arguments: passed to `eval` with each case, such as `input`. A callable is called with the actual and the expected value.

        Raises:
            TypeError: the scorer has no `eval`.
        """
        instance = scorer() if isinstance(scorer, type) else scorer
        if not callable(getattr(instance, "eval", None)):
            raise TypeError(f"a scorer of autoevals needs eval(output=, expected=); {type(instance).__name__} has none")
        self.type = name or f"autoevals-{type(instance).__name__.lower()}"
        self.threshold = threshold
        self.needs_expectation = expected is None
        self._scorer: Any = instance
        self._output = output or _text_of
        self._expected = expected
        self._arguments = arguments

    def score(self, actual: object, expected: object) -> float:
        """Return the score of one case, from 0 to 1; see `score_with_details`."""
        return self.score_with_details(actual, expected)[0]

    def details(self, actual: object, expected: object) -> dict[str, Any]:
        """Return the name that autoevals has for the score, and its metadata."""
        return self.score_with_details(actual, expected)[1]

    def score_with_details(self, actual: object, expected: object) -> tuple[float, dict[str, Any]]:
        """Return score and details of one evaluation, which may call a model.

        Raises:
            ValueError: autoevals skipped the case.
        """
        wanted = expected if self._expected is None else self._expected(expected)
        more = {name: value(actual, expected) if callable(value) else value for name, value in self._arguments.items()}
        evaluated = self._scorer.eval(output=self._output(actual), expected=wanted, **more)
        metadata = dict(getattr(evaluated, "metadata", None) or {})
        if evaluated.score is None:
            raise ValueError(f"{evaluated.name} skipped the case: {metadata or 'no reason'}")
        if isinstance(evaluated.score, str):
            raise ValueError(f"the score of {evaluated.name} must be a number, not the string {evaluated.score[:60]!r}")
        return float(evaluated.score), {"name": evaluated.name, "metadata": metadata}


def _text_of(actual: Any) -> object:
    result = as_result(actual)
    return "\n\n".join((result.pages or {}).values()) if isinstance(result, EditResult) else actual
