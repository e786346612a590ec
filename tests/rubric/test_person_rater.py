"""A person as rater: asked for each problem until it is judged."""

from __future__ import annotations

from grace_kp import rubric as rb
from tests.rubric.contract import DOCUMENT, O, P, X


class TestPerson:
    def person(self, *typed):
        lines, told = list(typed), []

        def ask(question):
            told.append(question)
            return lines.pop(0)

        return rb.PersonRater(ask=ask, tell=told.append, name="Ann"), lines, told

    def test_one_problem_after_the_other(self):
        rater, lines, told = self.person("o", " T ", "missed", "2", "0")
        found = rater.rate(DOCUMENT, "The limit is missing.", scope="legal risks only")
        assert [] == lines
        assert ([O, P, X], 2, 0, "Ann") == (
            list(found.judgements.values()),
            found.bonuses,
            found.penalties,
            found.rater,
        )
        page = "\n".join(told)
        for text in (
            "The limit is missing.",
            "legal risks only",
            "1 of 3: limit (liability, critical)",
            "names the missing limit",
        ):
            assert text in page

    def test_whoever_types_something_else_is_asked_again(self):
        rater, _lines, told = self.person("", "?", "x", "y", "x", "○", "many", "-1", "", "1", "³", "0")
        found = rater.rate(DOCUMENT, "x")
        assert ([X, X, O], 1, 0) == (list(found.judgements.values()), found.bonuses, found.penalties)
        assert 3 == told.count("Please type o, t or x.")

    def test_signs_that_a_terminal_would_obey_are_not_shown(self):
        rater, _, told = self.person("x", "x", "x", "0", "0")
        rater.rate(DOCUMENT, "a\x1b[2Jb\u202ec\u200bd\x07")
        page = "\n".join(told)
        assert "a�[2Jbcd�" in page
