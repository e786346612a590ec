"""One LangChain event that has begun: where it stands, and what is read off its surroundings."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grace_kp.confidence import UNKNOWN, checked_scores
from grace_kp.integrations.langchain._messages import documents_in, question_of
from grace_kp.record import CURRENT, RETRIEVER, Call, Run, Spec, located
from grace_kp.trace import cut, render, to_text

if TYPE_CHECKING:
    from grace_kp.confidence import Scores
    from grace_kp.record import Recorder

MAX_OBJECTIVE = 2_000
EVERY = "*"
"""The name that stands for every search that is not declared by a name of its own."""
RELEVANCE = frozenset({"similarity_search_with_relevance_scores", "asimilarity_search_with_relevance_scores"})
"""Methods of LangChain's vector stores whose scores are similarities from 0 to 1 by their contract."""
DISTANCE_STORES = frozenset({"Annoy", "Chroma", "FAISS", "LanceDB", "PGVector"})
"""Vector stores whose own scores are distances: a `score` in the metadata of their documents may be one or the other."""
MAX_SPECS = 10_000
_NONE: list[str] = []
AGENTS = "langchain_create_agent"
STREAMED = {"input": ""}
"""What a chain that is streamed says its input is, until it has read it."""


class Failures:
    """The failures of one run that no callback reports."""

    __slots__ = ("attempts", "names")

    def __init__(self) -> None:
        self.attempts: dict[str, tuple[Frame, tuple[str, str], int]] = {}
        """Failed first attempts of nodes, by their place; they count once the node is tried again."""
        self.names: set[str] = set()
        """Places, parsers and schemas that have failed before."""


class Frame:
    """One event that has begun: what is inside of it, and what is to be closed when it ends."""

    __slots__ = (
        "checkpoint",
        "failures",
        "here",
        "home",
        "inputs",
        "interrupts",
        "is_agent_model",
        "is_node",
        "is_parser",
        "keys",
        "last",
        "leaf",
        "name",
        "own",
        "parent",
        "place",
        "places",
        "quiet",
        "raised",
        "searched",
        "seen",
        "start",
        "steps",
        "task",
        "thread",
        "tokens",
    )

    def __init__(
        self,
        parent: Frame | None,
        here: Call | Run,
        name: str,
        inputs: object,
        place: str | None,
        own: Call | None = None,
    ) -> None:
        self.parent = parent
        self.here = here
        """The call or run that what happens inside belongs to."""
        self.name = name
        self.inputs = inputs
        self.place = place
        self.own: Call | Run | None = own
        """What ends when this does."""
        if parent is None:
            self.home: Frame = self
            """The frame whose run this is in."""
            self.keys: set[int] | None = None
            """The frames that are open below the root."""
            self.thread: str | None = None
        else:
            self.home, self.keys, self.thread = parent.home, parent.keys, parent.thread
        self.seen = CURRENT.get()
        self.leaf = True
        self.searched = False
        self.quiet = False
        self.places: set[str] | None = None
        self.checkpoint: str | None = None
        self.interrupts: list[str] = _NONE
        self.steps: tuple[int, int] | None = None
        """The first and the last of the thread's steps in this run, for the frame of a graph."""
        self.is_node = False
        self.raised: list[BaseException] | None = None
        """Exceptions inside of a node that are recorded already."""
        self.is_agent_model = False
        """Whether this is the node of the model in an agent of `create_agent`."""
        self.is_parser = False
        self.failures: Failures | None = None
        """What has failed in this run without a callback of its own, for the frame of a run."""
        self.last: Any = None
        """What came last in this run, the text of a model or what a node returned, for the frame of a run."""
        self.tokens: list[str] | None = None
        """What a model has streamed so far."""
        self.task: set[int] | None = None
        """The open events of the asyncio task that this one began in, for a root."""
        # A call has its own beginning.
        self.start = (here.run if isinstance(here, Call) else here).clock() if own is None else 0

    @property
    def is_task(self) -> bool:
        """Whether this is a task of LangGraph's functional API: a place of its own inside of a node's, under its own name."""
        place, parent = self.place, self.parent
        if place is None or parent is None or parent.place is None or not place.startswith(f"{parent.place}|"):
            return False
        return place[len(parent.place) + 1 :].partition(":")[0] == self.name

    def enter_node(self, metadata: Mapping[str, Any]) -> None:
        """This is a node of a graph, or a task; note which step of its thread it is in."""
        self.is_node = True
        self.is_agent_model = self.name == "model" and metadata.get("ls_integration") == AGENTS
        step, home = metadata.get("langgraph_step"), self.home
        if isinstance(step, int):
            home.steps = (step if home.steps is None else home.steps[0], step)

    @property
    def run(self) -> Run:
        """The run this is in."""
        return self.here.run if isinstance(self.here, Call) else self.here

    def inner_here(self) -> Call | Run:
        """The innermost call or run of this context, which is in this event."""
        ours = CURRENT.get()
        return self.here if ours is None or ours is self.seen else self.inner(ours)

    def inner(self, ours: Call | Run | None) -> Call | Run:
        """The inner one of this and of our own innermost call or run, which may stand around it or inside of it."""
        if ours is None or self.seen is ours or not (ours.run if isinstance(ours, Call) else ours).open:
            return self.here
        above: Frame | None = self
        while above is not None:
            if above.here is ours or above.own is ours:
                return self.here
            above = above.parent
        return ours

    def found(self) -> None:
        """Search results were recorded in here, so that nothing around it takes them for its own."""
        frame: Frame | None = self
        while frame is not None and not frame.searched:
            frame.searched = True
            frame = frame.parent


