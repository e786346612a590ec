"""The desk: every verb on approvals through its public names."""

from __future__ import annotations

import inspect

from grace_kp.approvals import Desk


def test_every_verb_says_what_it_does():
    """The desk is what gates and the command line are written against."""
    verbs = [verb for name, verb in inspect.getmembers(Desk, inspect.isfunction) if not name.startswith("_")]
    assert all(verb.__doc__ for verb in verbs)
