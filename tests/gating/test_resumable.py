"""A gate asks by pausing the program around it where a framework that is in use has one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from grace_kp.gating import resumable
from grace_kp.record import HOST, Framework


@pytest.fixture
def register():
    """Register a framework for the time of a test."""
    names = []

    def add(name, package, program):
        names.append(name)
        adapter = SimpleNamespace(resumable=lambda: program)
        HOST.register(Framework(name, package=package, load=lambda: adapter, signals={}))

    yield add
    for name in names:
        del HOST.frameworks[name]


def test_the_program_of_a_framework_in_use_is_found(register):
    program = object()
    register("fake", "sys", program)
    assert program is resumable()


def test_a_framework_that_is_not_loaded_is_not_asked(register):
    """Its adapter would import it."""
    register("fake", "a_package_that_nobody_has_imported", object())
    assert resumable() is None


def test_outside_of_a_program_there_is_none(register):
    register("first", "sys", None)
    assert resumable() is None
    program = object()
    register("second", "sys", program)
    assert program is resumable()
