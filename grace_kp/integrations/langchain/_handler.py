"""LangChain and LangGraph: a handler that records every run, and a middleware that gates tools.

    from grace_kp.integrations.langchain import GraceCallbackHandler, GraceMiddleware

    agent = create_agent(model, tools, middleware=[GraceMiddleware(grace, gates={"send_mail": "confirm"})], checkpointer=saver)
    agent.invoke(question, {"callbacks": [GraceCallbackHandler(grace)], "configurable": {"thread_id": "42"}})

The handler needs langchain-core alone. The middleware and `gated_node` need langchain and langgraph, and load on first use.
"""

# ruff: noqa: ARG002 — LangChain passes more than is recorded

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from grace_kp.errors import MissingExtra

try:
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.tracers.context import register_configure_hook
except ImportError:
    raise MissingExtra("grace_kp.integrations.langchain", "langchain") from None
try:
    # LangGraph reports where a graph stops and continues to its own kind of handler only.
    from langgraph.callbacks import GraphCallbackHandler as _Handler
except ImportError:
    _Handler = BaseCallbackHandler  # type: ignore[assignment,misc]

from grace_kp.integrations.langchain._context import PLACE, InlineHandler, include_others, register
from grace_kp.integrations.langchain._tool_guard import GatedTools
from grace_kp.integrations.langchain._tool_schema import is_injected
from grace_kp.integrations.langchain._tracking import Tracker
from grace_kp.record import RETRIEVER, TOOL, note, shielded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from uuid import UUID

    from langchain_core.outputs import LLMResult

    from grace_kp.confidence import Scores
    from grace_kp.runtime import Grace

_EVERYWHERE: ContextVar[GraceCallbackHandler | None] = ContextVar("grace_kp_langchain", default=None)


