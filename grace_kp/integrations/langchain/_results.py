"""The records of LangChain's events that have ended: calls of models, results of tools, and searches by plain functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.integrations.langchain._frames import holds_documents, named
from grace_kp.integrations.langchain._messages import answer_of, documents_in, reply_of, tool_result
from grace_kp.record import CLOSED, FAILED, HOST, NOT_CAPTURED, RETRIEVER, ModelCall, call_in
from grace_kp.trace import render_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.outputs import LLMResult

    from grace_kp.integrations.langchain._frames import Frame, Specs
    from grace_kp.record import Call


def record_search(frame: Frame, outputs: object, specs: Specs) -> None:
    """Record a chain as a retriever if it called nothing and returned documents that were not its input."""
    scored = documents_in(outputs)
    if scored is None or (not scored and holds_documents(frame.inputs)):
        return
    call = call_in(frame.here, specs(RETRIEVER, frame.name, None), named(frame.inputs, "query"))
    if call is not None:
        call.start = frame.start
        call.close(outputs)
    frame.mark_searched()


def close_tool(frame: Frame, call: Call, output: object) -> None:
    """End a tool's call with its result, the failure that its message reports, or the documents in its artifact."""
    result, error, along = tool_result(output)
    if error is not None:
        call.refuse("ToolError", error)
        return
    if not frame.searched and documents_in(along) is not None:
        call.read_hits(along)
        frame.mark_searched()
    call.close(result)


def record_model(frame: Frame, response: LLMResult | None) -> str:
    """Record a finished call of a model; return its text."""
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
    """Record a call of a model that an exception left; return the text until then."""
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
    """Return the open events below a root; none for any other event."""
    if root.parent is not None:
        return ()
    found = (frames.get(key) for key in root.keys or ())
    return tuple(frame for frame in found if frame is not None and frame is not root)


def streamed_so_far(frame: Frame, left: Sequence[Frame], outputs: object) -> Any:
    """Return the part of a result that a run had streamed when its reader left, and record the models that were still streaming.

    Args:
        frame: the run's frame.
        left: the events inside it that have not ended.
        outputs: the output of the root so far, without its last piece; None if unknown.
    """
    text = ""
    for part in left:
        if part.tokens:
            text = record_failed_model(part, GeneratorExit(), None)
    streamed = answer_of(outputs) if outputs is not None else None
    if isinstance(streamed, str) and text.startswith(streamed):
        return text
    return streamed if streamed is not None else text or answer_of(frame.last)


def _read(frame: Frame, response: LLMResult | None, *, error: bool = False) -> tuple[str, dict[str, int], str | None]:
    run = frame.run
    usage: dict[str, int] = {}
    model: str | None = None
    text = ""
    if response is not None:
        text, usage, model = reply_of(response)
    if error and frame.tokens and (pieces := "".join(frame.tokens)).startswith(text):
        text = pieces  # the response of a failed stream lacks its last piece
    if text:
        text = render_text(text, run.max_text) if run.owner.capture_output else NOT_CAPTURED
        frame.home.last = text
    return text, usage, model
