"""Failed tests run once more on the build server: which do, what is printed of them, and what fails the run all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CALM = Path(__file__).with_name("calm.py")
FLAKY = """
from pathlib import Path
def test_{name}():
    runs = Path(__file__).with_suffix(".runs")
    runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
    assert len(runs.read_text()) > 1, "the first time"
"""
RIGHT = "def test_right(): pass\n"
WRONG = "def test_wrong(): assert 'a' == 'b'\n"
UNSTEADY = """
import pytest
from pathlib import Path
@pytest.fixture
def unsteady():
    yield
    runs = Path(__file__).with_suffix(".runs")
    first, _ = not runs.exists(), runs.touch()
    assert not first, "the first time"
class TestUnsteady:
    @pytest.mark.parametrize("value", ["a::b[c]"])
    def test_ends(self, unsteady, value): pass
"""


def run(folder, files, *arguments):
    """How a project with these test files ends, and what is printed."""
    for name, text in files.items():
        path = folder / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib -p no:randomly\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, str(CALM), "-q", "-p", "xdist", "-n", "2", *arguments],
        cwd=folder,
        env={**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def runs(folder, name):
    return len((folder / "tests" / name).with_suffix(".runs").read_text())


def test_tests_that_pass_the_second_time_fail_nothing(tmp_path):
    """They are listed with their first traceback, also those whose fixture failed. The others run once."""
    flaky = FLAKY.format(name="flaky")
    code, out = run(tmp_path, {"value/test_a.py": flaky, "test_b.py": RIGHT, "test_c.py": UNSTEADY})
    assert 0 == code, out
    listed = out[out.index("== flaky: 2") :]
    assert "-- tests/value/test_a.py::test_flaky\n" in listed
    assert "-- tests/test_c.py::TestUnsteady::test_ends[a::b[c]]\n" in listed
    assert 2 == listed.count("AssertionError: the first time")
    assert 2 == runs(tmp_path, "value/test_a.py")
    assert not (tmp_path / ".pytest_cache").exists()


def test_what_fails_twice_fails_the_run(tmp_path):
    code, out = run(tmp_path, {"test_a.py": FLAKY.format(name="flaky"), "test_b.py": WRONG})
    assert 1 == code
    assert "== flaky: 1\n-- tests/test_a.py::test_flaky\n" in out


@pytest.mark.parametrize("room", ["gating", "store/deep"])
def test_a_failure_that_may_be_a_race_fails_the_run(tmp_path, room):
    code, out = run(tmp_path, {f"{room}/test_a.py": FLAKY.format(name="flaky"), "test_b.py": FLAKY.format(name="b")})
    assert 1 == code
    assert "== not calm: tests/" in out
    assert "== flaky" not in out
    assert (1, 1) == (runs(tmp_path, f"{room}/test_a.py"), runs(tmp_path, "test_b.py"))


@pytest.mark.parametrize(("count", "code"), [(10, 0), (11, 1)])
def test_many_failures_are_no_accident(tmp_path, count, code):
    files = {f"test_{number}.py": FLAKY.format(name="flaky") for number in range(count)}
    found, out = run(tmp_path, files)
    assert code == found, out
    assert (count if code == 0 else 0) == out.count("\n-- tests/")


@pytest.mark.parametrize(
    ("files", "arguments"),
    [
        ({"test_a.py": "import nothing_of_this_name\n", "test_b.py": RIGHT}, ()),
        ({"test_a.py": RIGHT}, ("--no-such-option",)),
        ({"test_a.py": RIGHT}, ("-k", "nothing")),
        ({"test_a.py": "import os\ndef test_ends(): os._exit(3)\n"}, ("-n", "0")),
    ],
)
def test_other_ends_of_pytest_fail_the_run(tmp_path, files, arguments):
    """A file that cannot be collected, wrong usage, no tests, and a process that dies."""
    code, out = run(tmp_path, files, *arguments)
    assert code > 0
    assert "== flaky" not in out


ALONE = "import os, pytest\nalone = 'PYTEST_XDIST_WORKER' not in os.environ\n"


@pytest.mark.parametrize(
    "text",
    [
        "def test_a():\n    if alone: pytest.skip('later')\n    assert False\n",
        "def test_a():\n    if alone: pytest.xfail('later')\n    assert False\n",
        "if alone: pytest.skip('later', allow_module_level=True)\ndef test_a(): assert False\n",
        "@pytest.mark.parametrize('value', [alone])\ndef test_a(value): assert value\n",
        "class TestA:\n    if not alone: pytestmark = pytest.mark.parametrize('other', [1])\n    def test_a(self): pass\n",
        "def test_a(): os._exit(0)\n",
    ],
)
def test_what_does_not_pass_the_second_time_fails_the_run(tmp_path, text):
    """Skipped, not found under its name, collected differently, or ended with a code that says that all is well."""
    code, out = run(tmp_path, {"test_a.py": ALONE + text, "test_b.py": FLAKY.format(name="flaky")})
    assert code > 0, out
    assert "== flaky: 1\n-- tests/test_b.py::test_flaky\n" in out or "os._exit" in text