class GraceCallbackHandler(InlineHandler, _Handler):
    """Records every run of a Runnable, graph or agent that it is attached to. One handler serves any number at once.

    Attach it to a call (`config={"callbacks": [handler]}`), to an object (`with_config`, or `callbacks=` of a constructor), or to
    everything in a block (`with grace.langchain():`). It never raises and never waits. `grace.status()["troubles"]` counts its errors.

    - Each root run becomes a trace. Inside a function with `@grace.agent` the two traces are linked, and a lone tool, retriever or
      model is a step of the function's run.
    - Tools and retrievers become steps, with search scores where the documents carry them or `scores` declares them. The output of a model
      becomes a thought, and `grace.usage` sums up its tokens. Chains around them are not steps.
    - A graph inside a graph is a nested agent: a separate trace, linked both ways.
    - A tool that raises and a ToolMessage with the status "error" are failures.
    - An interrupt suspends the run. The same trace continues when the graph is resumed on the same thread, in this process or another
      that uses the same store.
    """

    raise_error = False
    ignore_agent = ignore_chain = False  # in the base class they are properties, which cost a call for each event

    def __init__(
        self, grace: Grace, domain: str | None = None, scores: Scores | Mapping[str, Scores] | None = None
    ) -> None:
        """Record with `grace`.

        Args:
            grace: the runtime that scores and stores the runs.
            domain: their task domain; the runtime's when None.
            scores: the kind of search scores (see `Grace.retriever`): one for all searches, or one for each name of a retriever,
                tool, function or class of vector store, for example `{"FAISS": "squared_l2_distance"}`. `"*"` declares all others.
                The declaration applies to every handler of this runtime.

        Raises:
            ValueError: a kind of scores is unknown.
        """
        super().__init__()
        if not hasattr(grace, "recorder"):
            raise TypeError(f"GraceCallbackHandler takes a Grace, not {type(grace).__name__}")
        self.grace = grace
        self.domain = domain
        self.tracker = Tracker.of(grace.recorder)
        self.tracker.spec.declare(scores)
        self._gated = GatedTools.of(grace.recorder)
        register()

    def __repr__(self) -> str:
        return f"GraceCallbackHandler({self.grace!r}, domain={self.domain!r})"

    # The most frequent callbacks catch errors themselves, because `shielded` would cost measurable time.

    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: object,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        name: str | None = None,
        run_type: str | None = None,
        **kwargs: object,
    ) -> None:
        """Record that a chain, graph or node begins."""
        try:
            known = str(name) if name else _name_of(serialized, None, "chain")
            is_parser = run_type == "parser"
            self.tracker.chain_started(
                inputs, run_id, parent_run_id, known, tags, metadata, self.domain, is_parser=is_parser
            )
        except Exception as error:  # noqa: BLE001
            note("GraceCallbackHandler.on_chain_start", error)

    def on_chain_end(self, outputs: object, *, run_id: UUID, inputs: object = None, **kwargs: object) -> None:
        """Record that a chain, graph or node returns."""
        try:
            self.tracker.chain_ended(outputs, run_id, inputs)
        except Exception as error:  # noqa: BLE001
            note("GraceCallbackHandler.on_chain_end", error)

    @shielded
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: object) -> None:
        """Record that a chain, graph or node raises, or is interrupted."""
        self.tracker.chain_failed(error, run_id, kwargs.get("inputs"))

    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        inputs: dict[str, Any] | None = None,
        name: str | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: object,
    ) -> None:
        """Record that a tool begins."""
        try:
            tool = str((serialized.get("name") if serialized else None) or name or "tool")
            arguments = inputs if inputs is not None else {"input": input_str}
            if "runtime" in arguments and is_injected(type(arguments["runtime"])):
                # LangGraph injects a parameter of this name, whatever its type, and LangChain reports it as an argument.
                arguments = {key: value for key, value in arguments.items() if key != "runtime"}
            specs = self.tracker.spec
            spec = specs.known.get((TOOL, tool, self.domain)) or specs(TOOL, tool, self.domain)
            place = metadata.get(PLACE) if metadata else None
            self.tracker.tool_started(spec, arguments, run_id, parent_run_id, place)
            if self._gated.gates:
                frame = self.tracker.frames.get(run_id.int)
                self._gated.check(tool, arguments, None if frame is None else frame.run)
        except Exception as error:  # noqa: BLE001
            note("GraceCallbackHandler.on_tool_start", error)

    def on_tool_end(self, output: object, *, run_id: UUID, **kwargs: object) -> None:
        """Record that a tool returns."""
        try:
            self.tracker.tool_ended(output, run_id)
        except Exception as error:  # noqa: BLE001
            note("GraceCallbackHandler.on_tool_end", error)

    @shielded
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: object) -> None:
        """Record that a tool or a retriever raises."""
        self.tracker.call_failed(error, run_id)

    @shielded
    def on_retriever_start(
        self,
        serialized: dict[str, Any] | None,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: object,
    ) -> None:
        """Record that a retriever begins."""
        name = _name_of(serialized, kwargs.get("name"), "retriever")
        store = metadata.get("ls_vector_store_provider") if metadata else None
        spec = self.tracker.spec(RETRIEVER, name, self.domain, store if isinstance(store, str) else None)
        place = metadata.get(PLACE) if metadata else None
        self.tracker.tool_started(spec, {"query": query}, run_id, parent_run_id, place)

    @shielded
    def on_retriever_end(self, documents: Sequence[Any], *, run_id: UUID, **kwargs: object) -> None:
        """Record that a retriever returns."""
        self.tracker.retriever_ended(documents, run_id)

    on_retriever_error = on_tool_error

    @shielded
    def on_chat_model_start(
        self,
        serialized: dict[str, Any] | None,
        messages: list[list[Any]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        name: object = None,
        **kwargs: object,
    ) -> None:
        """Record that a chat model begins."""
        model = _name_of(serialized, name, "model")
        self.tracker.model_started(model, messages, run_id, parent_run_id, metadata, self.domain)

    @shielded
    def on_llm_start(self, serialized: dict[str, Any] | None, prompts: list[str], **event: Any) -> None:
        """Record that a completion model begins."""
        include_others()
        self.on_chat_model_start(serialized, [prompts], **event)

    def on_llm_new_token(self, token: object, *, run_id: UUID, **kwargs: object) -> None:
        """Record that a model streams a token."""
        try:
            self.tracker.token(token, run_id)
        except Exception as error:  # noqa: BLE001
            note("GraceCallbackHandler.on_llm_new_token", error)

    @shielded
    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: object) -> None:
        """Record that a model returns."""
        self.tracker.model_ended(response, run_id)

    @shielded
    def on_llm_error(
        self, error: BaseException, *, run_id: UUID, response: LLMResult | None = None, **kwargs: object
    ) -> None:
        """Record that a model raises."""
        self.tracker.model_failed(error, run_id, response)

    @shielded
    def on_interrupt(self, event: Any) -> None:
        """Record that a graph stops and waits."""
        self.tracker.graph_interrupted(event.run_id, event.checkpoint_id, event.interrupts)

    @shielded
    def on_resume(self, event: Any) -> None:
        """Record that a graph continues."""
        self.tracker.graph_resumed(event.run_id, event.checkpoint_id, self.domain)


def _name_of(serialized: dict[str, Any] | None, name: object, default: str) -> str:
    if not name and serialized:
        name = serialized.get("name") or (serialized.get("id") or [None])[-1]
    return str(name) if name else default


@contextmanager
def everywhere(
    grace: Grace, domain: str | None = None, scores: Scores | Mapping[str, Scores] | None = None
) -> Iterator[GraceCallbackHandler]:
    """`with grace.langchain():` — attach a handler to everything that is called inside; see `Grace.langchain`."""
    handler = GraceCallbackHandler(grace, domain, scores)
    token = _EVERYWHERE.set(handler)
    try:
        yield handler
    finally:
        _EVERYWHERE.reset(token)


register_configure_hook(_EVERYWHERE, inheritable=True)
