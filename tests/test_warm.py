"""Programs in forks of a warm interpreter behave as those of `subprocess.run`."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests import warm


def python(code, *arguments, **options):
    return warm.run([sys.executable, "-c", code, *arguments], text=True, **options)


def test_a_program_gets_its_arguments_folder_environment_and_input(tmp_path):
    code = "import os, sys; print(sys.argv[1:], os.getcwd(), dict(os.environ), input()); print('oh', file=sys.stderr)"
    ran = python(code, "a", "b", cwd=tmp_path, env={"X": "y"}, input="typed")
    assert (0, "oh\n") == (ran.returncode, ran.stderr)
    assert f"['a', 'b'] {tmp_path} {{'X': 'y'}} typed\n" == ran.stdout


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import sys; sys.exit(3)", 3),
        ("1 / 0", 1),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
        ("import warnings; warnings.warn('x')", 0),
    ],
)
def test_a_program_ends_as_it_would(code, status):
    assert status == python(code).returncode


def test_what_a_program_does_at_its_end_is_done():
    """Exit functions run, and threads that are no daemons are waited for."""
    code = """
import atexit, threading
atexit.register(print, "at exit")
threading.Thread(target=lambda: (threading.main_thread().join(), print("thread"))).start()
print("end")
"""
    assert "end\nthread\nat exit\n" == python(code).stdout


def test_warnings_are_errors_when_asked_for():
    ran = warm.run([sys.executable, "-W", "error", "-c", "import warnings; warnings.warn('x')"], text=True)
    assert 1 == ran.returncode
    assert ran.stderr.endswith("UserWarning: x\n")


def test_modules_and_files_run_as_programs(tmp_path):
    (tmp_path / "page.py").write_text("import sys; print(__name__, sys.argv[1:])")
    assert "__main__ ['x']\n" == warm.run([sys.executable, str(tmp_path / "page.py"), "x"], text=True).stdout
    ran = warm.run([sys.executable, "-m", "grace_kp.cli", "--help"], text=True)
    assert (0, "") == (ran.returncode, ran.stderr)
    assert "Usage: python -m grace_kp.cli" in ran.stdout


def test_a_program_that_takes_too_long_is_killed():
    with pytest.raises(subprocess.TimeoutExpired):
        python("import signal; signal.pause()", timeout=0.2)
    assert "next\n" == python("print('next')").stdout


def test_one_program_leaves_nothing_behind_for_the_next():
    python("import grace_kp, os; grace_kp.left = 1; os.environ['LEFT'] = '1'")
    assert (
        "False False\n" == python("import grace_kp, os; print(hasattr(grace_kp, 'left'), 'LEFT' in os.environ)").stdout
    )
