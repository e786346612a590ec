"""Files of checkpoints: read as they were written, and refused when they were changed."""

from __future__ import annotations

import hashlib
import hmac
import json

import pytest

from grace_kp.approvals import Checkpoint, checkpoint, read_checkpoints, verify, write_checkpoint
from grace_kp.errors import ApprovalError
from tests.approvals.chains import chain_of

POINT = Checkpoint(store="store-1", seq=3, hash="ab" * 32, at=1.5)


class Secret:
    """A secret as the store's owner keeps it."""

    def __init__(self, value):
        self.value = value

    def mac(self, data):
        return hmac.new(self.value, data, hashlib.sha256).hexdigest()


def test_a_file_of_checkpoints(tmp_path):
    """One object per line; the first alone is a JSON file."""
    path = tmp_path / "points.json"
    write_checkpoint(path, POINT)
    assert {"store": "store-1", "seq": 3, "hash": "ab" * 32, "at": 1.5} == json.loads(path.read_text())
    tables = chain_of((1, 1, 2))
    write_checkpoint(path, checkpoint(tables, at=2))
    points = read_checkpoints(path)
    assert [POINT, Checkpoint(store="store-1", seq=3, hash=tables.head()[1], at=2)] == points
    assert not verify(tables, at=3.0, checkpoint=points).ok
    assert verify(tables, at=3.0, checkpoint=points[1:]).ok


def test_a_secret_authenticates(tmp_path):
    """A changed checkpoint, one of another secret and one without a code are refused."""
    path = tmp_path / "points.json"
    write_checkpoint(path, POINT, secret=Secret(b"a"))
    assert [POINT] == read_checkpoints(path, secret=Secret(b"a")) == read_checkpoints(path)
    with pytest.raises(
        ApprovalError, match="line 1: the checkpoint of entry 3 was changed, or has the code of another"
    ):
        read_checkpoints(path, secret=Secret(b"b"))
    path.write_text(path.read_text().replace('"seq": 3', '"seq": 2'))
    with pytest.raises(ApprovalError, match="the checkpoint of entry 2 was changed"):
        read_checkpoints(path, secret=Secret(b"a"))
    write_checkpoint(tmp_path / "plain.json", POINT)
    with pytest.raises(ApprovalError, match="the checkpoint of entry 3 has no code of a secret"):
        read_checkpoints(tmp_path / "plain.json", secret=Secret(b"a"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "points.json: it holds no checkpoint; `grace-kp approvals verify --write-checkpoint` writes one"),
        ("{", "points.json, line 1: it is no JSON: '{'"),
        ("[]", "line 1: a checkpoint must be a JSON object with store, seq, hash, at, not a list of 0"),
        ('{"store": "s", "seq": "1", "hash": "h", "at": 1}', "must be a JSON object with store"),
        ('{"store": "s", "seq": -1, "hash": "h", "at": 1}', "must be a JSON object with store"),
        ('{"store": "s", "seq": true, "hash": "h", "at": 1}', "must be a JSON object with store"),
        ('{"store": "s", "seq": 1, "hash": "h", "at": 1, "more": 2}', "must be a JSON object with store"),
        ("[" * 100_000, "it is no JSON"),
    ],
)
def test_what_is_no_checkpoint(tmp_path, text, message):
    """The file and the line are named."""
    path = tmp_path / "points.json"
    path.write_text(text)
    with pytest.raises(ApprovalError, match=message):
        read_checkpoints(path)
