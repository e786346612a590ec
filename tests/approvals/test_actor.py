"""Actors: what is known of who decides."""

from __future__ import annotations

import pytest

from grace_kp.approvals import Actor


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
