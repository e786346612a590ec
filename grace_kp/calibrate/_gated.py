"""The gated actions of a trace: what was decided about each, as far as it can be read, and the part of the run before it.

Traces may come from other programs, so every entry is checked. An entry that cannot be read is counted, never guessed, and a part of it
that cannot be read never makes a level milder.
"""

from __future__ import annotations

import copy
import itertools
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from grace_kp.calibrate._facts import document_of, list_in, mapping_in
from grace_kp.confidence import (
    ActionHistory,
    ConfidenceFactors,
    Evaluation,
    RecordedEvidence,
    RecordedRun,
    RunEvidence,
    evidence_of_calls,
    factors_from_trace,
    history_of_document,
    with_agreement,
    with_judgements,
)
from grace_kp.errors import is_unit
from grace_kp.gating import Basis, Policy, read_alarms
from grace_kp.levels import InterventionLevel
from grace_kp.record import Run, history_of
from grace_kp.store import action_name
from grace_kp.trace import read_decisions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grace_kp.confidence import ActionAlarm, ValuePlaces
    from grace_kp.trace import DecisionRecord, ReasoningTrace

    Document = Mapping[str, Any]

UNREADABLE_GAP = "the recorded gaps in the evidence cannot be read"
UNDECIDED = "no decision was made"
"""Why an entry is left out: its call ended before its level was decided."""
UNREADABLE = "the entry cannot be read"


@dataclass(frozen=True, slots=True)
class RecordedAction:
    """One recorded decision."""

    record: DecisionRecord
    place: int
    """Its position in `grace.decisions`."""
    name: str
    """Its name in labels."""
    level: InterventionLevel
    score: float
    policy: Policy
    """The policy that has the recorded floor."""
    gaps: tuple[str, ...]
    profile_gaps: frozenset[str]
    """Those of the gaps that were about the profile in use, not about the run."""
    at_least: InterventionLevel | None
    """A level that this very call required, whatever the confidence: CONFIRM with an alarm, ESCALATE where no confidence could be computed."""
    alarms: tuple[ActionAlarm, ...]
    step: int | None
    """Number of steps before the decision; None in traces that do not state it."""
    basis: Basis | None
    """The basis of the recorded confidence; None in traces of earlier versions."""


def grace_of(trace: Document | ReasoningTrace) -> Document:
    """Return the data under `grace`; empty without any."""
    if isinstance(trace, Mapping):
        part = trace.get("grace")
    elif hasattr(trace, "grace") and hasattr(trace, "steps"):
        part = trace.grace
    else:
        raise TypeError(f"a trace must be a ReasoningTrace or its dict form, not {type(trace).__name__}")
    return part if isinstance(part, Mapping) else {}


def id_of(trace: Document | ReasoningTrace) -> str:
    """Return the id of a trace; empty if it has none."""
    name = trace.get("id") if isinstance(trace, Mapping) else trace.id
    return name if isinstance(name, str) else ""


def gated_actions(grace: Document) -> Iterator[RecordedAction | str]:
    """Yield the decisions of a trace in order; for an entry that cannot be used, the reason."""
    yield from map(_gated_action, list_in(grace, "decisions"), itertools.count())


def _gated_action(entry: object, place: int) -> RecordedAction | str:
    records = read_decisions([entry])
    if not records or not isinstance(entry, Mapping):
        return UNREADABLE
    record = records[0]
    if "level" not in entry and "score" not in entry:
        return UNDECIDED
    if record.level is None or record.score is None:
        return UNREADABLE
    try:
        policy = replace(Policy.of(entry.get("floor")), unmeasured=entry.get("unmeasured"))
        at_least = None if entry.get("at_least") is None else InterventionLevel(entry["at_least"])
    except (ValueError, TypeError):
        return UNREADABLE
    gaps: Any = entry.get("evidence_gaps") or []
    if not _are_strings(gaps):
        gaps = [UNREADABLE_GAP]
    alarms = read_alarms(entry.get("alarms"))
    if alarms:
        at_least = InterventionLevel.CONFIRM.at_least(at_least or InterventionLevel.CONFIRM)
    profile_gaps: Any = entry.get("profile_gaps")
    return RecordedAction(
        record=record,
        place=place,
        name=action_name(entry, place),
        level=record.level,
        score=float(record.score),
        policy=policy,
        gaps=tuple(gaps),
        profile_gaps=frozenset(profile_gaps if _are_strings(profile_gaps) else ()),
        at_least=at_least,
        alarms=alarms,
        step=record.step if record.step is not None and record.step >= 0 else None,
        basis=Basis.from_facts(entry),
    )


def _are_strings(part: object) -> bool:
    return isinstance(part, list) and all(isinstance(item, str) for item in part)


_OPEN_CALL = ("call_id", "name", "tool_call", "started_ms", "parent")
"""Fields of a call that exist before it ends."""
_KNOWN_BEFORE = ("name", "parent", "tags", "user", "session", "metadata", "resumed")
"""Fields under `grace` that exist before a run ends. The other fields may hold later data."""


