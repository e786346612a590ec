"""The context of LangChain's events, and those that are open: their nesting, names, objectives, asyncio tasks, and the suspended runs.

The place of an event comes from the configuration that LangChain passes through its threads and tasks. A context variable set in a callback
would leak, because streams call back in one context and continue in another.

A run is stored as suspended before LangGraph returns the question, so that a kill right afterwards loses nothing.
"""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import ref

from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackHandler, BaseCallbackManager
from langchain_core.runnables.config import var_child_runnable_config

from grace_kp.confidence import UNKNOWN, checked_scores
from grace_kp.record import CURRENT, HOST, Call, Pause, Run, Spec, find_frame
from grace_kp.trace import render_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType

    from grace_kp.confidence import Scores
    from grace_kp.record import Recorder

    Task: TypeAlias = asyncio.Task[object]
    Watch: TypeAlias = tuple[ref[Task], Callable[[Task], None]]
    Attempt: TypeAlias = tuple["Frame", tuple[str, str], int]


PLACE = "langgraph_checkpoint_ns"
"""Entry of LangGraph's metadata: the node of a graph in which an event happens."""
_config_here = var_child_runnable_config.get


def frame_here(frames: Mapping[int, Frame] | None = None) -> Frame | None:
    """Return the innermost LangChain event of this context among `frames`, by default those of all our handlers."""
    config = _config_here()
    if not config:
        return None
    manager = config.get("callbacks")
    if not isinstance(manager, BaseCallbackManager) or manager.parent_run_id is None:
        return None
    key = manager.parent_run_id.int
    if frames is not None:
        return frames.get(key)
    known = (getattr(getattr(handler, "tracker", None), "frames", {}).get(key) for handler in manager.handlers)
    return next((frame for frame in known if frame is not None), None)


def _find(ours: Call | Run | None) -> Call | Run | None:
    if not _config_here():
        return ours
    frame = frame_here()
    return ours if frame is None else frame.inner(ours)


def _place() -> str | None:
    """Return the node of a graph that runs here. After an interrupt, it restarts from its beginning."""
    config = _config_here()
    metadata = config.get("metadata") if config else None
    return metadata.get(PLACE) if metadata else None


def register() -> None:
    """Attach calls that our decorators record inside LangChain to the surrounding LangChain event."""
    HOST.register_location(_find, _place)


SESSION_KEYS = ("langfuse_session_id", "session_id", "conversation_id", "thread_id")
USER_KEYS = ("langfuse_user_id", "user_id")
TAG_KEY = "langfuse_tags"
_INTERNAL_TAGS = ("seq:", "map:", "graph:", "langsmith:", "condition:", "branch:", "fallback:")
_INTERNAL_KEYS = ("langgraph_", "langfuse_", "ls_", "lc_", "checkpoint_", "graph_id", "__pregel")


def attributes_of_config(tags: list[str] | None, metadata: dict[str, Any] | None) -> dict[str, Any]:
    """Return the attributes in the tags and metadata of a root run, without entries of the frameworks."""
    metadata = metadata or {}
    more = metadata.get(TAG_KEY)
    stated = [*(tags or ()), *(more if isinstance(more, list | tuple) else ())]
    own = {
        key: value
        for key, value in metadata.items()
        if key not in SESSION_KEYS and key not in USER_KEYS and not str(key).startswith(_INTERNAL_KEYS)
    }
    return {
        "tags": [tag for tag in stated if isinstance(tag, str) and not tag.startswith(_INTERNAL_TAGS)] or None,
        "user": _first(metadata, USER_KEYS),
        "session": _first(metadata, SESSION_KEYS),
        "metadata": own or None,
    }


