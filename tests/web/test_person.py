"""People, roles and rights."""

from __future__ import annotations

import pytest

from grace_kp.web import Person, Right, Role


@pytest.mark.parametrize(
    ("role", "right", "expected"),
    [
        (Role.VIEWER, Right.SEE, True),
        (Role.VIEWER, Right.LABEL, False),
        (Role.VIEWER, Right.DECIDE, False),
        (Role.APPROVER, Right.DECIDE, True),
        (Role.APPROVER, Right.MANAGE, False),
        (Role.ADMIN, Right.MANAGE, True),
        (Role.AGENT, Right.LABEL, True),
        (Role.AGENT, Right.DECIDE, False),
    ],
)
def test_a_role_includes_its_rights(role, right, expected):
    """A program never decides."""
    assert expected is Person(name="ana", role=role).may(right)


def test_a_role_is_one_of_the_known():
    """Its word is taken for it; another one is refused, before anything is asked of it."""
    assert Role.ADMIN is Person(name="ana", role="admin").role
    for role in ("root", "", None):
        with pytest.raises(ValueError, match="is not a valid Role"):
            Person(name="ana", role=role)


def test_a_person_is_the_author_of_decisions():
    """By name, through the web, with a login or without."""
    actor = Person(name="ana", role=Role.ADMIN, authenticated=False).actor
    assert ("ana", "web", False) == (actor.name, actor.channel, actor.authenticated)
    assert Person(name="ana", role=Role.ADMIN).actor.authenticated
