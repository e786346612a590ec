"""Chats that were recorded elsewhere, in the dialects in which they really come, as traces."""

import copy
import datetime
import json
import string
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp import InvalidTrace, ReasoningTrace, from_openai_messages
from grace_kp.confidence import factors_from_trace
from grace_kp.trace.formats import read_run
from grace_kp.value import ValueScorer


def call(name, arguments="{}", call_id="c1"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool(content, call_id="c1", **more):
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def user(content):
    return {"role": "user", "content": content}


def assistant(content=None, *calls, **more):
    return {"role": "assistant", "content": content, **({"tool_calls": list(calls)} if calls else {}), **more}


def one_line(error):
    assert "\n" not in str(error)


def kinds(trace):
    return [step.type.value for step in trace.steps]


def contents(trace):
    return [step.content for step in trace.steps]


CHAT = [
    {"role": "system", "content": "You sell seats.\nBe kind."},
    user("A seat to Oslo, please."),
    assistant(None, call("search", '{"to": "Oslo"}', "a")),
    tool("Error: no such airport", "a", name="search"),
    assistant("I try the code.", call("search", '{"to": "OSL"}', "b")),
    tool('[{"seat": "12A"}]', "b", name="search"),
    assistant("12A is free."),
    user("I take it."),
    assistant(None, call("book", '{"seat": "12A"}', "a")),
    tool("booked", "a", name="book"),
    assistant("Booked, have a good flight."),
]


class TestSteps:
    def test_each_turn_becomes_its_step(self):
        """Text is a thought, a call a tool_call, a result an observation; a survived error gives an error_recovery."""
        trace = from_openai_messages(CHAT)
        assert [
            "tool_call", "observation", "error_recovery", "thought", "tool_call", "observation", "thought",
            "observation", "tool_call", "observation", "thought",
        ] == kinds(trace)  # fmt: skip
        assert list(range(11)) == [step.step_id for step in trace.steps]
        assert "A seat to Oslo, please." == trace.task.objective
        assert "Booked, have a good flight." == trace.outcome.result_summary
        assert {"to": "Oslo"} == trace.steps[0].input
        assert "search" == trace.steps[0].tool.name
        assert "Recovered from search: Error: no such airport" == trace.steps[2].content
        assert "I take it." == trace.steps[7].content

    def test_calls_are_linked_to_their_results(self):
        """Every call says which steps it has, how it ended, and what its id was in the chat."""
        assert [
            {"call_id": "c0", "name": "search", "tool_call": 0, "status": "error", "source_id": "a", "observation": 1,
             "error": {"type": "Error", "message": "no such airport"}, "recovery": 2},
            {"call_id": "c1", "name": "search", "tool_call": 4, "status": "ok", "source_id": "b", "observation": 5},
            {"call_id": "c2", "name": "book", "tool_call": 8, "status": "ok", "source_id": "a", "observation": 9},
        ] == from_openai_messages(CHAT).grace["calls"]  # fmt: skip

    def test_the_trace_is_marked_as_unscored(self):
        """The confidence is not computed yet, and that is said; the evidence for it can be read off the trace."""
        trace = from_openai_messages(CHAT)
        assert (0.5, 0.0) == (trace.outcome.confidence, trace.metadata.quality_score)
        assert (True, "completed", "openai_messages") == tuple(trace.grace[k] for k in ("unscored", "status", "format"))
        factors = factors_from_trace(trace)
        assert (3, 2) == (factors.tool_execution_count, factors.tool_success_count)

    def test_system_and_developer_messages_are_no_steps(self):
        """Instructions are not what the agent did."""
        trace = from_openai_messages([{"role": "developer", "content": "x"}, user("q"), CHAT[0], assistant("a")])
        assert ["a"] == contents(trace)

    def test_an_unknown_role_is_an_observation_and_counted(self):
        """Nothing is lost because its role is not known."""
        trace = from_openai_messages([user("q"), {"role": "Critic", "content": "weak"}, assistant("a")])
        assert [("observation", "weak"), ("thought", "a")] == list(zip(kinds(trace), contents(trace), strict=True))
        assert {"critic": 1} == trace.grace["unknown_roles"]

    def test_unknown_roles_are_counted_within_bounds(self):
        """Thousands of invented roles do not swell the trace."""
        chat = [user("q"), *({"role": f"role {n}", "content": "x"} for n in range(500)), assistant("a")]
        counted = from_openai_messages(chat).grace["unknown_roles"]
        assert (21, 500) == (len(counted), sum(counted.values()))

    def test_visible_reasoning_is_a_thought_before_the_answer(self):
        """Thinking counts as thought, but is not the result."""
        trace = from_openai_messages([user("q"), assistant(None, reasoning_content="Hm, six.")])
        assert (["thought"], ["Hm, six."], "") == (kinds(trace), contents(trace), trace.outcome.result_summary)
        assert not trace.metadata.success

    def test_a_run_may_end_on_a_call_without_a_result(self):
        """The last call stays unfinished and says nothing about the tool."""
        trace = from_openai_messages([user("q"), assistant(None, call("submit"))])
        assert "unfinished" == trace.grace["calls"][0]["status"]
        assert "observation" not in trace.grace["calls"][0]
        assert 0 == factors_from_trace(trace).tool_execution_count
        assert not trace.metadata.success

    def test_an_assistant_that_says_nothing_leaves_an_empty_thought(self):
        """A trace has at least one step, also of a run whose model returned nothing."""
        trace = from_openai_messages([user("q"), assistant(None)])
        assert ([""], False) == (contents(trace), trace.metadata.success)

    def test_long_texts_are_cut_visibly(self):
        """Thoughts, results, arguments and the objective keep within the limit, and say that they were cut."""
        long = "word " * 5_000
        chat = [user(long), assistant(long, call("t", json.dumps({"x": long}))), tool(long), assistant("ok")]
        trace = from_openai_messages(chat, max_text=1_000)
        texts = [trace.task.objective, trace.steps[0].content, trace.steps[1].input["x"], trace.steps[2].content]
        assert all("[cut: " in text and len(text) < 1_100 for text in texts)

    def test_half_a_surrogate_pair_is_replaced(self):
        """What UTF-8 cannot hold does not reach the trace."""
        trace = from_openai_messages([user("q\ud800"), assistant("a\udc00", call("t\ud800", '{"a": "\\ud800"}'))])
        assert ("q?", "a?", "t?") == (trace.task.objective, trace.steps[0].content, trace.steps[1].tool.name)
        trace.to_json().encode()


class TestObjective:
    def test_the_first_words_of_the_user_are_the_objective_and_no_step(self):
        """Also when the agent greets first."""
        trace = from_openai_messages([assistant("Hi!"), user("Help me."), assistant("Done.")])
        assert ("Help me.", ["Hi!", "Done."]) == (trace.task.objective, contents(trace))

    def test_an_objective_that_is_given_wins_and_the_words_are_kept(self):
        """Naming the run differently changes neither its steps nor loses the prompt."""
        trace = from_openai_messages(CHAT, objective="Sell a seat")
        assert ("Sell a seat", "A seat to Oslo, please.") == (trace.task.objective, trace.grace["prompt"])
        assert contents(from_openai_messages(CHAT)) == contents(trace)

    @pytest.mark.parametrize(
        ("chat", "objective"),
        [
            ([{"role": "system", "content": "\nSort mail.\nNow."}, assistant("ok")], "Sort mail."),
            ([assistant("ok")], "(no objective)"),
            ([user("   "), user("Real words"), assistant("ok")], "Real words"),
            ([user([{"type": "image_url", "image_url": {"url": "data:…"}}]), assistant("a cat")], "[image]"),
        ],
    )
    def test_without_words_of_the_user_something_else_stands_in(self, chat, objective):
        """The first line of the instructions, or a placeholder."""
        assert objective == from_openai_messages(chat).task.objective


class TestContent:
    @pytest.mark.parametrize(
        ("content", "text"),
        [
            ("plain", "plain"),
            ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
            ([{"type": "output_text", "text": "a", "annotations": []}], "a"),
            ([{"type": "text", "text": {"value": "a", "annotations": []}}], "a"),
            (["a", {"type": "input_text", "text": "b"}], "a\nb"),
            ({"type": "text", "text": "one part"}, "one part"),
            ({"parts": ["a", "b"]}, "a\nb"),
            ([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, "see"], "[image]\nsee"),
            ([{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}], "[audio]"),
            ([{"type": "audio", "transcript": "hello"}], "[audio] hello"),
            ([{"type": "file", "file": {"filename": "a.pdf", "file_data": "AAAA"}}], "[file: a.pdf]"),
            ([{"type": "refusal", "refusal": "I cannot."}], "[refusal] I cannot."),
            ([{"type": "hologram", "data": 1}], "[hologram]"),
            ([{"text": "converse"}], "converse"),
            ([{"image": {"format": "png", "source": {"bytes": "AAAA"}}}], "[image]"),
            ([{"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}}], "[audio]"),
            (42, "42"),
            ({"answer": 6}, '{"answer": 6}'),
        ],
    )
    def test_content_in_any_form_is_text(self, content, text):
        """Texts as they are, parts joined, media named in brackets, anything else as JSON."""
        assert text == from_openai_messages([user("q"), assistant(content)]).steps[0].content

    @pytest.mark.parametrize("content", [None, "", [], "  ", [{"type": "text", "text": ""}], [None], {}])
    def test_empty_content_is_no_step(self, content):
        """A turn that says nothing leaves no thought behind."""
        trace = from_openai_messages([user("q"), assistant(content), assistant("a")])
        assert "a" == trace.steps[-1].content
        assert len(trace.steps) == 1 or content in ({}, [None])

    @pytest.mark.parametrize(
        ("content", "text"),
        [
            ('{"a": 1}', '{"a": 1}'),
            ({"a": 1}, '{"a": 1}'),
            ([{"a": 1}, {"b": 2}], '[{"a": 1}, {"b": 2}]'),
            ([{"type": "text", "text": "x"}, {"type": "image", "source": {"data": "AAAA"}}], "x\n[image]"),
            ([{"type": "hotel", "name": "Astoria"}], '[{"type": "hotel", "name": "Astoria"}]'),
            (["AB1", "CD2"], "AB1\nCD2"),
            (None, ""),
            (7, "7"),
            (True, "true"),
            ({"content": [{"type": "text", "text": "mcp"}], "isError": False}, "mcp"),
        ],
    )
    def test_results_in_any_form_are_text(self, content, text):
        """Data that tools return is shown as JSON, never taken for parts or calls."""
        trace = from_openai_messages([user("q"), assistant(None, call("t")), tool(content)])
        assert text == trace.steps[1].content


class TestArguments:
    @pytest.mark.parametrize(
        ("arguments", "read"),
        [
            ('{"a": 1}', {"a": 1}),
            ({"a": 1}, {"a": 1}),
            ('"{\\"a\\": 1}"', {"a": 1}),
            ("", {}),
            ("  ", {}),
            ("null", {}),
            (None, {}),
            ('{"a": ', {"arguments": '{"a": '}),
            ("ls -l", {"arguments": "ls -l"}),
            ('"Oslo"', {"arguments": "Oslo"}),
            ("[1, 2]", {"arguments": [1, 2]}),
            ([1, 2], {"arguments": [1, 2]}),
            ("3", {"arguments": 3}),
            ('{"a": NaN}', {"a": "nan"}),
            ("[" * 100_000, None),
            ("9" * 10_000, None),
        ],
    )
    def test_arguments_in_any_form_are_an_object(self, arguments, read):
        """JSON text is decoded, once or twice; what is no object, or no JSON, is kept under `arguments`."""
        trace = from_openai_messages([user("q"), assistant(None, call("t", arguments))])
        assert (list(trace.steps[0].input) == ["arguments"]) if read is None else (read == trace.steps[0].input)

    @pytest.mark.parametrize(
        "written",
        [
            {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"x": 1}'}},
            {"id": "c1", "function": {"name": "find", "arguments": {"x": 1}}},
            {"id": "c1", "name": "find", "args": {"x": 1}, "type": "tool_call"},
            {"id": "c1", "name": "find", "arguments": {"x": 1}},
            {"id": "c1", "name": "find", "input": {"x": 1}},
            {"id": "c1", "function": "find", "arguments": {"x": 1}},
            {"tool_call_id": "c1", "function_name": "find", "arguments": {"x": 1}},
            {"toolCallId": "c1", "toolName": "find", "args": {"x": 1}},
            {"id": "c1", "type": "custom", "custom": {"name": "find", "input": '{"x": 1}'}},
            {"id": "c1", "name": "find", "parameters": {"x": 1}},
            SimpleNamespace(model_dump=lambda: {"id": "c1", "function": {"name": "find", "arguments": '{"x": 1}'}}),
        ],
    )
    def test_a_call_is_read_however_it_is_written(self, written):
        """Name, arguments and id stand in different places in different libraries."""
        trace = from_openai_messages([user("q"), assistant(None, written), tool("found")])
        assert ("find", {"x": 1}) == (trace.steps[0].tool.name, trace.steps[0].input)
        assert ("ok", "c1") == (trace.grace["calls"][0]["status"], trace.grace["calls"][0]["source_id"])

    @pytest.mark.parametrize(
        "calls", [{}, "x", 3, [None], [3], [[]], ["find"], [{"function": None}], "[", [{"name": 3}]]
    )
    def test_damaged_calls_do_not_stop_the_reading(self, calls):
        """Whatever stands under `tool_calls`, the turn's words are there."""
        assert (
            "hello" == from_openai_messages([user("q"), {**assistant("hello"), "tool_calls": calls}]).steps[0].content
        )


class TestLinks:
    def linked(self, chat):
        """Which content each call got, by tool name and order."""
        trace = from_openai_messages(chat)
        steps = trace.steps
        return [
            (entry["name"], steps[entry["observation"]].content if "observation" in entry else None)
            for entry in trace.grace["calls"]
        ]

    def test_ids_repeat_within_a_run(self):
        """The oldest call of that id which has no result yet is the one that is answered."""
        chat = [user("q")]
        for n in range(3):
            chat += [assistant(None, call("t", f'{{"n": {n}}}', "same")), tool(f"r{n}", "same")]
        assert [("t", "r0"), ("t", "r1"), ("t", "r2")] == self.linked(chat)

    def test_results_may_come_in_another_order(self):
        """Parallel calls are told apart by id."""
        calls = [call("a", call_id="1"), call("b", call_id="2"), call("a", call_id="3")]
        chat = [user("q"), assistant(None, *calls), tool("third", "3"), tool("first", "1"), tool("second", "2")]
        assert [("a", "first"), ("b", "second"), ("a", "third")] == self.linked(chat)

    def test_parallel_calls_of_one_id_are_told_apart_by_name(self):
        """Some recorders give every call of a turn the same id."""
        chat = [user("q"), assistant(None, call("a"), call("b")), tool("B", name="b"), tool("A", name="a")]
        assert [("a", "A"), ("b", "B")] == self.linked(chat)

    def test_without_an_id_the_name_decides(self):
        """As with the older function messages."""
        chat = [
            user("q"),
            assistant(None, call("a", call_id=None), call("b", call_id=None)),
            {"role": "function", "name": "b", "content": "B"},
            {"role": "function", "name": "a", "content": "A"},
        ]
        assert [("a", "A"), ("b", "B")] == self.linked(chat)

    def test_without_id_and_name_the_order_decides(self):
        """A result that names nothing answers the oldest open call."""
        chat = [user("q"), assistant(None, call("a"), call("b")), *({"role": "tool", "content": c} for c in "AB")]
        assert [("a", "A"), ("b", "B")] == self.linked(chat)

    def test_a_result_of_no_call_is_an_observation_of_its_own(self):
        """It is counted, and no call is marked by it."""
        trace = from_openai_messages([user("q"), assistant(None, call("a")), tool("x", "other"), tool("y", "c1")])
        assert (1, "ok") == (trace.grace["unlinked_observations"], trace.grace["calls"][0]["status"])
        assert ["tool_call", "observation", "observation"] == kinds(trace)


class TestErrors:
    @pytest.mark.parametrize(
        "result",
        [
            tool("Error: no", is_error=None),
            tool("Error executing query: no such table", is_error=False),
            tool("Traceback (most recent call last):\n  File x\nValueError: no"),
            tool("no", is_error=True),
            tool("no", isError=True),
            tool("no", status="error"),
            tool("no", error=True),
            tool("no", error={"type": "timeout", "message": "no"}),
            tool(None, error="no"),
            tool([{"type": "text", "text": "Error: no"}]),
            tool({"content": [{"type": "text", "text": "no"}], "isError": True}),
            tool({"type": "error-text", "value": "no"}),
        ],
    )
    def test_an_error_marks_its_call_and_is_recovered_from_when_the_run_goes_on(self, result):
        """Recorders mark errors in different ways, or only in the text."""
        trace = from_openai_messages([user("q"), assistant(None, call("t")), result, assistant("never mind")])
        assert ["tool_call", "observation", "error_recovery", "thought"] == kinds(trace)
        entry = trace.grace["calls"][0]
        assert ("error", 2) == (entry["status"], entry["recovery"])
        assert "no" in entry["error"]["message"]
        assert trace.metadata.success

    @pytest.mark.parametrize("text", ["error: no", "No Errors", "", "an Error", '{"error": "no"}', "ok"])
    def test_ordinary_text_is_no_error(self, text):
        """Only the beginning of the text counts, and case matters."""
        trace = from_openai_messages([user("q"), assistant(None, call("t")), tool(text), assistant("a")])
        assert "ok" == trace.grace["calls"][0]["status"]

    @pytest.mark.parametrize(
        ("text", "kind", "message"),
        [
            ("Error: no such user", "Error", "no such user"),
            ("Traceback (most recent call last):\n  x\nhttpx.ReadTimeout: slow", "httpx.ReadTimeout", "slow"),
            ("Traceback (most recent call last):\n  x\nKeyError: 'a'\n", "KeyError", "'a'"),
            ("Error executing query: no", "ToolError", "Error executing query: no"),
        ],
    )
    def test_the_error_is_named_as_far_as_its_text_shows(self, text, kind, message):
        """Type and message, also from a traceback."""
        trace = from_openai_messages([user("q"), assistant(None, call("t")), tool(text)])
        assert {"type": kind, "message": message} == trace.grace["calls"][0]["error"]

    def test_an_error_at_the_end_is_not_recovered_from(self):
        """Nothing followed it, so nothing was survived."""
        trace = from_openai_messages([user("q"), assistant(None, call("t")), tool("Error: no")])
        assert (["tool_call", "observation"], False) == (kinds(trace), trace.metadata.success)

    def test_a_run_known_to_have_succeeded_has_survived_its_last_error(self):
        """It ended normally, so the error did not end it."""
        trace = from_openai_messages([user("q"), assistant(None, call("t")), tool("Error: no")], success=True)
        assert ["tool_call", "observation", "error_recovery"] == kinds(trace)

    def test_the_results_of_parallel_calls_come_before_the_recovery(self):
        """One recovery for each error, when the agent goes on."""
        calls = [call("a", call_id="1"), call("b", call_id="2"), call("c", call_id="3")]
        results = [tool("Error: 1", "1"), tool("fine", "2"), tool("Error: 3", "3")]
        trace = from_openai_messages([user("q"), assistant(None, *calls), *results, assistant("ok")])
        assert [*["tool_call"] * 3, *["observation"] * 3, *["error_recovery"] * 2, "thought"] == kinds(trace)


class TestSuccess:
    @pytest.mark.parametrize(
        ("end", "success"),
        [
            ([assistant("Done.")], True),
            ([assistant("Done."), user("thanks")], False),
            ([assistant(None, call("t")), tool("ok")], False),
            ([assistant("calling", call("t"))], False),
            ([assistant(None, refusal="I will not.")], False),
            ([assistant([{"type": "thinking", "thinking": "hm"}])], False),
        ],
    )
    def test_it_is_assumed_only_of_a_run_that_ends_in_an_answer(self, end, success):
        """And the trace says that it is an assumption."""
        trace = from_openai_messages([user("q"), *end])
        assert (success, "assumed") == (trace.metadata.success, trace.grace["success_from"])

    @pytest.mark.parametrize(
        ("beside", "success", "said_by"),
        [
            ({"reward": 1.0}, True, "reward"),
            ({"reward": 0.75}, False, "reward"),
            ({"reward": 0}, False, "reward"),
            ({"reward_info": {"reward": 1}}, True, "reward"),
            ({"label": {"success": False, "reward": 1.0}}, False, "label"),
            ({"label": {"success": None, "reward": 1.0}}, True, "reward"),
            ({"label": {"success": True}, "reward": 0.0}, True, "label"),
            ({"success": False}, False, "label"),
            ({"resolved": True}, True, "label"),
            ({"label": True}, True, "label"),
            ({"label": 0}, False, "label"),
            ({"info": {"resolved": False}}, False, "label"),
            ({"success": "false"}, False, "label"),
            ({"label": "unknown"}, True, "assumed"),
            ({"target": "42"}, True, "assumed"),
            ({"reward": "high"}, True, "assumed"),
        ],
    )
    def test_the_document_is_believed(self, beside, success, said_by):
        """A label wins over a reward, and either over an assumption."""
        trace = read_run({"messages": [user("q"), assistant("a")], **beside})
        assert (success, said_by) == (trace.metadata.success, trace.grace["success_from"])

    def test_what_is_given_wins(self):
        """Whoever imports a run may know better than its last message."""
        trace = from_openai_messages([user("q"), assistant("a")], success=False)
        assert (False, "given") == (trace.metadata.success, trace.grace["success_from"])


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

    @pytest.mark.parametrize(
        ("given", "written"),
        [
            ("2024-05-01T10:00:00Z", "2024-05-01T10:00:00.000Z"),
            ("2024-05-01T12:00:00+02:00", "2024-05-01T10:00:00.000Z"),
            ("2024-05-01 10:00:00.25", "2024-05-01T10:00:00.250Z"),
            ("2024-05-01", "2024-05-01T00:00:00.000Z"),
            (1714557600, "2024-05-01T10:00:00.000Z"),
            (1714557600.5, "2024-05-01T10:00:00.500Z"),
            (1714557600000, "2024-05-01T10:00:00.000Z"),
            ("1714557600", "2024-05-01T10:00:00.000Z"),
            (datetime.datetime(2024, 5, 1, 10, tzinfo=datetime.UTC), "2024-05-01T10:00:00.000Z"),
        ],
    )
    def test_times_are_understood_in_their_usual_forms(self, given, written):
        """ISO 8601 with or without zone, seconds or milliseconds since the epoch."""
        assert written == from_openai_messages(CHAT, created_at=given).metadata.created_at
        document = {"messages": CHAT, "timestamp": given if not isinstance(given, datetime.datetime) else str(given)}
        trace = read_run(document, fallback_created_at="2001-01-01T00:00:00Z")
        assert (written, "document") == (trace.metadata.created_at, trace.grace["created_from"])

    def test_a_run_that_says_no_time_gets_that_of_its_file_or_none(self):
        """1970 stands for unknown, and the trace says so."""
        with_file = read_run(CHAT, fallback_created_at="2001-01-01T00:00:00Z")
        assert ("2001-01-01T00:00:00Z", "file") == (with_file.metadata.created_at, with_file.grace["created_from"])
        alone = from_openai_messages(CHAT)
        assert ("1970-01-01T00:00:00.000Z", "unknown") == (alone.metadata.created_at, alone.grace["created_from"])

    @pytest.mark.parametrize("when", ["soon", -1, float("nan"), float("inf"), True, 12, "", "9999-99-99"])
    def test_a_time_that_is_none_is_refused_when_given_and_passed_over_in_a_document(self, when):
        """A slip of the caller's is told; a foreign document is taken as it is."""
        with pytest.raises(InvalidTrace, match=r"^metadata.created_at: "):
            from_openai_messages(CHAT, created_at=when)
        assert "unknown" == read_run({"messages": CHAT, "created_at": when}).grace["created_from"]

    def test_what_is_given_stands_in_the_trace(self):
        """Domain, framework, agent, id and further facts are the caller's."""
        trace = from_openai_messages(
            CHAT, id="kp:trace:x", domain="code", framework="mine", agent_id="kp:agent:a", extra={"seed": 7}
        )
        known = (trace.id, trace.metadata.task_domain, trace.metadata.framework, trace.metadata.agent_id)
        assert ("kp:trace:x", "code", "mine", "kp:agent:a") == known
        assert {"seed": 7} == trace.grace["source"]

    @pytest.mark.parametrize(("field", "value"), [("id", "x"), ("domain", ""), ("agent_id", "bob")])
    def test_what_is_given_is_checked(self, field, value):
        """An unusable value is named with its field."""
        path = {"id": "id", "domain": "metadata.task_domain", "agent_id": "metadata.agent_id"}[field]
        with pytest.raises(InvalidTrace, match=rf"^{path}: "):
            from_openai_messages(CHAT, **{field: value})


TURN = [user("q"), assistant(None, call("find", '{"x": 1}')), tool("found", name="find"), assistant("six")]
ANTHROPIC = [
    {"role": "user", "content": [{"type": "text", "text": "q"}]},
    {"role": "assistant", "content": [
        {"type": "redacted_thinking", "data": "AAAA"},
        {"type": "tool_use", "id": "tu1", "name": "find", "input": {"x": 1}},
    ]},
    {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "tu1", "content": [{"type": "text", "text": "found"}]},
    ]},
    {"role": "assistant", "content": [{"type": "text", "text": "six"}], "stop_reason": "end_turn"},
]  # fmt: skip
RESPONSES = [
    {"role": "user", "content": [{"type": "input_text", "text": "q"}]},
    {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "AAAA"},
    {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "find", "arguments": '{"x": 1}'},
    {"type": "function_call_output", "id": "fo1", "call_id": "c1", "output": "found"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "six"}]},
]
LANGCHAIN = [
    {"type": "human", "content": "q", "id": None},
    {"type": "ai", "content": "", "id": "run-1", "invalid_tool_calls": [],
     "tool_calls": [{"name": "find", "args": {"x": 1}, "id": "c1", "type": "tool_call"}],
     "additional_kwargs": {"tool_calls": [call("find", '{"x": 1}')]}},
    {"type": "tool", "content": "found", "name": "find", "id": "m9", "tool_call_id": "c1", "status": "success"},
    {"type": "ai", "content": "six", "tool_calls": []},
]  # fmt: skip
GEMINI = [
    {"role": "user", "parts": [{"text": "q"}]},
    {"role": "model", "parts": [{"text": "", "thought": True}, {"functionCall": {"name": "find", "args": {"x": 1}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "find", "response": "found"}}]},
    {"role": "model", "parts": [{"text": "six"}]},
]
DIALECTS = {
    "openai": TURN,
    "legacy functions": [
        user("q"),
        {"role": "assistant", "content": None, "function_call": {"name": "find", "arguments": '{"x": 1}'}},
        {"role": "function", "name": "find", "content": "found"},
        assistant("six"),
    ],
    "anthropic": ANTHROPIC,
    "responses": RESPONSES,
    "langchain": LANGCHAIN,
    "langchain type and data": [
        {"type": m["type"], "data": {k: v for k, v in m.items() if k != "type"}} for m in LANGCHAIN
    ],
    "langchain constructors": [
        {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": m}
        for name, m in zip(("HumanMessage", "AIMessage", "ToolMessage", "AIMessageChunk"), LANGCHAIN, strict=True)
    ],
    "langchain content blocks": [
        LANGCHAIN[0],
        {"type": "ai", "content": [{"type": "tool_use", "id": "c1", "name": "find", "input": {"x": 1}}],
         "tool_calls": [{"name": "find", "args": {"x": 1}, "id": "c1"}]},
        *LANGCHAIN[2:],
    ],
    "gemini": GEMINI,
    "gemini snake case": json.loads(
        json.dumps(GEMINI).replace("functionCall", "function_call").replace("functionResponse", "function_response")
    ),
    "bedrock": [
        {"role": "user", "content": [{"text": "q"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "find", "input": {"x": 1}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [{"text": "found"}]}}]},
        {"role": "assistant", "content": [{"text": "six"}]},
    ],
    "sharegpt": [
        {"from": "human", "value": "q"},
        {"from": "function_call", "value": '{"name": "find", "arguments": {"x": 1}}'},
        {"from": "observation", "value": "found"},
        {"from": "gpt", "value": "six"},
    ],
    "vercel": [
        user("q"),
        {"role": "assistant", "content": [
            {"type": "tool-call", "toolCallId": "c1", "toolName": "find", "input": {"x": 1}}]},
        {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "find",
                                      "output": {"type": "text", "value": "found"}}]},
        {"role": "assistant", "content": [{"type": "text", "text": "six"}]},
    ],
    "vercel user interface": [
        {"role": "user", "parts": [{"type": "text", "text": "q"}]},
        {"role": "assistant", "parts": [
            {"type": "step-start"},
            {"type": "tool-find", "toolCallId": "c1", "state": "output-available", "input": {"x": 1}, "output": "found"},
            {"type": "text", "text": "six"},
        ]},
    ],
    "vercel invocations": [
        user("q"),
        {"role": "assistant", "content": "", "toolInvocations": [
            {"state": "result", "toolCallId": "c1", "toolName": "find", "args": {"x": 1}, "result": "found"}]},
        assistant("six"),
    ],
    "opentelemetry": [
        {"role": "user", "parts": [{"type": "text", "content": "q"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "find", "arguments": {"x": 1}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "found"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "six"}], "finish_reason": "stop"},
    ],
    "pydantic-ai": [
        {"kind": "request", "parts": [{"part_kind": "system-prompt", "content": "be"},
                                      {"part_kind": "user-prompt", "content": "q"}]},
        {"kind": "response", "parts": [
            {"part_kind": "tool-call", "tool_name": "find", "args": '{"x": 1}', "tool_call_id": "c"}]},
        {"kind": "request", "parts": [
            {"part_kind": "tool-return", "tool_name": "find", "content": "found", "tool_call_id": "c"}]},
        {"kind": "response", "parts": [{"part_kind": "text", "content": "six"}]},
    ],
    "tau2": [
        user("q"),
        {"role": "assistant", "content": None, "turn_idx": 1,
         "tool_calls": [{"id": "c1", "name": "find", "arguments": {"x": 1}, "requestor": "assistant"}]},
        {"id": "c1", "role": "tool", "content": "found", "requestor": "assistant", "error": False},
        assistant("six"),
    ],
    "inspect": [
        {"role": "user", "content": "q", "source": "input"},
        {"role": "assistant", "content": "", "source": "generate",
         "tool_calls": [{"id": "c1", "function": "find", "arguments": {"x": 1}, "type": "function"}]},
        {"role": "tool", "content": "found", "tool_call_id": "c1", "function": "find", "error": None},
        assistant("six"),
    ],
    "autogen": [
        {"type": "TextMessage", "source": "user", "content": "q"},
        {"type": "ToolCallRequestEvent", "source": "helper",
         "content": [{"id": "c", "name": "find", "arguments": '{"x": 1}'}]},
        {"type": "ToolCallExecutionEvent", "source": "helper",
         "content": [{"call_id": "c", "name": "find", "content": "found", "is_error": False}]},
        {"type": "TextMessage", "source": "helper", "content": "six"},
    ],
    "tool responses": [*TURN[:2], {"role": "tool", "tool_responses": [tool("found")]}, TURN[3]],
    "ollama": [
        user("q"),
        assistant("", {"function": {"name": "find", "arguments": {"x": 1}}}),
        {"role": "tool", "tool_name": "find", "content": "found"},
        assistant("six"),
    ],
    "cohere": [
        {"role": "USER", "message": "q"},
        {"role": "CHATBOT", "message": "", "tool_calls": [{"name": "find", "parameters": {"x": 1}}]},
        {"role": "TOOL", "tool_results": [{"call": {"name": "find"}, "outputs": ["found"]}]},
        {"role": "CHATBOT", "message": "six"},
    ],
    "harbor": [
        {"step_id": 1, "source": "user", "message": "q"},
        {"step_id": 2, "source": "agent", "message": "",
         "tool_calls": [{"tool_call_id": "c", "function_name": "find", "arguments": {"x": 1}}],
         "observation": {"results": [{"source_call_id": "c", "content": "found"}]}},
        {"step_id": 3, "source": "agent", "message": "six"},
    ],
    "spans": [{"message": m} for m in TURN],
    "calls as JSON text": [TURN[0], {**TURN[1], "tool_calls": json.dumps(TURN[1]["tool_calls"])}, *TURN[2:]],
    "client objects": [SimpleNamespace(model_dump=lambda m=m: m) for m in TURN],
}  # fmt: skip


