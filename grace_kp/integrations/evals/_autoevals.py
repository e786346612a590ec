"""Scorers of autoevals, or anything that is called like them, inside of a suite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.scorers import EditResult, as_result

if TYPE_CHECKING:
    from collections.abc import Callable


class AutoevalsScorer:
    """A scorer of autoevals as one of a suite: its score from 0 to 1, its metadata as details.

    A score of None, by which autoevals says that it skipped a case, is no score: the suite tells it as an error.
    """

    def __init__(
        self,
        scorer: Any,
        *,
        output: Callable[[Any], Any] | None = None,
        expected: Callable[[Any], Any] | None = None,
        threshold: float = 0.5,
        name: str | None = None,
        **arguments: Any,
    ) -> None:
        """Wrap a scorer.

        Args:
            scorer: has `eval(output=, expected=, …)` as autoevals' scorers do; a class is called without arguments first.
            output: which output is meant, from what the suite is given as actual; the text itself, or all pages of a result or trace, when None.
            expected: which output is expected, from what the suite is given as expected; as it is when None.
            threshold: from which score on it passes.
            name: what the report calls it; `autoevals-` and the name of its class when None.
            arguments: passed on with each case, such as `input`; a callable is given actual and expected, and its answer is passed on.

        Raises:
            TypeError: it has no `eval`.
        """
        made = scorer() if isinstance(scorer, type) else scorer
        if not callable(getattr(made, "eval", None)):
            raise TypeError(f"a scorer of autoevals has eval(output=, expected=); {type(made).__name__} has not")
        self.type = name or f"autoevals-{type(made).__name__.lower()}"
        self.threshold = threshold
        self.needs_expectation = expected is None
        self._scorer = made
        self._output = output or text_of
        self._expected = expected
        self._arguments = arguments

    def score(self, actual: Any, expected: Any) -> float:
        """0 to 1.

        Raises:
            ValueError: autoevals skipped the case.
        """
        return self.score_with_details(actual, expected)[0]

    def details(self, actual: Any, expected: Any) -> dict[str, Any]:
        """What autoevals says besides: its name for the score, and its metadata."""
        return self.score_with_details(actual, expected)[1]

    def score_with_details(self, actual: Any, expected: Any) -> tuple[float, dict[str, Any]]:
        """Both of one evaluation, since a second one may cost a call of a model.

        Raises:
            ValueError: autoevals skipped the case.
        """
        wanted = expected if self._expected is None else self._expected(expected)
        more = {name: value(actual, expected) if callable(value) else value for name, value in self._arguments.items()}
        told = self._scorer.eval(output=self._output(actual), expected=wanted, **more)
        metadata = dict(getattr(told, "metadata", None) or {})
        if told.score is None:
            raise ValueError(f"{told.name} skipped the case: {metadata or 'it does not say why'}")
        if isinstance(told.score, str):
            raise ValueError(f"{told.name} gave a text for a score: {told.score[:60]!r}")
        return float(told.score), {"name": told.name, "metadata": metadata}


def text_of(actual: Any) -> Any:
    """The text of a result or trace, all of its pages in their order; anything else as it is."""
    result = as_result(actual)
    return "\n\n".join((result.pages or {}).values()) if isinstance(result, EditResult) else actual