def named(inputs: object, name: str) -> dict[str, Any]:
    """An input as arguments by name: its own keys, or this name for the whole of it."""
    if isinstance(inputs, Mapping) and all(isinstance(key, str) for key in inputs):
        return dict(inputs)
    return {name: inputs}


def open_here() -> Call | Run | None:
    here = located()
    if here is None:
        return None
    return here if (here.run if isinstance(here, Call) else here).open else None


def holds_documents(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(documents_in(part) is not None for part in value.values())
    return documents_in(value) is not None


class Specs:
    """What is known of tools and chains, by kind, name and domain; and what the scores of their search results are."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str | None, str | None], Spec] = {}
        self._declared: dict[str, Scores] = {}
        self._searched = threading.local()
        """The vector store of the retriever that begins in this thread."""

    def __call__(self, kind: str, name: str, domain: str | None) -> Spec:
        """The one of this kind and name."""
        store = self._searched.__dict__.get(name) if kind == RETRIEVER else None
        key = (kind, name, domain, store)
        spec = self._known.get(key)
        if spec is None:
            if len(self._known) >= MAX_SPECS:
                self._known.clear()
            scores = self._scores_of(name, store)
            spec = self._known[key] = Spec(None, kind=kind, name=name, domain=domain, scores=scores)
        return spec

    def declare(self, scores: Scores | Mapping[str, Scores] | None) -> None:
        """Take over what the user says of scores: for all searches, or by the name of a retriever, tool, chain or vector store.

        Raises:
            ValueError: a kind of scores is unknown.
        """
        if scores is None:
            return
        declared = dict(scores) if isinstance(scores, Mapping) else {EVERY: scores}
        for name, kind in declared.items():
            if kind is None:
                raise ValueError(f"scores of {name!r} must not be None")
            checked_scores(kind)
        self._declared.update(declared)
        self._known.clear()

    def stored_in(self, name: str, metadata: Mapping[str, Any] | None) -> None:
        """Note which class of vector store a retriever searches, where LangChain says so."""
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
    """Whether an input is what a stream says before it has read its input."""
    return type(inputs) is dict and inputs == STREAMED


def objective_of(recorder: Recorder, name: str, inputs: object) -> str:
    """What a run is for: the question in its input, else the call itself."""
    if not recorder.capture_input:
        return name
    text = question_of(inputs)
    limit = min(MAX_OBJECTIVE, recorder.max_text)
    if text and text.strip():
        return cut(text, limit)
    if inputs is None or streamed(inputs) or type(inputs).__name__ == "Command":
        return name
    return cut(f"{name}({to_text(render(inputs, 200))})", limit)
