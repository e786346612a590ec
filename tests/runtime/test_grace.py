"""`Grace`: its wiring, its verbs, pickles, forks, and the release of final answers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import grace_kp as gk
from grace_kp.errors import SettingsError
from grace_kp.store import open_store
from grace_kp.testing import ScriptedReviewer, capture, make_grace

ROOT = Path(__file__).resolve().parents[2]


def python(code, *args, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("environment", {})}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *map(str, args)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **options,
    )


def test_secrets_do_not_reach_any_field_of_a_stored_trace():
    """Arguments, results, errors, thoughts, objective, sources, decisions: redacted before they are stored."""
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    grace = gk.Grace(store="memory:", reviewer=lambda request: gk.InterventionResponse("proceed", user_input=secret))

    @grace.gate(floor="confirm")
    @grace.tool
    def login(api_key, options):
        return {"token": secret, "echo": f"Authorization: Bearer {secret}"}

    @grace.retriever
    def search(query):
        return [{"score": 0.9, "source": f"https://user:hunter22secret@example.com/?api_key={secret}"}]

    @grace.tool
    def fail(password):
        raise ValueError(f"password={password!r} was refused, key {secret}")

    @grace.agent
    def root(question):
        grace.thought(f"the key is {secret}")
        search(question)
        login(secret, {"password": "hunter22secret", secret: 1})
        with contextlib.suppress(ValueError):
            fail("hunter22secret")
        return f"done with {secret}"

    with grace.collect() as traces:
        root(f"use {secret}")
    text = traces[0].to_json()
    assert secret not in text
    assert "hunter22secret" not in text
    assert "REDACTED" in text
    stored = grace.store.get(traces[0].id)
    assert stored == traces[0]


def test_a_store_that_cannot_be_opened_does_not_reach_the_agent(tmp_path, caplog):
    """The agent's result is untouched; the trouble is reported; what memory holds is still counted as waiting."""
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    grace = gk.Grace(store=f"sqlite:///{blocked}/t.db", reviewer=None)

    @grace.agent
    def root(text):
        return text.upper()

    assert root("hi") == "HI"
    while not grace.status()["writer"]["errors"]:
        assert grace.flush(timeout=0.1) is False
    assert grace.status()["writer"]["pending"] == 1
    assert any("store" in record.getMessage().lower() for record in caplog.records)
    with pytest.raises(gk.StoreError):
        _ = grace.store


def test_a_relative_store_stays_where_the_runtime_was_created(tmp_path, monkeypatch):
    """A tool that changes the working directory, before the first run or later, leads to no other file."""
    for name in ("home", "elsewhere", "third"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "home")
    with gk.Grace(store="sqlite:///t.db", evaluator=None, embedder=None) as grace:
        for name in ("elsewhere", "third"):
            monkeypatch.chdir(tmp_path / name)
            with grace.run("work"):
                pass
            assert grace.flush()
        assert 2 == grace.store.count()
    assert [tmp_path / "home" / "t.db"] == [*tmp_path.rglob("*.db")]


def test_nothing_is_started_before_the_first_run():
    before = set(threading.enumerate())
    grace = gk.Grace(store="sqlite:////nowhere/at/all.db")
    assert set() == set(threading.enumerate()) - before
    assert grace.flush() is True
    grace.close()


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("postgresql://h/db", "no PostgreSQL store"), ("memory", "write memory:"), ("x.db", "write sqlite:///x.db"),
        ("sqlite:///x.db?mode=ro", "not supported"), ("sqlite+aiosqlite:///x.db", "unknown store"), ("sqlite:///.", "not a directory"),
        (Path("x.db"), "a PosixPath is not a store"), (3, "an? int is not a store"), (b"memory:", "a bytes is not a store"),
    ],
)  # fmt: skip
def test_a_store_that_cannot_be_used_is_refused_at_once(store, message):
    with pytest.raises(gk.SettingsError, match=message) as raised:
        gk.Grace(store=store)
    assert "memory: or sqlite:///path.db" in str(raised.value)
    assert str(raised.value).startswith("store")


def milder(**settings):
    with make_grace(**settings) as grace:
        return [(entry["setting"], entry["value"], entry["from"]) for entry in grace.status()["milder"]]


