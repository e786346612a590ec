"""Roles and their rights, and the author of decisions."""

from __future__ import annotations

from grace_kp.web import Person, Right, Role


def test_only_approvers_and_administrators_decide():
    assert {Role.APPROVER, Role.ADMIN} == {role for role in Role if Person(name="ana", role=role).may(Right.DECIDE)}


def test_the_author_of_a_decision_says_how_the_name_was_established():
    actor = Person(name="ana", role=Role.APPROVER).actor
    assert ("ana", "web", True) == (actor.name, actor.channel, actor.authenticated)
