"""The items that a generator yields, kept within bounds: the result of a run or call that streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.record._call import Call
from grace_kp.record._guard import shielded, shielded_end
from grace_kp.trace import MAX_ITEMS, render

if TYPE_CHECKING:
    from grace_kp.confidence import ResultReader
    from grace_kp.record._location import Frame


class Streams:
    """The streams that keep one frame open until the last of them has ended: those in a result, and those that a stream yields."""

    __slots__ = ("error", "open", "results")

    def __init__(self, *, count: int = 0) -> None:
        self.open = count
        self.error: BaseException | None = None
        """The first error that left one of them."""
        self.results: list[Any] = []


class Stream:
    """The frame of a generator: its items, up to a number and a length, and how it ended."""

    __slots__ = ("beside", "closing", "count", "found", "frame", "items", "last", "left", "text")

    def __init__(self, frame: Frame | None, beside: Streams | None = None) -> None:
        self.frame = frame
        self.beside = beside
        self.closing: BaseException | None = None
        self.items: list[Any] = []
        self.last: Any = None
        self.count = 0
        self.text = True
        self.left = 0 if frame is None or not frame.run.owner.capture_output else frame.run.max_text
        self.found: ResultReader | None = None
        """Reads the results that a streaming retriever yields, before they are rendered or dropped."""
        if isinstance(frame, Call) and frame.spec.searches:
            self.found = frame.hits = _reader_for(frame)

    @shielded
    def add(self, item: object) -> None:
        """Record an item."""
        self.count += 1
        self.last = item
        if self.found is not None:
            self.found.read_item(item)
        if type(item) is not str:
            self.text = False
            if len(self.items) >= MAX_ITEMS:
                self.left = 0
        if self.left > 0:
            rendered = render(item, self.left)
            self.items.append(rendered)
            self.left -= len(rendered) if type(rendered) is str else 50

    def thrown(self, error: BaseException) -> None:
        """Note what the caller threw into the generator. A close ends the stream, however the generator reacts to it."""
        if isinstance(error, GeneratorExit):
            self.closing = error

    @shielded_end
    def close(self, returned: object) -> None:
        """Record that the generator is exhausted, or returned when it was closed."""
        self._end(returned if self.closing is None else None, self.closing)

    @shielded_end
    def fail(self, error: BaseException) -> None:
        """Record that an exception left the generator; the items until then are kept."""
        self._end(None, error)

    def _end(self, returned: object, error: BaseException | None) -> None:
        frame, beside = self.frame, self.beside
        if frame is None:
            return
        result = self._result(returned)
        if beside is not None:
            with frame.run.owner.lock:
                beside.open -= 1
                beside.error = error = beside.error or error
                beside.results += [result] if self.count or not beside.open else []
                if beside.open:
                    return
            result = beside.results if len(beside.results) > 1 else beside.results[0]
        if error is not None:
            if result and frame.result is None:
                frame.result = result
            if isinstance(frame, Call):
                frame.hits = frame.found()
            frame.fail(error)
        elif isinstance(frame, Call):
            # A streamed text is one result.
            frame.hits = None if self.found is None or self.text else self.found.results()
            frame.end_with(result, self.last if returned is None else returned)
        else:
            frame.close(result)

    def _result(self, returned: object) -> Any:
        """Return streamed texts as one text, anything else as a list."""
        if self.text and self.count:
            joined: Any = "".join(self.items)
            more = self.count - len(self.items)
            out: Any = f"{joined}… [{more:,} more pieces]" if more else joined
        else:
            out = list(self.items)
            if self.count > len(out):
                out.append(f"… {self.count - len(out):,} more")
        if returned is None:
            return out
        return {"yielded": out, "returned": returned} if self.count else returned


@shielded
def _reader_for(search: Call) -> ResultReader | None:
    """Return a reader for the results that a streaming retriever yields."""
    from grace_kp.confidence import ResultReader  # loaded with the first search

    return ResultReader(search.spec.scores)
