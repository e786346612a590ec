"""Values whose own code lies or fails: what is shown is what they hold, and what cannot be read is named, never an error of the gate."""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import types

import numpy as np
import pydantic
import pytest

import grace_kp as gk
from grace_kp.gating import NotCheckable, digest_of, recorded_arguments
from grace_kp.gating._view import view
from grace_kp.gating.reviewers._layout import Page
from grace_kp.gating.reviewers._question import Question
from grace_kp.testing import ScriptedReviewer, make_grace


def shown(value, request_for):
    """The argument `x` as it is shown at a console."""
    (line, *rest) = Question(request_for({"x": value})).argument("x", Page(300))
    assert [] == rest
    return line.removeprefix("   x = ")


class Amount(int):
    def __init__(self, value):
        self.note = "n"

    def __int__(self):
        return 5

    __index__ = __trunc__ = __int__

    def __repr__(self):
        return "5"


class Name(str):
    __slots__ = ()

    def __str__(self):
        return "ana"

    __repr__ = __str__

    def __len__(self):
        return 1


class Masked:
    __dict__ = property(lambda self: {})

    def __init__(self):
        object.__setattr__(self, "to", "mallory")

    def __setattr__(self, name, value):
        raise AttributeError(name)


class Account:
    def __init__(self):
        self.to = "mallory"

    __class__ = str

    def __eq__(self, other):
        return True

    __hash__ = object.__hash__


class Short(tuple):
    __slots__ = ()
    _fields = ("to",)


class Attributes(dict):
    pass


def with_attribute(name):
    value = Attributes(to="ana")
    vars(value)[name] = "x"
    return value


class Model(pydantic.BaseModel):
    url: pydantic.AnyUrl = pydantic.AnyUrl("https://example.org/a")


Claimed = type("Decimal", (), {"__module__": "decimal", "__str__": lambda self: "5"})
claimed = Claimed()
claimed.value = 5_000


SHOWN = [
    (Amount(5_000), 'Amount(value=5000, note="n")'),
    (Name("mallory"), 'Name("mallory")'),
    (Account(), 'Account(to="mallory")'),
    (Short(("ana", "mallory")), 'Short("ana", "mallory")'),
    (with_attribute("note"), 'Attributes{"to": "ana", .note: "x"}'),
    (with_attribute('note: 1, "euros"'), 'Attributes{"to": "ana", ."note: 1, \\\\"euros\\\\"": "x"}'),
    (claimed, "Decimal(value=5000)"),
    (np.int64(5), "int64(5)"),
    (np.float32(1.5), "float32(1.5)"),
    (np.bool_(True), f"{np.bool_.__name__}(True)"),
    (np.datetime64("2026-01-02"), "datetime64(2026-01-02)"),
    (1 + 2j, "(1+2j)"),
    (range(3), "range(start=0, stop=3, step=1)"),
    (types.SimpleNamespace(to="ana"), 'SimpleNamespace(to="ana")'),
    (Model(), 'Model(url=AnyUrl(_url=Url("https://example.org/a")))'),
    (fractions.Fraction(1, 3), 'Fraction("1/3")'),
    (decimal.Decimal("1.50"), 'Decimal("1.50")'),
    (collections.OrderedDict(a=1), 'OrderedDict{"a": 1}'),
]


@pytest.mark.parametrize("number", range(len(SHOWN)))  # pytest reads a value where it names the test after it
def test_a_value_is_shown_as_what_it_holds(number, request_for):
    """Its class has no say in it, and common kinds of numbers need no phrase."""
    value, expected = SHOWN[number]
    assert expected == shown(value, request_for)
    assert [] == Question(request_for({"x": value})).opaque


@pytest.mark.parametrize("value", [fractions.Fraction(10**5_000, 3), {"deep": fractions.Fraction(10**5_000, 3)}])
def test_what_fails_when_it_is_read_is_not_shown_in_full(value, request_for):
    """Python refuses to print such a number; the question says so."""
    question = Question(request_for({"x": value}))
    assert ["x"] == question.opaque
    assert "Fraction: ValueError when it was read, cannot be shown in full" in shown(value, request_for)


def test_attributes_that_a_class_hides_are_not_shown_in_full(request_for):
    """Its name `__dict__` leads elsewhere."""
    assert ["x"] == Question(request_for({"x": Masked()})).opaque


def test_huge_bounds_are_shown(request_for):
    """In hexadecimal digits, as huge integers are."""
    lines = Question(request_for({"x": range(10**5_000)})).argument("x", Page(300))
    assert ["   x = range(", "     start=0,"] == lines[:2]
    assert lines[2].startswith("     stop=0x")


class Failing(datetime.timedelta):
    @property
    def days(self):
        raise KeyError("days")


def test_a_value_that_fails_when_it_is_read_cannot_be_checked():
    """Whatever it raises: where a person has to be asked the call is cancelled; elsewhere it runs, and the entry says why."""
    with pytest.raises(NotCheckable, match="'x' cannot be read \\(KeyError: 'days'\\)"):
        digest_of({"x": Failing()})
    for floor, outcome in (("confirm", "cancelled"), ("silent", "executed")):
        grace = make_grace(reviewer=ScriptedReviewer("proceed"), thresholds=gk.Thresholds(0, 0, 0))
        act = grace.gate(floor=floor)(lambda x: None)
        with grace.run("act") as run:
            if floor == "silent":
                act(Failing())
            else:
                with pytest.raises(gk.ActionCancelled):
                    act(Failing())
        (entry,) = run.trace.grace["decisions"]
        assert outcome == entry["outcome"]
        assert "cannot be read" in entry["unchecked"]


def test_nested_sets_are_read_once(request_for):
    """Fifty levels, each with two members; the members that can be compared stand in order."""
    nested = frozenset()
    for number in range(50):
        nested = frozenset([nested, number])
    assert 50 == "".join(Question(request_for({"x": nested})).argument("x", Page(300))).count("frozenset[") - 1
    assert 'set["a", 1, null]' == shown({None, "a", 1}, request_for)


def test_what_is_too_large_to_be_shown_is_not_read():
    """The rest is one leaf, whatever its number; and the count of hidden characters is a lower bound then."""
    seen = view({"a": list(range(1_000_000)), "b": set(range(1_000_000))}, 100)
    numbers = seen.root.children[0][1]
    assert 99 == len(numbers.children)
    assert "<999,902 more values, too many to be shown in full>" == numbers.children[-1][1].text
    assert 2 == len(seen.opaque)
    hidden = recorded_arguments({"rows": list(range(1_000_000))})["hidden"]["rows"]
    assert 5_000 < hidden < 100_000
