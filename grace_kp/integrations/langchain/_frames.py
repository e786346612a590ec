"""One open event of LangChain: its place among the others, and what its surroundings state about it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grace_kp.confidence import UNKNOWN, checked_scores
from grace_kp.integrations.langchain._messages import documents_in, question_of
from grace_kp.record import CURRENT, RETRIEVER, Call, Run, Spec, call_alone, located
from grace_kp.trace import cut, render, to_text

if TYPE_CHECKING:
    from grace_kp.confidence import Scores
    from grace_kp.integrations.langchain._tasks import Watch
    from grace_kp.record import Recorder

MAX_OBJECTIVE = 2_000
EVERY = "*"
"""Stands for every search that is not declared by its name."""
RELEVANCE = frozenset({"similarity_search_with_relevance_scores", "asimilarity_search_with_relevance_scores"})
"""Methods of LangChain's vector stores whose scores are similarities from 0 to 1 by their contract."""
DISTANCE_STORES = frozenset({"Annoy", "Chroma", "FAISS", "LanceDB", "PGVector"})
"""Vector stores whose native scores are distances: a `score` beside their documents may be a distance or a similarity."""
MAX_SPECS = 10_000
_NONE: list[str] = []
AGENTS = "langchain_create_agent"
STREAMED = {"input": ""}
"""The input that LangChain reports for a streamed chain before it has read its input."""


class Failures:
    """The failures of one run that no callback reports."""

    __slots__ = ("attempts", "names")

    def __init__(self) -> None:
        self.attempts: dict[str, tuple[Frame, tuple[str, str], int]] = {}
        """Failed first attempts of nodes, by their place; they count once the node is tried again."""
        self.names: set[str] = set()
        """Places, parsers and schemas that have failed before."""


class Frame:
    """One open event: the call or run that it belongs to, and the call or run that ends with it.

    Tools and retrievers below a root need no more than this, and come most often. The class holds the values of what only a `Chain`
    changes.
    """

    __slots__ = ("here", "home", "keys", "leaf", "name", "own", "parent", "searched", "seen")

    checkpoint: str | None = None
    failures: Failures | None = None
    inputs: object = None
    interrupts: list[str] = _NONE
    is_agent_model: bool = False
    is_node: bool = False
    is_parser: bool = False
    last: Any = None
    place: str | None = None
    places: set[str] | None = None
    quiet: bool = False
    raised: list[BaseException] | None = None
    start: int = 0
    steps: tuple[int, int] | None = None
    task: Watch | None = None
    tokens: list[str] | None = None

    def __init__(self, parent: Frame, here: Call | Run, name: str, own: Call | Run | None, seen: object) -> None:
        self.parent: Frame | None = parent
        self.here = here
        """The call or run that events inside it belong to."""
        self.name = name
        self.own = own
        """The call or run that ends with it."""
        self.seen = seen
        """Our own innermost call or run of the context in which it began."""
        self.home: Chain = parent.home
        """The frame that opened the run around it."""
        self.keys: set[int] = parent.keys
        """The frames that are open below the root."""
        self.leaf = True
        self.searched = False

    @property
    def thread(self) -> str | None:
        """The thread of the graph around it."""
        return self.home.thread

    @property
    def run(self) -> Run:
        """The run around it."""
        return self.here.run if isinstance(self.here, Call) else self.here

    def inner_here(self) -> Call | Run:
        """Return the innermost call or run of this context, inside this event."""
        ours = CURRENT.get()
        return self.here if ours is None or ours is self.seen else self.inner(ours)

    def inner(self, ours: Call | Run | None) -> Call | Run:
        """Return this event's call or run, or our own innermost one if that stands inside this event and not around it."""
        if ours is None or self.seen is ours or not (ours.run if isinstance(ours, Call) else ours).open:
            return self.here
        above: Frame | None = self
        while above is not None:
            if above.here is ours or above.own is ours:
                return self.here
            above = above.parent
        return ours

    def mark_searched(self) -> None:
        """Note that search results were recorded in here, so that no event around it records them again."""
        frame: Frame | None = self
        while frame is not None and not frame.searched:
            frame.searched = True
            frame = frame.parent


