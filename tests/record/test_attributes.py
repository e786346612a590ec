"""Tags, user, session and metadata of runs: stated by decorators, blocks and from within, in the trace and in the store."""

from __future__ import annotations

import asyncio
import json
import threading
import uuid

import pytest

import grace_kp as gk
from grace_kp.trace._rules import MAX_LABEL

NAMES = ("tags", "user", "session", "metadata", "dropped_tags", "dropped_metadata")


@pytest.fixture(params=["memory", "sqlite"])
def grace(request, tmp_path):
    url = "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/t.db"
    with gk.Grace(store=url, evaluator=None, embedder=None, reviewer=None) as made:
        yield made


def attributes(trace):
    return {name: trace.grace[name] for name in NAMES if name in trace.grace}


def only(grace, **conditions):
    (trace,) = grace.store.query(**conditions)
    return trace


def test_a_decorator_states_values_templates_and_callables(grace):
    """Texts name parameters in braces, defaults included; callables get the bound arguments."""

    @grace.agent(
        tags=["nightly", "{kind}"], user="{user_id}", session=lambda ticker: f"s-{ticker}",
        metadata={"plan": "pro", "kind": "{kind}", "n": 3, "depth": lambda depth: depth * 2},
    )  # fmt: skip
    def analyst(ticker, user_id=7, kind="quick", *, depth=1):
        return ticker

    analyst("TSM", depth=4)
    expected = {
        "tags": ["nightly", "quick"], "user": "7", "session": "s-TSM", "metadata": {"plan": "pro", "kind": "quick", "n": 3, "depth": 8},
    }  # fmt: skip
    assert expected == attributes(only(grace))


def test_async_agents_generators_and_methods_have_them_too(grace):
    """Every kind of function that a decorator takes."""

    class Desk:
        @grace.agent(user="{who}", tags="method")
        def plain(self, who):
            return who

        @grace.agent(user="{who}", tags=("async",))
        async def later(self, who):
            return who

        @grace.agent(user="{who}", tags={"stream"})
        def stream(self, who):
            yield who

    desk = Desk()
    desk.plain("a")
    asyncio.run(desk.later("b"))
    assert ["c"] == list(desk.stream("c"))
    found = {trace.grace["user"]: trace.grace["tags"] for trace in grace.store.query()}
    assert {"a": ["method"], "b": ["async"], "c": ["stream"]} == found


def test_a_block_and_the_code_inside_state_them(grace):
    """Tags add up, metadata merges by key, the last user and session hold."""
    with grace.run("x", tags=["a"], user="ana", session="s1", metadata={"k": 1, "left": True}) as run:
        grace.update(tags=["b", "a"], metadata={"k": 2})
        run.update(tags="c", session="s2", metadata={"more": {"deep": [1]}})
    expected = {
        "tags": ["a", "b", "c"], "user": "ana", "session": "s2", "metadata": {"k": 2, "left": True, "more": {"deep": [1]}},
    }  # fmt: skip
    assert expected == attributes(run.trace)


def test_runs_without_any_have_none(grace):
    """Nothing is added to a trace of a run that states nothing."""
    with grace.run("x") as run:
        pass
    assert {} == attributes(run.trace)


def test_a_nested_run_belongs_to_the_user_and_session_around_it(grace):
    """Also where they are stated late; its own win; tags and metadata stay where they were stated."""

    @grace.agent(user="{own}")
    def inner(task, own=None):
        return task

    with grace.run("outer", tags=["t"], metadata={"m": 1}) as outer:
        outer.update(user="ana", session="s1")
        inner("plain")
        inner("own", own="ben")
    found = {trace.task.objective: attributes(trace) for trace in grace.store.query(session="s1")}
    assert {"user": "ana", "session": "s1"} == found["plain"]
    assert {"user": "ben", "session": "s1"} == found["own"]
    assert {"tags": ["t"], "user": "ana", "session": "s1", "metadata": {"m": 1}} == found["outer"]


def test_what_is_wrong_is_noted_and_breaks_no_agent(grace, monkeypatch):
    """A template without its parameter, a callable that raises, values of the wrong kind."""
    monkeypatch.delenv("GRACE_KP_STRICT_RECORDING")

    @grace.agent(user="{nobody}", session=lambda: 1 / 0, tags=["{", "fine"], metadata=lambda: 5)
    def agent(question):
        grace.update(tags=5, metadata=["no"], user="  ", session=["a", 1])
        return question

    assert "q" == agent("q")
    assert {"tags": ["fine"], "session": '["a", 1]'} == attributes(only(grace))
    grace.update(tags=["outside"])
    troubles = " ".join(grace.status()["troubles"])
    assert "attributes of agent: KeyError" in troubles
    assert "attributes of agent: ZeroDivisionError" in troubles
    assert "metadata must be a dict" in troubles


@pytest.mark.parametrize("bad", [{"tags": 5}, {"metadata": "text"}, {"metadata": [1]}])
def test_a_decorator_refuses_what_can_never_be_an_attribute(grace, bad):
    """When it decorates, with the name of the attribute."""
    with pytest.raises(TypeError, match=next(iter(bad))):
        grace.agent(**bad)(lambda question: question)


