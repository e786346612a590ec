"""Instances of classes: complete state or none, restored without running their code."""

from __future__ import annotations

import dataclasses
import functools

import pydantic
import pytest

from grace_kp.approvals import decode, encode
from tests.approvals.values import Address, Open, same


def there_and_back(value, declared=None):
    encoded, problems = encode({"x": value})
    assert {} == problems
    return decode(encoded, {"x": declared or type(value)})["x"]


@dataclasses.dataclass
class Counted:
    a: int
    b: int = dataclasses.field(init=False, default=7)

    def __post_init__(self):
        self.a += 1

    @functools.cached_property
    def double(self):
        return 2 * self.a


def test_no_code_of_the_class_runs():
    """`__post_init__` would add 1 again."""
    assert Counted(1) == there_and_back(Counted(1))


def test_computed_properties_are_no_state():
    """They are computed again."""
    value = Counted(1)
    assert 4 == value.double
    assert {"a": 2, "b": 7} == vars(there_and_back(value))


def test_a_model_knows_which_fields_were_set():
    """An action that sends only those sends the same."""
    value = Address(street="a")
    assert {"street": "a"} == there_and_back(value).model_dump(exclude_unset=True)
    assert encode({"x": value}) != encode({"x": Address(street="a", zip=None)})


def test_a_model_keeps_extra_and_private_values():
    """They are part of what the action receives."""
    value = Open(a=1, b=(2,))
    value._note = b"n"
    again = there_and_back(value)
    assert same(value, again)
    again.c = 3
    assert (2,) == again.b


class Upper(pydantic.BaseModel):
    a: str

    @pydantic.field_validator("a")
    @classmethod
    def raised(cls, value):
        raise AssertionError


def test_no_validator_runs():
    """What was validated once is not changed by reading it."""
    assert "a" == there_and_back(Upper.model_construct(a="a")).a


class Root(pydantic.RootModel[list[int]]):
    pass


class Generic(pydantic.BaseModel):
    root: Root


def test_root_and_nested_models_are_restored():
    """Model in model."""
    assert Generic(root=Root([1])) == there_and_back(Generic(root=Root([1])))


@dataclasses.dataclass
class Bag(dict):
    a: int = 1


@dataclasses.dataclass
class Parent:
    a: int


class Child(Parent):
    pass


def test_a_class_with_other_contents_has_no_encoding():
    """A data class that is a dict holds more than its fields."""
    assert "x" in encode({"x": Bag()})[1]
    assert Child(1) == there_and_back(Child(1), Parent)


def test_two_classes_of_one_name_are_not_guessed_between():
    """Classes that a function defines anew each time have the same name."""

    def defined():
        @dataclasses.dataclass
        class Local:
            a: int

        return Local

    first, second = defined(), defined()
    with pytest.raises(ValueError, match="there are 2 classes of this name"):
        there_and_back(first(1), first | second)
