"""What a gate hands to the desk."""

from __future__ import annotations

from grace_kp.approvals import NewRequest, new_approval_id


def test_ids_are_distinct_and_exist_before_the_request():
    """Values are sealed for the id, so that it cannot wait for the store."""
    fields = {"action": "a", "version": "1", "domain": "d", "digest": "sha256:0", "encoded": {}, "stored": {}}
    ids = {NewRequest(**fields).id for _ in range(50)} | {new_approval_id()}
    assert 51 == len(ids)
    assert all(each.startswith("ap-") and each.isascii() and len(each) == 19 for each in ids)
