"""Identity of a call, sealed arguments, the key of the installation, and notes that hold no secrets."""

from __future__ import annotations

import base64
import copy
import dataclasses
import datetime as dt
import decimal
import enum
import hashlib
import inspect
import json
import pickle
import subprocess
import sys
import uuid
from typing import Annotated, Optional, Union

import keyring
import keyring.backend
import keyring.errors
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.approvals import (
    SEALED,
    KeyTemplate,
    SealNeeded,
    Secret,
    canonical,
    decode,
    digest,
    encode,
    has_digest,
    list_sealed,
    new_key,
    opened_arguments,
    sealed_arguments,
    version_of,
)
from grace_kp.approvals._digest import clean_json, kept_result, secret_parameters
from grace_kp.errors import SettingsError
from tests.approvals.values import values

ENCODED = encode({"invoice": "7", "euros": 20, "session": "s-1"})[0]


def test_a_digest_is_the_hash_of_canonical_json():
    data = b'{"action":"refund","arguments":{"euros":20,"invoice":"7"},"version":"1"}'
    assert f"sha256:{hashlib.sha256(data).hexdigest()}" == digest("refund", "1", ENCODED, leave_out=("session",))


@pytest.mark.parametrize("secret", [None, Secret(new_key())], ids=["plain", "keyed"])
def test_a_digest_covers_everything_but_what_is_left_out(secret):
    calls = [
        ("refund", "1", {"a": 1}),
        ("refund2", "1", {"a": 1}),
        ("refund", "2", {"a": 1}),
        ("refund", "1", {"a": True}),
        ("refund", "1", {"a": "1"}),
        ("refund", "1", {"b": 1}),
        ("refund", "1", {"a": 1, "b": None}),
        ("refund", "1", {}),
    ]
    found = [digest(action, version, encoded, secret=secret) for action, version, encoded in calls]
    assert len(calls) == len(set(found))
    first = digest("refund", "1", {"a": 1, "token": "x"}, leave_out={"token"}, secret=secret)
    assert first == digest("refund", "1", {"a": 1, "token": "y"}, leave_out={"token"}, secret=secret) == found[0]


def test_old_digests_remain_verifiable():
    old, new = new_key(), new_key()
    both = Secret(f"{new}, {old}")
    plain, keyed = digest("a", "1", {"x": 1}), digest("a", "1", {"x": 1}, secret=Secret(old))
    assert (both.key_id, f"hmac-sha256:{Secret(old).key_id}") == (Secret(new).key_id, keyed.rpartition(":")[0])
    for expected in (plain, keyed, digest("a", "1", {"x": 1}, secret=both)):
        assert has_digest(expected, "a", "1", {"x": 1}, secret=both)
        assert not has_digest(expected, "a", "1", {"x": 2}, secret=both)


def test_a_digest_that_cannot_be_verified_is_an_error_and_no_difference():
    keyed = digest("a", "1", {"x": 1}, secret=Secret(new_key()))
    with pytest.raises(ValueError, match=r"this needs the key '[0-9a-f]{16}', and the keys here are"):
        has_digest(keyed, "a", "1", {"x": 1}, secret=Secret(new_key()))
    with pytest.raises(ValueError, match="set GRACE_KP_KEY to it"):
        has_digest(keyed, "a", "1", {"x": 1})
    for nonsense in ("", "md5:0", "hmac-sha256:0"):
        with pytest.raises(ValueError, match="must begin with sha256: or hmac-sha256:"):
            has_digest(nonsense, "a", "1", {})


def version(action, declared=None):
    return version_of(inspect.signature(action), declared)


def test_a_version_is_declared_or_the_hash_of_the_signature():

    def first(invoice: str, euros: int = 1):
        return 1

    def second(invoice: str, euros: int = 2):
        return "another body"

    assert version(first) == version(second)
    assert version(first).startswith("signature:")
    assert "2026-11" == version(first, "2026-11")
    for bad in ("", " ", 3, "a" * 101):
        with pytest.raises(ValueError, match="version must be a string of 1 to 100 characters"):
            version(first, bad)


def test_another_signature_is_another_version():
    actions = [
        lambda a, b: 0,
        lambda b, a: 0,
        lambda a, *, b: 0,
        lambda a, b=None: 0,
        lambda a, *b: 0,
        lambda a: 0,
        eval("lambda a, b, /: 0"),
    ]

    def typed(a: int, b): ...
    def named(a: "Order", b): ...  # noqa: F821, UP037

    assert len(actions) + 2 == len({version(action) for action in [*actions, typed, named]})


