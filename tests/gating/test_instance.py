"""Attributes and closures are read where Python stores them, whatever a class makes of its names."""

from __future__ import annotations

import array
import collections
import random

import pydantic
import pytest

from grace_kp.gating._instance import classes_above, closure_of, is_transparent, qualified_name
from grace_kp.trace import dictionary_getter, slots_of


class Plain:
    def __init__(self):
        self.value = 1


class Lying:
    """Its name `__dict__` leads elsewhere."""

    @property
    def __dict__(self):
        return {"value": 2}


class LyingAboutMore(Plain):
    """The dictionary that its base has is found."""

    @property
    def __dict__(self):
        return {"value": 2}


class Slotted:
    __slots__ = ("first", "second")


class More(Slotted):
    __slots__ = ("third",)


class WithDictionary(Slotted):
    pass


class Referable:
    __slots__ = ("__weakref__", "value")


class ReferableLater(Slotted):
    __slots__ = ("__weakref__",)


class Items(list):
    pass


class Model(pydantic.BaseModel):
    value: int = 1


@pytest.mark.parametrize("kind", [Plain, LyingAboutMore])
def test_the_dictionary_is_read(kind):
    """The real one."""
    read = dictionary_getter(kind)
    assert {"value": 1} == read(kind())


@pytest.mark.parametrize("kind", [Slotted, Lying, int, object])
def test_classes_without_a_dictionary_that_can_be_read(kind):
    """None stands for it."""
    assert dictionary_getter(kind) is None


def test_slots_of_a_class():
    """Its own ones only, in their order; unset ones raise AttributeError when they are read."""
    value = More()
    value.first, value.third = 1, 3
    assert ["first", "second"] == list(slots_of(Slotted))
    assert ["third"] == list(slots_of(More))
    assert (1, 3) == (slots_of(Slotted)["first"](value), slots_of(More)["third"](value))
    with pytest.raises(AttributeError):
        slots_of(Slotted)["second"](value)
    assert {} == slots_of(Plain)


def test_classes_above_a_base():
    """In the order in which Python looks them up."""
    assert [More, Slotted] == classes_above(object, More)
    assert [More] == classes_above(Slotted, More)
    assert [] == classes_above(Slotted, Slotted)


@pytest.mark.parametrize(
    ("kind", "base", "expected"),
    [
        (Plain, object, True), (Slotted, object, True), (More, object, True), (WithDictionary, object, True),
        (Referable, object, True), (ReferableLater, object, True), (ReferableLater, Slotted, True), (Model, object, True),
        (Items, list, True), (object, object, True), (list, list, True), (collections.UserDict, object, True),
        (Lying, object, False), (LyingAboutMore, object, True), (Items, object, False), (list, object, False),
        (ValueError, Exception, False), (array.array, object, False), (random.Random, object, False), (collections.OrderedDict, dict, False),
    ],
)  # fmt: skip
def test_transparent_classes(kind, base, expected):
    """A class is transparent if slots and dictionary explain the whole size of its instances, and it is written in Python."""
    assert expected is is_transparent(kind, base)


def test_a_closure_by_name():
    """Cells without a value yet are left out; None is a value."""

    def outer():
        number, nothing = 5, None

        def inner():
            return number, nothing, later

        early = closure_of(inner)
        later = 1
        return early, closure_of(inner)

    early, late = outer()
    assert {"number": 5, "nothing": None} == early
    assert {"number": 5, "nothing": None, "later": 1} == late


@pytest.mark.parametrize("function", [len, lambda: 1, 5])
def test_what_has_no_closure(function):
    """Built-in functions, functions that use nothing from around them, and anything else."""
    assert {} == closure_of(function)


def test_qualified_names():
    """Module and name, with the classes around."""
    assert "collections.OrderedDict" == qualified_name(collections.OrderedDict)
    assert "builtins.int" == qualified_name(int)
