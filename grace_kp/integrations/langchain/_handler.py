"""The handler that turns LangChain's events into runs and calls: which run an event belongs to, and which events open and end a run.

Events come from any thread and any task, in any order, some twice and some never. Their run ids alone keep them apart. This code runs in
the agent's thread, so it looks up and appends; everything else waits until the run has finished.
"""

# ruff: noqa: ARG002 — LangChain passes more than is recorded

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

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

from grace_kp.integrations.langchain._frames import (
    PLACE,
    Chain,
    Frame,
    InlineHandler,
    Specs,
    Suspensions,
    attributes_of_config,
    frame_here,
    ids_of,
    include_others,
    interrupts_of,
    note_steps,
    open_here,
    register,
    running_loop,
    unwatch,
    watch_task,
)
from grace_kp.integrations.langchain._results import (
    MAX_OBJECTIVE,
    Unreported,
    answer_of,
    close_tool,
    digests_in,
    input_by_name,
    is_placeholder,
    is_question_document,
    keep_messages,
    left_in,
    mark_recorded,
    objective_of,
    proposed_by,
    question_of,
    record_model,
    record_search,
    streamed_so_far,
)
from grace_kp.integrations.langchain._tool_guard import GatedTools
from grace_kp.integrations.langchain._tool_schema import is_injected
from grace_kp.record import (
    AGENT,
    CANCELLED,
    CLOSED,
    CURRENT,
    FAILED,
    HOST,
    RETRIEVER,
    SUSPENDED,
    TOOL,
    Call,
    Pause,
    Run,
    call_alone,
    call_in,
    note,
    open_run,
    shielded,
)
from grace_kp.trace import cut

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_core.outputs import LLMResult

    from grace_kp.confidence import Scores
    from grace_kp.record import Recorder, Spec
    from grace_kp.runtime import Grace

NODE = "graph:step:"
MAX_TOKENS, MAX_DIGESTS = 4_096, 256