def test_ways_to_write_a_type_do_not_count():
    """Versions of Python print them differently, and constraints print addresses."""

    spellings = [
        [int | None, Annotated[str, object()], list[int]],
        [Optional[int], Annotated[str, object()], list[int]],  # noqa: UP045
        [Union[int, None], str, list[Annotated[int, 3]]],  # noqa: UP007
    ]

    def spelled(annotations):
        kind = inspect.Parameter.KEYWORD_ONLY
        return inspect.Signature([inspect.Parameter(f"p{n}", kind, annotation=a) for n, a in enumerate(annotations)])

    assert 1 == len({version_of(spelled(annotations)) for annotations in spellings})


def test_a_version_is_the_same_in_another_process():
    code = (
        "import inspect, sys, typing, enum; from grace_kp.approvals import version_of\n"
        "class C(enum.Enum): A = 1\n"
        "def act(a: list[C], b: typing.Callable[[int], str], c: object(), d: typing.Literal[C.A] = C.A): ...\n"
        "print(version_of(inspect.signature(act)))"
    )
    found = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in "12"
    }
    assert 1 == len(found)


def refund(invoice: str, euros: int = 1, *rest: str, note: object = None, **more: str) -> None: ...


SIGNATURE = inspect.signature(refund)


def template(text, **options):
    return KeyTemplate(text, SIGNATURE, **options)


def key(text, **arguments):
    return template(text).key("shop", "refund", arguments)


def test_a_key_is_made_of_the_domain_the_action_and_the_named_fields():
    expected = {"domain": "shop", "action": "refund", "template": "refund:{invoice}", "fields": {"invoice": "7"}}
    assert expected == json.loads(key("refund:{invoice}", invoice="7", euros=20))
    assert key("refund:{invoice}", invoice="7", euros=20) == key("refund:{invoice}", invoice="7", euros=30)
    assert ("invoice", "euros") == template("{invoice}/{euros} {{x}} {invoice}").fields
    assert () == template("nightly").fields


@given(st.text(min_size=1), st.text(min_size=1), st.text(min_size=1), st.text(min_size=1))
def test_values_do_not_run_into_each_other(a, b, c, d):
    texts = (a, b, c, d)
    if any(not text.strip() or "\ud800" <= max(text) <= "\udfff" for text in texts):
        return
    found = []
    for first, second in ((a, b), (c, d)):
        try:
            found.append(key("{invoice}:{note}", invoice=first, note=second))
        except ValueError:
            return  # looks like a secret
    assert ((a, b) == (c, d)) == (found[0] == found[1])


class Shop(enum.StrEnum):
    BERLIN = "b"


def test_types_domains_and_actions_are_told_apart():
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    numbers = ["7", 7, 7.0, True, decimal.Decimal(7), decimal.Decimal("7.0"), 2**70, 0, 0.5]
    found = {
        key("{invoice}", invoice=value) for value in (*numbers, uuid.UUID(int=1), moment, moment.date(), Shop.BERLIN)
    }
    found |= {
        template("{invoice}").key(domain, action, {"invoice": "7"}) for domain, action in (("a", "bc"), ("ab", "c"))
    }
    assert 15 == len(found)


class Hard(enum.Enum):
    LIST = (1,)
    NOTHING = None