class TestDialects:
    @pytest.mark.parametrize("name", DIALECTS)
    def test_the_same_run_reads_the_same_in_every_dialect(self, name):
        """A question, a call, its result, an answer."""
        for trace in (from_openai_messages(DIALECTS[name]), read_run({"messages": DIALECTS[name]})):
            assert ["tool_call", "observation", "thought"] == kinds(trace)
            assert ("q", "six", True) == (trace.task.objective, trace.outcome.result_summary, trace.metadata.success)
            assert ("find", {"x": 1}) == (trace.steps[0].tool.name, trace.steps[0].input)
            assert ("found", "six") == (trace.steps[1].content, trace.steps[2].content)
            assert [("ok", 0, 1)] == [(c["status"], c["tool_call"], c["observation"]) for c in trace.grace["calls"]]

    @pytest.mark.parametrize(
        "message",
        [
            assistant("six", reasoning_content="hm"),
            assistant("six", reasoning="hm"),
            assistant("six", thinking="hm"),
            assistant("six", reasoning_details=[{"type": "reasoning.text", "text": "hm"}]),
            assistant("six", reasoning_content="hm", thinking_blocks=[{"type": "thinking", "thinking": "hm"}]),
            assistant([{"type": "thinking", "thinking": "hm", "signature": "x"}, {"type": "text", "text": "six"}]),
            assistant([{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "six"}]),
            assistant([{"reasoningContent": {"reasoningText": {"text": "hm"}}}, {"text": "six"}]),
            {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "six"}]},
        ],
    )
    def test_reasoning_is_found_wherever_it_stands(self, message):
        """Once, before the answer, which alone is the result."""
        trace = from_openai_messages([user("q"), message])
        assert (["hm", "six"], "six") == (contents(trace), trace.outcome.result_summary)

    def test_words_and_calls_of_one_turn_keep_their_order(self):
        """Content blocks may speak before, between and after calls."""
        use = {"type": "tool_use", "name": "t", "input": {}}
        trace = from_openai_messages([user("q"), assistant(["a", {**use, "id": "1"}, "b", {**use, "id": "2"}])])
        assert ["thought", "tool_call", "thought", "tool_call"] == kinds(trace)

    def test_a_failed_block_and_what_the_user_adds_to_it(self):
        """A result block can be an error, and words beside it are the user's."""
        result = {"type": "tool_result", "tool_use_id": "tu1", "is_error": True, "content": "timed out"}
        chat = [*ANTHROPIC[:2], user([result, {"type": "text", "text": "go on"}]), ANTHROPIC[3]]
        trace = from_openai_messages(chat)
        assert ["tool_call", "observation", "error_recovery", "observation", "thought"] == kinds(trace)

    def test_tools_that_the_provider_runs_are_calls_with_their_results(self):
        """Such as a web search of the model's own."""
        trace = from_openai_messages(
            [
                user("q"),
                {"type": "web_search_call", "id": "w", "status": "completed", "action": {"query": "x"}},
                {
                    "type": "mcp_call",
                    "id": "m",
                    "name": "roll",
                    "server_label": "dice",
                    "arguments": "{}",
                    "output": "4",
                },
                {
                    "type": "code_interpreter_call",
                    "id": "i",
                    "code": "1/0",
                    "outputs": None,
                    "status": "failed",
                    "error": "x",
                },
                {"role": "assistant", "content": "six"},
            ]
        )
        names = [(entry["name"], entry["status"]) for entry in trace.grace["calls"]]
        assert [("web_search", "ok"), ("roll", "ok"), ("code_interpreter", "error")] == names
        assert "dice" == trace.steps[2].tool.mcp_server


