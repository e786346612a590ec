"""Judging for `grace-kp rubric`: files that cannot be written are refused before anybody judges, and each judgement is saved at once."""

from __future__ import annotations

import json
import os

import pytest

from grace_kp import GraceError
from grace_kp import rubric as rb
from grace_kp.cli import _judging
from grace_kp.cli._judging import By, check_writable, rate_file
from tests.rubric.contract import DOCUMENT, TESTS


class TestCheckWritable:
    def test_files_that_can_be_written(self, tmp_path):
        """New ones, present ones, and none at all."""
        (tmp_path / "present.json").write_text("{}")
        assert check_writable(tmp_path / "new.json", tmp_path / "present.json", None) is None

    @pytest.mark.parametrize(
        ("name", "problem"), [("", "it is a folder"), ("nowhere/x.json", "there is no such folder")]
    )
    def test_files_that_cannot_exist(self, tmp_path, name, problem):
        """The message names the file."""
        with pytest.raises(GraceError, match=problem) as caught:
            check_writable(tmp_path / name)
        assert str(caught.value).startswith(f"{tmp_path / name}: cannot be written")

    @pytest.mark.parametrize(
        ("refused", "problem"),
        [("x.json", "x.json: cannot be written: Permission denied"), ("", ": cannot write into this folder")],
    )
    def test_files_without_permission(self, tmp_path, monkeypatch, refused, problem):
        """The file itself, or its folder."""
        (tmp_path / "x.json").write_text("{}")
        monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path / refused)
        with pytest.raises(GraceError, match=problem):
            check_writable(tmp_path / "x.json")


class Rater:
    """Judges the first problem as found and fails from a run on."""

    name = "rater"

    def __init__(self, runs):
        self.runs = runs

    def rate(self, document, output, *, scope=""):
        self.runs -= 1
        judgements = dict.fromkeys((problem.id for problem in document.problems), "○") if self.runs >= 0 else {}
        return rb.Rating(judgements, rater=self.name)


@pytest.fixture
def variant(tmp_path):
    """A file with two runs that have no judgements."""
    path = tmp_path / "variant.json"
    runs = [{"document": DOCUMENT.id, "output": f"findings {number}"} for number in (1, 2)]
    path.write_text(json.dumps({"name": "v", "runs": runs}), "utf-8")
    return path


class TestRateFile:
    def test_each_run_is_saved_as_soon_as_it_is_judged(self, variant, tmp_path, monkeypatch):
        """An interruption loses no judgement, and the error names the run."""
        monkeypatch.setattr(_judging, "_raters", lambda by: [Rater(1)])
        out = tmp_path / "out.json"
        with pytest.raises(rb.NotRated, match=r"variant\.json: run 2: the problem 'limit' could not be judged"):
            rate_file(variant, TESTS, [By.TERMINAL], out)
        _, outputs = rb.read_variant(out, TESTS)
        assert [1, 0] == [len(output.ratings) for output in outputs]

    def test_what_has_judgements_is_not_judged_again(self, variant, tmp_path, monkeypatch):
        """So judging can be resumed."""
        monkeypatch.setattr(_judging, "_raters", lambda by: [Rater(2)])
        out = tmp_path / "out.json"
        rated = rate_file(variant, TESTS, [By.TERMINAL], out)
        monkeypatch.setattr(_judging, "_raters", lambda by: pytest.fail("nothing is left to judge"))
        assert rate_file(out, TESTS, None) == rated

    def test_nobody_judges_unless_asked(self, variant):
        """The message names the option."""
        with pytest.raises(rb.NotRated, match="2 of 2 runs have no judgements; add them with --by terminal or"):
            rate_file(variant, TESTS, None)
