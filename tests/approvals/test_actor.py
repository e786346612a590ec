"""Actors: what is known of who decides."""

from __future__ import annotations

import pytest

from grace_kp.approvals import Actor, person

SECRET = "ghp_aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"


def test_a_name_is_stated_unless_a_login_has_established_it():
    """`by=` alone authenticates nobody."""
    actor = Actor.here(" ana ", channel="cli")
    assert ("ana", "cli", False) == (actor.name, actor.channel, actor.authenticated)


def test_an_actor_survives_json():
    """What is recorded can be read again."""
    actor = Actor.here("ana", authenticated=True)
    assert actor == Actor.from_dict(actor.to_dict())


@pytest.mark.parametrize("name", ["", "  ", None, 3, "a" * 201])
def test_who_decides_has_a_name(name):
    """A decision without an author is refused."""
    with pytest.raises(ValueError, match="by must be a name"):
        Actor.here(name)


def test_a_name_with_a_secret_is_recorded_without_it():
    """It is never more than stated, and the same person in any comparison."""
    actor = Actor.here(SECRET, authenticated=True)
    assert ("[REDACTED:api_key]", False) == (actor.name, actor.authenticated)
    assert person(SECRET) == person(actor.name)
    assert actor == Actor.from_dict(actor.to_dict())
