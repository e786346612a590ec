"""What a reviewer sees and changes arrives in the parameters that it is for, whatever kinds of parameters the action has."""

from __future__ import annotations

import asyncio
import functools

import numpy as np
import pytest

import grace_kp as gk
from grace_kp.testing import ScriptedReviewer, make_grace

R = gk.InterventionResponse


def variadic(a, b=1, *rest, **more):
    return {"a": a, "b": b, "rest": rest, "more": more}


def positional(a=1, b=2, /, **more):
    return {"a": a, "b": b, "more": more}


def run(action, changes, *args, is_async=False, **kwargs):
    """What a call returns whose reviewer changes these arguments."""
    grace = make_grace(reviewer=ScriptedReviewer(R("modify", modified=changes), "cancel"))

    @functools.wraps(action)
    async def action_async(*args, **kwargs):
        return action(*args, **kwargs)

    gated = grace.gate(floor="confirm")(action_async if is_async else action)
    return asyncio.run(gated(*args, **kwargs)) if is_async else gated(*args, **kwargs)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rest": [5]}, {"a": 0, "b": 1, "rest": (5,), "more": {}}),
        ({"rest": [5], "x": 1}, {"a": 0, "b": 1, "rest": (5,), "more": {"x": 1}}),
        ({"b": 7}, {"a": 0, "b": 7, "rest": (), "more": {}}),
        ({"x": 1, "more": {"y": 2}}, {"a": 0, "b": 1, "rest": (), "more": {"x": 1, "y": 2}}),
        ({"more": {"y": 2}, "x": 1}, {"a": 0, "b": 1, "rest": (), "more": {"x": 1, "y": 2}}),
    ],
)
def test_changes_arrive_where_they_belong(changes, expected, is_async):
    """A parameter in front that keeps its default moves nothing into `**more`; the order of the changes does not matter."""
    assert expected == run(variadic, changes, 0, is_async=is_async)


@pytest.mark.parametrize(
    ("changes", "args", "kwargs", "expected"),
    [
        ({"b": 7}, (), {}, {"a": 1, "b": 7, "more": {}}),
        ({"a": 7}, (5,), {"a": 9}, {"a": 7, "b": 2, "more": {"a": 9}}),
        ({"more": {"b": 3}}, (5,), {}, {"a": 5, "b": 2, "more": {"b": 3}}),
    ],
)
def test_positional_parameters_and_keywords_of_their_names(changes, args, kwargs, expected):
    """A name means the parameter; a keyword of that name is changed as part of `**more`."""
    assert expected == run(positional, changes, *args, **kwargs)


@pytest.mark.parametrize("default", [{}, (), [], np.zeros(3), None, ""])
def test_every_default_value_is_shown(default):
    """The empty ones and those that cannot be compared, too."""
    reviewer = ScriptedReviewer("proceed")

    @make_grace(reviewer=reviewer).gate(floor="confirm")
    def act(it, option=default, *rest, **more):
        return option

    assert act(1) is default
    assert ["it", "option"] == list(reviewer.requests[0].arguments)
    assert reviewer.requests[0].arguments["option"] is default


class Yielding:
    def __call__(self, it):
        yield it


class AsyncYielding:
    async def __call__(self, it):
        yield it


@pytest.mark.parametrize("action", [Yielding(), AsyncYielding(), functools.partial(Yielding(), 1)])
def test_a_callable_object_that_yields_cannot_be_gated(action):
    """It acts after the gate has let it through, like a generator function."""
    with pytest.raises(gk.GateError, match="is a generator"):
        make_grace().gate(floor="confirm")(action)


def transfer(account, euros, *, note=""):
    return f"{euros} to {account}{note}"


async def transfer_async(account, euros, *, note=""):
    return transfer(account, euros, note=note)


PARTIALS = pytest.mark.parametrize(
    "action",
    [
        functools.partial(transfer, "ana"),
        functools.partial(functools.partial(transfer, note="!"), "ana", note=""),
        functools.partial(transfer_async, "ana"),
    ],
)


def finished(result):
    return asyncio.run(result) if asyncio.iscoroutine(result) else result


@PARTIALS
def test_the_arguments_of_a_partial_are_shown_and_can_be_changed(action):
    """They are a part of what will run."""
    reviewer = ScriptedReviewer("proceed", R("modify", modified={"account": "ben"}))
    gated = make_grace(reviewer=reviewer).gate(floor="confirm")(action)
    assert "50 to ana" == finished(gated(50))
    assert {"account": "ana", "euros": 50, "note": ""} == dict(reviewer.requests[0].arguments)
    assert "50 to ben" == finished(gated(50))


@PARTIALS
def test_a_policy_knows_a_partial_by_the_name_of_its_function(action):
    """Otherwise a partial would evade it."""
    gated = make_grace(reviewer=None, policies={"transfer*": "deny"}).gate(action)
    with pytest.raises(gk.ActionDenied):
        finished(gated(50))


def test_a_change_within_an_argument_of_a_partial_is_found():
    """Between consent and call."""
    items, ran = [1], []

    def change(request):
        items.append(2)
        return R("proceed")

    gated = make_grace(reviewer=change).gate(floor="confirm")(functools.partial(ran.append, items))
    with pytest.raises(gk.ActionCancelled):
        gated()
    assert [] == ran
