"""`grace-kp serve` as a process of its own, on a free port of this machine, and the browser that looks at it."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import weakref
from pathlib import Path

from tests.browser.shop import Shop

PROGRAM = Path(__file__).with_name("shop.py")
ADDRESS = re.compile(r"https?://127\.0\.0\.1:\d+\S*")
PATIENCE = 120
"""Seconds that a process on a busy machine may take to start or to end."""
FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Server:
    """One `grace-kp serve` over the store `app.db` of a folder. It can be killed and started again on the same port."""

    def __init__(self, folder):
        self.folder, self.process = folder, None
        # Bound, and never listening, it keeps the port free for the server.
        self._place = socket.socket()
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._place.bind(("127.0.0.1", 0))
        weakref.finalize(self, self._place.close)
        self.port = self._place.getsockname()[1]

    @property
    def store(self):
        return f"sqlite:///{self.folder}/app.db"

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self, *options):
        """Start serving and return the address that is printed, which carries the code of the first login if there is one."""
        command = ("serve", "--store", self.store, "--port", str(self.port), "--no-browser", *options)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "grace_kp.cli", *command],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        printed = []
        for line in self.process.stdout:  # when the address is printed, the server listens
            printed.append(line)
            if found := ADDRESS.search(line):
                return found[0]
        raise RuntimeError(f"serve ended with {self.process.wait(PATIENCE)}:\n{''.join(printed)}")

    def fill(self):
        """Have the agents of the shop work, in a process of their own."""
        self._run(PROGRAM, self.store)

    def add_user(self, name, role):
        """Add an account, and return its token."""
        command = ("serve", "users", "add", name, "--role", role, "--store", self.store)
        return self._run("-m", "grace_kp.cli", *command).strip()

    def shop(self):
        """Return the shop over this store, in this process."""
        return Shop(self.store)

    def _run(self, *command):
        done = subprocess.run(
            [sys.executable, *command], cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert 0 == done.returncode, done.stderr
        return done.stdout

    def kill(self):
        self.process.kill()
        self.process.communicate()


def executable():
    """Return the path of Debian's Chromium, or of the one that CHROMIUM names."""
    found = shutil.which(os.environ.get("CHROMIUM", "chromium"))
    if found is None:
        raise RuntimeError("there is no chromium: `make test-web` installs it, and CHROMIUM names another executable")
    return found


def flags():
    """Return the options of Chromium. Its sandbox does not work for root, who runs the build server."""
    return [*FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
