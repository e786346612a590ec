"""Chats in the dialects in which they are recorded, and shortcuts to write them."""

from __future__ import annotations

import json
from types import SimpleNamespace


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
]  # fmt: skip
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
]  # fmt: skip
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