def test_status_lists_what_makes_gates_milder(monkeypatch, tmp_path):
    """Each setting and argument with its source; nothing by default, and nothing that is as strict as the default."""
    assert [] == milder()
    assert [] == milder(
        unmeasured="confirm",
        threshold_silent="never",
        policies={"wire": gk.Policy(thresholds=gk.Thresholds(1, 0.8, 0.4)), "mail": gk.Policy(unmeasured="confirm")},
    )
    (tmp_path / "mine.toml").write_text('[policies.mail]\nunmeasured = "silent"\n')
    monkeypatch.setenv("GRACE_KP_CONFIG", str(tmp_path / "mine.toml"))
    monkeypatch.setenv("GRACE_KP_UNMEASURED", "notify")
    policy = gk.Policy(auto_proceed_on_timeout=True, thresholds=gk.Thresholds(0.5, 0.5, 0.1))
    assert [
        ("threshold_silent", 0.8, "keyword threshold_silent"),
        ("unmeasured", "notify", "environment variable GRACE_KP_UNMEASURED"),
        ("policies.mail.unmeasured", "silent", str(tmp_path / "mine.toml")),
        ("policies.wire.auto_proceed_on_timeout", True, "argument policies"),
        ("policies.wire.thresholds", {"silent": 0.5, "notify": 0.5, "confirm": 0.1}, "argument policies"),
    ] == milder(threshold_silent=0.8, policies={"wire": policy})
    assert ("threshold_confirm", 0.0, "argument thresholds") in milder(thresholds=gk.Thresholds(0.9, 0.7, 0.0))
    watched = milder(monitor=gk.calibrate.Monitor({"silent": 0.05}))
    assert ("on_alarm", "report", "default") in watched


async def test_every_run_is_stored_when_its_call_returns(tmp_path):
    """Another reader of the file finds it without a flush, however the run ended."""
    url = f"sqlite:///{tmp_path}/t.db"
    with gk.Grace(store=url, evaluator=None, embedder=None, reviewer=None, durability="every_run") as grace:
        plain = grace.agent(lambda text: text, name="plain")

        @grace.agent
        async def coroutine(text):
            return text

        @grace.agent
        async def generator(text):
            yield text

        @grace.agent
        async def failing(text):
            raise ValueError

        async def failed():
            with pytest.raises(ValueError, match=r"^$"):
                await failing("x")

        async def closed():
            stream = generator("x")
            await anext(stream)
            await stream.aclose()

        async def block():
            async with grace.run("x"):
                pass

        ends = (lambda: asyncio.sleep(0, plain("x")), lambda: coroutine("x"), failed, closed, block)
        for number, end in enumerate(ends * 2, 1):
            await end()
            with contextlib.closing(open_store(url, create=False)) as reader:
                assert number == reader.count()


async def test_an_event_loop_goes_on_while_a_coroutine_awaits_that_its_run_is_stored(tmp_path):
    with gk.Grace(
        store=f"sqlite:///{tmp_path}/t.db", evaluator=None, embedder=None, reviewer=None, durability="every_run"
    ) as grace:

        @grace.agent
        async def agent(text):
            return text

        await agent("opens the store")
        with grace.store.lock:  # nothing can be stored meanwhile
            task = asyncio.ensure_future(agent("waits"))
            for _ in range(100):
                await asyncio.sleep(0)
            assert not task.done()
        assert "waits" == await task


def test_a_signal_handler_that_needs_the_wiring_while_it_is_under_way_gets_the_same(monkeypatch):
    """It interrupts the thread that loads the modules. Two writers would share the runs."""
    grace, wirings = gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None), []
    wire = grace._wire

    def interrupted():
        if not wirings:
            wirings.append(None)
            wirings.append(grace._writer)
        return wire()

    monkeypatch.setattr(grace, "_wire", interrupted)
    assert grace._writer is wirings[1] is grace._wiring


R = gk.InterventionResponse


@pytest.mark.parametrize("is_async", [False, True])
def test_release_gates_the_final_answer(is_async):
    """The answer is handed on, replaced, withheld."""
    answers = ["proceed", R("modify", modified={"answer": "better"}), "skip", "cancel"]
    grace = make_grace(reviewer=ScriptedReviewer(*answers), policies={"advisor.release": "confirm"})

    def advisor(question):
        return "buy"

    async def advisor_async(question):
        return "buy"

    advisor_async.__name__ = "advisor"
    agent = grace.agent(release=True)(advisor_async if is_async else advisor)
    ask = (lambda q: asyncio.run(agent(q))) if is_async else agent
    assert [ask("?"), ask("?"), ask("?")] == ["buy", "better", None]
    with capture() as captured, pytest.raises(gk.ActionCancelled):
        ask("?")
    assert captured.only.grace["status"] == "not_approved"


def test_alarms_need_a_monitor():
    """Without one nothing is watched, and the status says so."""
    grace = make_grace()
    assert None is grace.status()["promise"]
    with pytest.raises(SettingsError, match="watches no promise: pass monitor=True"):
        grace.on_alarm(print)
    with pytest.raises(SettingsError, match="watches no promise"):
        grace.reset_alarms()
    assert None is make_grace(monitor=False).status()["promise"]


def test_a_run_that_is_open_has_no_trace_yet():
    grace = make_grace()
    with grace.run("x") as run, pytest.raises(RuntimeError, match="still open"):
        _ = run.trace
    assert run.trace.task.objective == "x"
