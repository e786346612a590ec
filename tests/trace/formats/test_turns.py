"""A turn reads the same in every dialect."""

from __future__ import annotations

import pytest

from grace_kp import from_openai_messages
from grace_kp.trace.formats import read_run
from tests.trace.formats.chats import ANTHROPIC, DIALECTS, assistant, contents, kinds, user


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
