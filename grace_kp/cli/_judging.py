"""Judging the outputs of a variant for `grace-kp rubric`: the raters, and saving each judgement so that an interruption loses none."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import TYPE_CHECKING

import typer

from grace_kp.cli._output import progress
from grace_kp.errors import GraceError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from grace_kp.rubric import Output, Rated, Rater, TestSet


class By(StrEnum):
    """Rater for outputs that have no judgements yet."""

    TERMINAL = "terminal"
    MODEL = "model"


def check_writable(*paths: Path | None) -> None:
    """Refuse files that cannot be written, before anything is computed for them.

    Raises:
        GraceError: the folder does not exist, or file or folder cannot be written.
    """
    for path in paths:
        if path is None:
            continue
        folder = path.resolve().parent
        if path.exists() and not os.access(path, os.W_OK):
            raise GraceError(f"{path}: cannot be written: Permission denied")
        if folder.is_dir() and not os.access(folder, os.W_OK):
            raise GraceError(f"{folder}: cannot write into this folder: Permission denied")
        if path.is_dir() or not folder.is_dir():
            reason = "it is a folder" if path.is_dir() else "there is no such folder"
            raise GraceError(f"{path}: cannot be written: {reason}")


def rate_file(path: Path, test_set: TestSet, by: Sequence[By] | None, out: Path | None = None) -> Rated:
    """Return the variant in a file, after judging its outputs without judgements. `out` is written after each run.

    Raises:
        NotRated: there is no rater, or no rater judged a problem.
        RubricFileError: the file cannot be read.
    """
    from grace_kp.rubric import NotRated, rate, read_variant, write_variant

    name, outputs = read_variant(path, test_set)
    waiting = sum(not output.ratings for output in outputs)
    if waiting and not by:
        raise NotRated(
            f"{path}: {waiting} of {len(outputs)} runs have no judgements; add them with --by terminal or --by model"
        )
    raters = _raters(by or []) if waiting else []
    done: list[Output] = []
    shown = outputs if By.TERMINAL in (by or []) else progress(outputs, f"judging {name}", total=len(outputs))
    for output in shown:
        try:
            done += rate(name, [output], test_set, raters).outputs
        except NotRated as error:
            message = str(error).replace("run 1", f"run {len(done) + 1}", 1)
            raise NotRated(f"{path}: {message}") from None
        if out is not None:
            write_variant(out, name, [*done, *outputs[len(done) :]], test_set)
    return rate(name, done, test_set)


def _raters(by: Sequence[By]) -> list[Rater]:
    from grace_kp.rubric import ModelRater, PersonRater

    if len(by) > 2:
        raise typer.BadParameter("--by can be used at most twice")
    raters: list[Rater] = []
    for rater in by:
        if rater is By.TERMINAL:
            if not sys.stdin.isatty():
                raise GraceError("--by terminal needs a terminal as standard input")
            raters.append(PersonRater(ask=_ask, tell=_show))
        else:
            from grace_kp.models import choose_judge
            from grace_kp.settings import Settings

            chosen = choose_judge(Settings.load())
            if chosen.model is None:
                raise GraceError(f"no model can judge: {chosen.why}")
            raters += [ModelRater(chosen.model)] * (2 if list(by) == [By.MODEL] else 1)
    return raters


def _ask(question: str) -> str:
    sys.stderr.write(question)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise GraceError("the input has ended; earlier judgements are in the file of --out, if there is one")
    return line


def _show(text: str) -> None:
    sys.stderr.write(text + "\n")
