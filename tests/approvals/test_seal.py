"""Secrets: sealed arguments, the key of the installation, and notes that hold none."""

from __future__ import annotations

import base64
import copy
import dataclasses
import json
import pickle

import keyring
import keyring.backend
import keyring.errors
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
    unopened,
)
from grace_kp.approvals._seal import (
    MAX_NOTE,
    clean_json,
    clean_note,
    kept_result,
    sealed_texts,
    secret_parameters,
    without_texts,
)
from grace_kp.errors import ApprovalError, SettingsError
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


KEY = new_key()


class Ring(keyring.backend.KeyringBackend):
    priority = -9  # nobody else chooses it

    def __init__(self, found=None, error=None):
        super().__init__()
        self.found, self.error = found or {}, error

    def get_password(self, service, username):
        if self.error:
            raise self.error
        return self.found.get((service, username))

    def set_password(self, service, username, password):
        raise NotImplementedError


@pytest.fixture
def ring():
    """Use a keyring, and put the one before back."""
    before = keyring.get_keyring()
    yield lambda *details: keyring.set_keyring(Ring(*details))
    keyring.set_keyring(before)


def test_the_key_comes_from_the_argument_the_environment_or_the_keyring(ring):
    """In this order; without any there is no secret."""
    ring({("grace_kp", "key"): KEY})
    other = new_key()
    assert Secret(other).key_id == Secret.load(other, environ={"GRACE_KP_KEY": KEY}).key_id
    assert Secret(other).key_id == Secret.load(environ={"GRACE_KP_KEY": other}).key_id
    assert Secret(KEY).key_id == Secret.load(environ={}).key_id
    ring({})
    assert Secret.load(environ={}) is None
    ring({}, keyring.errors.NoKeyringError())
    assert Secret.load(environ={}) is None


def test_a_keyring_that_cannot_be_read_is_an_error(ring):
    """Whether there is a key is not guessed."""
    ring({}, keyring.errors.KeyringLocked("locked"))
    with pytest.raises(
        SettingsError, match=r"the keyring cannot be read \(KeyringLocked: locked\); unlock it, set GRACE_KP_KEY"
    ):
        Secret.load(environ={})


@pytest.mark.parametrize("form", ["url", "url unpadded", "standard", "hex"])
def test_a_key_is_32_bytes_in_base64_or_hexadecimal(form):
    """All forms of the same bytes are the same key."""
    raw = base64.urlsafe_b64decode(KEY)
    texts = {"url": KEY, "url unpadded": KEY.rstrip("="), "standard": base64.b64encode(raw).decode(), "hex": raw.hex()}
    assert Secret(KEY).key_id == Secret(texts[form]).key_id


BAD = {
    "a passphrase": "correct horse battery staple",
    "too short": base64.b64encode(b"abcdefghijklmnop").decode(),
    "too long": "ab" * 33,
    "no hex": "zz" * 32,
    "an empty part": f"{KEY},",
    "beyond ASCII": "é" * 43,
}


@pytest.mark.parametrize("name", BAD)
def test_another_text_is_refused_without_showing_it(name):
    """It may be nearly the key."""
    with pytest.raises(SettingsError, match="GRACE_KP_KEY must be 32 random bytes in base64 or hexadecimal") as caught:
        Secret.load(environ={"GRACE_KP_KEY": BAD[name]})
    assert BAD[name] not in str(caught.value)


def test_a_key_that_is_not_random_is_refused():
    """32 zeros are a placeholder."""
    with pytest.raises(SettingsError, match="must be random; only 1 of its 32 bytes differ"):
        Secret("00" * 32)


def test_what_is_sealed_can_be_opened_where_it_belongs():
    """And nowhere else, nor after a change."""
    secret = Secret(KEY)
    sealed = secret.seal(b"DE89", b"approval 1")
    assert b"DE89" == secret.open(sealed, b"approval 1")
    raw = bytearray(base64.b64decode(sealed["$sealed"]))
    raw[-1] ^= 1
    changed = {**sealed, "$sealed": base64.b64encode(raw).decode()}
    short = {**sealed, "$sealed": "AAAA"}
    for wrong, bound in (
        (sealed, b"approval 2"),
        (changed, b"approval 1"),
        (short, b"approval 1"),
        ({**sealed, "$sealed": 3}, b"approval 1"),
    ):
        with pytest.raises(ValueError, match="sealed data was changed, or belongs to another request or parameter"):
            secret.open(wrong, bound)


def test_equal_contents_are_sealed_differently():
    """Nobody sees that two requests hold the same."""
    secret = Secret(KEY)
    assert secret.seal(b"a", b"") != secret.seal(b"a", b"")


def test_earlier_keys_open_and_the_first_one_seals():
    """So a key can be replaced without losing what is pending."""
    old, new = new_key(), new_key()
    sealed = Secret(old).seal(b"a", b"")
    both = Secret(f"{new},{old}")
    assert b"a" == both.open(sealed, b"")
    assert b"a" == Secret(new).open(both.seal(b"a", b""), b"")
    assert both.has_key(sealed["key"])
    with pytest.raises(ValueError, match=r"this needs the key .* add it to GRACE_KP_KEY after the current one"):
        Secret(new).open(sealed, b"")


def test_a_secret_does_not_show_or_copy_itself():
    """Neither in a log, nor into a pickle."""
    secret = Secret(KEY)
    assert f"<Secret {secret.key_id}>" == repr(secret)
    raw = base64.urlsafe_b64decode(KEY)
    assert secret.key_id not in KEY
    assert secret.key_id not in raw.hex()
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="a Secret is not pickled or copied"):
            duplicate(secret)


def test_a_note_is_bounded():
    """At exactly the limit it is kept."""
    assert "n" * MAX_NOTE == clean_note("n" * MAX_NOTE, "ap-1")
    with pytest.raises(ApprovalError, match="shorten it"):
        clean_note("n" * (MAX_NOTE + 1), "ap-1")


def test_json_is_cleaned():
    """Secrets are removed; what JSON cannot hold becomes text."""
    cleaned = clean_json({"password": "hunter22hunter", "score": float("nan"), "when": {1}, ("a",): 1})
    assert ({"password", "score", "when"}, "NaN", "{1}") == (set(cleaned), cleaned["score"], cleaned["when"])
    assert "hunter22" not in str(cleaned)


def test_a_result_nested_too_deeply_is_not_kept():
    """Nor one with a number that Python does not print."""
    nested = []
    for _ in range(5_000):
        nested = [nested]
    assert [False, False] == [kept_result(nested), kept_result(10**5_000)]
