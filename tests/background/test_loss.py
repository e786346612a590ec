"""Losses are reported on stderr whatever its state, and in logging where a program has configured it."""

from __future__ import annotations

import io
import logging
import subprocess
import sys

from grace_kp.background import report_loss


def run(code):
    """Run a program and return its exit code and what it writes to stderr."""
    command = [sys.executable, "-c", "import sys\nfrom grace_kp.background import report_loss\n" + code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, encoding="utf-8")
    return done.returncode, done.stderr


def test_a_loss_is_one_line_on_stderr(capsys):
    """Line breaks of an error message do not break the line."""
    report_loss("3 runs were dropped:\n  the store is full")
    assert "grace_kp: 3 runs were dropped: the store is full\n" == capsys.readouterr().err


def test_a_loss_is_reported_without_any_configuration_of_logging():
    """A program without handlers sees the line once."""
    assert (0, "grace_kp: 3 runs were dropped\n") == run("report_loss('3 runs were dropped')")


def test_a_loss_is_reported_while_the_interpreter_exits():
    """A finalizer that runs late may still report."""
    code = "class Late:\n    def __del__(self): report_loss('late')\nlate = Late()\nlate.itself = late\n"
    assert (0, "grace_kp: late\n") == run(code)


def test_a_loss_reaches_the_handlers_of_logging(caplog):
    """A server's log file has the message, too."""
    with caplog.at_level(logging.ERROR, "grace_kp"):
        report_loss("3 runs were dropped")
    assert [("grace_kp", logging.ERROR, "3 runs were dropped")] == caplog.record_tuples


def test_a_stderr_that_cannot_be_written_raises_nothing(monkeypatch):
    """It may be missing, closed, or refuse what it gets."""

    class Refusing(io.StringIO):
        def write(self, text):
            raise OSError("no space left on device")

    closed = io.StringIO()
    closed.close()
    for stream in (None, closed, Refusing(), object()):
        monkeypatch.setattr(sys, "stderr", stream)
        report_loss("lost")


def test_a_closed_file_descriptor_raises_nothing():
    """Daemons close theirs; another file may have its number, and is not written to."""
    assert (0, "") == run("sys.stderr.close()\nreport_loss('lost')")


def test_characters_that_stderr_cannot_encode_are_escaped():
    """The line appears all the same."""
    code = "sys.stderr.reconfigure(encoding='ascii', errors='strict')\nreport_loss('Größe')"
    assert (0, "grace_kp: Gr\\xf6\\xdfe\n") == run(code)