class Prefixes:
    """A run as it was before its gated actions."""

    def __init__(self, trace: Document | ReasoningTrace, grace: Document) -> None:
        self._trace, self.grace = trace, grace
        self._evidence: dict[int, RunEvidence] = {}

    def evidence_of(self, action: RecordedAction) -> RunEvidence | RecordedEvidence | None:
        """Return the evidence before an action, also that of other runs, as far as its entry records it; None if that cannot be read."""
        readings = action.record.data.get("evidence")
        if readings is None:
            return self.evidence(action.step or 0)
        try:
            return RecordedEvidence(readings)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError):  # any program may have written it
            return None

    def evidence(self, step: int) -> RunEvidence:
        """Return the evidence of the calls that had ended when the run had `step` steps."""
        if step not in self._evidence:
            count = bisect_left(self._ended, step, key=lambda pair: pair[0])
            before = evidence_of_calls([call for _, call in self._ended[:count]], since=0, per_step=1)
            for number, item in enumerate(list_in(self.whole, "steps")[:step]):
                if isinstance(item, Mapping) and item.get("role") == "user":
                    before.user_spoke(number)
            self._evidence[step] = before
        return self._evidence[step]

    @cached_property
    def _ended(self) -> list[tuple[int, Document]]:
        """The calls that ended, each with the number of its result's step, in the order in which they ended."""
        calls = [call for call in self.grace["calls"] if isinstance(call, Mapping)]
        found = [(number, call) for call in calls if type(number := call.get("observation")) is int]
        return sorted(found, key=lambda pair: pair[0])

    @cached_property
    def whole(self) -> Document:
        """The run with everything that it recorded."""
        return document_of(self._trace)

    @cached_property
    def recorded(self) -> RecordedRun:
        """The run, for the features of its actions in their order."""
        return RecordedRun(self.whole)

    def document(self, step: int, evaluation: object = None) -> dict[str, Any]:
        """Return the document of the run as it was after `step` steps: still open, without an answer, a score or a label."""
        document = self.whole
        grace = mapping_in(document, "grace")
        kept: dict[str, Any] = {"status": "open", **{name: grace[name] for name in _KNOWN_BEFORE if name in grace}}
        if evaluation is not None:
            kept["evaluation"] = evaluation
        kept["calls"] = [found for call in list_in(grace, "calls") if (found := _call_before(call, step)) is not None]
        models = [call for call in list_in(grace, "model_calls") if isinstance(call, Mapping)]
        known = [call for call in models if type(call.get("step")) is int and call["step"] < step]
        if known:
            kept["model_calls"] = known
        return copy.deepcopy(
            {
                **{name: document[name] for name in ("@context", "@type", "id", "task") if name in document},
                "metadata": {**mapping_in(document, "metadata"), "success": True, "quality_score": 0.0},
                "steps": list_in(document, "steps")[:step],
                "outcome": {"result_summary": "", "confidence": 0.5},
                "grace": kept,
            }
        )


def _call_before(call: object, step: int) -> Document | None:
    if not isinstance(call, Mapping) or type(begun := call.get("tool_call")) is not int or begun >= step:
        return None
    if type(ended := call.get("observation")) is int and ended < step:
        return call
    return {name: call[name] for name in _OPEN_CALL if name in call}


def provenance(
    run: Run | ReasoningTrace | Document, action: DecisionRecord | str | int | tuple[str, Mapping[str, Any]]
) -> tuple[ValuePlaces, ...]:
    """Return where the values in the arguments of an action come from, in what its agent had seen.

        for value in cal.provenance(trace, trace.decisions[0]):
            print(value.parameter, value.kind, [place.tool for place in value.places])

    Args:
        run: a trace or its dict form; or an open run of `grace.run`, of which everything so far counts, with its secrets.
        action: a decision of the run, its id, its position in `trace.decisions`; or a tool with arguments by name, as if it were called now.

    Raises:
        ValueError: the run has no such decision, or it recorded nothing.
    """
    if isinstance(run, Run) and not run.open:
        return provenance(run.trace, action)
    entries = [*run.decisions] if isinstance(run, Run) else list_in(grace_of(run), "decisions")

    def seen(step: int | None = None, decisions: int | None = None) -> ActionHistory:
        if isinstance(run, Run):
            return history_of(run) or ActionHistory()
        return history_of_document(run, step, decisions=decisions)

    if isinstance(action, tuple):
        if [*map(type, action)][:1] != [str] or len(action) != 2 or not isinstance(action[1], Mapping):
            raise ValueError(f"a call is a pair of a tool and its arguments by name, not {action!r:.80}")
        return seen().features(*action).places
    for number, record in enumerate(read_decisions(entries)):
        if action in (number, record) or (isinstance(action, str) and action == record.data.get("id")):
            place = next(at for at, entry in enumerate(entries) if entry is record.data)
            return seen(record.step, place).features(record.action, record.arguments).places
    raise ValueError(f"the run has no decision {action!r:.80}; it has {len(entries)}, which are numbered from 0")


def add_judgements(factors: ConfidenceFactors, evaluation: object, *, cautious: bool) -> ConfidenceFactors:
    """Return the factors with the judgements that a trace or a gate's entry records."""
    if not isinstance(evaluation, Mapping):
        return factors
    own, coverage = _evaluation(evaluation.get("self_evaluation")), _evaluation(evaluation.get("coverage"))
    return with_judgements(factors, own, coverage, cautious=cautious)


def judged_factors(trace: Document | ReasoningTrace, evaluation: object, *, cautious: bool) -> ConfidenceFactors:
    """Return the factors of a run as a whole with its judgements, and with the measured agreement of its sources."""
    factors = factors_from_trace(trace)
    agreement = _evaluation(evaluation.get("source_agreement")) if isinstance(evaluation, Mapping) else None
    return add_judgements(
        factors if agreement is None else with_agreement(factors, agreement), evaluation, cautious=cautious
    )


def _evaluation(part: object) -> Evaluation | None:
    if not isinstance(part, Mapping) or not is_unit(part.get("score")):
        return None
    spread = part.get("spread")
    return Evaluation(
        score=part["score"], fallback=part.get("fallback") is True, spread=spread if is_unit(spread) else None
    )
