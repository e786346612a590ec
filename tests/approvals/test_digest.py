"""Digests, versions of actions and idempotency keys."""

from __future__ import annotations

import hashlib
import inspect
import subprocess
import sys
import uuid
from typing import Annotated, Optional, Union

import pytest

from grace_kp.approvals import Secret, digest, encode, has_digest, idempotency_key_of, new_key, same_digest, version_of

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
