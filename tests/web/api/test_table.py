"""The table of operations: who may call which, tried for every operation and role."""

from __future__ import annotations

import pytest

from grace_kp.web import Right
from grace_kp.web.api._table import OPERATIONS

IDS = [operation.name for operation in OPERATIONS]


def called(house, operation, name):
    address = operation.path.replace("{id}", house.request().id)
    body = dict(operation.example) if operation.body is not None else None
    return house.client(name).request(operation.method, address, json=body)


@pytest.mark.parametrize("operation", OPERATIONS, ids=IDS)
def test_strangers_are_refused(house, operation):
    """Without a token nothing but the state of the service is told."""
    expected = 200 if operation.right is Right.ANYBODY else 401
    response = called(house, operation, None)
    assert expected == response.status_code
    assert expected == 200 or "unauthenticated" == response.json()["code"]


@pytest.mark.parametrize("operation", OPERATIONS, ids=IDS)
def test_a_wrong_token_is_refused(house, operation):
    """As if there were none."""
    house.tokens["nobody"] = "gkp_" + "A" * 43
    assert (200 if operation.right is Right.ANYBODY else 401) == called(house, operation, "nobody").status_code


@pytest.mark.parametrize(("name", "rights"), [("vic", {Right.SEE}), ("bot", {Right.SEE, Right.LABEL})])
@pytest.mark.parametrize("operation", OPERATIONS, ids=IDS)
def test_a_role_has_its_rights_only(house, operation, name, rights):
    """Viewers see, programs see and label, and neither decides."""
    is_allowed = operation.right in {Right.ANYBODY, *rights}
    assert is_allowed is (403 != called(house, operation, name).status_code)


def test_names_are_unique():
    """Programs are generated from them."""
    assert len(IDS) == len(set(IDS))


def test_a_method_and_an_address_stand_once():
    """No operation hides another."""
    assert len(OPERATIONS) == len({(operation.method, operation.path) for operation in OPERATIONS})
