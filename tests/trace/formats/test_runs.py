"""The chat and the facts of a run are found in documents of many forms, and any document gives a trace or one error."""

from __future__ import annotations

import copy
import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp import InvalidTrace, ReasoningTrace, from_openai_messages
from grace_kp.trace.formats import read_run
from grace_kp.value import ValueScorer
from tests.trace.formats.chats import (
    CHAT,
    DIALECTS,
    GEMINI,
    LANGCHAIN,
    RESPONSES,
    TURN,
    assistant,
    call,
    contents,
    kinds,
    one_line,
    tool,
    user,
)


class TestContainers:
    @pytest.mark.parametrize(
        "document",
        [
            TURN,
            [TURN],
            {"messages": TURN},
            {"task_id": 0, "trial": 1, "reward": 1.0, "info": {"task": {}}, "traj": TURN},
            {"conversations": DIALECTS["sharegpt"], "tools": "[]", "system": "s"},
            {"trajectory": [{"action": "ls", "observation": "x"}], "history": TURN, "info": {}},
            {"input": TURN},
            {"inputs": {"messages": [TURN[:3]]}, "outputs": {"generations": [[{"text": "six", "message": LANGCHAIN[3]}]]}},
            {"messages": json.dumps(TURN)},
            {"request": {"model": "m", "messages": TURN[:3]}, "response": {"id": "x", "choices": [{"message": TURN[3]}]}},
            {"request": {"body": {"messages": TURN[:3]}}, "response": {"body": {"choices": [{"message": TURN[3]}]}}},
            {"request": json.dumps({"messages": TURN[:3]}), "response": json.dumps({"choices": [{"message": TURN[3]}]})},
            {"messages": TURN[:3], "choices": [{"index": 0, "message": TURN[3], "finish_reason": "stop"}]},
            {"messages": TURN, "output": {"choices": [{"message": TURN[3]}]}},
            {"input": TURN[:3], "output": "six"},
            {"input": RESPONSES[:4], "output": RESPONSES[4:]},
            {"input": "q", "output": RESPONSES[1:]},
            {"prompt": "q", "messages": TURN},
            {"contents": GEMINI[:3], "response": {"candidates": [{"content": GEMINI[3], "finishReason": "STOP"}]}},
            {"gen_ai.input.messages": DIALECTS["opentelemetry"][:3], "gen_ai.output.messages": DIALECTS["opentelemetry"][3:]},
            {"data": {"messages": TURN}},
            {"schema_version": "ATIF-v1.5", "agent": {"name": "a"}, "steps": DIALECTS["harbor"]},
        ],
    )  # fmt: skip
    def test_the_chat_is_found_wherever_it_stands(self, document):
        """Benchmarks, logs, fine-tuning data and frameworks keep it in different places."""
        trace = read_run(document)
        assert ["tool_call", "observation", "thought"] == kinds(trace)
        assert ("q", "six") == (trace.task.objective, trace.outcome.result_summary)

    @pytest.mark.parametrize(
        "document",
        [
            {"prompt": "q", "completion": "six"},
            {"prompt": [user("q")], "completion": [assistant("six")]},
            {"input": "q", "output": "six"},
            {"question": "q", "answer": "six"},
            {"request": {"messages": [user("q")]}, "response": "six"},
            {"request": {"prompt": "q"}, "response": {"choices": [{"text": "six"}]}},
            {"inputs": {"question": "q"}, "outputs": {"output": "six"}},
            {"body": {"messages": [user("q"), assistant("six")]}, "custom_id": "1"},
            {"messages": [user("q")], "message": assistant("six")},
        ],
    )
    def test_a_question_and_an_answer_are_a_run_too(self, document):
        """One exchange, in words or as messages."""
        trace = read_run(document)
        assert ("q", ["six"]) == (trace.task.objective, contents(trace))

    def test_a_run_says_its_domain_framework_and_objective(self):
        """The document wins over the fallback."""
        document = {"messages": TURN, "domain": "airline", "framework": "langgraph", "objective": "Find x"}
        trace = read_run(document, fallback_domain="code")
        assert ("airline", "langgraph", "Find x") == (
            trace.metadata.task_domain, trace.metadata.framework, trace.task.objective,
        )  # fmt: skip
        assert "code" == read_run(TURN, fallback_domain="code").metadata.task_domain

    @pytest.mark.parametrize(
        ("document", "message"),
        [
            ([user("a"), 5, assistant("b")], r"^messages\[1\]: must be an object \(got 5\)$"),
            ([user("a"), {"content": "b"}], r"^messages\[1\]\.role: is missing$"),
            ({"traj": [user("a"), {"role": 7, "content": "b"}]}, r"^traj\[1\]\.role: must be a string .*\(got 7\)$"),
            ({"messages": [None, assistant("b")]}, r"^messages\[0\]: must be an object"),
            ({"request": {"messages": [user("a"), []]}}, r"^request\.messages\[1\]: must be an object"),
            ({"messages": []}, r"^messages: must have at least one message$"),
            ({"messages": "hello"}, r"^messages: must be a list of messages \(got 'hello'\)$"),
            ([user("a"), user("b")], r"^messages: has no turn of an assistant among its 2 messages$"),
            ({"request": {"messages": [user("q")]}, "response": {"error": {"message": "late"}}}, "has no turn of an assistant"),
            ([], "an empty list holds no messages"),
            (5, r"must be an object or a list of messages \(got 5\)"),
            ({}, r"neither a ReasoningTrace nor a run of chat messages .*\(it has no keys\)"),
            ({"level": "info", "message": "started"}, r"neither .* \(it has level, message\)"),
            (assistant("a"), "is a single message, not a run"),
        ],
    )  # fmt: skip
    def test_what_is_no_run_is_refused_in_one_line_that_names_the_place(self, document, message):
        """The error is the same kind as for a broken trace."""
        with pytest.raises(InvalidTrace, match=message) as caught:
            read_run(document)
        assert "\n" not in str(caught.value)


