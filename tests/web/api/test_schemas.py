"""Schemas of results, made from their types."""

from __future__ import annotations

from grace_kp.approvals import Approval
from grace_kp.store import RunPage
from grace_kp.web.api._schemas import ApprovalList, component_schemas


def test_dataclasses_are_described_with_all_of_their_fields():
    """Each field is there and has the text that stands below it, also within a list."""
    schemas = component_schemas([RunPage])
    row = schemas["RunRow"]
    assert set(row["properties"]) == set(row["required"])
    assert "The first 300 characters." == row["properties"]["objective"]["description"]
    assert {"$ref": "#/components/schemas/RunRow"} == schemas["RunPage"]["properties"]["rows"]["items"]


def test_approvals_are_described_as_they_are_written():
    """The encoded arguments stand under `arguments`; lists leave long fields out."""
    schemas = component_schemas([Approval, ApprovalList])
    whole, listed = schemas["Approval"]["properties"], schemas["ListedApproval"]["properties"]
    assert {"run", "schema"} == set(whole) - set(listed)
    assert not {"encoded", "asked_encoded"} & set(whole)
    items = schemas["ApprovalList"]["properties"]["approvals"]["items"]
    assert {"$ref": "#/components/schemas/ListedApproval"} == items
