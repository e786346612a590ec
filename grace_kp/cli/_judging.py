"""Judging the outputs of a variant for `grace-kp rubric`: who judges, and keeping what was judged when it ends before its time."""

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
    """Who judges outputs that have no judgements yet."""

    TERMINAL = "terminal"
    MODEL = "model"


def writable(*paths: Path | None) -> None:
    """Refuse files that cannot be written, before anything is worked out for them.

    Raises:
        GraceError: there is no such folder, or it is not to be written.
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
            raise GraceError(
                f"{path}: cannot be written: {'it is a folder' if path.is_dir() else 'there is no such folder'}"
            )


def judged(path: Path, tests: TestSet, by: Sequence[By] | None, out: Path | None = None) -> Rated:
    """A variant from a file, with those of its outputs judged that are not. What is judged is written to `out`, run by run.

    Raises:
        NotRated: nobody is there to judge, or a problem was judged by nobody.
        RubricFileError: the file cannot be read.
    """
    from grace_kp.rubric import NotRated, rate, read_variant, write_variant

    name, outputs = read_variant(path, tests)
    waiting = [one for one in outputs if not one.ratings]
    if waiting and not by:
        raise NotRated(
            f"{path}: {len(waiting)} of {len(outputs)} runs have no judgements; add them with --by terminal or --by model"
        )
    raters = _raters(by or []) if waiting else []
    done: list[Output] = []
    for one in progress(outputs, f"judging {name}", total=len(outputs)) if By.TERMINAL not in (by or []) else outputs:
        try:
            done += rate(name, [one], tests, raters).outputs
        except NotRated as error:
            told = str(error).replace("run 1", f"run {len(done) + 1}", 1)
            raise NotRated(f"{path}: {told}") from None
        if out is not None:
            write_variant(out, name, [*done, *outputs[len(done) :]], tests)
    return rate(name, done, tests)


def _raters(by: Sequence[By]) -> list[Rater]:
    from grace_kp.rubric import ModelRater, PersonRater

    if len(by) > 2:
        raise typer.BadParameter("--by is given twice at the most")
    found: list[Rater] = []
    for one in by:
        if one is By.TERMINAL:
            if not sys.stdin.isatty():
                raise GraceError("--by terminal needs a terminal, and standard input is none")
            found.append(PersonRater(ask=_ask, tell=_tell))
        else:
            from grace_kp.models import choose_judge
            from grace_kp.settings import Settings

            chosen = choose_judge(Settings.load())
            if chosen.model is None:
                raise GraceError(f"no model can judge: {chosen.why}")
            found += [ModelRater(chosen.model)] * (2 if list(by) == [By.MODEL] else 1)
    return found


def _ask(question: str) -> str:
    sys.stderr.write(question)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise GraceError(
            "nobody is there any more; what was judged before stands in the file of --out, if one was given"
        )
    return line


def _tell(text: str) -> None:
    sys.stderr.write(text + "\n")
