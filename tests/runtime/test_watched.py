"""The verbs of a runtime about labels and promises."""

from __future__ import annotations

import pytest

from grace_kp import calibrate as cal
from grace_kp.errors import SettingsError
from grace_kp.testing import make_grace


def test_alarms_need_a_monitor():
    """Without one nothing is watched, and the status says so."""
    grace = make_grace()
    assert None is grace.status()["promise"]
    with pytest.raises(SettingsError, match="watches no promise: pass monitor=True"):
        grace.on_alarm(print)
    with pytest.raises(SettingsError, match="watches no promise"):
        grace.reset_alarms()
    assert None is make_grace(monitor=False).status()["promise"]


def test_a_callback_is_called_with_the_alarm():
    """`on_alarm` returns the callback, as a decorator does, and refuses what cannot be called."""
    grace = make_grace(monitor=cal.Monitor({"silent": 0.05}))
    assert print is grace.on_alarm(print)
    with pytest.raises(TypeError, match="on_alarm takes a callable, not int"):
        grace.on_alarm(3)
    assert [] == grace.status()["promise"]["alarms"]
