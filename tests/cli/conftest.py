"""The command line in this process, as if in a terminal of some width."""

from __future__ import annotations

from collections import namedtuple

import pytest

from grace_kp.cli import main

Ran = namedtuple("Ran", "returncode stdout stderr")


@pytest.fixture
def command(capsys, monkeypatch):
    """Runs `grace-kp` with these arguments."""

    def run(*arguments, columns=None):
        if columns is None:
            monkeypatch.delenv("COLUMNS", raising=False)
        else:
            monkeypatch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        return Ran(ended.value.code, *capsys.readouterr())

    return run
