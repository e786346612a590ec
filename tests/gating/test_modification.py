"""A reviewer's arguments run only when they are there and fit; what runs is what was submitted, read as its declared type."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import functools
import inspect
import pathlib
import uuid
from typing import Annotated, Any, Literal, NotRequired, TypedDict, Unpack

import pydantic
import pytest

import grace_kp as gk
from grace_kp.gating import GatedCall, problem_with
from grace_kp.gating._case import EditMisfit, apply_changes, declared_types
from grace_kp.testing import ScriptedReviewer, capture, make_grace
from grace_kp.trace import render
from tests.gating.inboxes import gated

R = gk.InterventionResponse
both = pytest.mark.parametrize("is_async", [False, True])


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Item(pydantic.BaseModel):
    name: str
    count: int = 1


@dataclasses.dataclass
class Point:
    x: int
    y: float


class Options(TypedDict, total=False):
    fast: bool
    level: int


class Full(TypedDict):
    a: int
    b: int


class Nested(TypedDict):
    inner: NotRequired[Options]
    day: NotRequired[datetime.date]


class Client:
    pass


def run(annotation, value, *, original="first"):
    """What an action with one parameter runs with after a reviewer submitted `value`; or the problem that was named."""
    ran = []
    reviewer = ScriptedReviewer(R("modify", modified={"it": value}), "cancel")
    grace = make_grace(reviewer=reviewer)

    def act(it):
        ran.append(it)

    act.__annotations__["it"] = annotation
    with capture() as captured:
        try:
            grace.gate(floor="confirm")(act)(original)
        except gk.ActionCancelled:
            return reviewer.requests[1].problem
    assert "executed_modified" == captured.only.grace["decisions"][0]["outcome"]
    (ran_with,) = ran
    return ran_with


DAY = datetime.date(2026, 1, 2)
CLIENT = Client()


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (int, 20, 20), (float, 20, 20.0), (float, 0.5, 0.5), (str, "20", "20"), (bool, True, True), (Any, {"a": 1}, {"a": 1}),
        (object, [1], [1]), (list[int], [1, 2], [1, 2]), (dict[str, int], {"a": 1}, {"a": 1}), (list, ["x"], ["x"]),
        (tuple[int, int], [1, 2], (1, 2)), (set[int], [1, 2], {1, 2}), (int | None, None, None), (Item | None, None, None),
        (int | str, "20", "20"), (Literal["a", "b"], "b", "b"), (Annotated[int, pydantic.Field(gt=0)], 5, 5),
        (datetime.date, "2026-01-02", DAY), (datetime.date, DAY, DAY), (list[datetime.date], ["2026-01-02"], [DAY]),
        (datetime.datetime, "2026-01-02T03:04:05Z", datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)),
        (datetime.timedelta, "PT5S", datetime.timedelta(seconds=5)), (decimal.Decimal, "1.50", decimal.Decimal("1.50")),
        (pathlib.Path, "/a", pathlib.Path("/a")), (uuid.UUID, str(uuid.UUID(int=5)), uuid.UUID(int=5)), (bytes, b"x", b"x"),
        (Colour, "blue", Colour.BLUE), (Colour, Colour.BLUE, Colour.BLUE), (Item, {"name": "a"}, Item(name="a")),
        (Item, Item(name="a"), Item(name="a")), (list[Item], [{"name": "a"}], [Item(name="a")]),
        (Point, {"x": 1, "y": 2}, Point(1, 2.0)), (Point, Point(1, 2.5), Point(1, 2.5)),
        (Options, {"fast": True}, {"fast": True}), (Options, {}, {}),
        (Nested, {"inner": {"level": 1}, "day": "2026-01-02"}, {"inner": {"level": 1}, "day": DAY}), (Client, CLIENT, CLIENT), (list[Client], [CLIENT], [CLIENT]),
        (Annotated[str, pydantic.StringConstraints(strip_whitespace=True)], " a ", " a "),
        ("int", 20, 20), ("Nothing.known", "anything", "anything"), ("a b", "anything", "anything"), ("len(5)", 1, 1),
    ],
)  # fmt: skip
def test_what_fits_runs(annotation, value, expected):
    ran_with = run(annotation, value)
    assert (type(expected), expected) == (type(ran_with), ran_with)


@pytest.mark.parametrize(
    ("annotation", "value", "problem"),
    [
        (int, "20", "it: Input should be a valid integer"), (int, True, "valid integer"), (float, "0.5", "valid number"),
        (bool, 1, "valid boolean"), (list[int], [1, "2"], "it.1: Input should be a valid integer"), (list, "abc", "valid array"),
        (dict[str, int], {"a": "1"}, "it.a:"), (tuple[int, int], [1], "it"), (Literal["a", "b"], "c", "'a' or 'b'"),
        (Annotated[int, pydantic.Field(gt=0)], -1, "greater than 0"), (datetime.date, "soon", "valid date"),
        (datetime.date, 5, "valid date"), (datetime.datetime, 5, "valid datetime"), (Colour, "green", "'red' or 'blue'"),
        (Item, {"name": 5}, "it.name: Input should be a valid string"), (Item, {}, "it.name: Field required"),
        (Point, {"x": "1", "y": 2}, "it.x"), (Options, {"fast": "yes"}, "it.fast"), (Full, {"a": 1}, "it.b: Field required"),
        (Full, {"a": 1, "b": 2, "c": 3}, "it.c: Extra"), (Full, [1], "valid dictionary"), (Nested, {"inner": {"fast": 1}}, "it.inner.fast"),
        (Client, {}, "instance of Client"),
        (list[int], (1, 2), "valid list"), (dict[str, int], {1: 2}, "valid string"), ("int", "20", "valid integer"),
        (float, float("nan"), None), (dict[str, Colour], {1: "red"}, "it"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_asked_again(annotation, value, problem):
    told = run(annotation, value)
    if problem is None:
        assert "nan" == str(told)
    else:
        assert told.startswith("the arguments do not fit act: it")
        assert problem in told


def case(*answers):
    reviewer, ran = ScriptedReviewer(*answers), []

    def pay(to: str, euros: int = 5, when: datetime.date | None = None):
        ran.append((to, euros, when))
        return "paid"

    return make_grace(reviewer=reviewer).gate(floor="confirm")(pay), ran, reviewer


@both
@pytest.mark.parametrize(("modified", "wrap"), [(None, gk.ConfirmationFlow), ({}, lambda reviewer: reviewer)])
def test_a_modification_without_arguments_runs_nothing(is_async, modified, wrap):
    """Nothing says what to run instead, and the original is not what was agreed to."""
    reviewer = ScriptedReviewer(R("modify", modified=modified, reviewer="ana"))
    act, ran = gated(make_grace(reviewer=wrap(reviewer)), is_async=is_async, floor="confirm")
    with capture() as captured, pytest.raises(gk.ActionCancelled, match="without") as refused:
        act("eve")
    assert ([], 1) == (ran, reviewer.asked)
    assert not isinstance(refused.value, gk.ActionTimedOut)
    (entry,) = captured.only.grace["decisions"]
    assert ("cancelled", "ana") == (entry["outcome"], entry["response"]["reviewer"])
    assert not entry["response"]["timeout_reached"]
    assert "executed_digest" not in entry


def test_a_problem_is_named_and_the_next_answer_counts():
    """The text of a number is refused, the number runs, and a date in JSON runs and is recorded as a date."""
    changes = {"euros": "20"}, {"euros": 20, "when": "2026-01-02"}
    act, ran, reviewer = case(*(R("modify", modified=modified) for modified in changes))
    with capture() as captured:
        assert "paid" == act("ana", 9)
    assert [("ana", 20, DAY)] == ran
    assert "the arguments do not fit pay: euros: Input should be a valid integer" == reviewer.requests[1].problem
    assert [1, 2] == [request.attempt for request in reviewer.requests]
    entry = captured.only.grace["decisions"][0]
    assert "executed_modified" == entry["outcome"]
    assert {"to": "ana", "euros": 20, "when": "2026-01-02"} == entry["executed_arguments"]
    assert entry["executed_digest"] != entry["digest"]


def test_arguments_that_come_back_as_they_were_or_as_json_shows_them_run_as_they_are():
    act, ran, _ = case(R("modify", modified={"to": "ana", "euros": 9}))
    with capture() as captured:
        act("ana", 9)
    assert [("ana", 9, None)] == ran
    entry = captured.only.grace["decisions"][0]
    assert ("executed", "modify") == (entry["outcome"], entry["response"]["action"])
    assert "executed_arguments" not in entry
    act, ran, _ = case(R("modify", modified={"to": 7, "euros": 8, "when": "2026-01-02"}))
    act(7, 9, DAY)
    assert [(7, 8, DAY)] == ran


def call_of(action, *args, check=None, hidden=None, partial=False, **kwargs):
    signature = inspect.signature(action)
    bound = (signature.bind_partial if partial else signature.bind)(*args, **kwargs)
    return GatedCall(
        action="act", signature=signature, bound=bound, hidden=hidden, types=lambda: declared_types(action, signature), check=check,
        policy=None, scope=None, entry=None, coverage=None,
    )  # fmt: skip


def changed_to(call, **changes):
    try:
        return dict(apply_changes(call, changes).arguments)
    except EditMisfit as problem:
        return str(problem)


def optional(it: int = None): ...  # noqa: RUF013


def many(*numbers: int, **more: float): ...


def variadic(a, b=1, *rest, **more): ...


def positional(a=1, b=2, /, **more): ...


def typed(**more: Unpack[Options]): ...


def two(first: int, second: str = "b"): ...


def split(first: int, /, second: str = "b"): ...


def method(self, it, **more): ...


@pytest.mark.parametrize(
    ("call", "changes", "expected"),
    [
        (call_of(optional, 5), {"it": None}, {"it": None}),
        (call_of(many, 1, a=0.5), {"numbers": [3, 4], "b": 1.5}, {"numbers": (3, 4), "more": {"a": 0.5, "b": 1.5}}),
        (call_of(many, 1, a=0.5), {"more": {"c": 2}}, {"numbers": (1,), "more": {"c": 2}}),
        (call_of(many, 1), {"numbers": "34"}, "numbers: must be a list, not str"),
        (call_of(many, 1), {"numbers": [3, "4"]}, "numbers[1]: Input should be a valid integer"),
        (call_of(many, 1), {"b": "x"}, "b: Input should be a valid number"),
        (call_of(many, 1), {"more": [1]}, "more: must be an object, not list"),
        (call_of(many, 1), {"more": {"c": "x"}}, "c: Input should be a valid number"),
        (call_of(many, 1), {"more": {5: 1.0}}, "more: must be an object, not dict"),
        # A parameter in front that keeps its default moves nothing into `**more`; a name means the parameter before a keyword.
        (call_of(variadic, 0), {"rest": [5]}, {"a": 0, "b": 1, "rest": (5,)}),
        (call_of(variadic, 0), {"x": 1, "more": {"y": 2}}, {"a": 0, "more": {"x": 1, "y": 2}}),
        (call_of(variadic, 0), {"more": {"y": 2}, "x": 1}, {"a": 0, "more": {"x": 1, "y": 2}}),
        (call_of(positional), {"b": 7}, {"a": 1, "b": 7}),
        (call_of(positional, 5, a=9), {"a": 7}, {"a": 7, "b": 2, "more": {"a": 9}}),
        (call_of(positional, 5), {"more": {"b": 3}}, {"a": 5, "b": 2, "more": {"b": 3}}),
        (call_of(typed, fast=True), {"level": 3}, {"more": {"fast": True, "level": 3}}),
        (call_of(typed, fast=True), {"level": "3"}, "level: Input should be a valid integer"),
        (call_of(two, 1), {"third": 1}, "act has no parameter 'third'; it has first, second"),
        (call_of(two, 1), {"second": 2, "first": "1"}, "second: Input should be a valid string"),
        (call_of(two, second="x", partial=True), {"second": "y"}, "missing a required argument: 'first'"),
        (call_of(two, partial=True), {"first": 3}, {"first": 3}),
        (call_of(split, second="x", partial=True), {"second": "y"}, "missing a required argument: 'first'"),
        (call_of(method, 0, 1, hidden="self"), {"self": 1}, "act has no parameter 'self'; it has it, more"),
        (call_of(method, 0, 1, hidden="self"), {"other": 2}, {"self": 0, "it": 1, "more": {"other": 2}}),
    ],
)
def test_changes_arrive_where_they_belong(call, changes, expected):
    assert expected == changed_to(call, **changes)


def test_what_cannot_be_checked_cannot_be_submitted():
    assert "list_iterator" in run(Any, iter([1]), original=[1])


def test_the_types_of_everything_that_can_be_called():
    """Annotations are strings in this file, and found where the function was written."""

    def act(to: str, it: int): ...

    class Act:
        def __call__(self, to: str, it: int): ...

        def act(self, to: str, it: int): ...

    for action in (act, Act(), Act().act, make_grace().tool(act), functools.wraps(act)(lambda *a, **k: None)):
        assert {"to": str, "it": int} == declared_types(action, inspect.signature(action))

    def act(plain, number: "int", unknown: "Nothing", later: "Later", broken: "a b", *rest: str, **more: Options): ...  # noqa: F821, F722, UP037

    types = declared_types(act, inspect.signature(act))
    assert {"number": int, "later": Later, "rest": str, "more": Options} == types


def test_a_type_from_around_the_function():
    """A class of the enclosing function is found where the function uses it."""

    class Order(pydantic.BaseModel):
        euros: int

    def act(order: Order):
        return Order

    assert {"order": Order(euros=5)} == changed_to(call_of(act, Order(euros=1)), order={"euros": 5})


@pytest.mark.parametrize(
    ("value", "declared", "problem"),
    [
        ({"a": 1}, Full, ".b: Field required"),
        ("x", "Nothing", ""),
        (object(), int, "Input should be a valid integer"),
        ({1: Colour.RED}, dict[str, Colour], ".1.[key]: Input should be a valid string"),
    ],
)
def test_problems_of_single_values(value, declared, problem):
    assert problem == problem_with(value, declared)


@pytest.mark.parametrize(
    ("original", "value", "is_kept"),
    [
        (b"ab", "b'ab'", True),
        (DAY, "2026-01-02", True),
        ((1, 2), [1, 2], True),
        ({1: 2}, {"1": 2}, True),
        (1, True, False),
        (1, 1.0, False),
        ([1], [True], False),
        ("x" * 9_000, "x", False),
        ([DAY], ["2026-01-03"], False),
        ({"b": 1, "a": 2}, {"a": 2, "b": 1}, False),
        (CLIENT, CLIENT, True),
        ("x" * 9_000, render("x" * 9_000), False),
        ([1], iter([1]), False),
        ([CLIENT], [CLIENT], True),
    ],
)
def test_what_comes_back_unchanged_is_kept(original, value, is_kept):
    def act(it): ...

    found = changed_to(call_of(act, original), it=value)["it"]
    assert (original if is_kept else value) is found


@pytest.mark.parametrize("memo", ["quiet", "[hidden]"])
def test_the_form_of_a_value_with_a_hidden_field_is_unchanged(memo):
    """As a reviewer saw it, who sees every field, and as it is recorded."""

    @dataclasses.dataclass
    class Trip:
        city: str
        memo: str = dataclasses.field(repr=False)

    def act(it): ...

    original = Trip("Rome", "quiet")
    assert original is changed_to(call_of(act, original), it={"city": "Rome", "memo": memo})["it"]


class Unfinished(pydantic.BaseModel):
    other: "Missing"  # noqa: F821, UP037


class Refusing:
    """Has no schema."""

    @classmethod
    def __get_pydantic_core_schema__(cls, *_):
        raise TypeError("no schema")


@pytest.mark.parametrize("kind", [Unfinished, Refusing])
def test_a_type_that_cannot_be_checked_takes_anything(kind):

    def act(it): ...

    act.__annotations__["it"] = kind
    value = {"other": 5}
    assert value is changed_to(call_of(act, "old"), it=value)["it"]


class Later: ...