REFUSED = {
    "nothing": (None, "is None; a key needs a value that identifies the operation"),
    "a list": (["7"], "is a list; a key takes strings, numbers, dates, UUIDs and members of enums"),
    "an object": (object(), "is a object; a key takes"),
    "NaN": (float("nan"), "is nan; a key takes finite numbers"),
    "infinity": (decimal.Decimal("-Infinity"), "is -Infinity; a key takes finite numbers"),
    "an empty text": (" ", "is an empty string; a key needs a value"),
    "a long text": ("a" * 1_001, "has more than 1,000 characters"),
    "an enum of tuples": (Hard.LIST, "is a Hard; a key takes"),
    "an enum of nothing": (Hard.NOTHING, "is None"),
    "a secret": ("sk-proj-" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ2" * 2, "holds a secret; a key is kept in the clear"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_value_that_identifies_nothing_is_refused(name):
    value, message = REFUSED[name]
    with pytest.raises(ValueError, match=r"the field 'invoice' of the key 'r:\{invoice\}' ") as caught:
        key("r:{invoice}", invoice=value)
    assert message in str(caught.value)
    assert "aB3dE5" not in str(caught.value)


BAD = {
    "an unknown field": (
        "r:{invoise}",
        "names 'invoise', which is no single parameter of the action; it has invoice, euros, note",
    ),
    "all positional arguments": ("{rest}", "names 'rest', which is no single parameter"),
    "a format": ("{euros:>10}", "may hold only names of parameters in braces"),
    "an attribute": ("{note.id}", "may hold only names of parameters in braces"),
    "no name": ("{}", "may hold only names of parameters in braces"),
    "an open brace": ("r:{invoice", "cannot be read: "),
    "nothing": ("", 'key must be a string such as "refund:{invoice}"'),
    "no text": (7, 'key must be a string such as "refund:{invoice}"'),
    "a sealed parameter": ("{note}", "names 'note', which is sealed; a key is kept in the clear"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_template_fails_where_it_is_written(name):
    text, message = BAD[name]
    with pytest.raises(gk.GateError) as caught:
        template(text, sealed=("note",))
    assert message in str(caught.value)


API_KEY = "sk-proj-" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ2" * 2
HELD = Secret(new_key())
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
    encoded, problems = encode({**HOLDING[name], "euros": 20})
    assert {} == problems
    (parameter,) = HOLDING[name]
    assert (parameter,) == secret_parameters(encoded)
    stored, sealed = sealed_arguments(encoded, (), HELD, **PLACE)
    assert ((parameter,), 20) == (sealed, stored["euros"])
    text = json.dumps(stored)
    assert "plain-words" not in text
    assert "aB3dE5" not in text
    assert encoded == opened_arguments(stored, HELD, **PLACE)


def test_an_argument_that_another_one_calls_a_secret_is_sealed():
    encoded, _ = encode({"name": "password", "value": "plain-words-9"})
    assert ("value",) == secret_parameters(encoded)


def test_without_a_key_the_request_is_refused_and_the_parameter_named():
    with pytest.raises(SealNeeded, match="the argument 'password' holds a secret, and there is no key") as caught:
        sealed_arguments({"user": "ana", "password": "plain-words-9"}, (), None, **PLACE)
    assert "GRACE_KP_KEY" in str(caught.value)
    assert "plain-words" not in str(caught.value)
    with pytest.raises(SealNeeded, match="the argument 'iban' is to be sealed"):
        sealed_arguments({"iban": "DE89"}, ("iban",), None, **PLACE)


@given(values())
def test_what_is_sealed_comes_back(value):
    encoded, _ = encode({"x": value})
    stored, sealed = sealed_arguments(encoded, ("x",), HELD, **PLACE)
    assert ("x",) == sealed == list_sealed(stored)
    assert canonical(encoded) == canonical(opened_arguments(stored, HELD, **PLACE))


def flipped(text):
    raw = bytearray(base64.b64decode(text))
    raw[-1] ^= 1
    return base64.b64encode(raw).decode()


def test_a_sealed_argument_belongs_to_one_approval_digest_and_parameter():
    stored, _ = sealed_arguments({"iban": "DE89", "other": "x"}, ("iban", "other"), HELD, **PLACE)
    swapped = {"iban": stored["other"], "other": stored["iban"]}
    for moved, place in (
        (swapped, PLACE),
        (stored, {**PLACE, "approval_id": "ap-2"}),
        (stored, {**PLACE, "digest": "sha256:1"}),
        *(
            ({"iban": {**stored["iban"], "$sealed": bad}}, PLACE)
            for bad in ("AAAA", 3, flipped(stored["iban"]["$sealed"]))
        ),
    ):
        with pytest.raises(
            ValueError, match="iban: sealed data was changed, or belongs to another request or parameter"
        ):
            opened_arguments(moved, HELD, **place)


def test_what_cannot_be_opened_prints_as_sealed():
    stored, _ = sealed_arguments({"iban": "DE89", "euros": 1}, ("iban",), HELD, **PLACE)
    for secret in (None, Secret(new_key())):
        encoded = opened_arguments(stored, secret, **PLACE)
        assert ("iban",) == list_sealed(encoded)
        assert {"iban": SEALED, "euros": 1} == decode(encoded)
        assert "{'iban': [SEALED], 'euros': 1}" == str(decode(encoded))


def test_the_length_of_a_short_secret_does_not_show():
    lengths = {
        len(sealed_arguments({"x": pin}, ("x",), HELD, **PLACE)[0]["x"]["$sealed"]) for pin in ("1234", "12345678")
    }
    assert 1 == len(lengths)


def test_an_argument_that_looks_sealed_is_none():
    """A program's own `$sealed` is escaped, so that it is neither opened nor shown as sealed."""
    encoded, _ = encode({"x": {"$sealed": "AAAA", "key": HELD.key_id}})
    assert () == list_sealed(encoded)
    assert encoded == opened_arguments(encoded, HELD, **PLACE)


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


@pytest.fixture
def environment(monkeypatch):
    monkeypatch.delenv("GRACE_KP_KEY", raising=False)
    return lambda text: monkeypatch.setenv("GRACE_KP_KEY", text)


def test_the_key_comes_from_the_environment_or_the_keyring(ring, environment):
    ring({})
    assert Secret.load() is None
    ring({}, keyring.errors.NoKeyringError())
    assert Secret.load() is None
    ring({("grace_kp", "key"): KEY})
    assert Secret(KEY).key_id == Secret.load().key_id
    environment(other := new_key())
    assert Secret(other).key_id == Secret.load().key_id


def test_without_the_package_there_is_no_keyring(environment, monkeypatch):
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert Secret.load() is None


def test_a_keyring_that_cannot_be_read_is_an_error(ring, environment):
    ring({}, keyring.errors.KeyringLocked("locked"))
    with pytest.raises(SettingsError, match=r"cannot be read \(KeyringLocked: locked\); unlock it, set GRACE_KP_KEY"):
        Secret.load()


@pytest.mark.parametrize("form", ["url", "url unpadded", "standard", "hex"])
def test_a_key_is_32_bytes_in_base64_or_hexadecimal(form):
    raw = base64.urlsafe_b64decode(KEY)
    texts = {"url": KEY, "url unpadded": KEY.rstrip("="), "standard": base64.b64encode(raw).decode(), "hex": raw.hex()}
    assert Secret(KEY).key_id == Secret(texts[form]).key_id


BAD_KEYS = {
    "a passphrase": "correct horse battery staple",
    "too long": "ab" * 33,
    "no hex": "zz" * 32,
    "an empty part": f"{KEY},",
    "beyond ASCII": "é" * 43,
    "not random": "00" * 32,
}


@pytest.mark.parametrize("name", BAD_KEYS)
def test_another_text_is_refused_without_showing_it(name, environment):
    environment(BAD_KEYS[name])
    wanted = "must be random; only 1 of its 32" if name == "not random" else "must be 32 random bytes in base64 or"
    with pytest.raises(SettingsError, match=f"GRACE_KP_KEY {wanted}") as caught:
        Secret.load()
    assert BAD_KEYS[name] not in str(caught.value)


def test_earlier_keys_open_and_the_first_one_seals():
    old, new = new_key(), new_key()
    sealed = Secret(old).seal(b"a", b"")
    both = Secret(f"{new},{old}")
    assert b"a" == both.open(sealed, b"")
    assert b"a" == Secret(new).open(both.seal(b"a", b""), b"")
    assert both.has_key(sealed["key"])
    with pytest.raises(ValueError, match=r"this needs the key .* add it to GRACE_KP_KEY after the current one"):
        Secret(new).open(sealed, b"")


def test_a_secret_does_not_show_or_copy_itself():
    secret = Secret(KEY)
    assert f"<Secret {secret.key_id}>" == repr(secret)
    raw = base64.urlsafe_b64decode(KEY)
    assert secret.key_id not in KEY
    assert secret.key_id not in raw.hex()
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="a Secret is not pickled or copied"):
            duplicate(secret)


def test_json_is_cleaned():
    cleaned = clean_json({"password": "hunter22hunter", "score": float("nan"), "when": {1}, ("a",): 1})
    assert ({"password", "score", "when"}, "NaN", "{1}") == (set(cleaned), cleaned["score"], cleaned["when"])
    assert "hunter22" not in str(cleaned)


def test_a_result_nested_too_deeply_is_not_kept():
    nested = []
    for _ in range(5_000):
        nested = [nested]
    assert [False, False] == [kept_result(nested), kept_result(10**5_000)]
