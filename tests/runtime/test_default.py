"""The default runtime is created on first use, replaced by `configure`, and found by functions decorated before."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import grace_kp as gk

ROOT = Path(__file__).resolve().parents[2]


def python(code, *args, **options):
    """A fresh interpreter that runs `code`."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("environment", {})}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *map(str, args)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


def test_configure_replaces_the_default_and_names_stay_bound():
    """A function decorated before `configure` is recorded by what is the default when it is called."""

    @gk.agent
    def early(text):
        return text

    first = gk.configure(store="memory:")
    early("one")
    second = gk.configure(store="memory:", domain="code")
    early("two")
    assert [t.task.objective for t in first.store.query()] == ["one"]
    assert [t.metadata.task_domain for t in second.store.query()] == ["code"]
    with pytest.raises(gk.SettingsError, match="storee"):
        gk.configure(storee="memory:")
    assert gk.default() is second


def test_a_decorated_function_pickles():
    """By name, as the undecorated one does."""
    ran = python("""
        import pickle, sys, types
        import grace_kp as gk
        grace = gk.Grace(store="memory:")
        @grace.tool
        def work(x): return x
        assert pickle.loads(pickle.dumps(work)) is work
    """)
    assert (0, "") == (ran.returncode, ran.stderr)