def test_their_number_and_length_are_bounded_and_cuts_are_visible(grace):
    """Fifty tags and keys; long texts keep their beginning, their length and a fingerprint."""
    with grace.run("x") as run:
        for n in range(60):
            run.update(tags=[f"t{n}"], metadata={f"k{n}": "v" * 5_000})
        run.update(user="u" * 500)
    found = attributes(run.trace)
    assert (50, 50, 10, 10) == (
        len(found["tags"]), len(found["metadata"]), found["dropped_tags"], found["dropped_metadata"],
    )  # fmt: skip
    assert "cut" in found["metadata"]["k0"]
    assert len(found["metadata"]["k0"]) < 2_100
    assert len(found["user"]) == MAX_LABEL
    assert "500 characters" in found["user"]
    assert run.trace == only(grace, user="u" * 500)
    assert [] == grace.store.query(user="u" * 499)


def test_secrets_go_and_identifiers_go_where_the_level_says(tmp_path):
    """By the rules of texts; a UUID is no phone number."""
    key, ident = "sk-proj-" + "a1B2" * 12, str(uuid.UUID(int=0x12345678_1234_5678_1234_567812345678))
    for level, user in (("private", "ana@example.com"), ("aggregated", "[REDACTED:email]")):
        grace = gk.Grace(store="memory:", evaluator=None, embedder=None, privacy_level=level)
        with grace.run("x", user="ana@example.com", session=ident, tags=[key], metadata={"password": "hunter2"}) as run:
            pass
        found = attributes(run.trace)
        assert (user, ident) == (found["user"], found["session"])
        assert key not in json.dumps(found)
        assert "hunter2" not in json.dumps(found)
        grace.close()


def test_without_captured_input_arguments_stay_out(grace):
    """Tags and metadata made of arguments are left out; user and session stay, because runs are found and deleted by them."""
    grace.recorder.capture_input = False

    @grace.agent(tags=["fixed", "{question}"], metadata={"q": "{question}", "v": 1}, user="{user}")
    def agent(question, user):
        return None

    agent("secret question", "ana")
    assert {"tags": ["fixed"], "metadata": {"v": 1}, "user": "ana"} == attributes(only(grace))


def test_threads_that_update_one_run_lose_nothing(grace):
    """Forty threads, one tag and one key each."""
    with grace.run("x") as run:
        threads = [
            threading.Thread(target=run.update, kwargs={"tags": [f"t{n}"], "metadata": {f"k{n}": n}}) for n in range(40)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = attributes(run.trace)
    assert {f"t{n}" for n in range(40)} == set(found["tags"])
    assert {f"k{n}": n for n in range(40)} == found["metadata"]


def test_they_are_found_by(grace):
    """All conditions hold together; metadata is compared as text."""
    for n in range(4):
        with grace.run(
            f"run {n}",
            tags=["all", f"n{n}"],
            user="ana" if n % 2 else "ben",
            session="s",
            metadata={"n": n, "ok": True},
        ):
            pass
    store = grace.store

    def objectives(**conditions):
        return sorted(trace.task.objective for trace in store.query(**conditions))

    assert ["run 2"] == objectives(tags=["all", "n2"])
    assert ["run 2"] == objectives(tags="n2")
    assert [] == objectives(tags=["n1", "n2"])
    assert ["run 1", "run 3"] == objectives(user="ana", session="s")
    assert ["run 3"] == objectives(metadata={"n": 3}) == objectives(metadata={"n": "3", "ok": True})
    assert (4, 0) == (store.count(session="s"), store.count(session="S"))
    assert ["run 1", "run 3"] == [trace.task.objective for trace in store.iterate(user="ana")]


@pytest.mark.parametrize("bad", [{"tags": 5}, {"tags": [5]}, {"user": 5}, {"session": []}, {"metadata": "k=v"}])
def test_conditions_that_cannot_be_used_are_named(grace, bad):
    """One error that names the condition."""
    with pytest.raises(ValueError, match=next(iter(bad))):
        grace.store.query(**bad)


def test_the_journal_has_them(grace):
    """A run whose process dies keeps what it stated until then."""
    with grace._writer._settling, grace.run("x", tags=["a"]) as run:
        (entries,) = grace._pipeline.journal()
        run.update(user="ana", metadata={"k": 1})
        entries += next(grace._pipeline.journal())
        assert [[]] == list(grace._pipeline.journal())
    lost = grace._pipeline.documents.lost([entry.data for entry in entries])
    expected = {"tags": ["a"], "user": "ana", "metadata": {"k": 1}}
    assert expected == attributes(gk.ReasoningTrace.model_validate(lost))


def test_module_level_verbs_do_the_same():
    """`gk.update` and `gk.run` on the default runtime."""
    gk.configure(store="memory:", evaluator=None, embedder=None, reviewer=None)
    with gk.run("x", tags=["a"]):
        gk.update(user="ana")
    assert {"tags": ["a"], "user": "ana"} == attributes(gk.default().store.query(user="ana")[0])
