"""Approvals as values."""

from __future__ import annotations

import dataclasses

import pytest

from grace_kp.approvals import Approval, ApprovalState


def approval(**more):
    fields = {
        "id": "ap-1",
        "state": ApprovalState.PENDING,
        "revision": 1,
        "action": "refund",
        "version": "1",
        "domain": "d",
        "digest": "sha256:0",
    }
    return Approval(**{**fields, "arguments": {"euros": 2**60}, "encoded": {"euros": {"$int": str(2**60)}}, **more})


def test_an_approval_does_not_change():
    """Whoever holds one sees one revision."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        approval().state = ApprovalState.APPROVED


def test_an_approval_shows_itself_in_a_notebook():
    """As HTML with a style of its own."""
    html = approval()._repr_html_()
    assert html.startswith('<div class="grace-kp"><style>')
    assert str(2**60) in html