class TestSuccess:
    @pytest.mark.parametrize(
        ("beside", "success", "said_by"),
        [
            ({"reward": 1.0}, True, "reward"),
            ({"reward_info": {"reward": 1}}, True, "reward"),
            ({"label": {"success": False, "reward": 1.0}}, False, "label"),
            ({"label": {"success": None, "reward": 1.0}}, True, "reward"),
            ({"label": {"success": True}, "reward": 0.0}, True, "label"),
            ({"success": False}, False, "label"),
            ({"info": {"resolved": False}}, False, "label"),
            ({"label.success": False, "reward": 1.0}, False, "label"),
            ({"success": "false"}, False, "label"),
            ({"label": "unknown"}, True, "assumed"),
            ({"target": "42"}, True, "assumed"),
        ],
    )
    def test_the_document_is_believed(self, beside, success, said_by):
        """A label wins over a reward, and either over an assumption."""
        trace = read_run({"messages": [user("q"), assistant("a")], **beside})
        assert (success, said_by) == (trace.metadata.success, trace.grace["success_from"])

    def test_facts_beside_a_chat_inside_of_an_object_count(self):
        """The document's own win. A single tag may be a string."""
        inner = {"messages": [user("q"), assistant("a")], "label": {"success": False}, "user": "ana", "tags": "prod"}
        for body in (inner, json.dumps(inner)):
            trace = read_run({"run": {"state": body, "user": "eve"}, "session": "s"})
            assert ("eve", "s", ("prod",)) == (trace.user, trace.session, trace.tags)
            assert (False, "label") == (trace.metadata.success, trace.grace["success_from"])


class TestIdentity:
    def test_the_same_run_always_gets_the_same_id(self):
        """So that importing a file twice gives no second run."""
        document = {"task_id": 3, "trial": 0, "traj": CHAT}
        assert read_run(document).id == read_run(copy.deepcopy(document), fallback_domain="code").id
        assert read_run(document).id.startswith("kp:trace:")

    @pytest.mark.parametrize("other", [{"task_id": 4, "trial": 0}, {"task_id": 3, "trial": 1}, {"task_id": 3}])
    def test_other_runs_get_other_ids(self, other):
        """Two trials may say the same things and are two runs."""
        assert read_run({"task_id": 3, "trial": 0, "traj": CHAT}).id != read_run({**other, "traj": CHAT}).id

    def test_what_the_document_says_beside_the_chat_is_kept_small(self):
        """Ids, model and the like; long texts are cut and tools left out."""
        beside = {"task_id": 3, "model": "m", "info": {"long": "x" * 100_000}, "tools": [{"name": "t"}] * 50}
        source = read_run({**beside, "messages": CHAT}).grace["source"]
        assert (3, "m") == (source["task_id"], source["model"])
        assert {"task_id", "model", "info"} >= set(source)
        assert len(json.dumps(source)) < 5_000


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
VALUES = st.recursive(
    SCALARS | st.sampled_from(["user", "assistant", "tool", "system", "tool_use", "text", "Error: x", "{", '{"a": 1}']),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["role", "content", "type", "tool_calls", "function", "name", "arguments", "id", "tool_call_id", "parts",
             "text", "value", "from", "error", "message", "data", "kwargs", "function_call", "thinking", "output",
             "messages", "choices", "response", "request", "source", "toolInvocation", "state", "result", "label"]
        ) | st.text(string.ascii_lowercase, max_size=4),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip  # fmt: skip