class Chain(Frame):
    """An open chain, graph or node, or any event without one around it."""

    __slots__ = (
        "checkpoint", "failures", "inputs", "interrupts", "is_agent_model", "is_node", "is_parser", "last", "place",
        "places", "quiet", "raised", "start", "steps", "task", "thread", "tokens",
    )  # fmt: skip

    def __init__(self, parent: Frame | None, here: Call | Run, name: str, inputs: object, place: str | None) -> None:
        self.parent = parent
        self.here = here
        self.name = name
        self.inputs = inputs
        self.place = place
        self.own = None
        if parent is None:
            self.home = self
            self.keys = set()
            self.thread: str | None = None
        else:
            self.home, self.keys, self.thread = parent.home, parent.keys, parent.thread
        self.seen = CURRENT.get()
        self.leaf = True
        self.searched = False
        self.quiet = False
        self.places = None
        self.checkpoint = None
        self.interrupts = _NONE
        self.steps = None
        """The first and the last of the thread's steps in this run, for the frame of a graph."""
        self.is_node = False
        self.raised = None
        """Exceptions inside a node that are recorded already."""
        self.is_agent_model = False
        """True for the node of the model in an agent of `create_agent`."""
        self.is_parser = False
        self.failures = None
        """For the frame of a run, the failures in it that no callback reports."""
        self.last = None
        """For the frame of a run, the latest text of a model or update of a node in it."""
        self.tokens = None
        """The text that a model has streamed so far."""
        self.task = None
        """For a root, the asyncio task that it began in, and the callback there."""
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


def named(inputs: object, name: str) -> dict[str, Any]:
    """Return an input as arguments by name: its own keys, or `name` for the whole input."""
    if isinstance(inputs, Mapping) and all(isinstance(key, str) for key in inputs):
        return dict(inputs)
    return {name: inputs}


def open_here() -> Call | Run | None:
    """Return the innermost call or run of this context if its run is open."""
    here = located()
    if here is None:
        return None
    return here if (here.run if isinstance(here, Call) else here).open else None


def open_alone(recorder: Recorder, spec: Spec, inputs: dict[str, Any]) -> Call | None:
    """Open a run that consists of one call of a tool; return the call, or None if recording is off."""
    objective = question_of(inputs) if recorder.capture_input else None
    call = call_alone(recorder, spec, inputs, objective=objective and cut(objective, MAX_OBJECTIVE))
    if call is not None:
        call.run.framework = "langchain"
    return call


def holds_documents(value: object) -> bool:
    """Return whether a value is, or a mapping contains, search results."""
    if isinstance(value, Mapping):
        return any(documents_in(part) is not None for part in value.values())
    return documents_in(value) is not None


class Specs:
    """Descriptions of tools and chains, by kind, name and domain, with the kind of their search scores."""

    def __init__(self) -> None:
        self.known: dict[tuple[str | None, ...], Spec] = {}
        """Those used so far, for callbacks that come often: by kind, name and domain, and the vector store of a retriever."""
        self._declared: dict[str, Scores] = {}
        self._searched = threading.local()
        """The vector store of the retriever that begins in this thread."""

    def __call__(self, kind: str, name: str, domain: str | None) -> Spec:
        """Return the description of this kind and name."""
        store = self._searched.__dict__.get(name) if kind == RETRIEVER else None
        key = (kind, name, domain) if store is None else (kind, name, domain, store)
        spec = self.known.get(key)
        if spec is None:
            if len(self.known) >= MAX_SPECS:
                self.known.clear()
            scores = self._scores_of(name, store)
            spec = self.known[key] = Spec(None, kind=kind, name=name, domain=domain, scores=scores)
        return spec

    def declare(self, scores: Scores | Mapping[str, Scores] | None) -> None:
        """Declare the scores, as for `Grace.retriever`: for all searches, or by the name of a retriever, tool, chain or vector store.

        Raises:
            ValueError: a declaration is not one that `Grace.retriever` takes.
        """
        if scores is None:
            return
        declared = dict(scores) if isinstance(scores, Mapping) else {EVERY: scores}
        for name, kind in declared.items():
            if kind is None:
                raise ValueError(f"scores of {name!r} must not be None")
            checked_scores(kind)
        self._declared.update(declared)
        self.known.clear()

    def stored_in(self, name: str, metadata: Mapping[str, Any] | None) -> None:
        """Note the class of vector store that a retriever searches, if LangChain states it."""
        store = metadata.get("ls_vector_store_provider") if metadata else None
        here = self._searched.__dict__
        here.clear()
        if isinstance(store, str):
            here[name] = store

    def _scores_of(self, name: str, store: str | None) -> Any:
        for known in (name, store, EVERY):
            if known is not None and known in self._declared:
                return self._declared[known]
        if name in RELEVANCE:
            return "similarity"
        return UNKNOWN if store in DISTANCE_STORES else None


def streamed(inputs: object) -> bool:
    """Return whether an input is the placeholder of a stream that has not read its input."""
    return type(inputs) is dict and inputs == STREAMED


def objective_of(recorder: Recorder, name: str, inputs: object) -> str:
    """Return the objective of a run: the question in its input, else the call itself."""
    if not recorder.capture_input:
        return name
    text = inputs if type(inputs) is str else question_of(inputs)
    limit = min(MAX_OBJECTIVE, recorder.max_text)
    if text and not text.isspace():
        return text if len(text) <= limit else cut(text, limit)
    if inputs is None or streamed(inputs) or type(inputs).__name__ == "Command":
        return name
    return cut(f"{name}({to_text(render(inputs, 200))})", limit)
