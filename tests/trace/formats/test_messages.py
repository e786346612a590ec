"""A message reads the same in every dialect: its words, its calls however they are written, and its results."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from grace_kp import from_openai_messages
from grace_kp.trace.formats import read_run
from tests.trace.formats.chats import ANTHROPIC, DIALECTS, assistant, call, contents, kinds, tool, user


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
            assistant("six", reasoning_details=[{"type": "reasoning.text", "text": "hm"}]),
            assistant("six", reasoning_content="hm", thinking_blocks=[{"type": "thinking", "thinking": "hm"}]),
            assistant([{"type": "thinking", "thinking": "hm", "signature": "x"}, {"type": "text", "text": "six"}]),
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
        chat = [
            user("q"),
            {"type": "web_search_call", "id": "w", "status": "completed", "action": {"query": "x"}},
            {"type": "mcp_call", "id": "m", "name": "roll", "server_label": "dice", "arguments": "{}", "output": "4"},
            {
                "type": "code_interpreter_call",
                "id": "i",
                "code": "1/0",
                "outputs": None,
                "status": "failed",
                "error": "x",
            },
            assistant("six"),
        ]
        trace = from_openai_messages(chat)
        names = [(entry["name"], entry["status"]) for entry in trace.grace["calls"]]
        assert [("web_search", "ok"), ("roll", "ok"), ("code_interpreter", "error")] == names
        assert "dice" == trace.steps[2].tool.mcp_server


class TestArguments:
    @pytest.mark.parametrize(
        ("arguments", "read"),
        [
            ('{"a": 1}', {"a": 1}),
            ({"a": 1}, {"a": 1}),
            ('"{\\"a\\": 1}"', {"a": 1}),
            ("", {}),
            ("null", {}),
            ('{"a": ', {"arguments": '{"a": '}),
            ("ls -l", {"arguments": "ls -l"}),
            ('"Oslo"', {"arguments": "Oslo"}),
            ("[1, 2]", {"arguments": [1, 2]}),
            ("3", {"arguments": 3}),
            ('{"a": NaN}', {"a": "nan"}),
            ("[" * 100_000, None),
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


class TestContent:
    @pytest.mark.parametrize(
        ("content", "text"),
        [
            ("plain", "plain"),
            ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
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
            ([{"type": "text", "text": "x"}, {"type": "image", "source": {"data": "AAAA"}}], "x\n[image]"),
            ([{"type": "hotel", "name": "Astoria"}], '[{"type": "hotel", "name": "Astoria"}]'),
            (["AB1", "CD2"], "AB1\nCD2"),
            (None, ""),
            (True, "true"),
            ({"content": [{"type": "text", "text": "mcp"}], "isError": False}, "mcp"),
        ],
    )
    def test_results_in_any_form_are_text(self, content, text):
        """Data that tools return is shown as JSON, never taken for parts or calls."""
        trace = from_openai_messages([user("q"), assistant(None, call("t")), tool(content)])
        assert text == trace.steps[1].content
