"""Turns LangChain's events into runs and calls: which run an event belongs to, and which events open and end a run.

Events come from any thread and any task, in any order, some twice and some never. Their run ids alone keep them apart. This code runs in
the agent's thread, so it looks up and appends; everything else waits until the run has finished.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from grace_kp.integrations.langchain._context import PLACE, attributes_of_config, frame_here
from grace_kp.integrations.langchain._frames import (
    MAX_OBJECTIVE,
    Chain,
    Frame,
    Specs,
    Suspensions,
    ids_of,
    input_by_name,
    interrupts_of,
    is_placeholder,
    note_steps,
    objective_of,
    open_here,
    running_loop,
    unwatch,
    watch_task,
)
from grace_kp.integrations.langchain._messages import answer_of, proposed_by, question_of
from grace_kp.integrations.langchain._results import (
    Unreported,
    close_tool,
    left_in,
    mark_recorded,
    record_model,
    record_search,
    streamed_so_far,
)
from grace_kp.record import (
    AGENT,
    CANCELLED,
    CLOSED,
    CURRENT,
    FAILED,
    HOST,
    SUSPENDED,
    Call,
    Pause,
    Run,
    call_alone,
    call_in,
    open_run,
)
from grace_kp.trace import cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_core.outputs import LLMResult

    from grace_kp.record import Recorder, Spec

NODE = "graph:step:"
MAX_TOKENS = 4_096


class Tracker:
    """The open events of one recorder, from all its handlers."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.frames: dict[int, Frame] = {}
        self.spec = Specs()
        self.suspensions = Suspensions(recorder)
        self.suspended = self.suspensions.runs
        self.unreported = Unreported(self.spec)

    @classmethod
    def of(cls, recorder: Recorder) -> Tracker:
        tracker: Tracker = recorder.adapters.get("langchain") or recorder.adapters.setdefault(
            "langchain", cls(recorder)
        )
        return tracker

    # Beginnings

    def _keep(self, key: int, frame: Chain) -> Chain:
        frame.keys.add(key)
        self.frames[key] = frame
        if frame.parent is not None:
            frame.parent.leaf = False
        return frame

    def chain_started(
        self,
        inputs: object,
        run_id: UUID,
        parent_id: UUID | None,
        name: str,
        tags: list[str] | None,
        metadata: dict[str, Any] | None,
        domain: str | None,
        *,
        is_parser: bool = False,
    ) -> None:
        key, frames = run_id.int, self.frames
        if key in frames or not self.recorder.enabled:
            return
        # An attempt of a fallback, or a chain with its own callbacks, has a parent but no parent id.
        parent = (parent_id and frames.get(parent_id.int)) or (frame_here(frames) if frames else None)
        if parent is None:
            self._root(key, inputs, name, tags, metadata, domain)
            return
        is_node = bool(tags) and any(tag.startswith(NODE) for tag in tags or ())
        if is_node and isinstance(parent, Chain) and not isinstance(parent.own, Run):
            self._promote(parent, domain)
        elif parent.quiet:
            self._announce(parent)
        place = metadata.get(PLACE) if metadata else None
        frame = self._keep(key, Chain(parent, parent.inner_here(), name, inputs, place))
        frame.is_parser = is_parser
        if is_node or frame.is_task:
            frame.enter_node(metadata or {})
            if parent.home.failures is not None:
                self.unreported.node_started(frame)

    def _root(
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
        frame = self._keep(key, Chain(None, run, name, inputs, None))
        frame.own, frame.quiet = run, quiet
        frame.thread = None if thread is None else str(thread)
        run.framework = "langchain"
        run.facts = {} if frame.thread is None else {"thread_id": frame.thread}
        if tags or metadata:
            run.update(**attributes_of_config(tags, metadata))
        if running_loop() is not None:
            frame.task = watch_task(partial(self.fail_lost, key))
        return frame

    def _promote(self, frame: Chain, domain: str | None, resumes: Pause | None = None) -> None:
        """Give a chain inside a run its own run, because it is a graph: a nested agent."""
        objective, arguments = (
            objective_of(self.recorder, frame.name, frame.inputs),
            input_by_name(frame.inputs, "input"),
        )
        spec = self.spec(AGENT, frame.name, domain)
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

    def _announce(self, frame: Frame) -> None:
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
            self._announce(parent)
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
        self._keep(key, frame)

    def model_started(
        self,
        name: str,
        messages: Sequence[Any],
        run_id: UUID,
        parent_id: UUID | None,
        metadata: dict[str, Any] | None,
        domain: str | None,
    ) -> None:
        key = run_id.int
        if key in self.frames or not self.recorder.enabled:
            return
        parent = (parent_id and self.frames.get(parent_id.int)) or frame_here(self.frames)
        inside = parent.inner_here() if parent is not None else open_here()
        model = str((metadata or {}).get("ls_model_name") or name)
        if inside is None:
            flat = messages[0] if len(messages) == 1 else [message for part in messages for message in part]
            if frame := self._root(key, flat, name, None, metadata, domain):
                frame.name, frame.tokens = model, []
            return
        if parent is not None and parent.quiet:
            self._announce(parent)
        place = metadata.get(PLACE) if metadata else None
        self._keep(key, Chain(parent, inside, model, None, place)).tokens = []

    def token(self, token: object, run_id: UUID) -> None:
        frame = self.frames.get(run_id.int)
        if frame is not None and frame.tokens is not None and len(frame.tokens) < MAX_TOKENS and type(token) is str:
            frame.tokens.append(token)

    # Ends

    def _done(self, run_id: UUID) -> Frame | None:
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
        self._done(run_id)
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
            self._announce(frame)
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
        self._done(run_id)
        if not isinstance(run, Run):
            if status == SUSPENDED and frame.is_node and frame.place is not None:
                home = frame.home
                home.places = (home.places or set()) | {frame.place}
                self.suspensions.ask(frame, interrupts_of(error))
            elif status == FAILED:
                self.unreported.part_failed(frame, error)
            return
        if frame.quiet:
            self._give_back(frame, run)
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

    def _give_back(self, frame: Frame, run: Run) -> None:
        """Return a run to the suspended runs, because the graph failed before it could continue the run."""
        pause, run.resumes = run.resumes, None
        if pause is not None and isinstance(pause.previous, Run):
            self.suspensions.give_back(pause.previous)
        self._announce(frame)

    def graph_interrupted(self, run_id: UUID | None, checkpoint: str, interrupts: Iterable[Any]) -> None:
        frame = None if run_id is None else self.frames.get(run_id.int)
        if isinstance(frame, Chain):
            frame.checkpoint, frame.interrupts = str(checkpoint), ids_of(interrupts)
            self.suspensions.ask(frame, interrupts)

    def graph_resumed(self, run_id: UUID | None, checkpoint: str, domain: str | None) -> None:
        frame = None if run_id is None else self.frames.get(run_id.int)
        if not isinstance(frame, Chain) or frame.thread is None:
            return
        if frame.parent is not None:
            if not isinstance(frame.own, Run):
                previous = self.suspensions.take(frame.thread, None, frame.place)
                self._promote(frame, domain, Pause(frame.thread, None, frame.place, previous=previous))
        elif frame.quiet and isinstance(frame.own, Run):
            # The run is announced when its first node begins, because an answer that comes too late runs none.
            previous = self.suspensions.take(frame.thread, checkpoint, None)
            frame.own.resumes = Pause(frame.thread, checkpoint, None, previous=previous)

    def tool_ended(self, output: object, run_id: UUID) -> None:
        if (frame := self._done(run_id)) and isinstance(call := frame.own, Call):
            if type(output) is str:
                call.end_with(output)
            else:
                close_tool(frame, call, output)

    def retriever_ended(self, documents: object, run_id: UUID) -> None:
        if (frame := self._done(run_id)) and isinstance(frame.own, Call):
            frame.mark_searched()
            frame.own.close(documents)

    def call_failed(self, error: BaseException, run_id: UUID) -> None:
        if (frame := self._done(run_id)) and isinstance(frame.own, Call):
            if frame.parent is not None:
                mark_recorded(frame.parent, error)
            frame.own.fail(error)

    def model_ended(self, response: LLMResult, run_id: UUID) -> None:
        if frame := self._done(run_id):
            text = record_model(frame, response)
            self.unreported.model_ended(frame, response)
            if frame.own is frame.run:
                frame.run.close(text or proposed_by(response))

    def model_failed(self, error: BaseException, run_id: UUID, response: LLMResult | None = None) -> None:
        """Record that an exception left a model, with the part of its response until then, if any."""
        if frame := self._done(run_id):
            text = record_model(frame, response, error)
            mark_recorded(frame, error)
            if frame.own is not frame.run:
                return
            if HOST.status_after(error) == CLOSED:
                frame.run.drop(text)
            else:
                frame.run.fail(error)

    def fail_lost(self, key: int, error: BaseException) -> None:
        """End a root whose asyncio task ended without a report from LangChain."""
        frame = self.frames.get(key)
        if frame is not None and isinstance(frame.own, Call):
            del self.frames[key]
            frame.own.fail(error)
        elif HOST.status_after(error) == CANCELLED:  # else a stream may be read on in another task
            self.chain_failed(error, UUID(int=key), None)
