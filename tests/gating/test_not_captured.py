"""Without captured inputs or outputs, a gate's entry keeps structure only; the reviewer still sees what will run."""

from __future__ import annotations

import contextlib
import json
import logging

import pytest

import grace_kp as gk
from grace_kp.testing import make_grace

R = gk.InterventionResponse
ORDER = "order 4711 in blue"
HIDDEN = "[not captured]"
OFF = pytest.mark.parametrize("off", [{"capture_input": False}, {"capture_input": False, "capture_output": False}])


class Broken(Exception):
    """A reviewer's error."""


class Asked:
    """A reviewer that keeps what it was shown, then answers or raises."""

    name = "asked"

    def __init__(self, answer):
        self.answer = answer
        self.shown = []

    def review(self, request):
        self.shown.append(dict(request.arguments))
        if self.answer is Broken:
            raise Broken(f"cannot ask about {request.arguments['order']}")
        return self.answer


def document_of(reviewer=None, floor="confirm", **settings):
    """The document of a run that calls a gated tool, which may raise out of the run."""
    grace = make_grace(unmeasured="notify", reviewer=reviewer, **settings)

    @grace.tool
    @grace.gate(floor=floor)
    def refund(order, note=""):
        return "refunded"

    with contextlib.suppress(gk.ActionNotApproved), grace.run("refund") as run:
        refund(ORDER)
    return run.trace.to_dict()


@OFF
@pytest.mark.parametrize(
    "answer",
    [
        R("proceed"),
        R("modify", modified={"order": f"{ORDER} twice"}),
        R("modify", modified={"unknown": ORDER}),
        R("cancel", user_input=f"not {ORDER}"),
        R("input", user_input=f"not {ORDER}", selected_option=ORDER),
        f"yes to {ORDER}",
        Broken,
    ],
    ids=str,
)
def test_nothing_of_the_arguments_is_stored(answer, off):
    """Whatever the reviewer does, and although the reviewer gets the real arguments."""
    reviewer = Asked(answer)
    document = document_of(reviewer, **off)
    assert ORDER not in json.dumps(document)
    assert ORDER == reviewer.shown[0]["order"]
    assert {"order": HIDDEN, "note": HIDDEN} == document["grace"]["decisions"][0]["arguments"]


@OFF
def test_the_structure_of_an_entry_stays(off):
    """Names, levels, figures, digests, who answered what and the types of errors."""
    changed = document_of(Asked(R("modify", modified={"order": "other"})), **off)["grace"]["decisions"][0]
    assert ("refund", "confirm", "executed_modified") == (changed["action"], changed["level"], changed["outcome"])
    assert {"order": HIDDEN} == changed["response"]["modified"]
    assert {"order": HIDDEN} == changed["executed_arguments"]
    assert ("modify", "asked") == (changed["response"]["action"], changed["response"]["reviewer"])
    assert 64 == len(changed["digest"]) == len(changed["executed_digest"])
    assert "requires at least confirm" in changed["reason"]
    assert "Broken" == document_of(Asked(Broken), **off)["grace"]["decisions"][0]["error"]


@OFF
def test_a_stored_notice_has_no_arguments(off, caplog):
    """The line that people read still has them."""
    caplog.set_level(logging.INFO, "grace_kp.gate")
    document = document_of(floor="notify", **off)
    assert {"to": "log", "text": HIDDEN} == document["grace"]["decisions"][0]["notice"]
    assert ORDER in caplog.text


def test_without_outputs_the_words_of_a_reviewer_and_of_errors_are_left_out():
    """Arguments went in, and stay."""
    document = document_of(Asked(R("cancel", user_input="the customer is Ana")), capture_output=False)
    entry = document["grace"]["decisions"][0]
    assert "Ana" not in json.dumps(document)
    assert (ORDER, HIDDEN) == (entry["arguments"]["order"], entry["response"]["user_input"])
    assert {"type": "ActionCancelled", "message": HIDDEN} == document["grace"]["error"]


def test_without_outputs_messages_of_errors_are_left_out():
    """Their types stay, in calls, in recoveries and in the run itself."""
    grace = make_grace(unmeasured="notify", capture_output=False)

    @grace.tool
    def look_up(name):
        raise LookupError("Ana owes 40 euros")

    with contextlib.suppress(LookupError), grace.run("look up") as run:
        with contextlib.suppress(LookupError):
            look_up("Ana")
        look_up("Ana")
    document = run.trace.to_dict()
    assert "euros" not in json.dumps(document)
    assert {"type": "LookupError", "message": HIDDEN} == document["grace"]["error"]


def test_a_judge_s_words_are_left_out():
    """A judge reads what went in and what came out."""
    reply = json.dumps({"score": 0.9, "reason": f"{ORDER} is right"})
    grace = make_grace(
        unmeasured="notify", reviewer=Asked(R("proceed")), evaluator=lambda prompt: reply, capture_input=False
    )

    @grace.gate(floor="confirm", judge="always")
    def refund(order):
        return None

    with grace.run("refund") as run:
        refund(ORDER)
    entry = run.trace.grace["decisions"][0]
    assert ORDER not in json.dumps(entry)
    assert ("always", 0.9) == (entry["evaluation"]["mode"], entry["evaluation"]["self_evaluation"]["score"])


def test_defaults_are_shown_whatever_they_compare_to():
    """An array of which nobody knows whether it equals (), an object that refuses to be compared, and empty defaults."""
    import numpy as np

    class Incomparable:
        __hash__ = None

        def __eq__(self, other):
            raise TypeError("no")

    reviewer = Asked(R("cancel"))
    grace = make_grace(unmeasured="notify", reviewer=reviewer)

    @grace.gate(floor="confirm")
    def plot(*extra, points=np.arange(3), style=Incomparable(), labels=(), options={}, **more):  # noqa: B006, B008
        return None

    with contextlib.suppress(gk.ActionNotApproved):
        plot()
    (shown,) = reviewer.shown
    assert ["points", "style", "labels", "options"] == list(shown)
