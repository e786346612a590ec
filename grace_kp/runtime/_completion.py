"""The completion of stored runs: the judgement, the novelty, the user's scorers, and at last the hooks.

A separate thread completes runs in the order in which they ended, so that nothing here delays the storing of other runs. If the process
is killed first, another process finds in the store what a run still awaits.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.background import Latch, Lock, PoliteLock, Resident, Worker, may_wait, watch
from grace_kp.record import note, to_json
from grace_kp.value import embedded_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grace_kp.record import Run
    from grace_kp.runtime._assessment import Assessor, Judgement
    from grace_kp.runtime._choices import ModelChoice
    from grace_kp.runtime._scoring import Scoring, TraceScorers

JUDGEMENT, VALUE, SCORES = "judgement", "value", "scores"
WARM_BATCH = 64
MAX_WAITING = 2_000
"""Runs that may wait for judgements and scores; beyond it they go without, so that slow models do not fill the memory."""
DOCUMENT_FACTOR = 5
"""How much larger a document is than its JSON."""
TOO_MANY = f"more than {MAX_WAITING:,} runs wait, or more than memory may hold"
POLL_SECONDS = 0.1


@dataclass(slots=True)
class Completion:
    """A stored run on its way to completion."""

    data: bytes
    """The trace as it is stored."""
    document: dict[str, Any] | None = None
    """The trace as a document; None if nothing is awaited."""
    awaits: frozenset[str] = frozenset()
    texts: Sequence[str] = ()
    """Texts of search results, which are not part of the trace."""
    run: Run | None = None
    """The run of this process; None for a run of another."""
    is_adopted: bool = False
    """Whether another process recorded the run. Its hooks are not called here."""
    judgement: Judgement | None = None
    scoring: Scoring | None = None
    is_assessed: bool = False
    labels: Sequence[Callable[[], object]] = ()
    """Store labels of its actions, by their results."""
    calls_hooks: bool = True
    left: tuple[str, ...] = ()
    """Parts that the run still awaits because this runtime cannot add them."""


class Completer(Resident):
    """Completes stored runs, in order."""

    def __init__(
        self,
        models: ModelChoice,
        scorers: TraceScorers | None,
        assessor: Callable[[], Assessor],
        clean: Callable[[str], str],
        finish: Callable[[Completion], object],
        hand_out: Callable[[Completion], object],
        max_bytes: int = 256 << 20,
    ) -> None:
        self._max_bytes = max_bytes
        self._models, self._scorers, self._assessor = models, scorers, assessor
        self._clean, self._finish, self._hand_out = clean, finish, hand_out
        self.after_fork()
        self._worker = Worker(self._round, name="completer")
        watch(self)

    def import_locks(self) -> Sequence[Lock]:
        """Return what is held during a fork. Hooks and embedders run outside of it, so a fork does not wait for them."""
        return (self._completing,)

    def after_fork(self) -> None:
        """Forget in the child what waited: the parent completes it."""
        self._turn, self._completing, self._handing = PoliteLock(), PoliteLock(), PoliteLock()
        self._queue: deque[Completion] = deque()
        self._finished: deque[Completion] = deque()
        self._begun = self._warmed = 0
        """How many at the head of the queue are being judged, and are embedded."""
        self._news = Latch()
        self._given_up = self._is_crowded = False

    @property
    def is_busy(self) -> bool:
        """Whether stored runs are not complete, or not handed out."""
        return bool(self._queue or self._finished)

    def add(self, completions: Sequence[Completion]) -> None:
        self._queue.extend(completions)
        self._worker.wake()

    def adopt(self, documents: Sequence[bytes]) -> None:
        """Complete stored runs of dead processes, as far as this runtime can. Their hooks were those of the process that died."""
        if documents:
            self.add([Completion(data, is_adopted=True) for data in documents])

    def resume(self) -> None:
        """Go on: a judgement or a score that a run waits for is there."""
        self._news.open()
        if self._queue:
            self._worker.wake()

    def give_up(self) -> None:
        """Wait for no judgement and no score any longer."""
        self._given_up = True
        if self._models.are_chosen:
            self._models.get().judge.give_up()
        if self._scorers is not None:
            self._scorers.give_up()
        self.resume()

    def _round(self) -> float | None:
        self.complete(0.0, waits=False)
        return POLL_SECONDS if self._queue else None

    def complete(self, deadline: float | None, *, waits: bool = True) -> bool:
        """Complete what can be completed, waiting until a time of `time.monotonic`; return whether everything is complete.

        Inside a hook or an embedder it returns False at once, because these would wait for themselves.
        """
        if not self.is_busy:
            return True
        if self._turn.is_mine or self._handing.is_mine:
            return False
        if not may_wait():
            deadline = 0.0
        try:
            return self._complete(deadline, waits=waits)
        except BaseException:
            for lock in (self._turn, self._handing):
                lock.let_go()  # an interrupt may come right after a lock is taken
            raise

    def _complete(self, deadline: float | None, *, waits: bool) -> bool:
        while True:
            self._news.wait(0.0)
            left = None if deadline is None else deadline - time.monotonic()
            timeout = -1.0 if left is None or not waits else max(0.0, left)
            for lock, step in ((self._turn, self._complete_first), (self._handing, self._hand_out_finished)):
                if not lock.acquire(timeout=timeout):
                    return False
                try:
                    step()
                finally:
                    lock.release()
            if not self._queue:
                return True
            if not waits or (left is not None and left <= 0):
                return False
            self._news.wait(POLL_SECONDS if left is None else min(left, POLL_SECONDS))

    def _hand_out_finished(self) -> None:
        while self._finished:
            try:
                self._hand_out(self._finished[0])
            except Exception as error:  # noqa: BLE001
                note("handing out a run", error)
            finally:
                if self._finished:  # not in a child that a hook has forked
                    self._finished.popleft()  # last, so that a thread that flushes meanwhile waits for the hooks

    def _complete_first(self) -> None:
        while self._queue:
            while self._begun < len(self._queue):
                self._try_step(self._begin, self._queue[self._begun])
                self._begun += 1
            ready = []
            self._is_crowded = self._has_too_many()
            for number in range(min(WARM_BATCH, len(self._queue))):
                completion = self._queue[number]
                if completion.judgement is not None and not completion.judgement.is_done:
                    if not self._is_crowded:
                        break
                    completion.judgement.skip(TOO_MANY)
                ready.append(completion)
            self._warm(ready)
            # Later runs are assessed and their scorers begin even while the first waits for its scores.
            is_done = [self._try_step(self._is_done, completion) is not False for completion in ready]
            done = [*is_done, False].index(False)
            for _ in range(done):
                # It leaves the queue last: whoever flushes meanwhile must see that something is under way.
                completion = self._queue[0]
                if completion.document is not None:
                    self._try_step(self._finish, completion)
                run = completion.run
                if completion.document is None and run is not None and (run.keep or run.capture is not None):
                    run.document = completion.data  # whoever asks for the trace gets what is stored
                self._finished.append(completion)
                self._queue.popleft()
                self._begun -= 1
                self._warmed = max(0, self._warmed - 1)
            if not done or done < len(ready):
                return

    def _has_too_many(self) -> bool:
        if len(self._queue) > MAX_WAITING:
            return True
        waiting = [len(completion.data) for completion in tuple(self._queue) if completion.document is not None]
        return len(waiting) > 1 and sum(waiting) * DOCUMENT_FACTOR > self._max_bytes

    def _try_step(self, step: Callable[[Completion], object], completion: Completion) -> object:
        """Do a step of a completion. If it fails, the run stays as it is stored, awaiting what could not be added."""
        self._completing.step_back()
        try:
            with self._completing:
                return step(completion)
        except Exception as error:  # noqa: BLE001
            completion.document = None
            note("completing a run", error)
            return None

    def _begin(self, completion: Completion) -> None:
        if completion.is_adopted:
            self._adopt(completion)
        document = completion.document
        if document is None or JUDGEMENT not in completion.awaits:
            return
        judge = self._models.get().judge
        if self._given_up:
            judge.give_up()
        if completion.judgement is None:
            completion.judgement = judge.plan(document, completion.texts)
        judge.start(completion.judgement)

    def _adopt(self, completion: Completion) -> None:
        """Find out what a stored run of a dead process awaits, and what this runtime can add."""
        document = json.loads(completion.data)
        awaits = frozenset(document["grace"].get("awaits") or ())
        models = self._models.get()
        # The texts of search results are gone, so without a model to ask there is nothing to judge by.
        present = {JUDGEMENT: models.judge.asks_models, VALUE: models.embedder is not None, SCORES: self._scorers}
        completion.awaits = frozenset(part for part in awaits if present.get(part))
        completion.left = tuple(sorted(awaits - completion.awaits))
        completion.document = document if completion.awaits else None

    def _warm(self, ready: Sequence[Completion]) -> None:
        """Embed the runs that are assessed next in one call. A failure repeats, and is reported, when each run is assessed."""
        new = [item.document for item in ready[self._warmed :] if item.document is not None and VALUE in item.awaits]
        self._warmed = len(ready)
        if self._is_crowded:
            return
        embed = getattr(self._models.get().embedder, "embed", None) if len(new) > 1 else None
        if callable(embed):
            with contextlib.suppress(Exception):
                embed([embedded_text(document) for document in new])

    def _is_done(self, completion: Completion) -> bool:
        """Return whether a run is complete; the first call assesses it and starts the scorers."""
        document = completion.document
        if document is None:
            return True
        if not completion.is_assessed:
            completion.is_assessed = True
            self._assess(completion, document)
        scoring, scorers = completion.scoring, self._scorers
        if scoring is None or scorers is None:
            return True
        if not scoring.is_done and self._is_crowded:
            scorers.skip(TOO_MANY)
        return scoring.is_done

    def _assess(self, completion: Completion, document: dict[str, Any]) -> None:
        if self._is_crowded and VALUE in completion.awaits:
            # Embedding takes time, and another process can do it.
            completion.left = tuple(sorted({*completion.left, VALUE}))
        if left := completion.left:
            document["grace"]["awaits"] = list(left)
        else:
            document["grace"].pop("awaits", None)
        judgement = completion.judgement
        if judgement is not None or VALUE in completion.awaits:
            own = (document["grace"].get("confidence") or {}).get("own")
            factors = None if judgement is None else judgement.factors
            self._assessor().assess(
                document,
                own_confidence=own,
                factors=factors,
                judgement=judgement,
                has_value=VALUE not in completion.left,
            )
        if SCORES in completion.awaits and self._scorers is not None:
            from grace_kp.trace import ReasoningTrace

            trace = ReasoningTrace.model_validate_json(to_json(document))
            completion.scoring = self._scorers.begin(trace, self._clean)
