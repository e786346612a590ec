"""Fixtures for the tests of the rubric."""

from __future__ import annotations

import pytest

from grace_kp import rubric as rb


@pytest.fixture
def read(tmp_path):
    """Reads a text or bytes as a file, a test set unless another reader is passed."""

    def call(text, kind=rb.read_test_set, name="t.yaml", *more):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return kind(path, *more)

    return call
