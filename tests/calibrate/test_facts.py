"""Facts about runs that say whether a profile fits them."""

from __future__ import annotations

from grace_kp.calibrate._facts import domain_of, facts_of, facts_of_all, hash_of, task_of
from grace_kp.trace import from_openai_messages
from tests.calibrate.examples import run

CHAT = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}]


def test_agents_models_and_tools_are_named():
    """Models come from recorded calls of models, or from the document of a recorded run."""
    document = run([("tool_call", ("find", {}))], model_calls=[{"model": "m-1"}, {"model": "m-1"}, 3])
    assert {"agents": ["kp:agent:clerk"], "models": ["m-1"], "tools": ["find"]} == facts_of(document)
    assert ["m-2"] == facts_of(from_openai_messages(CHAT, extra={"model": "m-2"}))["models"]
    assert {"agents": [], "models": [], "tools": []} == facts_of({})


def test_gated_actions_count_as_tools():
    """Whoever gates a function need not record its calls as steps."""
    document = run([("tool_call", ("find", {}))], decisions=[{"action": "pay"}, {"action": "find"}, None])
    assert ["find", "pay"] == facts_of(document)["tools"]


def test_the_domain_of_a_run():
    assert ("default", "", "") == (domain_of(run([])), domain_of({}), domain_of({"metadata": {"task_domain": 3}}))


def test_a_run_is_known_by_a_hash_of_id_and_objective():
    """Programs that number their runs use an id again; without an id a run is unknown."""
    first = run([], objective="a")
    assert 12 == len(hash_of(first))
    assert hash_of(first) == hash_of(run([("thought", "other steps")], objective="a"))
    assert hash_of(first) != hash_of(run([], objective="b")) != hash_of({**run([], objective="b"), "id": "x"})
    assert (None, None) == (hash_of({}), hash_of({**first, "id": 7}))


def test_a_time_that_is_unknown_is_left_out():
    """A chat without times has a made-up one in its trace, or that of its file."""
    document = run([])
    assert ("2026-11-01T00:00:00Z",) * 2 == tuple(
        facts_of_all([document, from_openai_messages(CHAT)])[k] for k in ("from", "to")
    )
    assert None is facts_of_all([from_openai_messages(CHAT)])["from"]
    of_file = {**document, "grace": {"created_from": "file"}}
    assert None is facts_of_all([of_file])["from"]


def test_a_task_is_its_id_or_else_its_objective():
    """Simulated users word the same task in many ways, so an id in the document wins."""
    assert "Send the order" == task_of(run([]))
    assert "task_id=7" == task_of(from_openai_messages(CHAT, extra={"task_id": 7}))
    assert "task_id=a" == task_of(run([], metadata={"task_id": "a"}))
    assert "" == task_of({})
