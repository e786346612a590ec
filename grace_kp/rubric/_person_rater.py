"""A person as rater, asked on a terminal or through any other pair of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.judge import INVISIBLE
from grace_kp.pages import printable
from grace_kp.rubric._judgement import Detection
from grace_kp.rubric._rating import Rating

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.rubric._test_set import Document


class PersonRater:
    """A person who sees the output and judges the problems in turn: o, t (△) or x; then the numbers of bonuses and penalties."""

    def __init__(
        self, *, ask: Callable[[str], str] = input, tell: Callable[[str], object] = print, name: str = "person"
    ) -> None:
        """Set how the person is asked.

        Args:
            ask: shows a question and returns the line that is typed; its exceptions are raised to the caller.
            tell: shows a text.
            name: the rater's name in ratings.
        """
        self.name = name
        self._ask = ask
        self._show = tell

    def rate(self, document: Document, output: str, *, scope: str = "") -> Rating:
        """Ask until every problem is judged; Enter alone judges nothing."""
        show = self._show
        show(f"\nDocument {_visible(document.id)} ({_visible(document.domain)})")
        if scope:
            show(f"Scope: {_visible(scope)}")
        show(f"\n{_visible(output)}\n")
        judgements: dict[str, Detection] = {}
        for number, problem in enumerate(document.problems, 1):
            name = f"{_visible(problem.id)} ({_visible(problem.category)}, {problem.severity})"
            key = f"\n{_visible(problem.key)}" if problem.key else ""
            show(f"{number} of {len(document.problems)}: {name}{key}")
            judgements[problem.id] = self._ask_judgement()
        bonuses = self._ask_count("How many further findings are true, useful and in scope? ")
        penalties = self._ask_count("How many findings are certainly wrong or out of scope? ")
        return Rating(judgements, bonuses, penalties, rater=self.name)

    def _ask_judgement(self) -> Detection:
        while True:
            typed = self._ask("[o] detected  [t] partial  [x] missed > ").strip().lower()
            try:
                return Detection.PARTIAL if typed == "t" else Detection.of(typed)
            except ValueError:
                self._show("Please type o, t or x.")

    def _ask_count(self, question: str) -> int:
        while True:
            typed = self._ask(question).strip()
            if typed.isascii() and typed.isdigit() and len(typed) < 5:
                return int(typed)
            self._show("Please type a number, 0 for none.")


def _visible(text: str) -> str:
    """Replace characters that a terminal would obey or hide."""
    return printable(INVISIBLE.sub("", text), keep="\n\t", replace="�")
