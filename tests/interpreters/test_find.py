"""What `make test-interpreters` takes for an interpreter, and how it says that there is none."""

from __future__ import annotations

import sys
import sysconfig

import pytest

from tests.interpreters.find import Interpreters, NotTried, run, version_of

OWN = "{}.{}".format(*sys.version_info[:2]) + "t" * bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def test_an_interpreter_is_known_by_what_it_says(tmp_path):
    """Its file may be called anything, and may not run."""
    broken = tmp_path / f"python{OWN}"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    assert (sys.version.split()[0], None) == (version_of(sys.executable, OWN), version_of(sys.executable, "2.7"))
    assert (None, None) == (version_of(broken, OWN), version_of(tmp_path / "none", OWN))


def test_an_interpreter_on_the_path_comes_before_packages(tmp_path, monkeypatch):
    """One that does not run is passed over."""
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / f"python{OWN}").symlink_to(sys.executable)
    python, origin = Interpreters(tmp_path / "folder", may_install=False).get(OWN)
    assert (tmp_path / f"python{OWN}", f"{sys.version.split()[0]}, found here") == (python, origin)


def test_without_packages_an_interpreter_is_not_tried(tmp_path, monkeypatch):
    """The reason says so; nothing fails."""
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotTried, match="Debian's packages cannot be used here"):
        Interpreters(tmp_path / "folder", may_install=False).get("3.14t")


def test_a_program_that_fails_gives_its_reason():
    """The line that says so, without the host it was downloaded from."""
    code = "print('Get: something'); print('E: Failed to fetch https://host.example/pool/x.dsc'); raise SystemExit(3)"
    with pytest.raises(NotTried, match=r": E: Failed to fetch pool/x.dsc$"):
        run([sys.executable, "-c", code])
