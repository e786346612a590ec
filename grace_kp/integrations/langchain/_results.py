"""What LangChain's events leave in the trace when they end: calls of models, and searches by plain functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.integrations.langchain._frames import holds_documents, named
from grace_kp.integrations.langchain._messages import answer_of, documents_in, said_by, tool_result
from grace_kp.record import CLOSED, FAILED, HOST, NOT_CAPTURED, RETRIEVER, ModelCall, call_in
from grace_kp.trace import render_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.outputs import LLMResult

    from grace_kp.integrations.langchain._frames import Frame, Specs
    from grace_kp.record import Call


def record_search(frame: Frame, outputs: object, specs: Specs) -> None:
    """A chain that has called nothing and gives documents is a retriever, unless documents were its input."""
    scored = documents_in(outputs)
    if scored is None or (not scored and holds_documents(frame.inputs)):
        return
    call = call_in(frame.here, specs(RETRIEVER, frame.name, None), named(frame.inputs, "query"))
    if call is not None:
        call.start = frame.start
        call.close(outputs)
    frame.found()


def close_tool(frame: Frame, call: Call, output: object) -> None:
    """A tool returned: a result, or a message that says that it failed; documents may have come along."""
    result, error, along = tool_result(output)
    if error is not None:
        call.refuse("ToolError", error)
        return
    if not frame.searched and documents_in(along) is not None:
        call.read_hits(along)
        frame.found()
    call.close(result)


def record_model(frame: Frame, response: LLMResult | None) -> str:
    """Record the call of a model that has returned; its text."""
    run = frame.run
    text, usage, model = _read(frame, response)
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
    return text


def record_failed_model(frame: Frame, error: BaseException, response: LLMResult | None) -> str:
    """Record the call of a model that was left by an exception; the text that it gave until then."""
    run = frame.run
    text, usage, model = _read(frame, response, error=True)
    status = HOST.status_after(error)
    run.model_called(
        ModelCall(
            str(model or frame.name),
            start=frame.start,
            end=run.clock(),
            text=text,
            status="error" if status == FAILED else status,
            error=None if status == CLOSED else run.owner.described(error),
            usage=usage or None,
            place=frame.place,
        )
    )
    return text


def left_in(root: Frame, frames: Mapping[int, Frame]) -> tuple[Frame, ...]:
    """The open events inside of a root; none where it is no root."""
    if root.parent is not None:
        return ()
    found = (frames.get(key) for key in root.keys or ())
    return tuple(frame for frame in found if frame is not None and frame is not root)


def streamed_so_far(frame: Frame, left: Sequence[Frame], outputs: object) -> Any:
    """What a run had given when its reader left; the models that were still streaming are recorded with their text.

    Args:
        frame: the run's frame.
        left: the events inside of it that have not ended.
        outputs: what the root gave in pieces so far, less the last piece; None where nothing is known of it.
    """
    text = ""
    for part in left:
        if part.tokens:
            text = record_failed_model(part, GeneratorExit(), None)
    given = answer_of(outputs) if outputs is not None else None
    if isinstance(given, str) and text.startswith(given):
        return text
    if given is not None:
        return given
    return text or answer_of(frame.last)


def _read(frame: Frame, response: LLMResult | None, *, error: bool = False) -> tuple[str, dict[str, int], str | None]:
    run = frame.run
    usage: dict[str, int] = {}
    model: str | None = None
    text = ""
    if response is not None:
        text, usage, model = said_by(response)
    if error and frame.tokens and (pieces := "".join(frame.tokens)).startswith(text):
        text = pieces  # what is left of a stream lacks its last piece
    if text:
        text = render_text(text, run.max_text) if run.owner.capture_output else NOT_CAPTURED
        frame.home.last = text
    return text, usage, model
