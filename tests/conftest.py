"""What holds for every test: a home folder of its own, none of the user's settings, no network beyond this machine.

An error inside recording fails the test it happens in; tests about surviving one switch that off. Property tests take the same
examples every time: few in `make test`, more in `make test-all`; `HYPOTHESIS_PROFILE=search` looks for new ones.
"""

from __future__ import annotations

import asyncio
import gc
import gzip
import importlib.util
import ipaddress
import itertools
import json
import os
import signal
import socket
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.strategies import none

from grace_kp.errors import MissingExtra
from grace_kp.record import TROUBLES

# Otherwise pytest-asyncio creates a loop that nobody closes, and that is collected in the middle of another test.
asyncio.set_event_loop(None)

# A shell that starts a run in the background has it ignore interrupts, and so does every program that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]
HOMES = {
    "HOME": "", "USERPROFILE": "", "LOCALAPPDATA": "", "XDG_DATA_HOME": ".local/share", "XDG_CONFIG_HOME": ".config",
    "XDG_CACHE_HOME": ".cache", "XDG_STATE_HOME": ".local/state",
}  # fmt: skip

MODELS = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "HF_HOME", "HF_HUB_CACHE", "HF_ENDPOINT")

set_hypothesis_home_dir(ROOT / ".hypothesis")
# No deadline and no complaint about slowness: both would be assertions about how busy the machine is.
STEADY = settings(deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", STEADY, max_examples=40)
settings.register_profile("thorough", STEADY, max_examples=200)
settings.register_profile(
    "search", deadline=None, max_examples=1_000, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
# A failing example is enough; looking for the smallest one takes longer than the rest of a run.
settings.register_profile("mutants", STEADY, max_examples=40, phases=(Phase.explicit, Phase.generate))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Exclude everything that is loaded for the tests from later garbage collections, each of which would visit all of it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        # The first property makes Hypothesis search for references to its generator; the search does not see frozen objects.
        given(none())(lambda _: None)()
        gc.collect()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skip a test of sealing or of edits where an interpreter has no wheels of what these need."""
    try:
        return (yield)
    except MissingExtra as missing:
        packages = ("cryptography", "jsonschema", "referencing")
        if missing.extra == "approvals" and not all(map(importlib.util.find_spec, packages)):
            pytest.skip("needs the extra approvals")
        raise


@pytest.fixture
def vectors():
    """Reads the golden vectors of a name: one JSON object per line, some of the files compressed."""

    def read(name):
        plain, packed = (ROOT / "tests" / "vectors" / f"{name}.jsonl{ending}" for ending in ("", ".gz"))
        data = plain.read_bytes() if plain.exists() else gzip.decompress(packed.read_bytes())
        return [json.loads(line) for line in data.splitlines()]

    return read


@pytest.fixture(scope="session")
def _homes(tmp_path_factory):
    """Numbers the home folders; making each by `tmp_path` would cost more than most tests do."""
    return tmp_path_factory.mktemp("homes"), itertools.count()


@pytest.fixture(autouse=True)
def _no_user(_homes, monkeypatch):
    """No settings, no home and no working directory of the user's; recording raises instead of going on."""
    folder, numbers = _homes
    home = folder / str(next(numbers))
    home.mkdir()
    for name in list(os.environ):
        if name.upper().startswith("GRACE_KP_") or name in MODELS:
            monkeypatch.delenv(name)
    for name, below in HOMES.items():
        monkeypatch.setenv(name, str(home / below))
    monkeypatch.setenv("GRACE_KP_STRICT_RECORDING", "1")
    monkeypatch.setattr(TROUBLES, "counts", Counter())  # of this test alone: kinds beyond a bound are not counted
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # interpreters that tests start see this checkout too
    monkeypatch.chdir(home)


@pytest.fixture(scope="session", autouse=True)
def _no_network():
    """Whatever would leave this machine fails at once, with the address in the message."""
    connect, connect_ex, look_up = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def only_here(self, address, /):
        refuse_beyond_here(address)
        return connect(self, address)

    def only_here_ex(self, address, /):
        refuse_beyond_here(address)
        return connect_ex(self, address)

    def look_up_here(host, *args, **kwargs):
        refuse_beyond_here((host,))
        return look_up(host, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", only_here)
        patch.setattr(socket.socket, "connect_ex", only_here_ex)
        patch.setattr(socket, "getaddrinfo", look_up_here)
        yield


def refuse_beyond_here(address):
    """AF_UNIX addresses are texts and stay here; of the others, the host says where they go."""
    if not isinstance(address, tuple) or address[0] in (None, "", b"", "localhost", b"localhost"):
        return
    host = address[0].decode() if isinstance(address[0], bytes) else address[0]
    try:
        here = ipaddress.ip_address(host).is_loopback
    except ValueError:
        here = False
    if not here:
        raise RuntimeError(f"a test tried to reach {host}; tests stay on this machine")
