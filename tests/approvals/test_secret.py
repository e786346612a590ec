"""The key of an installation: where it comes from, what it seals, and what it does not show."""

from __future__ import annotations

import base64
import copy
import pickle

import keyring
import keyring.backend
import keyring.errors
import pytest

from grace_kp.approvals import Secret, new_key
from grace_kp.errors import SettingsError

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
