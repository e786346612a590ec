"""A secret argument of a gated call reaches neither disk nor log, whoever repeats it."""

from __future__ import annotations

import contextlib
import logging

import pytest

import grace_kp as gk

R = gk.InterventionResponse
SECRET = "plain-words-9"


def raises(request):
    raise ValueError(f"cannot reach anybody about {request.arguments['password']}")


REVIEWERS = {
    "words": lambda request: R("input", user_input=f"use {request.arguments['password']} elsewhere"),
    "refusal": lambda request: R("cancel", user_input=request.arguments["password"]),
    "failure": raises,
    "nonsense": lambda request: request.arguments["password"],
    "name": lambda request: R("proceed", reviewer=request.arguments["password"]),
    "option": lambda request: R("proceed", selected_option=request.arguments["password"]),
    "modified": lambda request: R("modify", modified={"password": SECRET, "note": SECRET}),
    "unusable": lambda request: R("modify", modified={"password": [SECRET], "note": 5}),
    "error of the action": lambda request: R("modify", modified={"note": "raise"}),
}


@pytest.mark.parametrize("name", REVIEWERS)
def test_what_repeats_a_secret_argument_is_stored_without_it(name, tmp_path, caplog):
    """Only the argument's name says that it is one; the rest of the text stays."""
    caplog.set_level(logging.DEBUG)
    grace = gk.Grace(store=f"sqlite:///{tmp_path}/t.db", evaluator=None, embedder=None)

    @grace.gate(floor="confirm", reviewer=REVIEWERS[name])
    def log_in(password: str, note: str = ""):
        if note == "raise":
            raise ValueError(f"no such password: {password}")

    with contextlib.suppress(gk.GraceError, ValueError), grace.run("log in") as run:
        log_in("first-words-1" if name == "modified" else SECRET)
    grace.flush()
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert [] == [file for file, data in files.items() if SECRET.encode() in data]
    assert SECRET not in caplog.text
    assert "log in" == grace.store.get(run.trace.id).task.objective
    grace.close()


def test_short_texts_and_other_arguments_stay():
    """A text of five characters may be any word."""
    grace = gk.Grace(store="memory:", evaluator=None, embedder=None)
    act = grace.gate(floor="confirm", reviewer=lambda request: R("cancel", user_input="no admin, no ana"))(
        lambda user, password: None
    )
    with contextlib.suppress(gk.ActionCancelled), grace.run("log in") as run:
        act("ana", "admin")
    assert "no admin, no ana" == run.trace.grace["decisions"][0]["response"]["user_input"]
