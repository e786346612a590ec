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


def test_a_person_is_the_author_of_decisions():
    """By name, through the web, with a login or without."""
    actor = Person(name="ana", role=Role.ADMIN, authenticated=False).actor
    assert ("ana", "web", False) == (actor.name, actor.channel, actor.authenticated)
    assert Person(name="ana", role=Role.ADMIN).actor.authenticated
