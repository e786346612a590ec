"""A policy is checked where it is written, and time that runs out is the only reason to proceed without an answer."""

from __future__ import annotations

import asyncio
import threading

import pytest

import grace_kp as gk
from grace_kp.testing import capture, make_grace

R = gk.InterventionResponse
both = pytest.mark.parametrize("is_async", [False, True])
NO_BOOLEAN = ["no", "false", "yes", "", 0, 1, 0.0, [], object()]


def gated(grace, *, is_async, **options):
    ran = []

    def body(to):
        ran.append(to)
        return "done"

    async def abody(to):
        ran.append(to)
        return "done"

    act = grace.gate(**options)(abody if is_async else body)
    return (lambda to: asyncio.run(act(to))) if is_async else act, ran


@pytest.mark.parametrize("setting", NO_BOOLEAN)
def test_what_only_looks_like_a_boolean_is_refused(setting):
    """The text "no" is true in Python; the message names the setting, the value and the place."""
    with pytest.raises(ValueError, match="auto_proceed_on_timeout must be True or False, not"):
        gk.Policy(floor="confirm", auto_proceed_on_timeout=setting)
    with pytest.raises(ValueError, match="auto_proceed_on_timeout must be True or False, not"):
        gk.InterventionHandler(auto_proceed_on_timeout=setting)


def test_the_handler_takes_no_none_for_a_boolean():
    """Only in a policy does None mean that it is not said there."""
    with pytest.raises(ValueError, match="not None"):
        gk.InterventionHandler(auto_proceed_on_timeout=None)
    assert gk.Policy().auto_proceed_on_timeout is None


@pytest.mark.parametrize("timeout", ["5", True, -1, float("nan"), [1]])
def test_a_timeout_is_a_number(timeout):
    """Of 0 or more seconds, wherever it is written."""
    with pytest.raises(ValueError, match="timeout must be 0 or more seconds, or None, not"):
        gk.Policy(timeout=timeout)
    with pytest.raises(ValueError, match="timeout must be 0 or more seconds, or None, not"):
        gk.InterventionHandler(timeout=timeout)
    with pytest.raises(ValueError, match="timeout must be 0 or more seconds, or None, not"):
        make_grace().gate(timeout=timeout)(lambda: None)


@pytest.mark.parametrize("timeout", [None, 0, 0.5, 3])
def test_usable_timeouts(timeout):
    """None waits as long as whatever stands around it says."""
    assert timeout == gk.Policy(timeout=timeout).timeout
    assert timeout == gk.InterventionHandler(timeout=timeout).timeout


def test_settings_take_floors_only(tmp_path, monkeypatch):
    """A file cannot make a gate proceed without an answer by a slip."""
    file = tmp_path / "grace_kp.toml"
    file.write_text('[policies]\npay = {floor = "confirm", auto_proceed_on_timeout = "no"}\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(gk.SettingsError, match="'pay'"):
        gk.Grace(store="memory:")


def nobody(request):
    threading.Event().wait()


async def nobody_async(request):
    await asyncio.Event().wait()


def says_so(request):
    return R("cancel", timeout_reached=True)


PROCEEDS = gk.Policy(floor="confirm", timeout=0.01, auto_proceed_on_timeout=True)


@both
@pytest.mark.parametrize(
    "reviewer", [nobody, nobody_async, says_so, lambda request: R("proceed", timeout_reached=True)]
)
def test_time_that_runs_out_proceeds_where_that_is_wanted(is_async, reviewer):
    """Whether the gate keeps the time or the reviewer does; the record says that nobody answered."""
    act, ran = gated(make_grace(reviewer=reviewer), is_async=is_async, policy=PROCEEDS)
    with capture() as captured:
        assert "done" == act("ana")
    assert ["ana"] == ran
    entry = captured.only.grace["decisions"][0]
    assert ("executed", "proceed", True) == (
        entry["outcome"], entry["response"]["action"], entry["response"]["timeout_reached"],
    )  # fmt: skip


@both
@pytest.mark.parametrize("setting", [None, False])
@pytest.mark.parametrize(
    "reviewer", [nobody, nobody_async, says_so, lambda request: R("proceed", timeout_reached=True)]
)
def test_time_that_runs_out_cancels_otherwise(is_async, reviewer, setting):
    """As an outcome of its own, which is no refusal."""
    policy = gk.Policy(floor="confirm", timeout=0.01, auto_proceed_on_timeout=setting)
    act, ran = gated(make_grace(reviewer=reviewer), is_async=is_async, policy=policy)
    with capture() as captured, pytest.raises(gk.ActionTimedOut, match=r"nobody answered within 0\.01 s") as error:
        act("ana")
    assert ([], True) == (ran, error.value.response.timeout_reached)
    entry = captured.only.grace["decisions"][0]
    assert ("timed_out", "cancel", True) == (
        entry["outcome"], entry["response"]["action"], entry["response"]["timeout_reached"],
    )  # fmt: skip


def fails(request):
    raise ConnectionError("no network")


def times_out_itself(request):
    raise TimeoutError("the chat did not answer")


async def fails_async(request):
    raise ConnectionError("no network")


NO_TIMEOUT = {
    "False": lambda request: False,
    "None": lambda request: None,
    "True": lambda request: True,
    "reject": lambda request: "reject",
    "cancel": lambda request: "cancel",
    "refusal": lambda request: R("cancel"),
    "modification": lambda request: R("modify"),
    "crash": fails,
    "async crash": fails_async,
    "its own timeout": times_out_itself,
    "no reviewer": None,
    "not callable": 5,
    "words": lambda request: R("input", user_input="no"),
}


@both
@pytest.mark.parametrize("name", NO_TIMEOUT)
def test_nothing_else_proceeds_or_counts_as_a_timeout(is_async, name):
    """A refusal, nonsense, a failure and a missing reviewer stop the action although a timeout would not."""
    policy = gk.Policy(floor="confirm", timeout=30, auto_proceed_on_timeout=True)
    act, ran = gated(make_grace(reviewer=NO_TIMEOUT[name]), is_async=is_async, policy=policy)
    with capture() as captured, pytest.raises(gk.ActionNotApproved) as error:
        act("ana")
    assert [] == ran
    assert not isinstance(error.value, gk.ActionTimedOut)
    assert "nobody answered" not in str(error.value)
    assert error.value.response.timeout_reached is False
    entry = captured.only.grace["decisions"][0]
    assert entry["outcome"] == ("redirected" if name == "words" else "cancelled")
    assert entry["response"]["timeout_reached"] is False


@pytest.mark.parametrize(
    ("own", "other", "proceeds"),
    [
        (True, True, True), (True, False, False), (False, True, False), (True, None, True), (None, True, True),
        (None, None, None), (False, None, False),
    ],
)  # fmt: skip
def test_both_policies_must_allow_it(own, other, proceeds):
    """Where both say something."""
    combined = gk.Policy(auto_proceed_on_timeout=own).combined(gk.Policy(auto_proceed_on_timeout=other))
    assert proceeds is combined.auto_proceed_on_timeout


def test_a_confirmation_flow_passes_a_timeout_on():
    """Nobody who answered nothing has confirmed or modified anything."""
    answers = iter([R("modify", modified={"to": "eve"}), R("proceed", timeout_reached=True)])
    act, ran = gated(
        make_grace(reviewer=gk.ConfirmationFlow(lambda request: next(answers))), is_async=False, floor="confirm"
    )
    with pytest.raises(gk.ActionTimedOut):
        act("ana")
    assert [] == ran
