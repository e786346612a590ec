"""Reads what a retriever found, at once or item by item. What is read how is `grace_kp.confidence`, which is loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.record._guard import shielded

if TYPE_CHECKING:
    from grace_kp.confidence import ResultReader, SearchResults
    from grace_kp.record._run import Call, Run


def read_results(result: Any, scores: Any) -> SearchResults:
    """Read a whole result; `scores` is what its figures were declared to be."""
    from grace_kp.confidence import read_results

    return read_results(result, scores)


@shielded
def reader_for(frame: Call | Run | None) -> ResultReader | None:
    """Return a reader for the results that a streaming retriever yields; None for a frame that is no search."""
    spec = getattr(frame, "spec", None)
    if spec is None or not spec.searches or not hasattr(frame, "hits"):
        return None
    from grace_kp.confidence import ResultReader

    return ResultReader(spec.scores)
