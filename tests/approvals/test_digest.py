"""Identity of a call: digests, versions of actions, keys, and idempotency keys."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import hashlib
import inspect
import json
import subprocess
import sys
import uuid
from typing import Annotated, Optional, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.approvals import (
    KeyTemplate,
    Secret,
    digest,
    encode,
    has_digest,
    idempotency_key_of,
    new_key,
    version_of,
)
from grace_kp.approvals._digest import same_digest

ENCODED = encode({"invoice": "7", "euros": 20, "session": "s-1"})[0]


def test_a_digest_is_the_hash_of_canonical_json():
    """Anyone can compute it from what is shown."""
    data = b'{"action":"refund","arguments":{"euros":20,"invoice":"7"},"version":"1"}'
    assert f"sha256:{hashlib.sha256(data).hexdigest()}" == digest("refund", "1", ENCODED, leave_out=("session",))


@pytest.mark.parametrize("secret", [None, Secret(new_key())], ids=["plain", "keyed"])
def test_a_digest_covers_everything_but_what_is_left_out(secret):
    """Action, version, names, values and types."""
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


def test_a_keyed_digest_cannot_be_found_by_trying():
    """It names its key, and differs with it."""
    one, two = Secret(new_key()), Secret(new_key())
    found = digest("log_in", "1", {"pin": "1234"}, secret=one)
    assert found.startswith(f"hmac-sha256:{one.key_id}:")
    assert found != digest("log_in", "1", {"pin": "1234"}, secret=two)


def test_old_digests_remain_verifiable():
    """Those before a key was set, and those with an earlier key."""
    old, new = new_key(), new_key()
    both = Secret(f"{new}, {old}")
    plain, keyed = digest("a", "1", {"x": 1}), digest("a", "1", {"x": 1}, secret=Secret(old))
    assert both.key_id == Secret(new).key_id
    for expected in (plain, keyed, digest("a", "1", {"x": 1}, secret=both)):
        assert has_digest(expected, "a", "1", {"x": 1}, secret=both)
        assert not has_digest(expected, "a", "1", {"x": 2}, secret=both)


def test_a_digest_that_cannot_be_verified_is_an_error_and_no_difference():
    """The message names the key, or what a digest looks like."""
    keyed = digest("a", "1", {"x": 1}, secret=Secret(new_key()))
    with pytest.raises(ValueError, match=r"this needs the key '[0-9a-f]{16}', and the keys here are"):
        has_digest(keyed, "a", "1", {"x": 1}, secret=Secret(new_key()))
    with pytest.raises(ValueError, match="set GRACE_KP_KEY to it"):
        has_digest(keyed, "a", "1", {"x": 1})
    for nonsense in ("", "md5:0", "hmac-sha256:0"):
        with pytest.raises(ValueError, match="must begin with sha256: or hmac-sha256:"):
            has_digest(nonsense, "a", "1", {})


def test_digests_are_compared_whole():
    """Also with texts that are none."""
    assert same_digest("sha256:ab", "sha256:ab")
    assert not same_digest("sha256:ab", "sha256:abc")
    assert not same_digest("sha256:ab", "\ud800é")


def version(action, declared=None):
    return version_of(inspect.signature(action), declared)


def test_a_version_is_declared_or_the_hash_of_the_signature():
    """Never of the source."""

    def first(invoice: str, euros: int = 1):
        return 1

    def second(invoice: str, euros: int = 2):
        return "another body"

    assert version(first) == version(second)
    assert version(first).startswith("signature:")
    assert "2026-11" == version(first, "2026-11")
    for bad in ("", " ", 3, "a" * 101):
        with pytest.raises(ValueError, match="version must be a text of 1 to 100 characters"):
            version(first, bad)


def test_another_signature_is_another_version():
    """Names, order, kinds, types and which parameters have defaults."""
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
    """Neither addresses nor the order of sets is in it."""
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


def test_an_idempotency_key_belongs_to_one_approval():
    """The same at each attempt, and a UUID, which services accept."""
    assert idempotency_key_of("ap-1") == idempotency_key_of("ap-1") != idempotency_key_of("ap-2")
    assert 5 == uuid.UUID(idempotency_key_of("ap-1")).version


def refund(invoice: str, euros: int = 1, *rest: str, note: object = None, **more: str) -> None: ...


SIGNATURE = inspect.signature(refund)


def template(text, **options):
    return KeyTemplate(text, SIGNATURE, **options)


def key(text, **arguments):
    return template(text).key("shop", "refund", arguments)


def test_a_key_is_made_of_the_domain_the_action_and_the_named_fields():
    """Other arguments do not count."""
    expected = {"domain": "shop", "action": "refund", "template": "refund:{invoice}", "fields": {"invoice": "7"}}
    assert expected == json.loads(key("refund:{invoice}", invoice="7", euros=20))
    assert key("refund:{invoice}", invoice="7", euros=20) == key("refund:{invoice}", invoice="7", euros=30)
    assert ("invoice", "euros") == template("{invoice}/{euros} {{x}} {invoice}").fields
    assert () == template("nightly").fields


@given(st.text(min_size=1), st.text(min_size=1), st.text(min_size=1), st.text(min_size=1))
def test_values_do_not_run_into_each_other(a, b, c, d):
    """`a:b` and `c` are not `a` and `b:c`, whatever the texts."""
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


def test_types_domains_and_actions_are_told_apart():
    """The number 7 is not the text 7."""
    found = {
        key("{invoice}", invoice=value) for value in ("7", 7, 7.0, True, decimal.Decimal(7), decimal.Decimal("7.0"))
    }
    found |= {
        template("{invoice}").key(domain, action, {"invoice": "7"}) for domain, action in (("a", "bc"), ("ab", "c"))
    }
    assert 8 == len(found)


class Shop(enum.StrEnum):
    BERLIN = "b"


@pytest.mark.parametrize(
    "value",
    [
        uuid.UUID(int=1),
        dt.date(2026, 1, 1),
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        dt.time(1),
        Shop.BERLIN,
        2**70,
        0,
        0.5,
    ],
)
def test_scalars_can_be_fields(value):
    """Texts, numbers, dates, UUIDs and members of enums."""
    assert key("{invoice}", invoice=value)


class Hard(enum.Enum):
    LIST = (1,)
    NOTHING = None


REFUSED = {
    "nothing": (None, "is None; a key needs a value that identifies the operation"),
    "a list": (["7"], "is a list; a key takes texts, numbers, dates, UUIDs and members of enums"),
    "a dict": ({"a": 1}, "is a dict; a key takes"),
    "bytes": (b"7", "is a bytes; a key takes"),
    "an object": (object(), "is a object; a key takes"),
    "NaN": (float("nan"), "is nan; a key takes finite numbers"),
    "infinity": (decimal.Decimal("-Infinity"), "is -Infinity; a key takes finite numbers"),
    "an empty text": (" ", "is an empty text; a key needs a value"),
    "a long text": ("a" * 1_001, "has more than 1,000 characters"),
    "an enum of tuples": (Hard.LIST, "is a Hard; a key takes"),
    "an enum of nothing": (Hard.NOTHING, "is None"),
    "a secret": ("sk-proj-" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ2" * 2, "holds a secret; a key is kept in the clear"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_value_that_identifies_nothing_is_refused(name):
    """The message names the field and the key."""
    value, message = REFUSED[name]
    with pytest.raises(ValueError, match=r"the field 'invoice' of the key 'r:\{invoice\}' ") as caught:
        key("r:{invoice}", invoice=value)
    assert message in str(caught.value)
    assert "aB3dE5" not in str(caught.value)


def test_a_missing_argument_is_none():
    """As when an action has no default and a framework passes nothing."""
    with pytest.raises(ValueError, match=r"the field 'invoice' of the key '\{invoice\}' is None"):
        key("{invoice}")


BAD = {
    "an unknown field": (
        "r:{invoise}",
        "names 'invoise', which is no single parameter of the action; it has invoice, euros, note",
    ),
    "all positional arguments": ("{rest}", "names 'rest', which is no single parameter"),
    "all keywords": ("{more}", "names 'more', which is no single parameter"),
    "a format": ("{euros:>10}", "may hold only names of parameters in braces"),
    "a conversion": ("{euros!r}", "may hold only names of parameters in braces"),
    "an attribute": ("{note.id}", "may hold only names of parameters in braces"),
    "an index": ("{note[0]}", "may hold only names of parameters in braces"),
    "a number": ("{0}", "may hold only names of parameters in braces"),
    "no name": ("{}", "may hold only names of parameters in braces"),
    "an open brace": ("r:{invoice", "cannot be read: "),
    "nothing": ("", 'key must be a text such as "refund:{invoice}"'),
    "no text": (7, 'key must be a text such as "refund:{invoice}"'),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_template_fails_where_it_is_written(name):
    """At decoration, before any call."""
    text, message = BAD[name]
    with pytest.raises(gk.GateError) as caught:
        template(text)
    assert message in str(caught.value)


def test_a_sealed_parameter_is_no_field():
    """A key is kept in the clear."""
    with pytest.raises(gk.GateError, match="names 'invoice', which is sealed"):
        template("{invoice}", sealed=("invoice",))
