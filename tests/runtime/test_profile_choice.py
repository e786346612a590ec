"""Profiles are opened when a runtime is made if they are the user's, else when they are needed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import grace_kp as gk
from grace_kp.runtime._profile_choice import ProfileChoice, named
from grace_kp.settings import Settings
from tests.runtime.learned import Learned


def test_formulas_are_opened_when_they_are_needed():
    choice = ProfileChoice(Settings(profile="strict"), None, None, None)
    assert choice.describe() is None
    assert "strict" == choice.get().main.name
    assert choice.get() is choice.get()
    origins = dict.fromkeys(("silent", "notify", "confirm"), "default")
    assert {"name": "strict", "thresholds": gk.Thresholds().to_dict(), "thresholds_from": origins} == choice.describe()


def test_a_profile_of_the_user_s_is_opened_at_once():
    profile = Learned()
    choice = ProfileChoice(Settings(), profile, "strict", None)
    described = choice.describe()
    assert ("learned", "strict") == (described["name"], described["shadow"]["name"])


@pytest.mark.parametrize(
    ("profile", "shadow", "thresholds", "error"),
    [
        (3, None, None, gk.SettingsError), (None, "best", None, gk.SettingsError),
        (None, None, (0.9, 0.7, 0.4), TypeError), (None, ("strict", (0.9, 0.7, 0.4)), None, TypeError),
        (None, ("strict",), None, gk.SettingsError),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_an_error_at_once(profile, shadow, thresholds, error):
    with pytest.raises(error):
        ProfileChoice(Settings(), profile, shadow, thresholds)


def test_a_stated_digest_opens_the_profile_at_once():
    """Of a formula, too, because it has none."""
    with pytest.raises(
        gk.SettingsError, match=r"profile_digest \(default\) is 'sha256:0', and the profile grace has no digest"
    ):
        ProfileChoice(Settings(profile_digest="sha256:0"), None, None, None)


def test_names_and_paths_are_named():
    assert ("strict", "a.json", None, None) == (named("strict"), named(Path("a.json")), named(Learned()), named(None))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # from Python 3.12
def test_a_child_process_uses_the_same_profiles():
    """What the parent has opened is there, and no lock is held by a thread that the child does not have."""
    choice = ProfileChoice(Settings(), Learned(), None, None)
    reading, writing = os.pipe()
    choice._lock.acquire()
    child = os.fork()
    if not child:
        os.write(writing, choice.get().main.name.encode())
        os._exit(0)
    choice._lock.release()
    os.waitpid(child, 0)
    assert b"learned" == os.read(reading, 100)
    os.close(reading)
    os.close(writing)
