"""LangChain and LangGraph: a handler that records every run, and a middleware that gates tools.

    from grace_kp.integrations.langchain import GraceCallbackHandler, GraceMiddleware

    agent = create_agent(model, tools, middleware=[GraceMiddleware(grace, gates={"send_mail": "confirm"})], checkpointer=saver)
    agent.invoke(question, {"callbacks": [GraceCallbackHandler(grace)], "configurable": {"thread_id": "42"}})

The handler needs langchain-core alone; the middleware and `gated_node` need langchain and langgraph, and are loaded when asked for.
"""

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
    # Only its own kind of handler is told by LangGraph where a graph stops and goes on.
    from langgraph.callbacks import GraphCallbackHandler as _Handler
except ImportError:
    _Handler = BaseCallbackHandler  # type: ignore[assignment,misc]

from grace_kp.integrations.langchain._context import teach
from grace_kp.integrations.langchain._inline import RunInline
from grace_kp.integrations.langchain._tool_guard import GatedTools
from grace_kp.integrations.langchain._tracking import Tracker
from grace_kp.record import RETRIEVER, TOOL, note, shielded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from uuid import UUID

    from grace_kp.confidence import Scores
    from grace_kp.runtime import Grace

_EVERYWHERE: ContextVar[GraceCallbackHandler | None] = ContextVar("grace_kp_langchain", default=None)


class GraceCallbackHandler(_Handler):
    """Records every run of a Runnable, graph or agent that it is attached to; one object serves any number at once.

    Attach it to a call (`config={"callbacks": [handler]}`), to an object (`with_config`, or `callbacks=` of a constructor), or to
    everything in a block (`with grace.langchain():`). It never raises and never waits; what it could not record is counted, in
    `grace.status()["troubles"]`.

    - The root run of anything becomes a trace; inside of a function with `@grace.agent`, a trace of its own that is linked to it. A
      lone tool, retriever or model inside of one is a step of it.
    - Tools, and retrievers with the scores in their documents' metadata or beside them, become steps; a model's text becomes a
      thought, and its tokens are summed up under `grace.usage`. Chains in between are not steps.
    - A graph inside of a graph is a nested agent: a trace of its own, linked both ways.
    - A tool that raises and a ToolMessage with the status "error" are failures.
    - An interrupt suspends the run. The same trace goes on when the graph is resumed on the same thread, in this process or another
      one that has the same store.
    """

    raise_error = False
    run_inline = RunInline()  # a hop into another thread would cost more, and nothing here waits

    def __init__(
        self, grace: Grace, domain: str | None = None, scores: Scores | Mapping[str, Scores] | None = None
    ) -> None:
        """Record with `grace`.

        Args:
            grace: the runtime that scores and stores the runs.
            domain: their task domain; the runtime's when None.
            scores: what the scores of search results are (see `Grace.retriever`): one kind for all, or kinds by the name of a
                retriever, tool, function or class of vector store, for example `{"FAISS": "squared_l2_distance"}`. `"*"` stands for
                all others. It holds for every handler of this runtime.

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
        teach()

    def __repr__(self) -> str:
        return f"GraceCallbackHandler({self.grace!r}, domain={self.domain!r})"

    @shielded
    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A chain, graph or node begins."""
        name = kwargs.get("name") or _name_in(serialized) or "chain"
        is_parser = kwargs.get("run_type") == "parser"
        self.tracker.chain_started(
            inputs, run_id, parent_run_id, name, tags, metadata, self.domain, is_parser=is_parser
        )

    @shielded
    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """It returns."""
        self.tracker.chain_ended(outputs, run_id, kwargs.get("inputs"))

    @shielded
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """It raises, or is interrupted."""
        self.tracker.chain_failed(error, run_id, kwargs.get("inputs"))

    # The two that come most often guard themselves: packing their arguments once more would show.

    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        inputs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A tool begins."""
        try:
            name = (serialized.get("name") if serialized else None) or kwargs.get("name") or "tool"
            given = inputs if inputs is not None else {"input": input_str}
            self.tracker.tool_started(TOOL, name, given, run_id, parent_run_id, self.domain)
            if self._gated.may_be_bypassed():
                frame = self.tracker.frames.get(run_id.int)
                self._gated.check(name, given, None if frame is None else frame.run)
        except Exception as error:  # noqa: BLE001
            note("GraceCallbackHandler.on_tool_start", error)

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """It returns."""
        try:
            self.tracker.tool_ended(output, run_id)
        except Exception as error:  # noqa: BLE001
            note("GraceCallbackHandler.on_tool_end", error)

    @shielded
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """It raises."""
        self.tracker.call_failed(error, run_id)

    @shielded
    def on_retriever_start(
        self,
        serialized: dict[str, Any] | None,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A retriever begins."""
        name = kwargs.get("name") or _name_in(serialized) or "retriever"
        self.tracker.spec.stored_in(name, kwargs.get("metadata"))
        self.tracker.tool_started(RETRIEVER, name, {"query": query}, run_id, parent_run_id, self.domain)

    @shielded
    def on_retriever_end(self, documents: Sequence[Any], *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """It returns."""
        self.tracker.retriever_ended(documents, run_id)

    @shielded
    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """It raises."""
        self.tracker.call_failed(error, run_id)

    @shielded
    def on_chat_model_start(
        self,
        serialized: dict[str, Any] | None,
        messages: list[list[Any]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A chat model begins."""
        name = kwargs.get("name") or _name_in(serialized) or "model"
        self.tracker.model_started(name, messages, run_id, parent_run_id, metadata, self.domain)

    @shielded
    def on_llm_start(
        self,
        serialized: dict[str, Any] | None,
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A text model begins."""
        name = kwargs.get("name") or _name_in(serialized) or "model"
        self.tracker.model_started(name, [prompts], run_id, parent_run_id, metadata, self.domain)

    def on_llm_new_token(self, token: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """A model streams a piece of text."""
        try:
            self.tracker.token(token, run_id)
        except Exception as error:  # noqa: BLE001
            note("GraceCallbackHandler.on_llm_new_token", error)

    @shielded
    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """A model returns."""
        self.tracker.model_ended(response, run_id)

    @shielded
    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A model raises."""
        self.tracker.model_failed(error, run_id, kwargs.get("response"))

    @shielded
    def on_interrupt(self, event: Any) -> None:
        """A graph stops and waits."""
        self.tracker.interrupted(event.run_id, event.checkpoint_id, event.interrupts)

    @shielded
    def on_resume(self, event: Any) -> None:
        """A graph goes on."""
        self.tracker.resumed(event.run_id, event.checkpoint_id, self.domain)


def _name_in(serialized: dict[str, Any] | None) -> str | None:
    if not serialized:
        return None
    name = serialized.get("name") or (serialized.get("id") or [None])[-1]
    return None if name is None else str(name)


@contextmanager
def everywhere(
    grace: Grace, domain: str | None = None, scores: Scores | Mapping[str, Scores] | None = None
) -> Iterator[GraceCallbackHandler]:
    """`with grace.langchain():` — the handler for everything that is called inside; see `Grace.langchain`."""
    handler = GraceCallbackHandler(grace, domain, scores)
    token = _EVERYWHERE.set(handler)
    try:
        yield handler
    finally:
        _EVERYWHERE.reset(token)


register_configure_hook(_EVERYWHERE, inheritable=True)
