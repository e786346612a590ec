"""Secret arguments in the store: sealed as a whole, openable where they belong, and refused without a key."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given

from grace_kp.approvals import (
    SEALED,
    SealNeeded,
    Secret,
    canonical,
    decode,
    encode,
    new_key,
    opened_arguments,
    sealed_arguments,
    sealed_texts,
    secret_parameters,
    unopened,
    without_texts,
)
from tests.approvals.values import values

API_KEY = "sk-proj-" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ2" * 2
SECRET = Secret(new_key())
PLACE = {"approval_id": "ap-1", "digest": "sha256:0"}


@dataclasses.dataclass
class Login:
    user: str
    password: str


HOLDING = {
    "a form": {"x": f"use {API_KEY} now"},
    "bytes": {"x": API_KEY.encode()},
    "a bytearray": {"x": [bytearray(API_KEY.encode())]},
    "half a surrogate pair beside it": {"x": f"\ud800 {API_KEY}"},
    "the name of the parameter": {"password": "plain-words-9"},
    "a number under such a name": {"pin": 123456},
    "a key": {"x": {API_KEY: 1}},
    "a key that is no text": {"x": {(API_KEY,): 1}},
    "the name of a key": {"x": [{"y": ({"password": "plain-words-9"},)}]},
    "beside a key that is no text": {"x": {1: 2, "password": "plain-words-9"}},
    "a field of a class": {"x": Login("ana", "plain-words-9")},
    "a set": {"x": {API_KEY}},
    "a command": {"x": ["curl", "-u", "ana:plain-words-9", "http://h"]},
    "a tuple of name and value": {"x": ("authorization", "Zx9-plain-words")},
}


@pytest.mark.parametrize("name", HOLDING)
def test_a_recognised_secret_is_found_wherever_it_stands(name):
    """And sealed with all of its parameter; the others stay readable."""
    encoded, problems = encode({**HOLDING[name], "euros": 20})
    assert {} == problems
    (parameter,) = HOLDING[name]
    assert (parameter,) == secret_parameters(encoded)
    stored, sealed = sealed_arguments(encoded, (), SECRET, **PLACE)
    assert ((parameter,), 20) == (sealed, stored["euros"])
    text = json.dumps(stored)
    assert "plain-words" not in text
    assert "aB3dE5" not in text
    assert encoded == opened_arguments(stored, SECRET, **PLACE)


def test_an_argument_that_another_one_calls_a_secret_is_sealed():
    """As in a form that sets fields by name."""
    encoded, _ = encode({"name": "password", "value": "plain-words-9"})
    assert ("value",) == secret_parameters(encoded)


def test_without_a_key_the_request_is_refused_and_the_parameter_named():
    """Nothing is stored in the clear, and the message says how to go on."""
    with pytest.raises(SealNeeded, match="the argument 'password' holds a secret, and there is no key") as caught:
        sealed_arguments({"user": "ana", "password": "plain-words-9"}, (), None, **PLACE)
    assert "password" == caught.value.parameter
    assert "GRACE_KP_KEY" in str(caught.value)
    assert "plain-words" not in str(caught.value)
    with pytest.raises(SealNeeded, match="the argument 'iban' is to be sealed"):
        sealed_arguments({"iban": "DE89"}, ("iban",), None, **PLACE)


def test_without_secrets_no_key_is_needed():
    """Names that are no arguments of this call need none either."""
    assert ({"euros": 20}, ()) == sealed_arguments({"euros": 20}, ("iban",), None, **PLACE)


@given(values())
def test_what_is_sealed_comes_back(value):
    """Exactly."""
    encoded, _ = encode({"x": value})
    stored, sealed = sealed_arguments(encoded, ("x",), SECRET, **PLACE)
    assert ("x",) == sealed == unopened(stored)
    assert canonical(encoded) == canonical(opened_arguments(stored, SECRET, **PLACE))


def test_a_sealed_argument_belongs_to_one_approval_digest_and_parameter():
    """Whoever moves it in the store is noticed, and so is a change."""
    stored, _ = sealed_arguments({"iban": "DE89", "other": "x"}, ("iban", "other"), SECRET, **PLACE)
    swapped = {"iban": stored["other"], "other": stored["iban"]}
    for moved, place in (
        (swapped, PLACE),
        (stored, {**PLACE, "approval_id": "ap-2"}),
        (stored, {**PLACE, "digest": "sha256:1"}),
        ({"iban": {**stored["iban"], "$sealed": "AAAA"}}, PLACE),
    ):
        with pytest.raises(
            ValueError, match="iban: sealed data was changed, or belongs to another request or parameter"
        ):
            opened_arguments(moved, SECRET, **place)


def test_what_cannot_be_opened_prints_as_sealed():
    """Without the key, and with another one."""
    stored, _ = sealed_arguments({"iban": "DE89", "euros": 1}, ("iban",), SECRET, **PLACE)
    for secret in (None, Secret(new_key())):
        encoded = opened_arguments(stored, secret, **PLACE)
        assert ("iban",) == unopened(encoded)
        assert {"iban": SEALED, "euros": 1} == decode(encoded)
        assert "{'iban': [SEALED], 'euros': 1}" == str(decode(encoded))


def test_the_length_of_a_short_secret_does_not_show():
    """A PIN of four digits looks like one of eight."""
    lengths = {
        len(sealed_arguments({"x": pin}, ("x",), SECRET, **PLACE)[0]["x"]["$sealed"]) for pin in ("1234", "12345678")
    }
    assert 1 == len(lengths)


def test_nothing_else_repeats_what_is_sealed():
    """The objective, a note or the trace of the run; a short text may be any word."""
    encoded, _ = encode({"iban": ["DE89-3704", {"pin": 123456, "bank": "ana"}], "euros": 20})
    texts = sealed_texts(encoded, ("iban",))
    assert ["DE89-3704", "123456"] == texts
    run = {"objective": "pay DE89-3704 for ana", "steps": [{"DE89-3704": 123456, "n": [20, True, None, 1.5]}]}
    expected = {"objective": "pay [SEALED] for ana", "steps": [{"[SEALED]": "[SEALED]", "n": [20, True, None, 1.5]}]}
    assert expected == without_texts(run, texts)
    assert run is without_texts(run, [])


def test_an_argument_that_looks_sealed_is_none():
    """A program's own `$sealed` is escaped, so that it is neither opened nor shown as sealed."""
    encoded, _ = encode({"x": {"$sealed": "AAAA", "key": SECRET.key_id}})
    assert () == unopened(encoded)
    assert encoded == opened_arguments(encoded, SECRET, **PLACE)
