"""Programs that tests start, without the second that a new interpreter needs to import the library.

`run` takes what `subprocess.run` takes. It asks a server, an interpreter that has imported everything and done nothing else, to
fork; the fork becomes the program, with its own folder, environment, arguments and standard streams, and ends as an interpreter
does. Tests about importing, about options of the interpreter or about a terminal start a new interpreter themselves.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import types
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SERVERS = {}
# For programs that work with LangGraph.
LANGGRAPH = ("langchain.agents", "langgraph.checkpoint.sqlite", "grace_kp.integrations.langchain")
# Read when an interpreter starts, so a fork cannot follow them.
AT_START = {"PYTHONHASHSEED", "PYTHONUTF8", "PYTHONWARNINGS", "LC_ALL", "LC_CTYPE", "PYTHONDEVMODE"}


def run(command, *, imports=(), input=None, cwd=None, env=None, text=False, timeout=300, **streams):  # noqa: A002
    """Run a Python program as `subprocess.run` does, in a fork of an interpreter that has imported `imports` too.

    Args:
        command: `[sys.executable, "-W", "error", "-c" or "-m" or a file, …]`; `-W error` may be missing.
        imports: modules that the server imports before it forks, because the program needs long for them.
        streams: `capture_output`, `stdout`, `stderr`, `stdin`, `check`, `encoding`; what is not captured is dropped.
    """
    env = dict(os.environ if env is None else env)
    assert command[0] == sys.executable, command
    assert all(env.get(name) == os.environ.get(name) for name in AT_START), "start a new interpreter for these settings"
    # One server for each set of imports: a fork tears down all that was imported, whether it was used or not.
    server = SERVERS.get((os.getpid(), *imports))
    if server is None:
        server = SERVERS[os.getpid(), *imports] = Server()
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        if input is not None:
            given.write(input.encode() if isinstance(input, str) else input)
            given.seek(0)
        request = {"arguments": [str(part) for part in command[1:]], "cwd": str(cwd or Path.cwd()), "env": env}
        status = server.ask({**request, "imports": list(imports)}, (given, out, err), timeout, command)
        captured = []
        for stream in (out, err):
            stream.seek(0)
            data = stream.read()
            captured.append(
                data.decode(streams.get("encoding") or "utf-8") if text or streams.get("encoding") else data
            )
    done = subprocess.CompletedProcess(command, status, *captured)
    if streams.get("check"):
        done.check_returncode()
    return done


class Server:
    """The interpreter that forks, seen from the tests."""

    def __init__(self):
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], env=environment
            )
        atexit.register(self._close)

    def ask(self, request, files, timeout, command):
        """Have a program run with these files as its standard streams; return how it ended, as `subprocess` says it."""
        fds = array.array("i", [file.fileno() for file in files])
        with tempfile.NamedTemporaryFile("w", suffix=".json") as document:
            json.dump(request, document)
            document.flush()
            self._socket.settimeout(300)
            self._socket.sendmsg([document.name.encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
            pid = int(self._socket.recv(64))
        self._socket.settimeout(timeout)
        try:
            return int(self._socket.recv(64))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            self._socket.settimeout(300)
            self._socket.recv(64)
            raise subprocess.TimeoutExpired(command, timeout) from None

    def _close(self):
        self._socket.close()
        self._process.wait()


def serve(connection):
    """Fork for each request until the tests have ended; return the request in the fork."""
    import grace_kp

    for name in grace_kp.__all__:
        getattr(grace_kp, name)
    for module in ("grace_kp.cli._app", "yaml", "regex", "httpx", "asyncio", "sqlite3"):
        with contextlib.suppress(ImportError):  # an optional package, which has no wheel for some interpreters
            __import__(module)
    keep()
    while True:
        path, fds, *_ = socket.recv_fds(connection, 4_096, 3)
        if not path:
            os._exit(0)
        request = json.loads(Path(os.fsdecode(path)).read_text(encoding="utf-8"))
        if not set(request["imports"]) <= sys.modules.keys():
            for module in request["imports"]:
                __import__(module)
            keep()
        pid = os.fork()
        if pid == 0:
            for number, fd in enumerate(fds):
                os.dup2(fd, number)
                os.close(fd)
            connection.close()
            return request
        for fd in fds:
            os.close(fd)
        connection.send(str(pid).encode())
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with contextlib.suppress(OSError):
            connection.send(str(status).encode())


def keep():
    """Exclude all present objects from collections, which touch every object and so copy the memory that forks share."""
    gc.collect()
    gc.freeze()


def become(request):
    """Make this fork the program of a request; return the code to execute, or None after running a module."""
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    encoding, _, errors = request["env"].get("PYTHONIOENCODING", "utf-8").partition(":")
    sys.stdin = open(0, encoding=encoding, errors=errors or "strict")  # noqa: SIM115
    sys.stdout = open(1, "w", encoding=encoding, errors=errors or "strict")  # noqa: SIM115
    sys.stderr = open(2, "w", encoding=encoding, errors="backslashreplace", buffering=1)  # noqa: SIM115
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    arguments = request["arguments"]
    if arguments[:2] == ["-W", "error"]:
        warnings.resetwarnings()
        warnings.simplefilter("error")
        sys.warnoptions[:] = ["error"]
        arguments = arguments[2:]
    kind, *rest = arguments
    if kind == "-m":
        sys.argv = rest
        sys.path[0] = request["cwd"]
        return compile(
            f"import runpy; runpy.run_module({rest[0]!r}, run_name='__main__', alter_sys=True)", "<module>", "exec"
        )
    if kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path[0] = request["cwd"]
        return compile(rest[0], "<string>", "exec")
    sys.argv = [kind, *rest]
    sys.path[0] = str(Path(kind).resolve().parent)
    return compile(Path(kind).read_text(encoding="utf-8"), kind, "exec")


if __name__ == "__main__":
    program = become(serve(socket.socket(fileno=int(sys.argv[1]))))
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.modules["__main__"].__builtins__ = __builtins__
    exec(program, vars(sys.modules["__main__"]))