def _first(metadata: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    values = (metadata.get(key) for key in keys)
    return next((render_text(value) for value in values if value is not None and value != ""), None)


CALLERS = 8
"""The most calls between LangChain's manager and a handler, subclasses of the handler included."""
_TEXT_MODEL_START = getattr(AsyncCallbackManager.on_llm_start, "__code__", None)
_frame_at = sys._getframe


class InlineHandler(BaseCallbackHandler):
    """A handler that never waits, so LangChain calls it inside the event loop, which is faster than a thread pool.

    It must call `include_others` at the start of a completion model.
    """

    run_inline = True


def include_others() -> None:
    """Report the start of a completion model to all handlers.

    With an inline handler attached, `AsyncCallbackManager.on_llm_start` calls only inline handlers. A foreign one has this effect anyway.
    """
    frame: FrameType | None = _frame_at(1)
    for _ in range(CALLERS):
        if frame is None or frame.f_code is _TEXT_MODEL_START:
            break
        frame = frame.f_back
    else:
        return
    found = frame.f_locals if frame is not None else {}
    called, others = found.get("inline_handlers"), found.get("non_inline_handlers")
    # The manager is still iterating over this list, so it calls the added handlers, too.
    if called and others and all(isinstance(handler, InlineHandler) for handler in called):
        called.extend(others)


EVERY = "*"
"""Declares all searches that are not declared by name."""
RELEVANCE = frozenset({"similarity_search_with_relevance_scores", "asimilarity_search_with_relevance_scores"})
"""Methods of LangChain's vector stores whose scores are similarities from 0 to 1 by their contract."""
DISTANCE_STORES = frozenset({"Annoy", "Chroma", "FAISS", "LanceDB", "PGVector"})
"""Vector stores whose native scores are distances. A `score` of their documents may be a distance or a similarity."""
MAX_SPECS = 10_000
AGENTS = "langchain_create_agent"

running_loop = asyncio._get_running_loop  # None outside of a loop, where `get_running_loop` would raise an exception


def watch_task(ended: Callable[[BaseException], None]) -> Watch | None:
    """Call `ended` when the task of an event that begins here is done. Return what `unwatch` takes; None outside of any task.

    LangChain does not report the cancellation of a lone tool, or of a sequence while it calls handlers. Only the end of the task shows it.
    """
    loop = running_loop()
    task = None if loop is None else asyncio.current_task(loop)
    if task is None:
        return None

    def done(task: Task) -> None:
        ended(asyncio.CancelledError() if task.cancelled() else RuntimeError("not ended"))

    task.add_done_callback(done)
    return ref(task), done  # weak, so that an unfinished task can be collected, which ends its events


def unwatch(watch: Watch) -> None:
    task = watch[0]()
    if task is not None:
        task.remove_done_callback(watch[1])


class Frame:
    """One open event: the call or run that it belongs to, and the call or run that ends with it.

    Tools and retrievers below a root are the most frequent events and need only these slots. A `Chain` sets the other attributes, too.
    """

    __slots__ = ("here", "home", "keys", "leaf", "name", "own", "parent", "searched", "seen", "thread")

    checkpoint: str | None = None
    failures: dict[str, Attempt | None] | None = None
    """For the frame of a run, what no callback reports: the places, parsers and schemas that failed before. A first failed attempt of a node
    counts once the node is tried again."""
    inputs: object = None
    interrupts: tuple[str, ...] = ()
    is_agent_model: bool = False
    """True for the node of the model in an agent of `create_agent`."""
    is_node: bool = False
    is_parser: bool = False
    last: Any = None
    """For the frame of a run, the latest text of a model or update of a node in it."""
    place: str | None = None
    places: set[str] | None = None
    quiet: bool = False
    digests: tuple[bytes, ...] = ()
    """For the root of a thread, digests of what its user has written, as far as this process knows."""
    raised: tuple[BaseException, ...] = ()
    """Exceptions inside a node or run that the trace holds already."""
    start: int = 0
    steps: tuple[int, int] | None = None
    """The first and last step of the thread, for the frame of a graph."""
    task: Watch | None = None
    """For a root, the asyncio task in which it began, and the callback there."""
    tokens: list[str] | None = None
    """The tokens that a model has streamed so far."""

    def __init__(self, parent: Frame | None, here: Call | Run, name: str, own: Call | Run | None, seen: object) -> None:
        self.parent = parent
        self.here = here
        """The call or run to which inner events belong."""
        self.name = name
        self.own = own
        """The call or run that ends with this event."""
        self.seen = seen
        """The innermost recorded call or run of the context in which this event began."""
        self.leaf = True
        self.searched = False
        self.home: Chain = self if parent is None else parent.home  # type: ignore[assignment] # a root is a chain
        """The frame that opened the surrounding run."""
        self.keys: set[int] = set() if parent is None else parent.keys
        """Open frames below the root."""
        self.thread: str | None = None if parent is None else parent.thread

    @property
    def run(self) -> Run:
        return self.here.run if isinstance(self.here, Call) else self.here

    def inner_here(self) -> Call | Run:
        ours = CURRENT.get()
        return self.here if ours is None or ours is self.seen else self.inner(ours)

    def inner(self, ours: Call | Run | None) -> Call | Run:
        """Return `ours` if it is inside this event and its run is open, else this event's call or run."""
        if ours is None or self.seen is ours or not (ours.run if isinstance(ours, Call) else ours).open:
            return self.here
        above: Frame | None = self
        while above is not None:
            if above.here is ours or above.own is ours:
                return self.here
            above = above.parent
        return ours

    def mark_searched(self) -> None:
        """Note that search results were recorded here, so that no outer event records them again."""
        frame: Frame | None = self
        while frame is not None and not frame.searched:
            frame.searched = True
            frame = frame.parent


class Chain(Frame):
    """An open chain, graph or node, or any event without an outer one."""

    def __init__(self, parent: Frame | None, here: Call | Run, name: str, inputs: object, place: str | None) -> None:
        super().__init__(parent, here, name, None, CURRENT.get())
        self.inputs = inputs
        self.place = place
        self.start = (here.run if isinstance(here, Call) else here).clock()

    @property
    def is_task(self) -> bool:
        """True for a task of LangGraph's functional API, whose place is that of a node and its own name."""
        place, parent = self.place, self.parent
        if place is None or parent is None or parent.place is None or not place.startswith(f"{parent.place}|"):
            return False
        return place[len(parent.place) + 1 :].partition(":")[0] == self.name

    def enter_node(self, metadata: Mapping[str, Any]) -> None:
        """Mark this as a node of a graph, or a task, and note its step of the thread."""
        self.is_node = True
        self.is_agent_model = self.name == "model" and metadata.get("ls_integration") == AGENTS
        step, home = metadata.get("langgraph_step"), self.home
        if isinstance(step, int):
            home.steps = (step if home.steps is None else home.steps[0], step)


def open_here() -> Call | Run | None:
    here = find_frame()
    if here is None:
        return None
    return here if (here.run if isinstance(here, Call) else here).open else None


class Specs:
    """Descriptions of tools and chains, by kind, name and domain, with the kind of their search scores."""

    def __init__(self) -> None:
        self.known: dict[tuple[str | None, ...], Spec] = {}
        """Descriptions used so far, by kind, name and domain, and the vector store of a retriever. Frequent callbacks read it."""
        self._declared: dict[str, Scores] = {}

    def __call__(self, kind: str, name: str, domain: str | None, store: str | None = None) -> Spec:
        key = (kind, name, domain) if store is None else (kind, name, domain, store)
        spec = self.known.get(key)
        if spec is None:
            if len(self.known) >= MAX_SPECS:
                self.known.clear()
            scores = self._scores_of(name, store)
            spec = self.known[key] = Spec(None, kind=kind, name=name, domain=domain, scores=scores)
        return spec

    def declare(self, scores: Scores | Mapping[str, Scores] | None) -> None:
        """Declare the scores, as for `Grace.retriever`: for all searches, or by the name of a retriever, tool, chain or vector store."""
        if scores is None:
            return
        declared = dict(scores) if isinstance(scores, Mapping) else {EVERY: scores}
        for name, kind in declared.items():
            if kind is None:
                raise ValueError(f"scores of {name!r} must not be None")
            checked_scores(kind)
        self._declared.update(declared)
        self.known.clear()

    def _scores_of(self, name: str, store: str | None) -> Any:
        for known in (name, store, EVERY):
            if known is not None and known in self._declared:
                return self._declared[known]
        if name in RELEVANCE:
            return "similarity"
        return UNKNOWN if store in DISTANCE_STORES else None


MAX_SUSPENDED = 256
MAX_INTERRUPTS = 100


class Suspensions:
    """The suspended runs that one recorder holds in this process, by thread, checkpoint and place."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.runs: OrderedDict[tuple[str, str | None, str | None], Run] = OrderedDict()

    def take(self, thread: str, checkpoint: str | None, place: str | None) -> Run | None:
        """Remove and return the run that stopped there; None if this process has none."""
        run = self.runs.pop((thread, checkpoint, place), None)
        # The checkpoint was not reported if the reader of the stream left at the question.
        return run if run is not None or checkpoint is None else self.runs.pop((thread, None, place), None)

    def give_back(self, run: Run) -> None:
        if run.pause is not None:
            self.runs[run.pause.thread, run.pause.checkpoint, run.pause.place] = run

    def ask(self, frame: Frame, interrupts: Iterable[Any]) -> None:
        """Store the runs around an interrupted node as suspended before LangGraph returns the question."""
        if not frame.thread:
            return
        waiting: list[tuple[Run, Pause]] = []
        places: set[str] = set()
        above: Frame | None = frame
        while above is not None:
            if isinstance(above.own, Run):
                waiting.append((above.own, _pause(above, above.own, ids_of(interrupts), places)))
                places = set()
            if above.place is not None:
                places.add(above.place)
            above = above.parent
        for run, _ in waiting:
            run.asked = True
        self._recorder.asked(waiting)

    def suspend(self, frame: Frame, run: Run) -> None:
        """Suspend a run, and keep it by its thread, checkpoint and place."""
        pause = _pause(frame, run, frame.interrupts)
        if frame.thread:
            self.runs[pause.thread, pause.checkpoint, pause.place] = run
            while len(self.runs) > MAX_SUSPENDED:
                self.runs.popitem(last=False)
        run.suspend(pause)


def _pause(frame: Frame, run: Run, interrupts: tuple[str, ...], places: Iterable[str] = ()) -> Pause:
    """Return where a run waits, and add it to the run's facts."""
    run.facts = facts = run.facts if run.facts is not None else {}
    note_steps(frame)
    if frame.checkpoint is not None:
        facts["checkpoint_id"] = frame.checkpoint
    if interrupts:
        facts["interrupts"] = list(interrupts)
    place = frame.place if frame.parent is not None else None
    return Pause(frame.thread or "", frame.checkpoint, place, frozenset({*places, *(frame.places or ())}))


def ids_of(interrupts: Iterable[Any]) -> tuple[str, ...]:
    return tuple(str(interrupt.id) for interrupt in interrupts if hasattr(interrupt, "id"))[:MAX_INTERRUPTS]


def note_steps(frame: Frame) -> None:
    """Add the range of the thread's steps in a run to its trace, as [first, last]."""
    run = frame.own
    if frame.steps is not None and isinstance(run, Run) and run.facts is not None:
        run.facts["steps"] = list(frame.steps)


def interrupts_of(error: BaseException) -> tuple[Any, ...]:
    found = error.args[0] if error.args else ()
    return tuple(found) if isinstance(found, list | tuple) else ()
