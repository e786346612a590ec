"""The comparison of `make test-frameworks`, on a folder of three tests instead of a framework."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("langchain_core", reason="needs the extra langchain")

from tests.exhaustive import exhaustive

from .run import HERE, compare, run

TESTS = """
from langchain_core.callbacks import CallbackManager
from langchain_core.runnables import RunnableLambda
def test_same():
    assert 2 == RunnableLambda(lambda value: value + 1).invoke(1)
def test_broken():
    assert False
def test_counts_handlers():
    assert [] == CallbackManager.configure().handlers
"""


@exhaustive
def test_a_test_that_the_handler_changes_is_found(tmp_path, monkeypatch):
    """A test that fails either way is no difference; one that fails only with the handler is."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    root = os.pathsep.join([str(HERE), str(HERE.parents[1])])
    (tmp_path / "test_sample.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    found = [
        run(tmp_path, ["test_sample.py"], tmp_path / f"{handler}.json", handler=handler, options=[], path=root)
        for handler in (False, True)
    ]
    ids = [f"test_sample.py::test_{name}" for name in ("same", "broken", "counts_handlers")]
    assert dict(zip(ids, ("passed", "failed", "passed"), strict=True)) == found[0]
    assert [ids[2]] == compare(*found)
