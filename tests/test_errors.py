"""The error family: what each is, says and carries, and that it survives copying and pickling."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp import errors
from grace_kp.errors import brief

FAMILY = [item for item in vars(errors).values() if inspect.isclass(item) and issubclass(item, gk.GraceError)]
EXAMPLES = [
    gk.GraceError("g"),
    gk.SettingsError("s"),
    gk.InvalidTrace("must be a text", path="steps[0].content"),
    gk.InvalidTrace("a trace must be an object"),
    gk.InvalidRecord("is not JSON", file="runs.jsonl", line=7),
    gk.InvalidRecord("must be a text", file="runs.jsonl", line=7, path="task.objective"),
    gk.InvalidRecord("cannot be opened", file="runs.jsonl"),
    gk.StoreError("st"),
    gk.UnknownTrace("u", trace_id="kp:trace:1"),
    gk.InvalidHistory("h", file="history.md", line=3),
    gk.GateError("ga"),
    gk.MissingExtra("The Gemini judge", "gemini"),
    gk.JudgeError("j", attempts=3, status=503),
    gk.EvaluationFailed("e", evaluation={"score": 0.5}),
    gk.EmbedderError("em"),
    gk.ActionNotApproved("n", decision={"level": "confirm"}, request=[1], response="r"),
    gk.ActionCancelled("c", response={"action": "cancel"}),
    gk.ActionTimedOut("t", decision=1, request=2, response=3),
    gk.ActionDenied("d", decision=1),
    gk.ActionRedirected("r", user_input="ask Ana", decision=1, request=2, response=3),
    gk.ActionOutcomeUnknown("u", state="done", decision=1, request=2, response=3),
    gk.ActionPending("p", approval={"id": "ap-1"}, decision=1, request=2, response=3),
    gk.KeyReused("k", approval_id="ap-1", decision=1, request=2, response=3),
    gk.ApprovalError("a", approval_id="ap-1"),
    gk.UnknownApproval("a", approval_id="ap-1"),
    gk.AlreadyDecided("a", approval_id="ap-1", state="rejected", by="ana", at=1.5),
    gk.NotEntitled("a", approval_id="ap-1"),
    gk.ChangedSinceShown("a", approval_id="ap-1"),
    gk.EditRefused("a", approval_id="ap-1"),
]


@pytest.mark.parametrize(
    ("cls", "parent"),
    [
        (gk.SettingsError, ValueError), (gk.InvalidTrace, ValueError), (gk.InvalidRecord, gk.InvalidTrace), (gk.InvalidHistory, ValueError), (gk.GateError, TypeError), (gk.UnknownTrace, LookupError),
        (gk.MissingExtra, ImportError), (gk.ActionCancelled, gk.ActionNotApproved), (gk.ActionTimedOut, gk.ActionCancelled),
        (gk.ActionDenied, gk.ActionNotApproved), (gk.ActionRedirected, gk.ActionNotApproved),
        (gk.ActionOutcomeUnknown, gk.ActionNotApproved), (gk.ActionPending, gk.ActionNotApproved), (gk.KeyReused, gk.ActionNotApproved),
        (gk.UnknownApproval, LookupError), (gk.AlreadyDecided, gk.ApprovalError), (gk.NotEntitled, PermissionError),
        (gk.ChangedSinceShown, gk.ApprovalError), (gk.EditRefused, ValueError),
    ],
)  # fmt: skip
def test_the_tree_is_as_drawn(cls, parent):
    """Each error is caught by its parent, by the built-in class of its kind where there is one, and by gk.GraceError."""
    assert issubclass(cls, parent)
    assert issubclass(cls, gk.GraceError)
    assert cls not in {gk.ActionDenied, gk.ActionRedirected} or not issubclass(cls, gk.ActionCancelled)


def test_the_tree_names_every_error():
    assert [] == [cls.__name__ for cls in FAMILY if cls.__name__ not in errors.__doc__]
    assert set(FAMILY) == {type(example) for example in EXAMPLES}


def seen(error):
    carried = {key: value for key, value in vars(error).items() if key != "__notes__"}
    return type(error), str(error), error.args, carried, getattr(error, "__notes__", None), getattr(error, "msg", None)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: f"{type(error).__name__}-{error}")
def test_errors_survive_copying_and_pickling(error, again):
    """Process pools pickle what is raised: the message, all that it carries and the notes on it arrive."""
    assert seen(error) == seen(again(error))
    noted = copy.copy(error)
    noted.add_note("while paying")
    assert seen(noted) == seen(again(noted))
    assert seen(error) != seen(noted)


def test_an_invalid_trace_names_the_field():
    error = gk.InvalidTrace("must be a text (got 3)", path="steps[2].content")
    assert "steps[2].content: must be a text (got 3)" == str(error)
    assert ("steps[2].content", "must be a text (got 3)") == (error.path, error.problem)
    assert "must be an object" == str(gk.InvalidTrace("must be an object"))


def test_an_invalid_record_names_file_and_line():
    """`file:line`, as editors understand it; without a line the file as a whole is meant."""
    error = gk.InvalidRecord("is missing", file="a.jsonl", line=3, path="id")
    assert "a.jsonl:3: id: is missing" == str(error)
    assert ("a.jsonl", 3, "id", "is missing") == (error.file, error.line, error.path, error.problem)
    assert "a.jsonl: is empty" == str(gk.InvalidRecord("is empty", file="a.jsonl"))


def test_a_missing_extra_names_the_pip_command():
    error = gk.MissingExtra("The Gemini judge", "gemini")
    assert "The Gemini judge needs an optional package: pip install 'grace-kp[gemini]'" == str(error)
    assert ("The Gemini judge", "gemini") == (error.what, error.extra)


def test_a_gate_error_carries_what_was_decided():
    """Decision, request and response are there, and None where there is none."""
    error = gk.ActionRedirected("no", user_input="call her", decision="d", request="q", response="r")
    assert ("call her", "d", "q", "r") == (error.user_input, error.decision, error.request, error.response)
    denied = gk.ActionDenied("no")
    assert (None, None, None) == (denied.decision, denied.request, denied.response)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.just(object()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
)


@given(JUNK)
def test_any_value_is_shown_in_one_short_line(value):
    shown = brief(value)
    assert shown == shown.strip() or not shown.isprintable()
    assert 0 < len(shown) <= 60
    assert "\n" not in shown


class Loud:
    def __repr__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("x" * 5_000_000, "'" + "x" * 56 + "..."), ({1: 2}, "an object of 1"), ([], "a list of 0"), (True, "True"),
        (10**5_000, "a very large number"), (Loud(), "a Loud"), (float("nan"), "nan"), ("a\nb", r"'a\nb'"),
    ],
    ids=["long", "dict", "list", "bool", "huge", "raising", "nan", "lines"],
)  # fmt: skip
def test_values_that_cannot_be_written_out_are_named(value, expected):
    """Long texts are cut, containers are counted, and a repr that raises is survived."""
    assert expected == brief(value)
