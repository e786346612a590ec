"""Calls are read however they are written."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from grace_kp import from_openai_messages
from tests.trace.formats.chats import assistant, call, tool, user


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