class TestContainers:
    @pytest.mark.parametrize(
        "document",
        [
            TURN,
            [TURN],
            {"messages": TURN},
            {"task_id": 0, "trial": 1, "reward": 1.0, "info": {"task": {}}, "traj": TURN},
            {"conversation": TURN},
            {"conversations": DIALECTS["sharegpt"], "tools": "[]", "system": "s"},
            {"trajectory": TURN},
            {"trajectory": [{"action": "ls", "observation": "x"}], "history": TURN, "info": {}},
            {"history": TURN},
            {"input": TURN},
            {"inputs": {"messages": TURN[:3]}, "outputs": {"messages": TURN}},
            {"inputs": {"messages": [TURN[:3]]}, "outputs": {"generations": [[{"text": "six", "message": LANGCHAIN[3]}]]}},
            {"messages": json.dumps(TURN)},
            {"request": {"model": "m", "messages": TURN[:3]}, "response": {"id": "x", "choices": [{"message": TURN[3]}]}},
            {"request": {"body": {"messages": TURN[:3]}}, "response": {"body": {"choices": [{"message": TURN[3]}]}}},
            {"request": json.dumps({"messages": TURN[:3]}), "response": json.dumps({"choices": [{"message": TURN[3]}]})},
            {"messages": TURN[:3], "choices": [{"index": 0, "message": TURN[3], "finish_reason": "stop"}]},
            {"messages": TURN[:3], "response": {"message": TURN[3], "done": True}},
            {"messages": TURN, "output": {"choices": [{"message": TURN[3]}]}},
            {"input": TURN[:3], "output": "six"},
            {"input": RESPONSES[:4], "output": RESPONSES[4:]},
            {"input": "q", "output": RESPONSES[1:]},
            {"input": "q", "response": {"object": "response", "output": RESPONSES[1:]}},
            {"prompt": "q", "messages": TURN},
            {"contents": GEMINI[:3], "response": {"candidates": [{"content": GEMINI[3], "finishReason": "STOP"}]}},
            {"gen_ai.input.messages": DIALECTS["opentelemetry"][:3], "gen_ai.output.messages": DIALECTS["opentelemetry"][3:]},
            {"values": {"messages": LANGCHAIN}, "next": []},
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
            ({"traj": [user("a"), {"role": 7, "content": "b"}]}, r"^traj\[1\]\.role: must be a text .*\(got 7\)$"),
            ({"messages": [None, assistant("b")]}, r"^messages\[0\]: must be an object"),
            ({"request": {"messages": [user("a"), []]}}, r"^request\.messages\[1\]: must be an object"),
            ({"messages": []}, r"^messages: must have at least one message$"),
            ({"messages": "hello"}, r"^messages: must be a list of messages \(got 'hello'\)$"),
            ({"messages": {"a": 1}}, r"^messages: must be a list of messages"),
            ([user("a"), user("b")], r"^messages: has no turn of an assistant among its 2 messages$"),
            ([user("a"), tool("b")], r"has no turn of an assistant"),
            ({"request": {"messages": [user("q")]}, "response": {"error": {"message": "late"}}}, "has no turn of an assistant"),
            ([], "an empty list holds no messages"),
            (5, r"must be an object or a list of messages \(got 5\)"),
            (None, "must be an object or a list of messages"),
            ({}, r"neither a ReasoningTrace nor a run of chat messages .*\(it has no keys\)"),
            ({"level": "info", "message": "started"}, r"neither .* \(it has level, message\)"),
            (assistant("a"), "is one message and no run"),
            ({"type": "assistant", "message": assistant("a"), "uuid": "x"}, "is one message and no run"),
        ],
    )  # fmt: skip
    def test_what_is_no_run_is_refused_in_one_line_that_names_the_place(self, document, message):
        """The error is the same kind as for a broken trace."""
        with pytest.raises(InvalidTrace, match=message) as caught:
            read_run(document)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("messages", [None, "text", {"role": "user"}, 5])
    def test_messages_must_be_a_list(self, messages):
        """Anything else is refused by name."""
        with pytest.raises(InvalidTrace, match=r"^messages: must be a list of messages"):
            from_openai_messages(messages)


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
)  # fmt: skip


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

    @pytest.mark.parametrize("shape", ["content", "arguments", "list", "kwargs"])
    def test_deep_nesting_is_survived(self, shape):
        """It is cut or refused, never a crash."""
        deep = []
        for _ in range(5_000):
            deep = [deep] if shape != "kwargs" else {"type": "ai", "id": ["x"], "kwargs": deep}
        chat = {
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
