"""Real LangChain and LangGraph, and chat models that say what they are told to; nothing of LangChain is replaced."""

from __future__ import annotations

import logging
import time

import pytest

pytest.importorskip("langchain_core", reason="needs the extra langchain")

from langchain_core.language_models import FakeMessagesListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

import grace_kp as gk
from grace_kp.integrations.langchain import GraceCallbackHandler


class Model(GenericFakeChatModel):
    """Says its messages one after the other; takes tools and forgets them."""

    def bind_tools(self, tools, **kwargs):
        return self


class Script(FakeMessagesListChatModel):
    """Says what its script has for this point of the conversation, so that any number of conversations may use it at once."""

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        said = sum(isinstance(message, AIMessage) for message in messages)
        reply = self.responses[min(said, len(self.responses) - 1)]
        return ChatResult(generations=[ChatGeneration(message=reply.model_copy())])

    def bind_tools(self, tools, **kwargs):
        return self


def says(*messages):
    """A model that says these: texts, or lists of (tool, arguments)."""
    return Model(messages=iter([message_of(one, number) for number, one in enumerate(messages)]))


def message_of(said, number=0):
    if isinstance(said, str):
        return AIMessage(said)
    if isinstance(said, AIMessage):
        return said
    calls = [{"name": name, "args": args, "id": f"call_{number}_{place}"} for place, (name, args) in enumerate(said)]
    return AIMessage("", tool_calls=calls)


@pytest.fixture
def grace():
    made = gk.Grace(store="memory:", evaluator=None, embedder=None, unmeasured="notify", reviewer=None)
    yield made
    made.close()


@pytest.fixture
def let_pass(monkeypatch):
    """A function that sets the clock of a runtime's requests forward, by seconds."""

    def forward(grace, seconds):
        requests = grace.approvals.inbox.requests
        for part in (requests, requests._transactions):
            monkeypatch.setattr(part, "clock", lambda: time.time() + seconds)

    return forward


@pytest.fixture
def handler(grace):
    return GraceCallbackHandler(grace)


class Complaints(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.said = []

    def emit(self, record):
        self.said.append(record.getMessage())


@pytest.fixture(autouse=True)
def _no_complaints():
    """LangChain swallows what a handler raises, and logs it; here that fails the test."""
    logger = logging.getLogger("langchain_core.callbacks.manager")
    complaints = Complaints()
    logger.addHandler(complaints)
    yield
    logger.removeHandler(complaints)
    assert [] == complaints.said


def steps(trace):
    """A trace's steps in short: kind, tool or text."""
    return [(step.type, step.tool.name if step.tool else step.content) for step in trace.steps]


def statuses(trace):
    return [(call["name"], call["status"]) for call in trace.grace["calls"]]