@st.composite
def mutated(draw):
    """A real chat of some dialect in which values have been replaced, removed, doubled or exchanged."""
    names = [name for name in DIALECTS if name != "client objects"]
    chat = copy.deepcopy(DIALECTS[draw(st.sampled_from(names))] if draw(st.booleans()) else CHAT)
    document = draw(st.sampled_from([chat, {"messages": chat}, {"request": {"messages": chat}, "response": {}}]))
    for _ in range(draw(st.integers(1, 4))):
        place = document
        while True:
            keys = list(range(len(place))) if isinstance(place, list) else list(place)
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(place[key], list | dict) and draw(st.integers(0, 3)):
                place = place[key]
                continue
            match draw(st.integers(0, 3)):
                case 0:
                    place[key] = draw(VALUES)
                case 1:
                    del place[key]
                case 2 if isinstance(place, list):
                    place.insert(key, copy.deepcopy(place[key]))
                case _:
                    place[key] = [place[key]]
            break
    return document


class TestTotality:
    @given(mutated() | VALUES)
    def test_any_document_gives_a_trace_or_one_error(self, document):
        """No other exception; the trace is valid, numbered, linked and scorable; the document is left as it was."""
        before = repr(document)
        try:
            trace = read_run(document)
        except InvalidTrace as error:
            one_line(error)
            return
        finally:
            assert before == repr(document)
        assert trace == ReasoningTrace.model_validate_json(trace.to_json())
        assert list(range(len(trace.steps))) == [step.step_id for step in trace.steps]
        for entry in trace.grace["calls"]:
            assert "tool_call" == trace.steps[entry["tool_call"]].type.value
            assert ("observation" in entry) == (entry["status"] != "unfinished")
            if "observation" in entry:
                assert entry["observation"] > entry["tool_call"]
                assert "observation" == trace.steps[entry["observation"]].type.value
            if "recovery" in entry:
                assert "error" == entry["status"]
                assert "error_recovery" == trace.steps[entry["recovery"]].type.value
        assert 0 <= ValueScorer().score(trace).score <= 1

    @pytest.mark.parametrize("shape", ["content", "arguments", "result", "list", "kwargs"])
    def test_deep_nesting_is_survived(self, shape):
        """It is cut or refused, never a crash."""
        deep = []
        for _ in range(5_000):
            deep = ["a", deep] if shape != "kwargs" else {"type": "ai", "id": ["x"], "kwargs": deep}
        chat = {
            "result": [user("q"), assistant(None, call("t")), tool(deep)],
            "content": [user("q"), assistant(deep)],
            "arguments": [user("q"), assistant(None, call("t", deep))],
            "list": deep,
            "kwargs": [user("q"), deep],
        }[shape]
        try:
            assert from_openai_messages(chat).steps
        except InvalidTrace as error:
            one_line(error)

    def test_the_work_grows_with_the_length_only(self):
        """Ten thousand messages with one id for all calls are read as they stand."""
        chat = [user("q")]
        for n in range(5_000):
            chat += [assistant(None, call(f"t{n % 7}", call_id="same")), tool("Error: x", "same", name=f"t{n % 7}")]
        trace = from_openai_messages(chat)
        assert (5_000, 4_999) == (len(trace.grace["calls"]), kinds(trace).count("error_recovery"))
        assert all(entry["observation"] == entry["tool_call"] + 1 for entry in trace.grace["calls"])

    def test_no_step_is_shared_with_the_messages(self):
        """Changing the chat afterwards does not change the trace."""
        arguments = {"x": [1]}
        trace = from_openai_messages([user("q"), assistant(None, call("t", arguments))])
        arguments["x"].append(2)
        assert {"x": [1]} == trace.steps[0].input
