"""The items that a generator yields, kept within bounds: the result of a run or call that streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.record._call import Call
from grace_kp.record._guard import shielded, shielded_end
from grace_kp.trace import MAX_ITEMS, render

if TYPE_CHECKING:
    from grace_kp.confidence import ResultReader
    from grace_kp.record._location import Frame


class Stream:
    """The frame of a generator: its items, up to a number and a length, and how it ended."""

    __slots__ = ("closing", "count", "found", "frame", "items", "last", "left", "text")

    def __init__(self, frame: Frame | None) -> None:
        self.frame = frame
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
        if self.frame is None:
            return
        if self.closing is None:
            if isinstance(self.frame, Call):
                # A streamed text is one result.
                self.frame.hits = None if self.found is None or self.text else self.found.results()
                self.frame.end_with(self._result(returned), self.last if returned is None else returned)
            else:
                self.frame.close(self._result(returned))
        else:
            self.fail(self.closing)

    @shielded_end
    def fail(self, error: BaseException) -> None:
        """Record that an exception left the generator; the items until then are kept."""
        if self.frame is not None:
            if self.count and self.frame.result is None:
                self.frame.result = self._result(None)
            if isinstance(self.frame, Call):
                self.frame.hits = self.frame.found()
            self.frame.fail(error)

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
