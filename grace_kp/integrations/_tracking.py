"""From LangChain's events to runs and calls: which event belongs to which run, and what opens and ends one.

Events come from any thread and any task, in any order, some twice and some never; they are kept apart by their run ids alone. What is
done here is done in the agent's thread, so it looks up, appends, and leaves the rest to the finish.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from grace_kp.integrations._config import describe
from grace_kp.integrations._frames import (
    MAX_OBJECTIVE,
    Frame,
    Specs,
    holds_documents,
    named,
    objective_of,
    open_here,
    streamed,
    when_task_ends,
)
from grace_kp.integrations._messages import answer_of, documents_in, question_of, said_by, tool_result
from grace_kp.record import (
    AGENT,
    FAILED,
    RETRIEVER,
    Call,
    ModelCall,
    Pause,
    Run,
    call_alone,
    call_in,
    open_run,
    way_out,
)
from grace_kp.record._steps import NOT_CAPTURED
from grace_kp.trace._render import cut, describe_error, render_text

if TYPE_CHECKING:
    from uuid import UUID

    from grace_kp.record import Recorder

MAX_SUSPENDED = 256
NODE = "graph:step:"


class Tracker:
    """All events of one recorder that have begun and not ended, whichever handlers they came through."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.frames: dict[int, Frame] = {}
        self.suspended: OrderedDict[tuple[str, str | None, str | None], Run] = OrderedDict()
        self.spec = Specs(recorder)

    @classmethod
    def of(cls, recorder: Recorder) -> Tracker:
        """The one tracker of a recorder."""
        tracker: Tracker | None = recorder.foreign.get("langchain")
        if tracker is None:
            tracker = recorder.foreign.setdefault("langchain", cls(recorder))
        return tracker

    # Beginnings

    def _above(self, parent_id: UUID | None) -> Frame | None:
        if parent_id is not None:
            parent = self.frames.get(parent_id.int)
            if parent is not None:
                return parent
        from grace_kp.integrations._context import frame_here

        # An event without a parent may still be inside of one: a fallback's attempts, a chain that was given callbacks of its own.
        return frame_here(self)

    def _keep(self, key: int, frame: Frame) -> Frame:
        if frame.keys is None:
            frame.keys = set()
        frame.keys.add(key)
        self.frames[key] = frame
        if frame.parent is not None:
            frame.parent.leaf = False
        return frame

    def chain_started(
        self,
        inputs: Any,
        run_id: UUID,
        parent_id: UUID | None,
        name: str,
        tags: list[str] | None,
        metadata: dict[str, Any] | None,
        domain: str | None,
    ) -> None:
        """A chain, graph, node or anything else that is none of the below."""
        key = run_id.int
        if key in self.frames or not self.recorder.enabled:
            return
        parent = self._above(parent_id)
        if parent is None:
            self._root(key, inputs, name, tags, metadata, domain)
            return
        if tags and not isinstance(parent.own, Run) and any(tag.startswith(NODE) for tag in tags):
            self._promote(parent, domain)
        elif parent.quiet:
            self._announce(parent)
        place = metadata.get("langgraph_checkpoint_ns") if metadata else None
        self._keep(key, Frame(parent, parent.inner_here(), name, inputs, place))

    def _root(
        self,
        key: int,
        inputs: Any,
        name: str,
        tags: list[str] | None,
        metadata: dict[str, Any] | None,
        domain: str | None,
    ) -> Frame | None:
        thread = metadata.get("thread_id") if metadata else None
        # A graph that is given no new input may go on with a run that was suspended; which one, it says a moment later.
        quiet = thread is not None and (inputs is None or type(inputs).__name__ == "Command")
        run = open_run(
            self.spec(AGENT, name, domain),
            (),
            {"input": inputs},
            objective=objective_of(self.recorder, name, inputs),
            quiet=quiet,
        )
        if run is None:
            return None
        frame = Frame(None, run, name, inputs, None)
        frame.own, frame.quiet = run, quiet
        frame.thread = None if thread is None else str(thread)
        run.framework = "langchain"
        describe(run, tags, metadata, frame.thread)
        return self._keep(key, frame)

    def _promote(self, frame: Frame, domain: str | None, resumes: Pause | None = None) -> None:
        """A chain inside of a run turns out to be a graph: a nested agent, with a run of its own."""
        inputs = frame.inputs
        run = open_run(
            self.spec(AGENT, frame.name, domain),
            (),
            named(inputs, "input"),
            objective=objective_of(self.recorder, frame.name, inputs),
            inside=frame.here,
            quiet=True,
        )
        if run is None:
            return
        if run.via is not None:
            run.via.place, run.via.start = frame.place, frame.start
        run.framework = "langchain"
        run.extra = {"place": frame.place, **({"thread_id": frame.thread} if frame.thread else {})}
        run.resumes = resumes
        frame.own = frame.here = run
        frame.home = frame
        self.recorder.announce(run)

    def _announce(self, frame: Frame) -> None:
        frame.quiet = False
        if isinstance(frame.own, Run):
            self.recorder.announce(frame.own)

    def tool_started(
        self, kind: str, name: str, inputs: dict[str, Any], run_id: UUID, parent_id: UUID | None, domain: str | None
    ) -> None:
        """A tool or a retriever."""
        key = run_id.int
        if key in self.frames or not self.recorder.enabled:
            return
        parent = self._above(parent_id)
        spec = self.spec(kind, name, domain)
        inside = parent.inner_here() if parent is not None else open_here()
        call: Call | None
        if inside is not None:
            if parent is not None and parent.quiet:
                self._announce(parent)
            call = call_in(inside, spec, inputs)
        else:
            objective = question_of(inputs) if self.recorder.capture_input else None
            call = call_alone(spec, inputs, objective=objective and cut(objective, MAX_OBJECTIVE))
            if call is None:
                return
            call.run.framework = "langchain"
        frame = Frame(parent, call or inside, name, None, None, call)  # type: ignore[arg-type]  # one of them is there
        self._keep(key, frame)
        if parent is None:
            when_task_ends(self, key)

    def model_started(
        self,
        name: str,
        messages: Any,
        run_id: UUID,
        parent_id: UUID | None,
        metadata: dict[str, Any] | None,
        domain: str | None,
    ) -> None:
        """A chat model or a text model."""
        key = run_id.int
        if key in self.frames or not self.recorder.enabled:
            return
        parent = self._above(parent_id)
        inside = parent.inner_here() if parent is not None else open_here()
        model = str((metadata or {}).get("ls_model_name") or name)
        if inside is None:
            flat = messages[0] if len(messages) == 1 else [one for part in messages for one in part]
            if frame := self._root(key, flat, name, None, metadata, domain):
                frame.name = model
            return
        if parent is not None and parent.quiet:
            self._announce(parent)
        place = metadata.get("langgraph_checkpoint_ns") if metadata else None
        self._keep(key, Frame(parent, inside, model, None, place))

    # Ends

    def _done(self, run_id: UUID) -> Frame | None:
        frame = self.frames.pop(run_id.int, None)
        if frame is not None and frame.keys is not None:
            frame.keys.discard(run_id.int)
            if frame.parent is None:
                # What has not ended by now never will, or has nothing to be recorded in.
                for key in tuple(frame.keys):
                    self.frames.pop(key, None)
        return frame

    def chain_ended(self, outputs: Any, run_id: UUID, inputs: Any) -> None:
        """A chain returned."""
        frame = self._done(run_id)
        if frame is None:
            return
        if frame.leaf and not frame.searched:
            self._results(frame, outputs)
        run = frame.own
        if not isinstance(run, Run):
            return
        if frame.quiet:
            self._announce(frame)
        from_stream = streamed(frame.inputs)
        if from_stream and inputs is not None and run.extra is not None:
            run.objective = objective_of(self.recorder, frame.name, inputs)
        if frame.places is not None or frame.checkpoint is not None:
            self._suspend(frame, run)
        elif from_stream and outputs is None:
            run.fail(GeneratorExit("the stream was dropped half-way"))
        else:
            run.close(answer_of(outputs))

    def _results(self, frame: Frame, outputs: Any) -> None:
        """A chain that has called nothing and gives documents is a retriever, unless documents were what it was given."""
        scored = documents_in(outputs)
        if scored is None or (not scored and holds_documents(frame.inputs)):
            return
        call = call_in(frame.here, self.spec(RETRIEVER, frame.name, None), named(frame.inputs, "query"))
        if call is not None:
            call.start = frame.start
            call.close(outputs)
        frame.found()

    def chain_failed(self, error: BaseException, run_id: UUID, inputs: Any) -> None:
        """A chain was left by an exception; an interrupt is none."""
        frame = self._done(run_id)
        if frame is None:
            return
        paused = any(base.__name__ == "GraphInterrupt" for base in type(error).__mro__)
        run = frame.own
        if not isinstance(run, Run):
            if paused and frame.place is not None:
                home = frame.home
                home.places = (home.places or set()) | {frame.place}
            return
        if frame.quiet:
            self._announce(frame)
        if inputs is not None and streamed(frame.inputs):
            run.objective = objective_of(self.recorder, frame.name, inputs)
        if paused:
            if frame.parent is not None and frame.place is not None:
                above = frame.parent.home
                above.places = (above.places or set()) | {frame.place}
            self._suspend(frame, run)
        else:
            run.fail(error)

    def _suspend(self, frame: Frame, run: Run) -> None:
        thread = frame.thread or ""
        place = frame.place if frame.parent is not None else None
        pause = Pause(thread, frame.checkpoint, place, frozenset(frame.places or ()))
        extra = run.extra if run.extra is not None else {}
        run.extra = extra
        if frame.checkpoint is not None:
            extra["checkpoint_id"] = frame.checkpoint
        if frame.interrupts:
            extra["interrupts"] = frame.interrupts
        if thread:
            self.suspended[thread, frame.checkpoint, place] = run
            while len(self.suspended) > MAX_SUSPENDED:
                self.suspended.popitem(last=False)
        run.suspend(pause)

    def interrupted(self, run_id: UUID | None, checkpoint: str, interrupts: Any) -> None:
        """A graph stopped at a checkpoint and waits."""
        frame = None if run_id is None else self.frames.get(run_id.int)
        if frame is not None:
            frame.checkpoint = str(checkpoint)
            frame.interrupts = [str(one.id) for one in interrupts]

    def resumed(self, run_id: UUID | None, checkpoint: str, domain: str | None) -> None:
        """A graph goes on from a checkpoint."""
        frame = None if run_id is None else self.frames.get(run_id.int)
        if frame is None or frame.thread is None:
            return
        if frame.parent is not None:
            if not isinstance(frame.own, Run):
                previous = self.suspended.pop((frame.thread, None, frame.place), None)
                self._promote(frame, domain, Pause(frame.thread, None, frame.place, previous=previous))
        elif frame.quiet and isinstance(frame.own, Run):
            previous = self.suspended.pop((frame.thread, checkpoint, None), None)
            frame.own.resumes = Pause(frame.thread, checkpoint, None, previous=previous)
            self._announce(frame)

    def tool_ended(self, output: Any, run_id: UUID) -> None:
        """A tool returned; what it returned may say that it failed."""
        frame = self._done(run_id)
        call = None if frame is None else frame.own
        if frame is None or not isinstance(call, Call):
            return
        result, error, along = tool_result(output)
        if error is not None:
            call.refuse("ToolError", error)
            return
        if not frame.searched and documents_in(along) is not None:
            from grace_kp.confidence import read_hits

            call.hits = read_hits(along, call.spec.scores)
            frame.found()
        call.close(result)

    def retriever_ended(self, documents: Any, run_id: UUID) -> None:
        """A retriever returned."""
        if (frame := self._done(run_id)) and isinstance(frame.own, Call):
            frame.found()
            frame.own.close(documents)

    def call_failed(self, error: BaseException, run_id: UUID) -> None:
        """A tool or retriever was left by an exception."""
        if (frame := self._done(run_id)) and isinstance(frame.own, Call):
            frame.own.fail(error)

    def model_ended(self, response: Any, run_id: UUID) -> None:
        """A model gave something back."""
        frame = self._done(run_id)
        if frame is None:
            return
        run = frame.run
        text, usage, model = said_by(response)
        if text:
            text = render_text(text, run.max_text) if run.owner.capture_output else NOT_CAPTURED
        run.model_called(
            ModelCall(
                str(model or frame.name),
                start=frame.start,
                end=run.clock(),
                text=text,
                usage=usage or None,
                place=frame.place,
            )
        )
        if frame.own is run:
            run.close(text)

    def model_failed(self, error: BaseException, run_id: UUID) -> None:
        """A model was left by an exception."""
        frame = self._done(run_id)
        if frame is None:
            return
        run = frame.run
        way = way_out(error)
        run.model_called(
            ModelCall(
                frame.name,
                start=frame.start,
                end=run.clock(),
                status="error" if way == FAILED else way,
                error=describe_error(error, run.max_text),
                place=frame.place,
            )
        )
        if frame.own is run:
            run.fail(error)

    def lost(self, key: int, error: BaseException) -> None:
        """The task of a lone tool ended without a word of it."""
        if (frame := self.frames.pop(key, None)) and isinstance(frame.own, Call):
            frame.own.fail(error)