class Tracker:
    """The open events of one recorder, from all its handlers."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.frames: dict[int, Frame] = {}
        self.spec = Specs()
        self.suspensions = Suspensions(recorder)
        self.digests: dict[str, tuple[bytes, ...]] = {}
        """By thread, digests of the messages that its user wrote to runs of this process; at most `MAX_DIGESTS` of each."""
        self.unreported = Unreported(self.spec)

    @classmethod
    def of(cls, recorder: Recorder) -> Tracker:
        found: Tracker = recorder.adapters.setdefault("langchain", cls(recorder))
        return found

    def keep(self, key: int, frame: Chain) -> Chain:
        frame.keys.add(key)
        self.frames[key] = frame
        if frame.parent is not None:
            frame.parent.leaf = False
        return frame

    def open_root(
        self,
        key: int,
        inputs: object,
        name: str,
        tags: list[str] | None,
        metadata: dict[str, Any] | None,
        domain: str | None,
    ) -> Chain | None:
        thread = metadata.get("thread_id") if metadata else None
        # A graph without new input may continue a suspended run, which a later event names.
        quiet = thread is not None and (inputs is None or type(inputs).__name__ == "Command")
        objective = objective_of(self.recorder, name, inputs)
        spec = self.spec.known.get((AGENT, name, domain)) or self.spec(AGENT, name, domain)
        run = open_run(self.recorder, spec, (), {"input": inputs}, objective=objective, quiet=quiet)
        if run is None:
            return None
        frame = self.keep(key, Chain(None, run, name, inputs, None))
        frame.own, frame.quiet = run, quiet
        if thread is not None and self.recorder.is_gated:
            known = (*self.digests.pop(str(thread), ()), *digests_in(inputs))
            self.digests[str(thread)] = frame.digests = known[-MAX_DIGESTS:]
            while len(self.digests) > MAX_DIGESTS:
                self.digests.pop(next(iter(self.digests)), None)
        run.objective_is_document = is_question_document(inputs)
        frame.thread = None if thread is None else str(thread)
        run.framework = "langchain"
        run.facts = {} if frame.thread is None else {"thread_id": frame.thread}
        if tags or metadata:
            run.update(**attributes_of_config(tags, metadata))
        if running_loop() is not None:
            frame.task = watch_task(partial(self.fail_lost, key))
        return frame

    def promote(self, frame: Chain, domain: str | None, resumes: Pause | None = None) -> None:
        """Give a chain inside a run its own run, because it is a graph: a nested agent."""
        spec, arguments = self.spec(AGENT, frame.name, domain), input_by_name(frame.inputs, "input")
        objective = objective_of(self.recorder, frame.name, frame.inputs)
        run = open_run(self.recorder, spec, (), arguments, objective=objective, inside=frame.here, quiet=True)
        if run is None:
            return
        if run.via is not None:
            run.via.place, run.via.start = frame.place, frame.start
        run.framework = "langchain"
        run.facts = {"place": frame.place, **({"thread_id": frame.thread} if frame.thread else {})}
        run.resumes = resumes
        frame.own = frame.here = run
        frame.home = frame
        self.recorder.announce(run)

    def announce(self, frame: Frame) -> None:
        if isinstance(frame, Chain):
            frame.quiet = False
        if isinstance(frame.own, Run):
            self.recorder.announce(frame.own)

    def tool_started(
        self, spec: Spec, inputs: dict[str, Any], run_id: UUID, parent_id: UUID | None, place: str | None
    ) -> None:
        key, frames = run_id.int, self.frames
        if key in frames or not self.recorder.enabled:
            return
        parent = (parent_id and frames.get(parent_id.int)) or frame_here(frames)
        if parent is None:
            self._lone_tool(key, spec, inputs)
            return
        seen = CURRENT.get()
        inside = parent.here if seen is None or seen is parent.seen else parent.inner(seen)
        if parent.quiet:
            self.announce(parent)
        call = call_in(inside, spec, inputs, place)
        frames[key] = Frame(parent, call or inside, spec.name, call, seen)
        parent.keys.add(key)
        parent.leaf = False

    def _lone_tool(self, key: int, spec: Spec, inputs: dict[str, Any]) -> None:
        inside = open_here()
        if inside is not None:
            call = call_in(inside, spec, inputs)
        else:
            objective = question_of(inputs) if self.recorder.capture_input else None
            call = call_alone(self.recorder, spec, inputs, objective=objective and cut(objective, MAX_OBJECTIVE))
            if call is not None:
                call.run.framework = "langchain"
        here = call or inside
        if here is None:
            return
        frame = Chain(None, here, spec.name, None, None)
        frame.own = call
        frame.task = watch_task(partial(self.fail_lost, key))
        self.keep(key, frame)

    def remove(self, run_id: UUID) -> Frame | None:
        key = run_id.int
        frame = self.frames.pop(key, None)
        if frame is not None:
            frame.keys.discard(key)
            if frame.parent is None:
                if frame.task is not None:
                    unwatch(frame.task)
                # The remaining events below the root never end, or have no open run.
                for left in tuple(frame.keys):
                    self.frames.pop(left, None)
        return frame

    def chain_ended(self, outputs: object, run_id: UUID, inputs: object) -> None:
        frame = self.frames.get(run_id.int)
        if frame is None:
            return
        # A dropped stream reports the end of the whole before the ends of its parts, without an error.
        from_stream = type(frame.inputs) is dict and is_placeholder(frame.inputs)
        left = left_in(frame, self.frames) if from_stream else ()
        self.remove(run_id)
        if frame.leaf and not frame.searched and isinstance(outputs, list):
            record_search(frame, outputs, self.spec)
        run = frame.own
        is_sequence = isinstance(run, Run) and frame.parent is None and frame.steps is None
        if frame.is_node or (is_sequence and type(outputs) is not str):
            self.unreported.node_ended(frame, outputs)
        elif frame.is_parser:
            self.unreported.parser_ended(frame, outputs)
        if not isinstance(run, Run):
            return
        waits = frame.places is not None or frame.checkpoint is not None
        if frame.quiet and frame.leaf and not waits:
            run.discard(outputs)  # the thread expected no answer, so no node has run
            return
        if frame.quiet:
            self.announce(frame)
        if from_stream and inputs is not None and run.facts is not None:
            run.objective = objective_of(self.recorder, frame.name, inputs)
        if waits:
            self.suspensions.suspend(frame, run)
        elif from_stream and (outputs is None or left):
            run.drop(streamed_so_far(frame, left, outputs))
        else:
            if frame.steps is not None:
                note_steps(frame)
            run.close(outputs if type(outputs) is str else answer_of(outputs))

    def chain_failed(self, error: BaseException, run_id: UUID, inputs: object) -> None:
        """Record that an exception left a chain. Interrupts are not failures."""
        frame = self.frames.get(run_id.int)
        if frame is None:
            return
        run, status = frame.own, HOST.status_after(error)
        left = left_in(frame, self.frames) if status == CLOSED else ()
        self.remove(run_id)
        if not isinstance(run, Run):
            if status == SUSPENDED and frame.is_node and frame.place is not None:
                home = frame.home
                home.places = (home.places or set()) | {frame.place}
                self.suspensions.ask(frame, interrupts_of(error))
            elif status == FAILED:
                self.unreported.part_failed(frame, error)
            return
        if frame.quiet:  # the graph failed before it could continue a suspended run
            pause, run.resumes = run.resumes, None
            if pause is not None and isinstance(pause.previous, Run):
                self.suspensions.give_back(pause.previous)
            self.announce(frame)
        if inputs is not None and is_placeholder(frame.inputs):
            run.objective = objective_of(self.recorder, frame.name, inputs)
        if status == SUSPENDED or (status == CLOSED and frame.places is not None):
            if frame.parent is not None and frame.place is not None:
                above = frame.parent.home
                above.places = (above.places or set()) | {frame.place}
            self.suspensions.suspend(frame, run)
        else:
            note_steps(frame)
            if frame.parent is not None:
                mark_recorded(frame.parent, error)
            if status == CLOSED:
                run.drop(streamed_so_far(frame, left, None))
            else:
                run.fail(error)

    def fail_lost(self, key: int, error: BaseException) -> None:
        """End a root whose asyncio task ended without a report from LangChain."""
        frame = self.frames.get(key)
        if frame is not None and isinstance(frame.own, Call):
            del self.frames[key]
            frame.own.fail(error)
        elif HOST.status_after(error) == CANCELLED:  # else a stream may be read on in another task
            self.chain_failed(error, UUID(int=key), None)


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

    def on_chain_start(self, serialized: dict[str, Any] | None, inputs: object, *, run_id: UUID, **event: Any) -> None:
        """Record that a chain, graph or node begins."""
        try:
            tracker, frames, key = self.tracker, self.tracker.frames, run_id.int
            if key in frames or not tracker.recorder.enabled:
                return
            known, parent_id = _name_of(serialized, event.get("name"), "chain"), event.get("parent_run_id")
            tags, metadata = event.get("tags"), event.get("metadata")
            # An attempt of a fallback, or a chain with its own callbacks, has a parent but no parent id.
            parent = (parent_id and frames.get(parent_id.int)) or (frame_here(frames) if frames else None)
            if parent is None:
                tracker.open_root(key, inputs, known, tags, metadata, self.domain)
                return
            is_node = bool(tags) and any(tag.startswith(NODE) for tag in tags or ())
            if is_node and isinstance(parent, Chain) and not isinstance(parent.own, Run):
                tracker.promote(parent, self.domain)
            elif parent.quiet:
                tracker.announce(parent)
            place = metadata.get(PLACE) if metadata else None
            frame = tracker.keep(key, Chain(parent, parent.inner_here(), known, inputs, place))
            frame.is_parser = event.get("run_type") == "parser"
            if is_node or frame.is_task:
                frame.enter_node(metadata or {})
                if parent.home.failures:
                    tracker.unreported.node_started(frame)
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

    def on_tool_start(self, serialized: dict[str, Any] | None, input_str: str, *, run_id: UUID, **event: Any) -> None:
        """Record that a tool begins."""
        try:
            tool = str((serialized.get("name") if serialized else None) or event.get("name") or "tool")
            inputs, metadata = event.get("inputs"), event.get("metadata")
            arguments = inputs if inputs is not None else {"input": input_str}
            if "runtime" in arguments and is_injected(type(arguments["runtime"])):
                # LangGraph injects a parameter of this name, whatever its type, and LangChain reports it as an argument.
                arguments = {key: value for key, value in arguments.items() if key != "runtime"}
            specs = self.tracker.spec
            spec = specs.known.get((TOOL, tool, self.domain)) or specs(TOOL, tool, self.domain)
            place = metadata.get(PLACE) if metadata else None
            self.tracker.tool_started(spec, arguments, run_id, event.get("parent_run_id"), place)
            if self._gated.gates:
                frame = self.tracker.frames.get(run_id.int)
                self._gated.check(tool, arguments, None if frame is None else frame.run)
        except Exception as error:  # noqa: BLE001
            note("GraceCallbackHandler.on_tool_start", error)

    def on_tool_end(self, output: object, *, run_id: UUID, **kwargs: object) -> None:
        """Record that a tool returns."""
        try:
            frame = self.tracker.remove(run_id)
            if frame is None or not isinstance(frame.own, Call):
                return
            if type(output) is str:
                frame.own.end_with(output)
            else:
                close_tool(frame, frame.own, output)
        except Exception as error:  # noqa: BLE001
            note("GraceCallbackHandler.on_tool_end", error)

    @shielded
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: object) -> None:
        """Record that a tool or a retriever raises."""
        frame = self.tracker.remove(run_id)
        if frame is not None and isinstance(frame.own, Call):
            if frame.parent is not None:
                mark_recorded(frame.parent, error)
            frame.own.fail(error)

    @shielded
    def on_retriever_start(self, serialized: dict[str, Any] | None, query: str, *, run_id: UUID, **event: Any) -> None:
        """Record that a retriever begins."""
        name, metadata = _name_of(serialized, event.get("name"), "retriever"), event.get("metadata") or {}
        store = metadata.get("ls_vector_store_provider")
        spec = self.tracker.spec(RETRIEVER, name, self.domain, store if isinstance(store, str) else None)
        self.tracker.tool_started(spec, {"query": query}, run_id, event.get("parent_run_id"), metadata.get(PLACE))

    @shielded
    def on_retriever_end(self, documents: Sequence[Any], *, run_id: UUID, **kwargs: object) -> None:
        """Record that a retriever returns."""
        frame = self.tracker.remove(run_id)
        if frame is not None and isinstance(frame.own, Call):
            frame.mark_searched()
            frame.own.close(documents)

    on_retriever_error = on_tool_error

    @shielded
    def on_chat_model_start(
        self, serialized: dict[str, Any] | None, messages: list[list[Any]], *, run_id: UUID, **event: Any
    ) -> None:
        """Record that a chat model begins."""
        tracker, key, known = self.tracker, run_id.int, _name_of(serialized, event.get("name"), "model")
        if key in tracker.frames or not tracker.recorder.enabled:
            return
        parent_id, metadata = event.get("parent_run_id"), event.get("metadata") or {}
        parent = (parent_id and tracker.frames.get(parent_id.int)) or frame_here(tracker.frames)
        inside = parent.inner_here() if parent is not None else open_here()
        model = str(metadata.get("ls_model_name") or known)
        flat = messages[0] if len(messages) == 1 else [message for part in messages for message in part]
        if inside is None:
            if frame := tracker.open_root(key, flat, known, None, metadata, self.domain):
                frame.name, frame.tokens = model, []
                keep_messages(frame.run, flat, frame)
            return
        if parent is not None and parent.quiet:
            tracker.announce(parent)
        if isinstance(inside, Run):  # a model that a tool calls is not the agent's
            keep_messages(inside, flat, parent)
        tracker.keep(key, Chain(parent, inside, model, None, metadata.get(PLACE))).tokens = []

    @shielded
    def on_llm_start(self, serialized: dict[str, Any] | None, prompts: list[str], **event: Any) -> None:
        """Record that a completion model begins."""
        include_others()
        self.on_chat_model_start(serialized, [prompts], **event)

    def on_llm_new_token(self, token: object, *, run_id: UUID, **kwargs: object) -> None:
        """Record that a model streams a token."""
        try:
            frame = self.tracker.frames.get(run_id.int)
            if frame is not None and frame.tokens is not None and len(frame.tokens) < MAX_TOKENS and type(token) is str:
                frame.tokens.append(token)
        except Exception as error:  # noqa: BLE001
            note("GraceCallbackHandler.on_llm_new_token", error)

    @shielded
    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: object) -> None:
        """Record that a model returns."""
        if frame := self.tracker.remove(run_id):
            text = record_model(frame, response)
            self.tracker.unreported.model_ended(frame, response)
            if frame.own is frame.run:
                frame.run.close(text or proposed_by(response))

    @shielded
    def on_llm_error(
        self, error: BaseException, *, run_id: UUID, response: LLMResult | None = None, **kwargs: object
    ) -> None:
        """Record that a model raises, with the part of its response until then, if any."""
        frame = self.tracker.remove(run_id)
        if frame is None:
            return
        text = record_model(frame, response, error)
        mark_recorded(frame, error)
        if frame.own is not frame.run:
            return
        if HOST.status_after(error) == CLOSED:
            frame.run.drop(text)
        else:
            frame.run.fail(error)

    @shielded
    def on_interrupt(self, event: Any) -> None:
        """Record that a graph stops and waits."""
        frame = None if event.run_id is None else self.tracker.frames.get(event.run_id.int)
        if isinstance(frame, Chain):
            frame.checkpoint, frame.interrupts = str(event.checkpoint_id), ids_of(event.interrupts)
            self.tracker.suspensions.ask(frame, event.interrupts)

    @shielded
    def on_resume(self, event: Any) -> None:
        """Record that a graph continues."""
        frame = None if event.run_id is None else self.tracker.frames.get(event.run_id.int)
        if not isinstance(frame, Chain) or frame.thread is None:
            return
        suspensions, checkpoint = self.tracker.suspensions, event.checkpoint_id
        if frame.parent is not None:
            if not isinstance(frame.own, Run):
                previous = suspensions.take(frame.thread, None, frame.place)
                self.tracker.promote(frame, self.domain, Pause(frame.thread, None, frame.place, previous=previous))
        elif frame.quiet and isinstance(frame.own, Run):
            # The run is announced when its first node begins, because an answer that comes too late runs none.
            previous = suspensions.take(frame.thread, checkpoint, None)
            frame.own.resumes = Pause(frame.thread, checkpoint, None, previous=previous)


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
